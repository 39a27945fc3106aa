/* SPDX-License-Identifier: Apache-2.0
 *
 * Work of the phases in FLOP (2 × multiply-adds), from configs alone; for time estimates, never for decisions about results. */
#include "plan/plan.h"

double reel_plan_dit_flop(const reel_dit_config *config, int64_t n_token, int64_t n_key)
{
    double n = (double)n_token, d = (double)config->n_head * config->head_dim, f = config->ffn_dim, k = (double)n_key;
    double layer = 8.0 * n * d * d + (4.0 * n * d * d + 4.0 * k * d * d) + 4.0 * n * d * f + 4.0 * n * n * d + 4.0 * n * k * d;
    return layer * config->n_layer;
}

double reel_plan_text_flop(const reel_umt5_config *config, int64_t n_token)
{
    double n = (double)n_token, d = config->d_model, inner = (double)config->n_head * config->d_kv, f = config->d_ff;
    return config->n_layer * (8.0 * n * d * inner + 6.0 * n * d * f + 4.0 * n * n * inner);
}

double reel_plan_decode_flop(const reel_vae_config *config, int64_t lat_t, int64_t lat_h, int64_t lat_w)
{
    const double base = config->decoder_base_dim;
    double pixels = (double)lat_h * (double)lat_w, t = (double)lat_t;
    double in = base * config->dim_mult[config->n_stage - 1];
    double flop = 2.0 * 27.0 * pixels * t * (config->z_dim * in + 4.0 * in * in); /* conv_in and the middle */
    for (int32_t stage = 0; stage < config->n_stage; stage++) {
        double out = base * config->dim_mult[config->n_stage - 1 - stage];
        flop += 2.0 * 27.0 * pixels * t * (in * out + (2.0 * config->n_res_block + 1.0) * out * out);
        if (stage + 1 == config->n_stage) {
            flop += 2.0 * 27.0 * pixels * t * out * config->out_channels;
            break;
        }
        if (config->temporal_downsample[config->n_stage - 2 - stage]) {
            flop += 2.0 * 3.0 * pixels * t * 2.0 * out * out;
            t *= 2.0;
        }
        pixels *= 4.0;
        in = config->is_residual ? out : out / 2.0;
        flop += 2.0 * 9.0 * pixels * t * out * in;
    }
    return flop;
}
