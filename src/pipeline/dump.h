/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects the tensors of every stage of one clip and writes them as one safetensors file (`--x-dump DIR`).
 *
 * Names and shapes are those of the recordings in tests/fixtures/wan-tiny-t2v/README.md; beyond them velocity_%03d_cond|uncond hold every
 * step's predictions. All in host memory until written. A NULL dump makes every call do nothing. */
#ifndef REEL_PIPELINE_DUMP_H
#define REEL_PIPELINE_DUMP_H

#include "ops/ops.h"

typedef struct reel_dump reel_dump;

reel_status reel_dump_new(reel_dump **out, reel_error *err);
void reel_dump_free(reel_dump **dump);
/* Copies dense host data. A name that is there already gets the new rows appended along a first dimension when `is_series`. */
reel_status reel_dump_host(reel_dump *dump, const char *name, reel_dtype dtype, const int64_t *extent, int32_t n_dim, const void *data,
                           reel_error *err);
/* Appends one element of a series: `latents` [step, …]. extent is that of one element. */
reel_status reel_dump_append(reel_dump *dump, const char *name, reel_dtype dtype, const int64_t *extent, int32_t n_dim, const void *data,
                             reel_error *err);
/* Waits for ops and copies a device tensor as dense f32 (i32 stays). */
reel_status reel_dump_device(reel_dump *dump, const reel_ops *ops, const char *name, const reel_tensor *t, reel_error *err);
/* DIR/clip_%03d.safetensors, whole or not at all; the folder is made. */
reel_status reel_dump_write(const reel_dump *dump, const char *dir, int32_t clip, reel_error *err);
/* A device tensor as newly allocated dense f32 host memory (free it). */
reel_status reel_download_f32(const reel_ops *ops, const reel_tensor *t, float **out, reel_error *err);

#endif
