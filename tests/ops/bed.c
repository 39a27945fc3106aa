/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory, random numbers, running and comparing (bed.h). */
#include "bed.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POISON = 0xFF, GUARD_BYTE = 0xC7 };

const reel_dtype bed_floats[4] = {REEL_DTYPE_F32, REEL_DTYPE_BF16, REEL_DTYPE_F16, REEL_DTYPE_NONE};

/* ---- operations by name -------------------------------------------------------------------------------------------------- */

#define X(op, version, need)                                                             \
    static reel_status call_##op(const reel_ops *ops, const void *args, reel_error *err) \
    {                                                                                    \
        return reel_ops_##op(ops, args, err);                                            \
    }
REEL_OP_LIST(X)
#undef X

enum { MAY, MUST };

static const bed_op all_ops[] = {
#define X(op, version, need) {#op, &reel_args_##op, reel_ref_##op, call_##op, (need) == MUST},
    REEL_OP_LIST(X)
#undef X
};

const bed_op *bed_op_at(int32_t i)
{
    return i >= 0 && (size_t)i < REEL_COUNT(all_ops) ? &all_ops[i] : NULL;
}

const bed_op *bed_find_op(const char *name)
{
    for (size_t i = 0; i < REEL_COUNT(all_ops); i++)
        if (strcmp(all_ops[i].name, name) == 0) return &all_ops[i];
    (void)fprintf(stderr, "no operation %s\n", name);
    abort();
}

/* ---- random numbers (splitmix64) ----------------------------------------------------------------------------------------- */

static uint64_t next_random(bed *b)
{
    uint64_t z = b->random += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

double bed_uniform(bed *b)
{
    return (double)(next_random(b) >> 11) * 0x1p-53;
}

double bed_normal(bed *b)
{
    double u = 1.0 - bed_uniform(b), v = bed_uniform(b);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

int64_t bed_range(bed *b, int64_t low, int64_t high)
{
    return low + (int64_t)(next_random(b) % (uint64_t)(high - low + 1));
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static uint8_t *memory(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes + 2 * BED_GUARD) != 0) abort();
    return p;
}

void bed_clear(bed *b)
{
    for (int32_t i = 0; i < b->n_block; i++) {
        bed_block *k = &b->block[i];
        free(k->host), free(k->expect), free(k->got), free(k->kept);
        if (k->device) b->dev->vt->buffer_free(b->dev->device, k->device);
    }
    b->n_block = 0;
    b->least_rms = 0.0;
}

static bed_block *new_block(bed *b, size_t bytes)
{
    if (b->n_block == BED_BLOCK_MAX) abort();
    bed_block *k = &b->block[b->n_block++];
    *k = (bed_block){.host = memory(bytes), .expect = memory(bytes), .got = memory(bytes), .kept = memory(bytes), .bytes = bytes};
    memset(k->host, GUARD_BYTE, bytes + 2 * BED_GUARD);
    memset(k->host + BED_GUARD, POISON, bytes);
    void *device = NULL;
    if (b->dev->vt->buffer_new(b->dev->device, bytes + 2 * BED_GUARD, &device, NULL) != REEL_OK) abort();
    k->device = device;
    return k;
}

/* Strides of the layout; returns the elements spanned. */
static int64_t lay_out(bed *b, bed_layout layout, reel_tensor *t)
{
    int32_t order[REEL_DIM_MAX]; /* innermost first */
    for (int32_t i = 0; i < t->n_dim; i++) order[i] = t->n_dim - 1 - i;
    if (layout == BED_FREE)
        for (int32_t i = t->n_dim - 1; i > 0; i--) {
            int32_t j = (int32_t)bed_range(b, 0, i), swap = order[i];
            order[i] = order[j];
            order[j] = swap;
        }
    int64_t span = 1;
    for (int32_t i = 0; i < t->n_dim; i++) {
        if (layout == BED_FREE || (layout == BED_ROWS && i > 0)) span += bed_range(b, 0, 3) * (i == 0 ? 0 : 1);
        t->stride[order[i]] = span;
        span *= t->extent[order[i]];
    }
    return span;
}

static reel_tensor new_tensor(bed *b, reel_dtype dtype, bed_layout layout, const int64_t extent[4])
{
    reel_tensor t = {.dtype = dtype};
    while (t.n_dim < 4 && extent[t.n_dim] > 0) {
        t.extent[t.n_dim] = extent[t.n_dim];
        t.n_dim++;
    }
    int64_t span = lay_out(b, layout, &t);
    t.data = new_block(b, (size_t)span * reel_dtype_bytes(dtype))->host + BED_GUARD;
    return t;
}

void bed_set(const reel_tensor *t, int64_t offset, double value)
{
    switch (t->dtype) {
    case REEL_DTYPE_F64: ((double *)t->data)[offset] = value; break;
    case REEL_DTYPE_I32: ((int32_t *)t->data)[offset] = (int32_t)value; break;
    case REEL_DTYPE_U8: ((uint8_t *)t->data)[offset] = (uint8_t)value; break;
    default: reel_ref_set(t, offset, value); break;
    }
}

static void fill_random(bed *b, const reel_tensor *t)
{
    for (int64_t r = 0; r < reel_ref_n_row(t); r++)
        for (int64_t c = 0; c < reel_ref_n_col(t); c++) {
            int64_t at = reel_ref_row(t, r) + c * reel_ref_step(t);
            if (t->dtype == REEL_DTYPE_F8_E4M3 || t->dtype == REEL_DTYPE_F8_E5M2) /* exponent bits not all set: finite in both formats */
                ((uint8_t *)t->data)[at] = (uint8_t)(bed_range(b, 0, 0x4F) | bed_range(b, 0, 1) << 7);
            else
                bed_set(t, at, bed_normal(b));
        }
}

reel_tensor bed_input(bed *b, reel_dtype dtype, bed_layout layout, int64_t e0, int64_t e1, int64_t e2, int64_t e3)
{
    reel_tensor t = new_tensor(b, dtype, layout, (const int64_t[4]){e0, e1, e2, e3});
    fill_random(b, &t);
    return t;
}

reel_tensor bed_output(bed *b, reel_dtype dtype, bed_layout layout, int64_t e0, int64_t e1, int64_t e2, int64_t e3)
{
    return new_tensor(b, dtype, layout, (const int64_t[4]){e0, e1, e2, e3});
}

reel_tensor bed_indices(bed *b, int64_t n, int64_t limit)
{
    reel_tensor t = new_tensor(b, REEL_DTYPE_I32, BED_DENSE, (const int64_t[4]){n, 0, 0, 0});
    for (int64_t i = 0; i < n; i++) ((int32_t *)t.data)[i] = (int32_t)bed_range(b, 0, limit - 1);
    return t;
}

reel_weight bed_weight(bed *b, reel_dtype dtype, bed_layout layout, int64_t n_row, int64_t n_col, const int32_t *kernel)
{
    reel_tensor t = bed_input(b, dtype, layout, n_row, n_col, 0, 0);
    int32_t bytes = (int32_t)reel_dtype_bytes(dtype);
    reel_weight w = {.size = sizeof w, .dtype = dtype, .block_elements = 1, .block_bytes = bytes, .n_row = n_row, .n_col = n_col};
    w.row_stride_bytes = t.stride[0] * bytes;
    w.row_end = n_row;
    w.data = t.data;
    if (kernel) memcpy(w.kernel, kernel, sizeof w.kernel);
    return w;
}

/* ---- the same arguments over other memory -------------------------------------------------------------------------------- */

typedef enum place { EXPECT, DEVICE, GOT, KEPT } place; /* indices of bed.low_rank_at */

static void *move_pointer(const bed *b, const void *p, place where)
{
    for (int32_t i = 0; i < b->n_block; i++) {
        const bed_block *k = &b->block[i];
        const uint8_t *q = p;
        if (q < k->host || q >= k->host + k->bytes + 2 * BED_GUARD) continue;
        uint8_t *const base[] = {[EXPECT] = k->expect, [DEVICE] = k->device, [GOT] = k->got, [KEPT] = k->kept};
        return base[where] + (q - k->host);
    }
    (void)fprintf(stderr, "a case uses memory that is not the bed's\n");
    abort();
}

/* Space for a moved copy of a call and its low-rank list. */
typedef union call_args {
#define X(op, version, need) reel_op_##op op;
    REEL_OP_LIST(X)
#undef X
} call_args;

typedef struct moved {
    call_args args;
    reel_packed *packed;
} moved;

static void move_args(bed *b, const bed_op *op, const void *args, place where, moved *out)
{
    memcpy(&out->args, args, op->rule->struct_bytes);
    out->packed = NULL;
    for (int32_t i = 0; i < op->rule->n_operand; i++) {
        const reel_operand *o = &op->rule->operand[i];
        void *field = (char *)&out->args + o->offset;
        if (o->kind != REEL_OPERAND_WEIGHT) {
            reel_tensor *t = field;
            if (t->data) t->data = move_pointer(b, t->data, where);
            continue;
        }
        reel_weight *w = field;
        w->data = move_pointer(b, w->data, where);
        reel_low_rank *there = b->low_rank_at[where]; /* part of the weight: stays until the device has been waited for */
        for (int32_t k = 0; k < w->n_low_rank; k++) {
            there[k] = w->low_rank[k];
            there[k].a = move_pointer(b, w->low_rank[k].a, where);
            there[k].b = move_pointer(b, w->low_rank[k].b, where);
        }
        if (w->n_low_rank > 0) w->low_rank = there;
    }
}

/* ---- running ------------------------------------------------------------------------------------------------------------- */

void bed_fail(bed *b, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    b->n_fail++;
    if (b->n_fail <= 20) (void)fprintf(stderr, "  FAIL %s: %s (REEL_TEST_SEED=%llu)\n", b->dev->label, text, (unsigned long long)b->seed);
}

static reel_weight *weight_of(const bed_op *op, moved *m)
{
    for (int32_t i = 0; i < op->rule->n_operand; i++)
        if (op->rule->operand[i].kind == REEL_OPERAND_WEIGHT)
            return (reel_weight *)(void *)((char *)&m->args + op->rule->operand[i].offset);
    return NULL;
}

static reel_dtype compute_dtype(const bed_op *op, const moved *m)
{
    const reel_tensor *x = (const reel_tensor *)(const void *)((const char *)&m->args + op->rule->operand[0].offset);
    return x->dtype == REEL_DTYPE_BF16 ? REEL_DTYPE_BF16 : REEL_DTYPE_F32;
}

/* Convolutions always go through weight_pack where there is one, linears when the bed says so. */
static reel_status pack(bed *b, const bed_op *op, moved *m, reel_error *err)
{
    reel_weight *w = weight_of(op, m);
    if (!w || !b->dev->vt->weight_pack || strcmp(op->name, "gather_rows") == 0) return REEL_OK;
    if (!b->is_packed && w->kernel[0] == 0) return REEL_OK;
    size_t bytes = 0;
    REEL_TRY(b->dev->vt->weight_pack(b->dev->device, w, compute_dtype(op, m), &m->packed, &bytes, err));
    w->packed = m->packed;
    return REEL_OK;
}

static bool failed(bed *b, const char *op, const char *what, reel_status status, const reel_error *err)
{
    if (status != REEL_OK) bed_fail(b, "%s %s: %s", op, what, err->text);
    return status != REEL_OK;
}

bool bed_begin(bed *b)
{
    const bed_device *d = b->dev;
    reel_error err = {.code = REEL_OK};
    reel_status status = REEL_OK;
    for (int32_t i = 0; i < b->n_block && status == REEL_OK; i++)
        status = d->vt->upload(d->stream, b->block[i].device, b->block[i].host, b->block[i].bytes + 2 * BED_GUARD, &err);
    if (status == REEL_OK) status = reel_ops_sync(&d->ops, &err);
    return !failed(b, "upload", "", status, &err);
}

bool bed_enqueue(bed *b, const char *name, const void *args, const char *what)
{
    const bed_op *op = bed_find_op(name);
    moved m;
    reel_error err = {.code = REEL_OK};
    move_args(b, op, args, DEVICE, &m);
    reel_status status = pack(b, op, &m, &err);
    if (m.packed) b->packed[b->n_packed++] = m.packed;
    const reel_ops *ops = &b->dev->ops;
    bool is_by_impl = b->attention && strcmp(name, "attention") == 0;
    if (status == REEL_OK)
        status = is_by_impl ? reel_ops_attention_by(ops, b->attention, &m.args.attention, &err) : op->call(ops, &m.args, &err);
    memset(&m.args, 0xFF, sizeof m.args); /* a device may not look at the struct again */
    return !failed(b, name, what, status, &err);
}

bool bed_end(bed *b)
{
    const bed_device *d = b->dev;
    reel_error err = {.code = REEL_OK};
    reel_status status = REEL_OK;
    for (int32_t i = 0; i < b->n_block && status == REEL_OK; i++)
        status = d->vt->download(d->stream, b->block[i].got, b->block[i].device, b->block[i].bytes + 2 * BED_GUARD, &err);
    if (status == REEL_OK) status = reel_ops_sync(&d->ops, &err);
    while (b->n_packed > 0) d->vt->weight_free(d->device, b->packed[--b->n_packed]);
    return !failed(b, "download", "", status, &err);
}

bool bed_run(bed *b, const char *op, const void *args, const char *what)
{
    bool is_good = bed_begin(b) && bed_enqueue(b, op, args, what);
    return bed_end(b) && is_good;
}

/* ---- comparing ----------------------------------------------------------------------------------------------------------- */

static double value_at(const reel_tensor *t, int64_t offset)
{
    if (t->dtype == REEL_DTYPE_I32) return (double)((const int32_t *)t->data)[offset];
    if (t->dtype == REEL_DTYPE_U8) return (double)((const uint8_t *)t->data)[offset];
    return reel_ref_get(t, offset);
}

typedef struct error_sums {
    double difference, square, most;
    int64_t n, n_odd; /* n_odd: one is finite and the other not, or infinities differ */
} error_sums;

static void add_error(error_sums *e, double want, double got)
{
    e->n++;
    if (!isfinite(want) || !isfinite(got)) {
        if (!(isnan(want) && isnan(got)) && want != got) e->n_odd++;
        return;
    }
    double d = fabs(want - got);
    e->difference += d * d;
    e->square += want * want;
    if (d > e->most) e->most = d;
}

/* Compares and then wipes the elements of one output in both results. */
static error_sums compare_output(const reel_tensor *want, const reel_tensor *got)
{
    error_sums e = {.n = 0};
    size_t bytes = reel_dtype_bytes(want->dtype);
    for (int64_t r = 0; r < reel_ref_n_row(want); r++)
        for (int64_t c = 0; c < reel_ref_n_col(want); c++) {
            int64_t at = reel_ref_row(want, r) + c * reel_ref_step(want);
            add_error(&e, value_at(want, at), value_at(got, at));
            memset((char *)want->data + (size_t)at * bytes, 0, bytes);
            memset((char *)got->data + (size_t)at * bytes, 0, bytes);
        }
    return e;
}

static bed_bound bound_for(const bed_tolerance *tolerance, reel_dtype dtype)
{
    switch (dtype) {
    case REEL_DTYPE_F32: return tolerance->f32;
    case REEL_DTYPE_BF16: return tolerance->bf16;
    case REEL_DTYPE_F16: return tolerance->f16;
    default: return (bed_bound){0.0, 0.0}; /* integers: equal */
    }
}

static void judge(bed *b, const char *op, const char *output, const char *what, error_sums e, bed_bound bound, double step)
{
    double rms = fmax(sqrt(e.square / (double)e.n), b->least_rms), n = (double)e.n;
    double l2 = sqrt(e.difference / n), most = e.most;
    if (strcmp(output, "lse") == 0) rms = fmax(rms, 1.0); /* a logarithm, near 0 by chance with one key: its error is absolute */
    if (rms > 0.0) l2 /= rms, most /= rms;
    bound.l2 += 4.0 * step / sqrt(n);
    bound.most += 4.0 * step;
    if (e.n_odd > 0 || l2 > bound.l2 || most > bound.most)
        bed_fail(b, "%s %s: %s has relative L2 %.3g (allowed %.3g), most %.3g (allowed %.3g), %lld of %lld not finite where they should be",
                 op, what, output, l2, bound.l2, most, bound.most, (long long)e.n_odd, (long long)e.n);
    double part = bound.l2 > 0.0 ? fmax(l2 / bound.l2, most / bound.most) : 0.0;
    if (part <= b->worst) return;
    b->worst = part;
    (void)snprintf(b->worst_at, sizeof b->worst_at, "%s: l2 %.2g, most %.2g", what, l2, most);
}

/* The distance of two neighbours as a part of their value, for 16-bit floats; exact operations are held to equality. */
static double step_of(bed_bound bound, reel_dtype dtype)
{
    if (bound.l2 <= 0.0) return 0.0;
    return dtype == REEL_DTYPE_BF16 ? 0x1p-8 : dtype == REEL_DTYPE_F16 ? 0x1p-11 : 0.0;
}

static void compare(bed *b, const bed_op *op, const void *args, const bed_tolerance *tolerance, const char *what)
{
    moved want, got;
    move_args(b, op, args, EXPECT, &want);
    move_args(b, op, args, GOT, &got);
    for (int32_t i = 0; i < op->rule->n_operand; i++) {
        const reel_operand *o = &op->rule->operand[i];
        if (!(o->flags & REEL_OPERAND_OUT)) continue;
        const reel_tensor *w = (const reel_tensor *)(const void *)((const char *)&want.args + o->offset);
        const reel_tensor *g = (const reel_tensor *)(const void *)((const char *)&got.args + o->offset);
        bed_bound bound = bound_for(tolerance, w->dtype);
        if (w->data) judge(b, op->name, o->name, what, compare_output(w, g), bound, step_of(bound, w->dtype));
    }
    for (int32_t i = 0; i < b->n_block; i++)
        if (memcmp(b->block[i].expect, b->block[i].got, b->block[i].bytes + 2 * BED_GUARD) != 0)
            bed_fail(b, "%s %s: bytes outside the output were changed (block %d)", op->name, what, i);
}

void bed_keep(bed *b)
{
    for (int32_t i = 0; i < b->n_block; i++) memcpy(b->block[i].kept, b->block[i].got, b->block[i].bytes + 2 * BED_GUARD);
}

void bed_same(bed *b, const char *op, const char *what)
{
    for (int32_t i = 0; i < b->n_block; i++)
        if (memcmp(b->block[i].kept, b->block[i].got, b->block[i].bytes + 2 * BED_GUARD) != 0) {
            bed_fail(b, "%s %s: other bits than before (block %d)", op, what, i);
            return;
        }
}

void bed_near(bed *b, const reel_tensor *t, double l2, const char *op, const char *what)
{
    reel_tensor want = *t, got = *t;
    want.data = move_pointer(b, t->data, KEPT);
    got.data = move_pointer(b, t->data, GOT);
    error_sums e = compare_output(&want, &got);
    double error = sqrt(e.difference / e.square);
    if (e.n_odd > 0 || !(error <= l2)) bed_fail(b, "%s %s: relative L2 %.3g to the whole, allowed %.3g", op, what, error, l2);
}

/* Host memory: a buffer of one device serves its twins. */
static void run_twins(bed *b, const char *op, const void *args, const char *what)
{
    bed_device *first = b->dev;
    for (int32_t i = 0; i < b->n_twin; i++) {
        b->dev = b->twin[i];
        if (bed_run(b, op, args, what)) bed_same(b, op, what);
    }
    b->dev = first;
}

void bed_check(bed *b, const char *name, const void *args, bed_tolerance tolerance, const char *format, ...)
{
    char what[160];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(what, sizeof what, format, ap);
    va_end(ap);
    const bed_op *op = bed_find_op(name);
    moved want;
    reel_error err = {.code = REEL_OK};
    for (int32_t i = 0; i < b->n_block; i++) memcpy(b->block[i].expect, b->block[i].host, b->block[i].bytes + 2 * BED_GUARD);
    move_args(b, op, args, EXPECT, &want);
    b->n_check++;
    if (op->reference(NULL, &want.args, &err) != REEL_OK) {
        bed_fail(b, "%s %s: the reference says: %s", name, what, err.text);
        return;
    }
    if (!bed_run(b, name, args, what)) return;
    bed_keep(b);
    compare(b, op, args, &tolerance, what);
    run_twins(b, name, args, what);
}
