/* SPDX-License-Identifier: Apache-2.0
 *
 * The Wan video autoencoder (AutoencoderKLWan): streaming decoder and encoder with causal feature caches.
 *
 * A reel_vae holds weights and sizes. A session holds the caches of one clip: latent frames are pushed one at a time and pixel frames come
 * out through a sink in order (1, then 4 per latent frame), so memory does not grow with the clip. Activations are channels-last
 * [T, H, W, C]. The frames-per-pass of the highest level (chunk_frames: 1, 2 or 4) is the plan's and does not change any bit. */
#ifndef REEL_VAE_VAE_H
#define REEL_VAE_VAE_H

#include "model/model.h"
#include "ops/ops.h"
#include "weights/weights.h"

typedef struct reel_vae reel_vae;
typedef struct reel_vae_session reel_vae_session;

typedef struct reel_vae_options {
    reel_dtype compute; /* F32 or BF16 */
    bool wants_encoder, wants_decoder;
    int32_t chunk_frames; /* 1, 2 or 4 at full resolution */
    const char *attention; /* NULL: the device's first */
} reel_vae_options;

reel_status reel_vae_new(const reel_vae_config *config, const reel_ops *ops, reel_weights *weights, const reel_vae_options *options,
                         reel_vae **out, reel_error *err);
void reel_vae_free(reel_vae **vae);

/* Device bytes that a session takes (caches and scratch) for latents of lat_h × lat_w. The plan calls the same formula. */
size_t reel_vae_decode_bytes(const reel_vae_config *config, reel_dtype compute, int32_t chunk_frames, int64_t lat_h, int64_t lat_w,
                             size_t alignment);
size_t reel_vae_encode_bytes(const reel_vae_config *config, reel_dtype compute, int64_t px_h, int64_t px_w, size_t alignment);

/* Pixel frames, 1 to chunk_frames of them, in order: [F, H, W, out channels / patch²] f32 on the device before clamping, valid during the call. row0: first row of the picture. */
typedef reel_status (*reel_vae_sink)(void *user, const reel_tensor *frames, int64_t first_frame, int64_t row0, reel_error *err);

reel_status reel_vae_decode_begin(reel_vae *vae, int64_t lat_h, int64_t lat_w, reel_vae_sink sink, void *user, reel_vae_session **out,
                                  reel_error *err);
/* latent [z, h, w] f32, normalised as the transformer leaves it (the session applies latents_mean and latents_std), strides free. */
reel_status reel_vae_decode_push(reel_vae_session *session, const reel_tensor *latent, reel_error *err);
/* The same for a latent as the encoder gives it, not normalised. */
reel_status reel_vae_decode_push_raw(reel_vae_session *session, const reel_tensor *latent, reel_error *err);

reel_status reel_vae_encode_begin(reel_vae *vae, int64_t px_h, int64_t px_w, reel_vae_session **out, reel_error *err);
/* Pushes 1 frame (first call) or 4 (later calls): frames [F, H, W, 3] f32 in −1…1. mean, logvar [z, h, w] f32 are written (not normalised);
 * logvar may be absent. */
reel_status reel_vae_encode_push(reel_vae_session *session, const reel_tensor *frames, const reel_tensor *mean, const reel_tensor *logvar,
                                 reel_error *err);
void reel_vae_session_free(reel_vae_session **session);

/* Device bytes that the session has taken; equal to the formulas above. */
size_t reel_vae_session_bytes(const reel_vae_session *session);
/* What lives from one push to the next, for dumps and resuming: the latent frames pushed, and the histories of all convolutions
 * as named tensors [n, h, w, c], n ≤ 2 (absent while there is none). Dense device memory, valid until the next push. false past the
 * last one. To resume: begin a session of the same sizes, call resume with the count, then fill the tensors that state lists. */
enum { REEL_VAE_STATE_NAME_MAX = 96 };
int64_t reel_vae_session_pushed(const reel_vae_session *session);
bool reel_vae_session_state(const reel_vae_session *session, int32_t index, char name[REEL_VAE_STATE_NAME_MAX], reel_tensor *out);
reel_status reel_vae_session_resume(reel_vae_session *session, int64_t n_pushed, reel_error *err);

#endif
