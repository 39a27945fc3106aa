/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares a call of an operation with its rule (args.h). Knows no operation: the rules are in rules.c. */
#include "ops/args.h"

#include <stdio.h>
#include <string.h>

#include "reel-plugin/tensor_util.h"

/* Extents that letters stand for, and the tensor that "*" and "=" refer to. */
typedef struct bindings {
    int64_t letter[128]; /* 0: not seen yet */
    const reel_tensor *leading, *whole;
} bindings;

static const reel_tensor *tensor_of(const reel_operand *o, const void *args)
{
    return (const reel_tensor *)(const void *)((const char *)args + o->offset);
}

static const reel_weight *weight_of(const reel_operand *o, const void *args)
{
    return (const reel_weight *)(const void *)((const char *)args + o->offset);
}

static bool fits_kind(reel_operand_kind kind, reel_dtype dtype)
{
    bool is_float = dtype == REEL_DTYPE_F32 || dtype == REEL_DTYPE_BF16 || dtype == REEL_DTYPE_F16;
    bool is_stored = dtype == REEL_DTYPE_F64 || dtype == REEL_DTYPE_F8_E4M3 || dtype == REEL_DTYPE_F8_E5M2;
    switch (kind) {
    case REEL_OPERAND_FLOAT: return is_float;
    case REEL_OPERAND_SOURCE:
    case REEL_OPERAND_WEIGHT: return is_float || is_stored;
    case REEL_OPERAND_F32: return dtype == REEL_DTYPE_F32;
    case REEL_OPERAND_I32: return dtype == REEL_DTYPE_I32;
    case REEL_OPERAND_U8: return dtype == REEL_DTYPE_U8;
    }
    return false;
}

static bool bind_letter(bindings *b, char letter, int64_t extent)
{
    int64_t *slot = &b->letter[(unsigned char)letter & 127U];
    if (*slot == 0) *slot = extent;
    return *slot == extent;
}

static bool same_extents(const reel_tensor *a, const reel_tensor *b, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (a->extent[i] != b->extent[i]) return false;
    return true;
}

/* The words for what is wrong with the tensor's shape, or NULL. */
static const char *check_shape(const reel_operand *o, const reel_tensor *t, bindings *b)
{
    if (t->n_dim < 1 || t->n_dim > REEL_DIM_MAX) return "has a wrong number of dimensions";
    for (int32_t i = 0; i < t->n_dim; i++)
        if (t->extent[i] < 1) return "has an extent below 1";
    if (o->shape[0] == '=') {
        if (!b->whole) b->whole = t;
        return t->n_dim == b->whole->n_dim && same_extents(t, b->whole, t->n_dim) ? NULL : "differs in its extents";
    }
    if (o->shape[0] == '*') {
        if (!b->leading) b->leading = t;
        if (t->n_dim != b->leading->n_dim || !same_extents(t, b->leading, t->n_dim - 1)) return "differs in its leading extents";
        return bind_letter(b, o->shape[1], t->extent[t->n_dim - 1]) ? NULL : "differs in its last extent";
    }
    if (t->n_dim != (int32_t)strlen(o->shape)) return "has a wrong number of dimensions";
    for (int32_t i = 0; i < t->n_dim; i++)
        if (!bind_letter(b, o->shape[i], t->extent[i])) return "differs in an extent";
    return NULL;
}

static const char *check_tensor(const reel_operand *o, const reel_tensor *t, bindings *b)
{
    if (!t->data) return o->flags & REEL_OPERAND_OPTIONAL ? NULL : "is absent";
    if (!fits_kind(o->kind, t->dtype)) return "has a dtype that this operand cannot have";
    const char *wrong = check_shape(o, t, b);
    if (wrong) return wrong;
    if (o->flags & REEL_OPERAND_DENSE && !reel_tensor_is_dense(t)) return "is not dense";
    if (!(o->flags & REEL_OPERAND_FREE) && t->extent[t->n_dim - 1] > 1 && t->stride[t->n_dim - 1] != 1)
        return "is not contiguous in its last dimension";
    return NULL;
}

static const char *check_weight(const reel_operand *o, const reel_weight *w, bindings *b)
{
    if (w->size < sizeof *w) return "is a weight without its size";
    if (!w->data && !w->packed) return "is absent";
    if (!fits_kind(o->kind, w->dtype)) return "has a dtype that a weight cannot have";
    if (w->n_row < 1 || w->n_col < 1 || w->row_begin < 0 || w->row_end <= w->row_begin || w->row_end > w->n_row)
        return "has a wrong row range";
    if (w->n_low_rank < 0 || (w->n_low_rank > 0 && !w->low_rank)) return "has a wrong list of low-rank additions";
    if (!bind_letter(b, o->shape[0], w->row_end - w->row_begin)) return "differs in its rows";
    return bind_letter(b, o->shape[1], w->n_col) ? NULL : "differs in its columns";
}

/* Outputs may lie exactly on an input, never on one marked APART or with other strides. Only the first address is compared:
 * interleaved views of one buffer are allowed. */
static const char *check_alias(const reel_args_rule *rule, const reel_operand *out, const void *args)
{
    const reel_tensor *y = tensor_of(out, args);
    for (int32_t i = 0; i < rule->n_operand; i++) {
        const reel_operand *o = &rule->operand[i];
        if (o->flags & REEL_OPERAND_OUT || o->kind == REEL_OPERAND_WEIGHT) continue;
        const reel_tensor *x = tensor_of(o, args);
        if (!x->data || x->data != y->data) continue;
        if (o->flags & REEL_OPERAND_APART) return "lies on an input that it must not alias";
        if (x->dtype != y->dtype || x->n_dim != y->n_dim || !same_extents(x, y, x->n_dim))
            return "lies on an input of another dtype or other extents";
        for (int32_t d = 0; d < x->n_dim; d++)
            if (x->extent[d] > 1 && x->stride[d] != y->stride[d]) return "lies on an input with other strides";
    }
    return NULL;
}

static size_t append(char *text, size_t bytes, size_t used, const char *piece)
{
    int n = snprintf(text + used, bytes - used, "%s", piece);
    return n < 0 || (size_t)n >= bytes - used ? bytes - 1 : used + (size_t)n;
}

static size_t describe_extents(char *text, size_t bytes, size_t used, const reel_tensor *t)
{
    char piece[64];
    int32_t n_dim = t->n_dim < 0 ? 0 : t->n_dim > REEL_DIM_MAX ? REEL_DIM_MAX : t->n_dim;
    for (int32_t i = 0; i < n_dim; i++) {
        (void)snprintf(piece, sizeof piece, "%s%lld", i > 0 ? ", " : " [", (long long)t->extent[i]);
        used = append(text, bytes, used, piece);
    }
    used = append(text, bytes, used, "], strides");
    for (int32_t i = 0; i < n_dim; i++) {
        (void)snprintf(piece, sizeof piece, " %lld", (long long)t->stride[i]);
        used = append(text, bytes, used, piece);
    }
    return used;
}

/* "x F32 [3, 5], strides 5 1; w BF16 rows 0 … 4 of [4, 5]; bias absent" */
static void describe(const reel_args_rule *rule, const void *args, char *text, size_t bytes)
{
    size_t used = 0;
    char piece[160];
    for (int32_t i = 0; i < rule->n_operand; i++) {
        const reel_operand *o = &rule->operand[i];
        (void)snprintf(piece, sizeof piece, "%s%s ", i > 0 ? "; " : "", o->name);
        used = append(text, bytes, used, piece);
        if (o->kind == REEL_OPERAND_WEIGHT) {
            const reel_weight *w = weight_of(o, args);
            (void)snprintf(piece, sizeof piece, "%s rows %lld … %lld of [%lld, %lld], kernel %d %d %d", reel_dtype_name(w->dtype),
                           (long long)w->row_begin, (long long)w->row_end, (long long)w->n_row, (long long)w->n_col, w->kernel[0],
                           w->kernel[1], w->kernel[2]);
            used = append(text, bytes, used, piece);
            continue;
        }
        const reel_tensor *t = tensor_of(o, args);
        used = append(text, bytes, used, t->data ? reel_dtype_name(t->dtype) : "absent");
        if (t->data) used = describe_extents(text, bytes, used, t);
    }
}

static reel_status refuse(const reel_args_rule *rule, const void *args, const char *who, const char *wrong, reel_error *err)
{
    char given[1200];
    describe(rule, args, given, sizeof given);
    return REEL_FAIL(err, REEL_E_INTERNAL,
                     "operation %s: %s %s\ngiven: %s\nremedy: this is a fault of reel; please report it with this text", rule->op, who,
                     wrong, given);
}

void reel_args_normalise(const reel_args_rule *rule, void *args)
{
    for (int32_t i = 0; i < rule->n_operand; i++) {
        const reel_operand *o = &rule->operand[i];
        if (o->kind != REEL_OPERAND_F32) continue;
        reel_tensor *t = (reel_tensor *)(void *)((char *)args + o->offset);
        if (!t->data) continue;
        if (o->flags & REEL_OPERAND_TABLE && t->n_dim == 1) {
            *t = (reel_tensor){
                .data = t->data, .dtype = t->dtype, .n_dim = 2, .extent = {1, t->extent[0]}, .stride = {t->extent[0], t->stride[0]}};
        } else if (strlen(o->shape) == 1 && o->shape[0] != '=' && t->n_dim > 1 && t->n_dim <= REEL_DIM_MAX && reel_tensor_is_dense(t)) {
            *t = (reel_tensor){.data = t->data, .dtype = t->dtype, .n_dim = 1, .extent = {reel_tensor_count(t)}, .stride = {1}};
        }
    }
}

reel_status reel_args_check_size(const reel_args_rule *rule, const void *args, reel_error *err)
{
    uint32_t size = 0;
    if (args) memcpy(&size, args, sizeof size);
    if (size == rule->struct_bytes) return REEL_OK;
    return REEL_FAIL(err, REEL_E_INTERNAL,
                     "operation %s: the argument struct has a wrong size\ngiven: %u\nallowed: %zu\nremedy: set its size field, and build "
                     "everything against "
                     "one version of reel-plugin/ops.h",
                     rule->op, (unsigned)size, rule->struct_bytes);
}

reel_status reel_args_check(const reel_args_rule *rule, const void *args, reel_error *err)
{
    bindings b = {.leading = NULL};
    for (int32_t i = 0; i < rule->n_operand; i++) {
        const reel_operand *o = &rule->operand[i];
        const char *wrong =
            o->kind == REEL_OPERAND_WEIGHT ? check_weight(o, weight_of(o, args), &b) : check_tensor(o, tensor_of(o, args), &b);
        if (!wrong && o->flags & REEL_OPERAND_OUT) wrong = check_alias(rule, o, args);
        if (wrong) return refuse(rule, args, o->name, wrong, err);
    }
    const char *wrong = rule->extra ? rule->extra(args) : NULL;
    return wrong ? refuse(rule, args, "the arguments", wrong, err) : REEL_OK;
}
