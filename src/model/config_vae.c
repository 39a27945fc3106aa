/* SPDX-License-Identifier: Apache-2.0
 *
 * The config of AutoencoderKLWan. Stage multipliers and the temporal pattern are lists whose lengths depend on one another. */
#include <math.h>
#include <string.h>

#include "model/model_internal.h"

static reel_status wrong_list(const reel_json *json, const char *key, const char *allowed, reel_error *err)
{
    return REEL_FAIL(err, REEL_E_MODEL,
                     "a list in a config is wrong\ngiven: \"%s\" in %s\nallowed: %s\nremedy: correct the file or fetch it again", key,
                     json->path, allowed);
}

static reel_status read_stages(const reel_json *json, reel_vae_config *c, reel_error *err)
{
    static const int32_t mult[4] = {1, 2, 4, 4};
    const json_t *list = json_object_get(json->root, "dim_mult");
    c->n_stage = 4;
    memcpy(c->dim_mult, mult, sizeof mult);
    if (!list || json_is_null(list)) return REEL_OK;
    if (!json_is_array(list) || json_array_size(list) < 2 || json_array_size(list) > REEL_VAE_STAGE_MAX)
        return wrong_list(json, "dim_mult", "2 to 8 whole numbers", err);
    c->n_stage = (int32_t)json_array_size(list);
    for (int32_t i = 0; i < c->n_stage; i++) {
        const json_t *v = json_array_get(list, (size_t)i);
        if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > 64)
            return wrong_list(json, "dim_mult", "whole numbers from 1 to 64", err);
        c->dim_mult[i] = (int32_t)json_integer_value(v);
    }
    return REEL_OK;
}

static reel_status read_temporal(const reel_json *json, reel_vae_config *c, reel_error *err)
{
    const json_t *list = json_object_get(json->root, "temperal_downsample"); /* spelt so */
    if (!list || json_is_null(list)) {
        if (c->n_stage != 4) return wrong_list(json, "temperal_downsample", "one truth fewer than dim_mult has entries", err);
        c->temporal_downsample[1] = c->temporal_downsample[2] = true;
        return REEL_OK;
    }
    if (!json_is_array(list) || json_array_size(list) != (size_t)(c->n_stage - 1)) {
        return wrong_list(json, "temperal_downsample", "one truth fewer than dim_mult has entries", err);
    }
    for (int32_t i = 0; i < c->n_stage - 1; i++) {
        const json_t *v = json_array_get(list, (size_t)i);
        if (!json_is_boolean(v)) return wrong_list(json, "temperal_downsample", "true or false", err);
        c->temporal_downsample[i] = json_is_true(v);
    }
    return REEL_OK;
}

/* Wan2.1's statistics, diffusers' defaults; the file's values win. */
static reel_status read_statistics(const reel_json *json, reel_vae_config *c, reel_error *err)
{
    static const double mean[16] = {-0.7571, -0.7089, -0.9113, 0.1075,  -0.1745, 0.9653,  -0.1517, 1.5508,
                                    0.4134,  -0.0715, 0.5517,  -0.3632, -0.1922, -0.9497, 0.2503,  -0.2921};
    static const double std[16] = {2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743,
                                   3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160};
    memcpy(c->latents_mean, mean, sizeof mean);
    memcpy(c->latents_std, std, sizeof std);
    if (reel_json_has(json, "latents_mean") || c->z_dim != 16)
        REEL_TRY(reel_json_doubles(json, "latents_mean", c->z_dim, c->latents_mean, err));
    if (reel_json_has(json, "latents_std") || c->z_dim != 16)
        REEL_TRY(reel_json_doubles(json, "latents_std", c->z_dim, c->latents_std, err));
    for (int32_t i = 0; i < c->z_dim; i++) {
        if (!(c->latents_std[i] > 0.0)) return wrong_list(json, "latents_std", "numbers above 0", err);
    }
    return REEL_OK;
}

reel_status reel_config_vae(const reel_json *json, reel_vae_config *out, reel_error *err)
{
    reel_vae_config c = {.base_dim = 96,
                         .z_dim = 16,
                         .n_res_block = 2,
                         .in_channels = 3,
                         .out_channels = 3,
                         .patch = 1,
                         .spatial_factor = 8,
                         .temporal_factor = 4};
    REEL_TRY(reel_config_expect(json, "_class_name", "AutoencoderKLWan", err));
    REEL_TRY(reel_config_int(json, "base_dim", 1, CHANNELS_MAX, &c.base_dim, err));
    c.decoder_base_dim = c.base_dim;
    REEL_TRY(reel_config_int(json, "decoder_base_dim", 1, CHANNELS_MAX, &c.decoder_base_dim, err));
    REEL_TRY(reel_config_int(json, "z_dim", 1, REEL_LATENT_CHANNELS_MAX, &c.z_dim, err));
    REEL_TRY(reel_config_int(json, "num_res_blocks", 1, 16, &c.n_res_block, err));
    REEL_TRY(reel_config_int(json, "in_channels", 1, 64, &c.in_channels, err));
    REEL_TRY(reel_config_int(json, "out_channels", 1, 64, &c.out_channels, err));
    REEL_TRY(reel_config_int(json, "patch_size", 1, 4, &c.patch, err));
    REEL_TRY(reel_json_opt_bool(json, "is_residual", &c.is_residual, err));
    REEL_TRY(read_stages(json, &c, err));
    REEL_TRY(read_temporal(json, &c, err));
    REEL_TRY(read_statistics(json, &c, err));
    REEL_TRY(reel_config_expect_empty(json, "attn_scales", err));
    int32_t spatial = c.patch, temporal = 1;
    for (int32_t i = 0; i < c.n_stage - 1; i++) {
        spatial *= 2;
        temporal *= c.temporal_downsample[i] ? 2 : 1;
    }
    c.spatial_factor = spatial;
    c.temporal_factor = temporal;
    int32_t stated = spatial;
    REEL_TRY(reel_config_int(json, "scale_factor_spatial", 1, 1024, &stated, err));
    if (stated != spatial) return wrong_list(json, "scale_factor_spatial", "what dim_mult and patch_size give", err);
    stated = temporal;
    REEL_TRY(reel_config_int(json, "scale_factor_temporal", 1, 1024, &stated, err));
    if (stated != temporal) return wrong_list(json, "scale_factor_temporal", "what temperal_downsample gives", err);
    *out = c;
    return REEL_OK;
}
