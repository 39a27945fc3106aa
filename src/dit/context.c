/* SPDX-License-Identifier: Apache-2.0
 *
 * What depends on the prompt only: the projected text, and every block's cross-attention keys and values.
 *
 * The reference pads text states with rows of zeros to 512 and attends to them. All those rows are equal, so one row stands for n of them
 * with ln n added to its logit: the same sum, up to rounding, with n_text + 1 keys instead of 512. */
#include <math.h>
#include <stdlib.h>

#include "dit/dit_internal.h"

typedef struct context_scratch {
    reel_tensor states, hidden, text; /* [n_key, text_dim], [n_key, width], [n_key, width] compute */
} context_scratch;

static reel_status project_text(reel_dit *dit, const reel_tensor *states, const context_scratch *t, reel_error *err)
{
    const reel_ops *ops = dit->ops;
    REEL_TRY(ops->vt->fill(ops->stream, t->states.data, 0, reel_tensor_bytes(&t->states), err));
    if (states->extent[0] > 0) {
        reel_tensor real = reel_tensor_slice(t->states, 0, 0, states->extent[0]);
        REEL_TRY(REEL_OP(ops, convert, err, .x = *states, .y = real));
    }
    reel_region w;
    REEL_TRY(reel_weights_acquire(dit->weights, dit->region_embed, &w, err));
    reel_status status = REEL_OP(ops, linear, err, .x = t->states, .w = w.weight[E_TEXT_1_W], .bias = w.vector[E_TEXT_1_B],
                                 .act = REEL_ACTIVATION_GELU_TANH, .y = t->hidden);
    if (status == REEL_OK) {
        status = REEL_OP(ops, linear, err, .x = t->hidden, .w = w.weight[E_TEXT_2_W], .bias = w.vector[E_TEXT_2_B], .y = t->text);
    }
    reel_weights_release(dit->weights, dit->region_embed);
    return status;
}

static reel_status project_block(reel_dit *dit, int32_t i, const reel_tensor *text, reel_dit_context *c, reel_error *err)
{
    const reel_ops *ops = dit->ops;
    reel_region w;
    REEL_TRY(reel_weights_acquire(dit->weights, dit->region_block[i], &w, err));
    reel_status status = REEL_OP(ops, linear, err, .x = *text, .w = w.weight[B_K2_W], .bias = w.vector[B_K2_B], .y = c->key[i]);
    if (status == REEL_OK) {
        status = REEL_OP(ops, rms_norm, err, .x = c->key[i], .weight = w.vector[B_NORM_K2], .y = c->key[i], .eps = (float)dit->config.eps);
    }
    if (status == REEL_OK)
        status = REEL_OP(ops, linear, err, .x = *text, .w = w.weight[B_V2_W], .bias = w.vector[B_V2_B], .y = c->value[i]);
    reel_weights_release(dit->weights, dit->region_block[i]);
    return status;
}

/* Rows as they are attended to: the real ones, and one for the padding if there is any. */
static int64_t key_count(int64_t n_real, int64_t n_padded)
{
    return n_padded > n_real ? n_real + 1 : n_real;
}

static reel_status upload_key_bias(reel_dit *dit, const reel_dit_context *c, int64_t n_real, int64_t n_padded, reel_error *err)
{
    float *bias = calloc((size_t)c->n_key, sizeof *bias);
    if (!bias) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for text conditioning\nremedy: close other programs");
    if (n_padded > n_real) bias[n_real] = (float)log((double)(n_padded - n_real));
    reel_status status = reel_ops_upload(dit->ops, &c->key_bias, bias, err);
    free(bias);
    return status;
}

size_t reel_dit_context_bytes(const reel_dit_config *config, const reel_dit_options *options, int64_t n_text, size_t alignment)
{
    int64_t width = (int64_t)config->n_head * config->head_dim;
    return reel_arena_need(alignment, REEL_DTYPE_F32, n_text + 1) +
           2 * (size_t)config->n_layer * reel_arena_need(alignment, options->compute, (n_text + 1) * width);
}

size_t reel_dit_context_scratch_bytes(const reel_dit_config *config, const reel_dit_options *options, int64_t n_text, size_t alignment)
{
    int64_t width = (int64_t)config->n_head * config->head_dim;
    return reel_arena_need(alignment, options->compute, (n_text + 1) * config->text_dim) +
           2 * reel_arena_need(alignment, options->compute, (n_text + 1) * width);
}

static reel_status take_all(reel_dit *dit, reel_dit_context *c, context_scratch *t, reel_arena *arena, reel_arena *scratch, reel_error *err)
{
    const reel_dtype compute = dit->options.compute;
    REEL_TRY(reel_arena_take(arena, REEL_DTYPE_F32, c->n_key, 0, 0, 0, &c->key_bias, err));
    for (int32_t i = 0; i < dit->config.n_layer; i++) {
        REEL_TRY(reel_arena_take(arena, compute, c->n_key, dit->width, 0, 0, &c->key[i], err));
        REEL_TRY(reel_arena_take(arena, compute, c->n_key, dit->width, 0, 0, &c->value[i], err));
    }
    REEL_TRY(reel_arena_take(scratch, compute, c->n_key, dit->config.text_dim, 0, 0, &t->states, err));
    REEL_TRY(reel_arena_take(scratch, compute, c->n_key, dit->width, 0, 0, &t->hidden, err));
    return reel_arena_take(scratch, compute, c->n_key, dit->width, 0, 0, &t->text, err);
}

reel_status reel_dit_context_new(reel_dit *dit, const reel_tensor *states, int32_t n_padded, reel_arena *arena, reel_arena *scratch,
                                 reel_dit_tap tap, void *tap_user, reel_dit_context **out, reel_error *err)
{
    const int64_t n_real = states->extent[0];
    const size_t mark = scratch->used;
    reel_status status = REEL_OK;
    context_scratch t = {0};
    reel_dit_context *c = calloc(1, sizeof *c);
    if (c) c->key = calloc(2 * (size_t)dit->config.n_layer, sizeof *c->key);
    if (!c || !c->key) {
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory for text conditioning\nremedy: close other programs");
        goto cleanup;
    }
    c->value = c->key + dit->config.n_layer;
    c->n_key = key_count(n_real, n_padded);
    REEL_TRY_GOTO(take_all(dit, c, &t, arena, scratch, err), cleanup);
    REEL_TRY_GOTO(upload_key_bias(dit, c, n_real, n_padded, err), cleanup);
    REEL_TRY_GOTO(project_text(dit, states, &t, err), cleanup);
    for (int32_t i = 0; i < dit->config.n_layer; i++) REEL_TRY_GOTO(project_block(dit, i, &t.text, c, err), cleanup);
    if (tap) REEL_TRY_GOTO(tap(tap_user, "inner_text_projection", &t.text, err), cleanup);
    REEL_TRY_GOTO(reel_ops_sync(dit->ops, err), cleanup); /* scratch is given back below */
    *out = c;
    c = NULL;
cleanup:
    reel_arena_rewind(scratch, mark);
    reel_dit_context_free(&c);
    return status;
}

void reel_dit_context_free(reel_dit_context **context)
{
    if (!*context) return;
    free((*context)->key);
    free(*context);
    *context = NULL;
}
