/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocks that encoder and decoder share: residual block, attention of the middle, and the run of a level.
 *
 * The residual stream x is updated in place. Norm and SiLU write straight behind a convolution's history, so there is no copy between
 * norm and convolution. Formulas: diffusers 0.42 WanResidualBlock, WanAttentionBlock. */
#include <math.h>

#include "vae/session.h"

/* [T·H·W, C] */
static reel_tensor rows_of(const reel_tensor *t)
{
    return reel_tensor_dense(t->data, t->dtype, t->extent[0] * t->extent[1] * t->extent[2], t->extent[3], 0, 0);
}

/* Vectors come with the checkpoint's extents, [C, 1, 1, 1] for norms. */
static reel_tensor vector_of(const reel_tensor *t)
{
    return reel_tensor_dense(t->data, t->dtype, reel_tensor_count(t), 0, 0, 0);
}

reel_status reel_vae_norm(const reel_vae_session *session, const reel_tensor *x, const reel_tensor *gamma, reel_activation act,
                          const reel_tensor *y, reel_error *err)
{
    REEL_TRY(REEL_OP(session->vae->ops, channel_norm, err, .x = rows_of(x), .gamma = vector_of(gamma), .y = rows_of(y), .act = act));
    return REEL_OK;
}

reel_status reel_vae_pointwise(const reel_vae_session *session, const reel_tensor *x, const reel_region *region, int32_t entry,
                               const reel_tensor *y, reel_error *err)
{
    REEL_TRY(REEL_OP(session->vae->ops, linear, err, .x = rows_of(x), .w = region->weight[entry],
                     .bias = vector_of(&region->vector[entry + 1]), .y = rows_of(y)));
    return REEL_OK;
}

reel_status reel_vae_causal_conv(const reel_vae_session *session, const reel_vae_window *window, const reel_region *region, int32_t entry,
                                 const reel_tensor *residual, const reel_tensor *y, reel_error *err)
{
    const reel_weight *w = &region->weight[entry];
    int32_t pad_h = w->kernel[1] / 2, pad_w = w->kernel[2] / 2;
    REEL_TRY(REEL_OP(session->vae->ops, conv3d, err, .x = window->x, .w = *w, .bias = vector_of(&region->vector[entry + 1]),
                     .residual = residual ? *residual : (reel_tensor){.data = NULL}, .y = *y, .n_history = window->n_history,
                     .pad_front = window->pad_front, .pad = {pad_h, pad_h, pad_w, pad_w}, .stride = {1, 1, 1}));
    return REEL_OK;
}

/* One half of a residual block: y = conv(SiLU(norm(x))) (+ residual), the convolution being number `conv` of the level. */
static reel_status norm_and_conv(reel_vae_session *session, int32_t level, int32_t conv, const reel_region *region, const reel_tensor *x,
                                 const reel_tensor *y, reel_error *err)
{
    int32_t index, frames = (int32_t)x->extent[0];
    bool is_second = conv % 2 == 1;
    reel_vae_chain *chain = reel_vae_level_chain(&session->net.level[level], conv, &index);
    REEL_TRY(reel_vae_chain_reserve(session, chain, index, frames, err));
    reel_tensor current = reel_vae_chain_current(session, chain, index, frames);
    REEL_TRY(reel_vae_norm(session, x, &region->vector[is_second ? RES_NORM2 : RES_NORM1], REEL_ACTIVATION_SILU, &current, err));
    reel_vae_window window = reel_vae_chain_window(session, chain, index, frames);
    REEL_TRY(reel_vae_causal_conv(session, &window, region, is_second ? RES_CONV2_W : RES_CONV1_W, is_second ? y : NULL, y, err));
    reel_vae_chain_advance(chain, index, frames);
    return REEL_OK;
}

/* x ← block(x). The first block of a level that changes the channel count reads the level's input instead and makes x of it. */
static reel_status res_block(reel_vae_session *session, int32_t level, int32_t res, int32_t frames, const reel_region *region,
                             reel_error *err)
{
    const reel_vae_level *l = &session->net.level[level];
    reel_tensor x = reel_vae_level_x(session, level, frames), input = x;
    reel_tensor y = reel_vae_at(session, session->net.y_offset, frames, l->h, l->w, l->c);
    if (res == 0) input = reel_vae_level_input(session, level, frames);
    if (input.data != x.data) REEL_TRY(reel_vae_pointwise(session, &input, region, RES_SHORTCUT_W, &x, err));
    REEL_TRY(norm_and_conv(session, level, 2 * res, region, &input, &y, err));
    REEL_TRY(norm_and_conv(session, level, 2 * res + 1, region, &y, &x, err));
    return REEL_OK;
}

/* x ← x + proj(attention(norm(x))), every frame for itself, one head as wide as the channels. */
static reel_status attention_block(reel_vae_session *session, int32_t level, int32_t frames, const reel_region *region, reel_error *err)
{
    const reel_ops *ops = session->vae->ops;
    const reel_vae_level *l = &session->net.level[level];
    int64_t c = l->c, area = l->h * l->w;
    reel_tensor x = reel_vae_level_x(session, level, frames);
    reel_tensor y = reel_vae_at(session, session->net.y_offset, frames, l->h, l->w, c);
    size_t behind = session->net.y_offset + reel_vae_net_need(&session->net, session->net.compute, frames * area * c);
    reel_tensor qkv = reel_vae_at(session, behind, frames, l->h, l->w, 3 * c);
    REEL_TRY(reel_vae_norm(session, &x, &region->vector[ATTN_NORM], REEL_ACTIVATION_NONE, &y, err));
    REEL_TRY(reel_vae_pointwise(session, &y, region, ATTN_QKV_W, &qkv, err));
    reel_tensor part[3];
    reel_tensor heads = reel_tensor_dense(qkv.data, qkv.dtype, frames, area, 1, 3 * c);
    for (int32_t i = 0; i < 3; i++) part[i] = reel_tensor_slice(heads, 3, i * c, (i + 1) * c);
    reel_op_attention args = {.size = sizeof args, .q = part[0], .k = part[1], .v = part[2], .scale = (float)(1.0 / sqrt((double)c))};
    args.out = reel_tensor_dense(y.data, y.dtype, frames, area, 1, c);
    REEL_TRY(reel_ops_attention_by(ops, session->vae->attention, &args, err));
    reel_tensor projected = reel_vae_at(session, behind, frames, l->h, l->w, c);
    REEL_TRY(reel_vae_pointwise(session, &y, region, ATTN_PROJ_W, &projected, err));
    REEL_TRY(REEL_OP(ops, gate_residual, err, .x = rows_of(&x), .a = rows_of(&projected), .y = rows_of(&x)));
    return REEL_OK;
}

reel_status reel_vae_run_level(reel_vae_session *session, int32_t level, int32_t frames, reel_error *err)
{
    reel_weights *weights = session->vae->weights;
    const reel_vae_half *half = session->half;
    const reel_vae_level *l = &session->net.level[level];
    reel_region region;
    for (int32_t i = 0; i < l->n_res; i++) {
        REEL_TRY(reel_weights_acquire(weights, half->region_res[level][i], &region, err));
        reel_status status = res_block(session, level, i, frames, &region, err);
        reel_weights_release(weights, half->region_res[level][i]);
        REEL_TRY(status);
        if (i != l->attention_after) continue;
        REEL_TRY(reel_weights_acquire(weights, half->region_attention, &region, err));
        status = attention_block(session, level, frames, &region, err);
        reel_weights_release(weights, half->region_attention);
        REEL_TRY(status);
    }
    return REEL_OK;
}
