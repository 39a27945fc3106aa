/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of our own kernels that an instruction set fills (isa/<name>/kernels.c).
 *
 * Row kernels take an operation's arguments and a range of rows; `row` is the calling thread's buffer of reel_cpu_row_floats() floats,
 * in which 16-bit rows are widened. A row's result depends on that row alone. */
#ifndef REEL_CPU_KERNELS_H
#define REEL_CPU_KERNELS_H

#include "backends/device/cpu/cpu.h"

/* Products of f32 panels. A weight is packed in panels of `panel` rows, [panel][K][panel rows], zeroes beyond its last row. */
typedef struct reel_cpu_gemm_kernels {
    int32_t panel, tile_rows;
    /* out [n_col][panel]: rows [row, row + panel) of a stored matrix, those at or beyond row_end zero; rounds: each weight to bf16 first. */
    void (*pack)(const reel_weight *w, int64_t row, bool rounds, float *out);
    /* c [m][c_stride] = a [m][a_stride] · panel [k][panel]: one panel wide, any m; conv.product adds to c instead. */
    void (*product)(const float *a, int64_t a_stride, int64_t m, int64_t k, const float *b, float *c, int64_t c_stride);
} reel_cpu_gemm_kernels;

/* A product with few outputs: c [m][n_out][lanes] += a [m][a_stride] times b [n_out][b_stride], k deep. */
typedef struct reel_cpu_dot {
    const void *a, *b;
    int64_t a_stride, b_stride, m, k;
    int32_t n_out;
    float *c;
} reel_cpu_dot;

/* Products for convolutions: c [m][c_stride] += a [m][a_stride] · b [k][panel], f32 sums; a_stride counts elements. In bf16, k is even and b lies
 * in pairs, [k / 2][panel][2]. `narrow` is the same for panels of half the width. */
typedef struct reel_cpu_conv_kernels {
    int32_t panel;
    void (*product)(const void *a, int64_t a_stride, int64_t m, int64_t k, const void *b, float *c, int64_t c_stride);
    void (*narrow)(const void *a, int64_t a_stride, int64_t m, int64_t k, const void *b, float *c, int64_t c_stride);
    /* Up to REEL_CPU_DOT_MAX outputs, where panels would be mostly zeroes: lanes run over k. */
    int32_t lanes;
    void (*dot)(const reel_cpu_dot *d);
    void (*add_lanes)(const float *c, int64_t n, float *out); /* out [n]: the sum of each [lanes] */
} reel_cpu_conv_kernels;

enum { REEL_CPU_DOT_MAX = 4 };

typedef struct reel_cpu_kernels {
    reel_cpu_gemm_kernels gemm;
    reel_cpu_conv_kernels conv;
    /* n contiguous elements */
    void (*to_f32)(float *out, const void *x, reel_dtype dtype, int64_t n);
    void (*from_f32)(void *out, reel_dtype dtype, const float *x, int64_t n);
    /* out = act(x + bias + residual), bias and residual may be NULL */
    void (*finish)(void *out, reel_dtype dtype, const float *x, const float *bias, const void *residual, reel_dtype residual_dtype,
                   reel_activation act, int64_t n);
    void (*layer_norm)(const reel_op_layer_norm *op, int64_t begin, int64_t end, float *row);
    void (*rms_norm)(const reel_op_rms_norm *op, int64_t begin, int64_t end, float *row);
    void (*rms_sum)(const reel_op_rms_sum *op, int64_t begin, int64_t end, float *row);
    /* sum NULL: the row's own */
    void (*rms_rope)(const reel_op_rms_apply_rope *op, int64_t begin, int64_t end, float *row);
    void (*channel_norm)(const reel_op_channel_norm *op, int64_t begin, int64_t end, float *row);
    void (*gate_residual)(const reel_op_gate_residual *op, int64_t begin, int64_t end, float *row);
    void (*gated_gelu)(const reel_op_gated_gelu *op, int64_t begin, int64_t end, float *row);
    /* n contiguous elements; coef[i], x[i] as in reel_op_combine, element offset `begin` */
    void (*combine)(const reel_op_combine *op, int64_t begin, int64_t end, float *row);
    void (*silu)(void *y, reel_dtype y_dtype, const void *x, reel_dtype x_dtype, int64_t n, float *row);
    void (*frame_u8)(uint8_t *y, const void *x, reel_dtype x_dtype, int64_t n, float *row);
    int64_t (*count_nonfinite)(const void *x, reel_dtype dtype, int64_t n);
} reel_cpu_kernels;

extern const reel_cpu_kernels reel_cpu_kernels_avx2, reel_cpu_kernels_avx512;
extern const reel_cpu_conv_kernels reel_cpu_conv_avx512bf16;

/* Kernels of the device's level; NULL for plain C, where the C references run. */
const reel_cpu_kernels *reel_cpu_kernels_get(const reel_device *device);
/* Convolution kernels for operands of dtype F32 or BF16. */
const reel_cpu_conv_kernels *reel_cpu_conv_kernels_get(const reel_device *device, reel_dtype dtype);

enum { REEL_CPU_BLOCK = 1024 }; /* elements that element-wise kernels widen at a time */

#endif
