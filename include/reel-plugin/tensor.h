/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors and weights as devices see them: plain descriptions of memory that own nothing.
 *
 * A reel_tensor is a strided view on device memory. A reel_weight describes one stored matrix or convolution kernel as data:
 * format, row range, scales and low-rank additions are entries here, never other code paths, so that quantisation, LoRA and
 * sharding compose. Both are copied freely; the memory belongs to an arena or to a leased weight region. */
#ifndef REEL_PLUGIN_TENSOR_H
#define REEL_PLUGIN_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, value, bytes, name in safetensors files) */
#define REEL_DTYPE_LIST(X)      \
    X(F32, 1, 4, "F32")         \
    X(BF16, 2, 2, "BF16")       \
    X(F16, 3, 2, "F16")         \
    X(F64, 4, 8, "F64")         \
    X(F8_E4M3, 5, 1, "F8_E4M3") \
    X(F8_E5M2, 6, 1, "F8_E5M2") \
    X(I32, 7, 4, "I32")         \
    X(I64, 8, 8, "I64")         \
    X(U8, 9, 1, "U8")

typedef enum reel_dtype {
    REEL_DTYPE_NONE = 0,
#define X(name, value, bytes, text) REEL_DTYPE_##name = (value),
    REEL_DTYPE_LIST(X)
#undef X
} reel_dtype;

enum { REEL_DIM_MAX = 6 };

/* A view. Extents and strides count elements, the outermost dimension first; data == NULL means "absent". */
typedef struct reel_tensor {
    void *data;
    reel_dtype dtype;
    int32_t n_dim;
    int64_t extent[REEL_DIM_MAX];
    int64_t stride[REEL_DIM_MAX];
} reel_tensor;

/* What a device made of a weight in its own layout (oneDNN blocks, for example). Owned by the device. */
typedef struct reel_packed reel_packed;

/* One low-rank addition to a linear: y += scale · (x·Aᵀ)·Bᵀ. A [rank, n_col], B [n_row, rank]. */
typedef struct reel_low_rank {
    const void *a, *b;
    reel_dtype dtype;
    int32_t rank;
    float scale;
} reel_low_rank;

/* A stored weight: a linear [n_row, n_col] (row = output feature) or a convolution [n_row = O, n_col = I·kt·kh·kw].
 * Rows [row_begin, row_end) take part; data points at row 0. Dense: block_elements 1, block_bytes the dtype's, no scales. */
typedef struct reel_weight {
    uint32_t size; /* sizeof(reel_weight) */
    reel_dtype dtype;
    int32_t block_elements, block_bytes;
    int64_t n_row, n_col;
    int64_t row_stride_bytes;
    int64_t row_begin, row_end;
    int32_t kernel[3]; /* convolutions: kt, kh, kw with I = n_col / (kt·kh·kw); linears: 0, 0, 0 */
    const void *data;
    const void *scale, *zero_point; /* quantised formats; NULL for dense */
    const reel_packed *packed; /* NULL, or made by the device's weight_pack for this very weight */
    const reel_low_rank *low_rank;
    int32_t n_low_rank;
} reel_weight;

#ifdef __cplusplus
}
#endif
#endif
