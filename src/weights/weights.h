/* SPDX-License-Identifier: Apache-2.0
 *
 * Stored tensors and leased weights.
 *
 * A reel_store is one component's safetensors files, mapped and fully checked (header length, offsets, overlaps, duplicates, names,
 * shards) before anything is used. A reel_weights turns stored tensors into what a device computes with, region by region (a
 * region is one block's weights): stages list what a region holds, then acquire it around its use; nobody keeps a weight pointer
 * past release. Resident regions are loaded once and acquire costs nothing; streamed and gathered ones come later behind the
 * same calls. Without a copy where the device takes the stored dtype and alignment ("mapped"), else converted exactly. */
#ifndef REEL_WEIGHTS_WEIGHTS_H
#define REEL_WEIGHTS_WEIGHTS_H

#include <stdbool.h>

#include "base/check.h"
#include "base/log.h"
#include "reel-plugin/device.h"

/* One tensor as it lies in a mapped file. Names are UTF-8. */
typedef struct reel_stored {
    const char *name;
    reel_dtype dtype; /* NONE: a type of the format that reel does not compute with */
    const char *dtype_name; /* as in the file */
    int32_t n_dim;
    int64_t extent[REEL_DIM_MAX];
    const uint8_t *data; /* any alignment */
    size_t bytes;
    const char *file; /* for messages */
} reel_stored;

typedef struct reel_store reel_store;

/* Opens dir/stem.safetensors, or all shards that dir/stem.safetensors.index.json names. Error REEL_E_MODEL when missing or lying. */
reel_status reel_store_open(const char *dir, const char *stem, reel_store **out, reel_error *err);
/* One file by its path. */
reel_status reel_store_open_file(const char *path, reel_store **out, reel_error *err);
/* Parses bytes in memory (fuzzing, tests); borrows data. */
reel_status reel_store_parse(const uint8_t *data, size_t bytes, const char *name, reel_store **out, reel_error *err);
void reel_store_close(reel_store **store);

int32_t reel_store_count(const reel_store *store);
const reel_stored *reel_store_at(const reel_store *store, int32_t index); /* sorted by name */
const reel_stored *reel_store_find(const reel_store *store, const char *name); /* NULL when absent */
/* Value of a key of __metadata__ of the first file, or NULL. */
const char *reel_store_metadata(const reel_store *store, const char *key);
size_t reel_store_bytes(const reel_store *store); /* of all tensor data */

/* Writes tensors (dense, host memory) as one safetensors file, whole or not at all. The widest elements come first, so that all lie aligned. */
typedef struct reel_stored_out {
    const char *name;
    reel_tensor tensor;
} reel_stored_out;
reel_status reel_safetensors_write(const char *path, const reel_stored_out *tensors, int32_t n,
                                   const char *const *metadata /* key, value, …, NULL */, bool no_clobber, reel_error *err);

/* ------------------------------------------------------------------------------------------------------------------------ */

typedef enum reel_weight_kind {
    REEL_WEIGHT_MATRIX = 0, /* [n_row, …], a linear: n_col is the product of all other extents */
    REEL_WEIGHT_CONV = 1, /* [O, I, (kt,) kh, kw]; always packed by the device */
    REEL_WEIGHT_ROWS = 2, /* [n_row, n_col], read by gather_rows: stays mapped on host-memory devices */
    REEL_WEIGHT_VECTOR = 3, /* any shape, read as dense f32 */
    REEL_WEIGHT_MATRIX_F32 = 4 /* a matrix that meets f32 inputs whatever options.compute is (time embedding) */
} reel_weight_kind;

typedef struct reel_weight_request {
    const char *name; /* in the store; copied */
    reel_weight_kind kind;
    bool is_optional; /* absent: an empty entry instead of an error */
} reel_weight_request;

/* What acquire gives: entry i answers request i; `weight` for matrices, convolutions and rows, `vector` for vectors. */
typedef struct reel_region {
    int32_t n;
    const reel_weight *weight;
    const reel_tensor *vector;
} reel_region;

typedef struct reel_weights reel_weights;

typedef struct reel_weights_options {
    reel_dtype compute; /* dtype of the inputs that will meet these weights: F32 or BF16 */
    bool is_packed; /* linears too go into the device's own layout */
} reel_weights_options;

/* The store must outlive the weights. vt/device/stream as in reel_ops. */
reel_status reel_weights_new(const reel_store *store, const reel_device_vt *vt, reel_device *device, reel_stream *stream,
                             const reel_weights_options *options, reel_weights **out, reel_error *err);
void reel_weights_free(reel_weights **weights);
/* Declares a region and (resident policy) loads it. Shapes come from the store. */
reel_status reel_weights_add_region(reel_weights *weights, const reel_weight_request *requests, int32_t n, int32_t *region,
                                    reel_error *err);
reel_status reel_weights_acquire(reel_weights *weights, int32_t region, reel_region *out, reel_error *err);
void reel_weights_release(reel_weights *weights, int32_t region);
/* Device bytes taken beyond the mapped files: conversions and packed copies. */
size_t reel_weights_bytes(const reel_weights *weights);

#endif
