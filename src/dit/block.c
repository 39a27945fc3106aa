/* SPDX-License-Identifier: Apache-2.0
 *
 * One block: self attention, cross attention, feed-forward, each added to the residual stream.
 *
 * Modulation is six rows per timestep (shift, scale, gate for attention, then for the feed-forward part), picked per token through an
 * index when timesteps differ. QK norms span all heads. Cross attention has neither gate nor modulation, its keys and values come with
 * the context. The feed-forward part runs over row ranges, which bounds its scratch and changes no bit.
 * Source: diffusers transformer_wan.py, WanTransformerBlock. */
#include <stdio.h>

#include "dit/dit_internal.h"

typedef struct block_scope {
    reel_dit *dit;
    const reel_region *w;
    const reel_dit_input *in;
    const dit_buffers *b;
    int32_t index;
} block_scope;

/* Between the parts of a block: stops when the job was cancelled. */
static reel_status agree(const reel_dit_input *in, reel_error *err)
{
    return in->agree ? in->agree(in->agree_user, err) : REEL_OK;
}

static reel_status tell(const block_scope *s, const char *part, const reel_tensor *t, reel_error *err)
{
    if (!s->in->tap) return REEL_OK;
    char name[64];
    (void)snprintf(name, sizeof name, "inner_block_%d%s", (int)s->index, part);
    return reel_dit_tell(s->in, name, t, err);
}

static reel_status exchange(const reel_dit_input *in, reel_exchange_point point, reel_tensor *tensors, int32_t n, reel_error *err)
{
    if (!in->exchange) return REEL_OK;
    return in->exchange->run(in->exchange->user, point, tensors, n, err);
}

/* norm ← LN(x)·(1 + scale) + shift with rows i (shift) and i + 1 (scale) of the modulation. */
static reel_status modulated_norm(const block_scope *s, int64_t i, reel_error *err)
{
    return REEL_OP(s->dit->ops, layer_norm, err, .x = s->b->x, .y = s->b->norm, .shift = reel_dit_modulation_row(s->b->modulation, i),
                   .scale = reel_dit_modulation_row(s->b->modulation, i + 1), .row_index = s->in->token_timestep, .one_plus = 1,
                   .eps = (float)s->dit->config.eps);
}

static reel_status project(const block_scope *s, reel_tensor x, int32_t weight, reel_tensor y, reel_error *err)
{
    return REEL_OP(s->dit->ops, linear, err, .x = x, .w = s->w->weight[weight], .bias = s->w->vector[weight + 1], .y = y);
}

/* RMS over all heads, then rotation; in place. */
static reel_status norm_rope(const block_scope *s, reel_tensor t, int32_t weight, reel_error *err)
{
    const reel_dit *d = s->dit;
    const reel_tensor *latents = &s->in->latents;
    reel_tensor view = reel_tensor_dense(t.data, t.dtype, t.extent[0], d->config.n_head, d->config.head_dim, 0);
    reel_rope rope = {.table = d->rope,
                      .first_token = s->in->t0,
                      .grid_h = latents->extent[2] / d->config.patch[1],
                      .grid_w = latents->extent[3] / d->config.patch[2],
                      .pair_t = d->pair_t,
                      .pair_h = d->pair_h};
    return REEL_OP(d->ops, rms_norm_rope, err, .x = view, .weight = s->w->vector[weight], .y = view, .eps = (float)d->config.eps,
                   .rope = rope);
}

static reel_status self_attention(const block_scope *s, reel_error *err)
{
    const reel_dit *d = s->dit;
    const dit_buffers *b = s->b;
    REEL_TRY(modulated_norm(s, 0, err));
    REEL_TRY(project(s, b->norm, B_Q1_W, b->q, err));
    REEL_TRY(project(s, b->norm, B_K1_W, b->k, err));
    REEL_TRY(project(s, b->norm, B_V1_W, b->v, err));
    REEL_TRY(norm_rope(s, b->q, B_NORM_Q1, err));
    REEL_TRY(norm_rope(s, b->k, B_NORM_K1, err));
    reel_tensor qkv[3] = {reel_dit_heads(d, b->q), reel_dit_heads(d, b->k), reel_dit_heads(d, b->v)};
    REEL_TRY(exchange(s->in, REEL_EXCHANGE_ATTENTION_IN, qkv, 3, err));
    reel_op_attention args = {.size = sizeof args, .q = qkv[0], .k = qkv[1], .v = qkv[2], .out = qkv[0]};
    REEL_TRY(reel_dit_attend(d, d->attention_self, &args, err));
    REEL_TRY(exchange(s->in, REEL_EXCHANGE_ATTENTION_OUT, &args.out, 1, err));
    REEL_TRY(project(s, b->q, B_O1_W, b->norm, err));
    REEL_TRY(tell(s, "_self_attention", &b->norm, err));
    return REEL_OP(d->ops, gate_residual, err, .x = b->x, .a = b->norm, .gate = reel_dit_modulation_row(b->modulation, 2),
                   .row_index = s->in->token_timestep, .y = b->x);
}

static reel_status cross_attention(const block_scope *s, reel_error *err)
{
    const reel_dit *d = s->dit;
    const dit_buffers *b = s->b;
    const reel_dit_context *c = s->in->context;
    if (d->config.cross_attn_norm) {
        REEL_TRY(REEL_OP(d->ops, layer_norm, err, .x = b->x, .y = b->norm, .scale = s->w->vector[B_NORM2_W],
                         .shift = s->w->vector[B_NORM2_B], .eps = (float)d->config.eps));
    } else {
        REEL_TRY(REEL_OP(d->ops, convert, err, .x = b->x, .y = b->norm));
    }
    REEL_TRY(project(s, b->norm, B_Q2_W, b->q, err));
    REEL_TRY(REEL_OP(d->ops, rms_norm, err, .x = b->q, .weight = s->w->vector[B_NORM_Q2], .y = b->q, .eps = (float)d->config.eps));
    reel_op_attention args = {.size = sizeof args, .key_bias = c->key_bias};
    args.q = args.out = reel_dit_heads(d, b->q);
    args.k = reel_dit_heads(d, c->key[s->index]);
    args.v = reel_dit_heads(d, c->value[s->index]);
    REEL_TRY(reel_dit_attend(d, d->attention_cross, &args, err));
    REEL_TRY(project(s, b->q, B_O2_W, b->norm, err));
    REEL_TRY(tell(s, "_cross_attention", &b->norm, err));
    return REEL_OP(d->ops, gate_residual, err, .x = b->x, .a = b->norm, .y = b->x);
}

static reel_status feed_forward(const block_scope *s, reel_error *err)
{
    const reel_dit *d = s->dit;
    const dit_buffers *b = s->b;
    REEL_TRY(modulated_norm(s, 3, err));
    const int64_t n_row = b->norm.extent[0], at_once = b->hidden.extent[0];
    for (int64_t row = 0; row < n_row; row += at_once) {
        int64_t end = row + at_once < n_row ? row + at_once : n_row;
        reel_tensor part = reel_tensor_slice(b->norm, 0, row, end);
        reel_tensor hidden = reel_tensor_slice(b->hidden, 0, 0, end - row);
        REEL_TRY(REEL_OP(d->ops, linear, err, .x = part, .w = s->w->weight[B_FFN_1_W], .bias = s->w->vector[B_FFN_1_B],
                         .act = REEL_ACTIVATION_GELU_TANH, .y = hidden));
        REEL_TRY(project(s, hidden, B_FFN_2_W, part, err));
    }
    REEL_TRY(tell(s, "_ffn", &b->norm, err));
    return REEL_OP(d->ops, gate_residual, err, .x = b->x, .a = b->norm, .gate = reel_dit_modulation_row(b->modulation, 5),
                   .row_index = s->in->token_timestep, .y = b->x);
}

reel_status reel_dit_block(reel_dit *dit, int32_t index, const reel_dit_input *in, const dit_buffers *b, reel_error *err)
{
    reel_region w;
    REEL_TRY(reel_weights_acquire(dit->weights, dit->region_block[index], &w, err));
    const block_scope scope = {.dit = dit, .w = &w, .in = in, .b = b, .index = index};
    reel_tensor table = reel_tensor_dense(w.vector[B_TABLE].data, REEL_DTYPE_F32, 6, dit->width, 0, 0);
    reel_tensor time = b->time_projection; /* [U, 6·width] seen as [U, 6, width] */
    time = reel_tensor_dense(time.data, time.dtype, time.extent[0], 6, dit->width, 0);
    reel_status status = REEL_OP(dit->ops, modulation, err, .table = table, .x = time, .y = b->modulation);
    if (status == REEL_OK) status = self_attention(&scope, err);
    if (status == REEL_OK) status = agree(in, err);
    if (status == REEL_OK) status = cross_attention(&scope, err);
    if (status == REEL_OK) status = agree(in, err);
    if (status == REEL_OK) status = feed_forward(&scope, err);
    if (status == REEL_OK) status = tell(&scope, "", &b->x, err);
    reel_weights_release(dit->weights, dit->region_block[index]);
    return status;
}
