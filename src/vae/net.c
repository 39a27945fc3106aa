/* SPDX-License-Identifier: Apache-2.0
 *
 * From the config to levels (net.h), and the names that the checkpoint gives their modules.
 *
 * Source of sizes and names: diffusers 0.42 AutoencoderKLWan, WanEncoder3d and WanDecoder3d with is_residual false. */
#include "vae/net.h"

#include <stdio.h>

static reel_status check_config(const reel_vae_config *config, reel_error *err)
{
    if (config->is_residual || config->patch > 1)
        return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                         "this autoencoder has residual up and down blocks or patches (the Wan2.2 TI2V kind)\n"
                         "given: is_residual %s, patch %d\nallowed: is_residual false, no patches (Wan2.1, Wan2.2 A14B)\n"
                         "remedy: use a model whose autoencoder is of the Wan2.1 kind",
                         config->is_residual ? "true" : "false", (int)config->patch);
    bool is_good = config->n_stage >= 1 && config->n_stage <= REEL_VAE_STAGE_MAX && config->n_res_block >= 1 &&
                   config->n_res_block <= REEL_VAE_RES_MAX - 3 && config->base_dim >= 1 && config->z_dim >= 1 &&
                   config->z_dim <= REEL_LATENT_CHANNELS_MAX && config->in_channels >= 1 && config->out_channels >= 1;
    int32_t base = config->decoder_base_dim > 0 ? config->decoder_base_dim : config->base_dim;
    for (int32_t i = 0; is_good && i < config->n_stage; i++)
        is_good = config->dim_mult[i] >= 1 && config->dim_mult[i] <= 1 << 12 && (i == 0 || (int64_t)base * config->dim_mult[i] % 2 == 0);
    if (is_good && base <= 1 << 14 && config->base_dim <= 1 << 14) return REEL_OK;
    return REEL_FAIL(
        err, REEL_E_UNSUPPORTED,
        "the autoencoder's sizes are out of range\ngiven: base_dim %d, decoder_base_dim %d, %d stages, %d residual blocks, z_dim %d\n"
        "allowed: 1 to %d stages, 1 to %d residual blocks, z_dim up to %d, channel counts even where the decoder halves them\n"
        "remedy: check the model's vae/config.json",
        (int)config->base_dim, (int)config->decoder_base_dim, (int)config->n_stage, (int)config->n_res_block, (int)config->z_dim,
        (int)REEL_VAE_STAGE_MAX, (int)REEL_VAE_RES_MAX - 3, (int)REEL_LATENT_CHANNELS_MAX);
}

static void fill_encoder(const reel_vae_config *config, reel_vae_net *net)
{
    int32_t c = config->base_dim * config->dim_mult[0];
    net->c_first = config->in_channels;
    net->c_last = 2 * config->z_dim;
    for (int32_t i = 0; i < net->n_level; i++) {
        bool is_last = i == net->n_level - 1;
        reel_vae_level *level = &net->level[i];
        int32_t before = i == 0 ? config->base_dim : c;
        c = config->base_dim * config->dim_mult[i];
        *level = (reel_vae_level){.c_in = before, .c = c, .c_next = c, .n_res = config->n_res_block, .attention_after = -1};
        if (is_last) {
            level->attention_after = level->n_res;
            level->n_res += 2;
        } else {
            level->resample = config->temporal_downsample[i] ? REEL_VAE_DOWN_3D : REEL_VAE_DOWN_2D;
        }
    }
}

static void fill_decoder(const reel_vae_config *config, reel_vae_net *net)
{
    int32_t base = config->decoder_base_dim > 0 ? config->decoder_base_dim : config->base_dim;
    net->c_first = config->z_dim;
    net->c_last = config->out_channels;
    for (int32_t i = 0; i < net->n_level; i++) {
        bool is_last = i == net->n_level - 1;
        reel_vae_level *level = &net->level[i];
        int32_t c = base * config->dim_mult[net->n_level - 1 - i];
        int32_t before = i == 0 ? c : net->level[i - 1].c_next;
        *level = (reel_vae_level){.c_in = before, .c = c, .c_next = c / 2, .n_res = config->n_res_block + 1, .attention_after = -1};
        if (i == 0) {
            level->attention_after = 0;
            level->n_res += 2;
        }
        if (!is_last) level->resample = config->temporal_downsample[net->n_level - 2 - i] ? REEL_VAE_UP_3D : REEL_VAE_UP_2D;
    }
}

reel_status reel_vae_net_init(const reel_vae_config *config, bool is_encoder, reel_vae_net *out, reel_error *err)
{
    REEL_TRY(check_config(config, err));
    *out = (reel_vae_net){
        .is_encoder = is_encoder, .n_level = config->n_stage, .n_res_block = config->n_res_block, .z = config->z_dim, .temporal_factor = 1};
    for (int32_t i = 0; i + 1 < config->n_stage; i++)
        if (config->temporal_downsample[i]) out->temporal_factor *= 2;
    if (is_encoder)
        fill_encoder(config, out);
    else
        fill_decoder(config, out);
    return REEL_OK;
}

bool reel_vae_net_fits(const reel_vae_net *net, int64_t h, int64_t w)
{
    const int64_t max = net->is_encoder ? 1 << 17 : (1 << 17) >> (net->n_level - 1);
    if (h < 1 || w < 1 || h > max || w > max) return false;
    return !net->is_encoder || (h >> (net->n_level - 1) >= 1 && w >> (net->n_level - 1) >= 1);
}

void reel_vae_net_res_path(const reel_vae_net *net, int32_t level, int32_t res, char out[REEL_VAE_PATH_MAX])
{
    const char *half = net->is_encoder ? "encoder" : "decoder";
    int32_t n = net->n_res_block;
    int32_t middle = -1, k = res;
    if (net->is_encoder) {
        if (res >= n) middle = res - n;
    } else if (level == 0) {
        middle = res < 2 ? res : -1;
        k = res - 2;
    }
    if (middle >= 0)
        (void)snprintf(out, REEL_VAE_PATH_MAX, "%s.mid_block.resnets.%d", half, (int)middle);
    else if (net->is_encoder)
        (void)snprintf(out, REEL_VAE_PATH_MAX, "encoder.down_blocks.%d", (int)(level * (n + 1) + k));
    else
        (void)snprintf(out, REEL_VAE_PATH_MAX, "decoder.up_blocks.%d.resnets.%d", (int)level, (int)k);
}

void reel_vae_net_resample_path(const reel_vae_net *net, int32_t level, char out[REEL_VAE_PATH_MAX])
{
    if (net->is_encoder)
        (void)snprintf(out, REEL_VAE_PATH_MAX, "encoder.down_blocks.%d", (int)(level * (net->n_res_block + 1) + net->n_res_block));
    else
        (void)snprintf(out, REEL_VAE_PATH_MAX, "decoder.up_blocks.%d.upsamplers.0", (int)level);
}

reel_vae_chain *reel_vae_level_chain(reel_vae_level *level, int32_t conv, int32_t *index)
{
    bool has_entry = level->c_in != level->c;
    if (has_entry && conv == 0) {
        *index = 0;
        return &level->entry;
    }
    *index = conv - (has_entry ? 1 : 0);
    return &level->body;
}
