/* SPDX-License-Identifier: Apache-2.0
 *
 * One half of the autoencoder (encoder or decoder) as data: its levels, and where every buffer of a session lies.
 *
 * A level is all that happens at one picture size: residual blocks, perhaps the attention, then the resampling to the next
 * level. Levels are filled from the config alone; reel_vae_net_layout then walks them and gives each buffer its offset in the
 * session's one block of memory. The public byte formulas are that walk, so they cannot drift from what a session uses.
 *
 * Memory of a session:
 *   chains  windows of convolution inputs, history included (reel_vae_chain)
 *   x       the residual stream of each level, as many frames as pass at once
 *   y       one scratch region shared by all levels: conv1's output, q/k/v, the input of a level that changes the channel count
 * Private to src/vae. */
#ifndef REEL_VAE_NET_H
#define REEL_VAE_NET_H

#include "vae/vae.h"

enum {
    REEL_VAE_RES_MAX = 20, /* residual blocks of one level, the middle ones included */
    REEL_VAE_CONV_MAX = 2 * REEL_VAE_RES_MAX + 1, /* convolutions with history of one level */
    REEL_VAE_HISTORY = 2, /* frames that a kernel of 3 looks back */
    REEL_VAE_ENCODE_FRAMES = 1 /* pixel frames per pass of the encoder */
};

typedef enum reel_vae_resample {
    REEL_VAE_RESAMPLE_NONE = 0,
    REEL_VAE_UP_2D,
    REEL_VAE_UP_3D, /* twice the frames first */
    REEL_VAE_DOWN_2D,
    REEL_VAE_DOWN_3D /* then half the frames */
} reel_vae_resample;

/* The inputs of n_conv convolutions that run one after another on equal frames, in one buffer of n_slot frames.
 *
 * Every convolution needs [n_history old frames | new frames] in one piece. Convolution 0 lies last in the buffer with free slots
 * behind it: its producer writes there, the convolution runs, and its oldest frames are then free, which are just the slots
 * behind convolution 1's history. So a pass needs room for one set of new frames instead of n_conv, nothing is concatenated, and all
 * histories wander forward. When the free slots at the end are used up, the histories are moved back to the front. */
typedef struct reel_vae_chain {
    size_t offset, frame_bytes;
    int64_t h, w;
    int32_t c;
    int32_t n_conv, n_history, n_slot;
    /* the session's state */
    int32_t slot[REEL_VAE_CONV_MAX]; /* where the history of each convolution begins */
    int32_t seen[REEL_VAE_CONV_MAX]; /* frames that it has had, at most n_history */
} reel_vae_chain;

typedef struct reel_vae_level {
    int32_t c_in, c, c_next;
    int32_t n_res, attention_after; /* attention follows that residual block; −1: none */
    reel_vae_resample resample;
    int32_t frames; /* per pass at most */
    int64_t h, w;
    reel_vae_chain entry; /* of the first convolution when c_in is not c; else empty */
    reel_vae_chain body;
    reel_vae_chain time; /* DOWN_3D: one frame of history, two new ones */
    int32_t n_held; /* DOWN_3D, state: frames that wait for their partner; 0 between pushes */
    size_t x_offset;
    bool is_x_short_lived; /* x lies at the end of y: nobody reads it once the next level has its input */
} reel_vae_level;

typedef struct reel_vae_net {
    bool is_encoder;
    reel_dtype compute;
    int32_t n_level, n_res_block, z;
    int32_t c_first, c_last; /* channels that conv_in takes, that conv_out gives */
    int32_t temporal_factor;
    reel_vae_level level[REEL_VAE_STAGE_MAX];
    reel_vae_chain first; /* input of conv_in */
    size_t alignment;
    size_t y_offset, y_bytes;
    size_t bytes; /* of everything */
} reel_vae_net;

/* Sizes from the config. REEL_E_UNSUPPORTED for a config that this code does not compute (residual up/down blocks, patches). */
reel_status reel_vae_net_init(const reel_vae_config *config, bool is_encoder, reel_vae_net *out, reel_error *err);
/* Places everything for pictures of h × w at level 0 (latents for the decoder, pixels for the encoder). */
void reel_vae_net_layout(reel_vae_net *net, reel_dtype compute, int32_t chunk_frames, int64_t h, int64_t w, size_t alignment);
/* The sizes are such that every level has at least one row and column. */
bool reel_vae_net_fits(const reel_vae_net *net, int64_t h, int64_t w);

enum { REEL_VAE_PATH_MAX = REEL_VAE_STATE_NAME_MAX };
/* "decoder.up_blocks.1.resnets.2": the module of a residual block, and of a level's resampling. */
void reel_vae_net_res_path(const reel_vae_net *net, int32_t level, int32_t res, char out[REEL_VAE_PATH_MAX]);
void reel_vae_net_resample_path(const reel_vae_net *net, int32_t level, char out[REEL_VAE_PATH_MAX]);
/* The chain and place of convolution `conv` of a level: 2·res and 2·res + 1 for a block, 2·n_res for the one after all blocks. */
reel_vae_chain *reel_vae_level_chain(reel_vae_level *level, int32_t conv, int32_t *index);

/* Bytes of n elements, rounded up to the net's alignment. */
size_t reel_vae_net_need(const reel_vae_net *net, reel_dtype dtype, int64_t n_element);

#endif
