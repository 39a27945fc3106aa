/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of the autoencoder: what a model and a session hold, and the steps that encoder and decoder share.
 *
 * A step enqueues operations and returns; only the latents' log-variance is read by the host. All tensors are channels-last frames
 * [T, H, W, C] in the session's one block, addressed through the net's layout. Private to src/vae. */
#ifndef REEL_VAE_SESSION_H
#define REEL_VAE_SESSION_H

#include "vae/net.h"

/* Entries of a region, in the order in which vae.c requests them. */
enum { RES_NORM1, RES_CONV1_W, RES_CONV1_B, RES_NORM2, RES_CONV2_W, RES_CONV2_B, RES_SHORTCUT_W, RES_SHORTCUT_B, RES_COUNT };
enum { ATTN_NORM, ATTN_QKV_W, ATTN_QKV_B, ATTN_PROJ_W, ATTN_PROJ_B, ATTN_COUNT };
enum { RESAMPLE_W, RESAMPLE_B, RESAMPLE_TIME_W, RESAMPLE_TIME_B, RESAMPLE_COUNT };
enum { ENDS_IN_W, ENDS_IN_B, ENDS_NORM, ENDS_OUT_W, ENDS_OUT_B, ENDS_QUANT_W, ENDS_QUANT_B, ENDS_COUNT };

/* One half: sizes without a layout, and its weight regions. */
typedef struct reel_vae_half {
    bool is_there;
    reel_vae_net net;
    int32_t region_res[REEL_VAE_STAGE_MAX][REEL_VAE_RES_MAX];
    int32_t region_resample[REEL_VAE_STAGE_MAX];
    int32_t region_attention, region_ends;
} reel_vae_half;

struct reel_vae {
    reel_vae_config config;
    reel_vae_options options; /* attention is not kept: see below */
    const reel_ops *ops;
    reel_weights *weights;
    const reel_attn_impl *attention; /* NULL: the device's operation */
    reel_vae_half encoder, decoder;
    reel_arena constants;
    reel_tensor scale, mean; /* [z] f32: 1 / latents_std as f32, and latents_mean */
};

struct reel_vae_session {
    const reel_vae *vae;
    const reel_vae_half *half;
    reel_vae_net net; /* the half's, with this session's layout and the state of its chains */
    reel_arena arena;
    char *base;
    reel_vae_sink sink;
    void *user;
    int64_t n_pushed; /* latent frames so far */
    int64_t n_frame; /* pixel frames given to the sink */
    bool is_failed; /* a push failed half way: the histories are of no use any more */
};

/* A convolution's input: old frames and new ones in one piece. */
typedef struct reel_vae_window {
    reel_tensor x;
    int32_t n_history, pad_front;
} reel_vae_window;

/* chain.c. The order for convolution `index` of a chain: reserve, write `frames` frames into current, run on window, advance. */
reel_status reel_vae_chain_reserve(reel_vae_session *session, reel_vae_chain *chain, int32_t index, int32_t frames, reel_error *err);
reel_tensor reel_vae_chain_current(const reel_vae_session *session, const reel_vae_chain *chain, int32_t index, int32_t frames);
reel_vae_window reel_vae_chain_window(const reel_vae_session *session, const reel_vae_chain *chain, int32_t index, int32_t frames);
void reel_vae_chain_advance(reel_vae_chain *chain, int32_t index, int32_t frames);
/* The frames of history that there are, [n, h, w, c]; absent when there is none yet. */
reel_tensor reel_vae_chain_history(const reel_vae_session *session, const reel_vae_chain *chain, int32_t index);

/* session.c */
reel_status reel_vae_session_new(const reel_vae *vae, const reel_vae_half *half, int64_t h, int64_t w, reel_vae_session **out,
                                 reel_error *err);
/* [frames, h, w, c] of the compute dtype at a byte offset of the session's block. */
reel_tensor reel_vae_at(const reel_vae_session *session, size_t offset, int64_t frames, int64_t h, int64_t w, int64_t c);
/* Where a level takes its input, and its residual stream. */
reel_tensor reel_vae_level_input(const reel_vae_session *session, int32_t level, int32_t frames);
reel_tensor reel_vae_level_x(const reel_vae_session *session, int32_t level, int32_t frames);

/* blocks.c */
/* y = conv(window) + bias (+ residual): stride 1, spatial padding that keeps the size. residual NULL: none. */
reel_status reel_vae_causal_conv(const reel_vae_session *session, const reel_vae_window *window, const reel_region *region, int32_t entry,
                                 const reel_tensor *residual, const reel_tensor *y, reel_error *err);
/* y = x·Wᵀ + bias at every position. */
reel_status reel_vae_pointwise(const reel_vae_session *session, const reel_tensor *x, const reel_region *region, int32_t entry,
                               const reel_tensor *y, reel_error *err);
/* y = SiLU(norm(x)·gamma), or without SiLU. */
reel_status reel_vae_norm(const reel_vae_session *session, const reel_tensor *x, const reel_tensor *gamma, reel_activation act,
                          const reel_tensor *y, reel_error *err);
/* All residual blocks and the attention of a level; from its input to its residual stream. */
reel_status reel_vae_run_level(reel_vae_session *session, int32_t level, int32_t frames, reel_error *err);

#endif
