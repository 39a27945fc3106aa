/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the autoencoder share: a device, models from files or from hashed values, and whole clips through sessions.
 *
 * The device's buffers are filled with NaN when they are made, so reading what was not written shows. */
#ifndef TESTS_STAGES_VAE_SUPPORT_H
#define TESTS_STAGES_VAE_SUPPORT_H

#include "vae/vae.h"

/* An opened device with its operations. */
typedef struct vae_device {
    reel_device_vt vt;
    const reel_device_vt *real;
    reel_device *device;
    reel_stream *stream;
    reel_ops ops;
} vae_device;

/* One autoencoder. */
typedef struct vae_bench {
    vae_device *device;
    reel_vae_config config;
    reel_dtype compute;
    void *bytes; /* of a made store */
    reel_store *store;
    reel_weights *weights;
    reel_vae *vae;
} vae_bench;

/* What goes through sessions, host memory, all F32. */
typedef struct vae_clip {
    int64_t lat_t, lat_h, lat_w, n_frame, px_h, px_w;
    float *latents; /* [z, T, h, w] */
    float *pixels; /* [F, H, W, 3] */
} vae_clip;

/* The CPU device; with is_reference the C references in place of its own operations. */
void vae_device_open(vae_device *device, bool is_reference);
void vae_device_close(vae_device *device);

/* The bundled model. */
void vae_bench_bundled(vae_bench *bench, vae_device *device, const reel_vae_options *options);
/* A fixture of tests/reference/vae.py: config and weights from its metadata, inputs into *clip. */
void vae_bench_fixture(vae_bench *bench, vae_device *device, const reel_store *fixture, const reel_vae_options *options, vae_clip *clip);
void vae_bench_close(vae_bench *bench);
void vae_clip_free(vae_clip *clip);

/* Decodes latents [z, T, h, w] (stride z first) into frames [F, H, W, c], checking that frames come in order. *bytes: what the session took. */
void vae_decode(vae_bench *bench, const vae_clip *clip, bool is_raw, float *frames, size_t *bytes);
/* Encodes pixels into mean and logvar [z, T, h, w]. */
void vae_encode(vae_bench *bench, const vae_clip *clip, float *mean, float *logvar);

/* ‖a − b‖ / ‖b‖; NaN where a holds one. */
double vae_error(const float *a, const float *b, int64_t n);
/* A tensor of a file as floats of the caller (freed with free). */
float *vae_load(const reel_store *store, const char *name, int64_t *n);

#endif
