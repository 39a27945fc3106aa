/* SPDX-License-Identifier: Apache-2.0
 *
 * The two ends of the transformer: latents and timestep in, velocity out.
 *
 * The time path is f32 throughout (its weights are f32 islands in the reference); with per-token timesteps it has one row per distinct value.
 * The output projection is stored as f32 so that guidance and the scheduler lose nothing. Input patches are read (c, dy, dx), output
 * patches written (dy, dx, c). Source: diffusers transformer_wan.py. */
#include <math.h>

#include "dit/dit_internal.h"

enum { FREQ_MAX = 4096 };

/* Cosines first: row u is cos(t·f), sin(t·f) with f_i = exp(−ln(10000)·i/half), all in f32 as the reference. */
static void time_sinusoid(float timestep, int32_t freq_dim, float *row)
{
    int32_t half = freq_dim / 2;
    for (int32_t i = 0; i < half; i++) {
        float exponent = -(float)log(10000.0) * (float)i / (float)half;
        float angle = timestep * expf(exponent);
        row[i] = cosf(angle);
        row[half + i] = sinf(angle);
    }
}

reel_status reel_dit_embed_time(reel_dit *dit, const reel_region *w, const reel_dit_input *in, const dit_buffers *b, reel_error *err)
{
    const reel_ops *ops = dit->ops;
    float host[REEL_DIT_TIMESTEP_MAX * FREQ_MAX];
    const int32_t freq = dit->config.freq_dim;
    assert(freq <= FREQ_MAX && in->n_timestep >= 1 && in->n_timestep <= REEL_DIT_TIMESTEP_MAX);
    for (int32_t u = 0; u < in->n_timestep; u++) time_sinusoid(in->timestep[u], freq, host + (ptrdiff_t)u * freq);
    REEL_TRY(reel_ops_upload(ops, &b->time_sinusoid, host, err));
    REEL_TRY(REEL_OP(ops, linear, err, .x = b->time_sinusoid, .w = w->weight[E_TIME_1_W], .bias = w->vector[E_TIME_1_B],
                     .act = REEL_ACTIVATION_SILU, .y = b->time_hidden));
    REEL_TRY(
        REEL_OP(ops, linear, err, .x = b->time_hidden, .w = w->weight[E_TIME_2_W], .bias = w->vector[E_TIME_2_B], .y = b->time_embedding));
    REEL_TRY(REEL_OP(ops, silu, err, .x = b->time_embedding, .y = b->time_silu));
    REEL_TRY(REEL_OP(ops, linear, err, .x = b->time_silu, .w = w->weight[E_TIME_PROJ_W], .bias = w->vector[E_TIME_PROJ_B],
                     .y = b->time_projection));
    REEL_TRY(reel_dit_tell(in, "inner_time_embedding", &b->time_embedding, err));
    return reel_dit_tell(in, "inner_time_projection", &b->time_projection, err);
}

reel_status reel_dit_embed_patches(reel_dit *dit, const reel_region *w, const reel_dit_input *in, const dit_buffers *b, reel_error *err)
{
    const reel_ops *ops = dit->ops;
    REEL_TRY(REEL_OP(ops, patchify, err, .x = in->latents, .y = b->patches, .patch_h = dit->config.patch[1],
                     .patch_w = dit->config.patch[2], .first_token = in->t0));
    REEL_TRY(REEL_OP(ops, linear, err, .x = b->patches, .w = w->weight[E_PATCH_W], .bias = w->vector[E_PATCH_B], .y = b->x));
    return reel_dit_tell(in, "inner_patch_embedding", &b->x, err);
}

reel_status reel_dit_head(reel_dit *dit, const reel_region *w, const reel_dit_input *in, const dit_buffers *b, reel_error *err)
{
    const reel_ops *ops = dit->ops;
    reel_tensor temb = b->time_embedding; /* [U, width] seen as [U, 2, width], both rows the same */
    temb.n_dim = 3;
    temb.extent[2] = temb.extent[1];
    temb.stride[2] = 1;
    temb.extent[1] = 2;
    temb.stride[1] = 0;
    reel_tensor table = reel_tensor_dense(w->vector[E_HEAD_TABLE].data, REEL_DTYPE_F32, 2, dit->width, 0, 0);
    REEL_TRY(REEL_OP(ops, modulation, err, .table = table, .x = temb, .y = b->head_modulation));
    REEL_TRY(REEL_OP(ops, layer_norm, err, .x = b->x, .y = b->norm, .shift = reel_dit_modulation_row(b->head_modulation, 0),
                     .scale = reel_dit_modulation_row(b->head_modulation, 1), .row_index = in->token_timestep, .one_plus = 1,
                     .eps = (float)dit->config.eps));
    REEL_TRY(REEL_OP(ops, linear, err, .x = b->norm, .w = w->weight[E_HEAD_W], .bias = w->vector[E_HEAD_B], .y = b->head));
    return REEL_OP(ops, unpatchify, err, .x = b->head, .y = in->velocity, .patch_h = dit->config.patch[1], .patch_w = dit->config.patch[2],
                   .first_token = in->t0);
}
