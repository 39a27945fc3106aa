/* SPDX-License-Identifier: Apache-2.0
 *
 * What an instruction set gives to the attention driver (attn.c): a matrix tile, the pieces of a softmax, and packing.
 *
 * Both products of attention are the same tile, C[MR × NR] (+)= A·B: scores take A = queries, B = keys with the head width as the inner dimension;
 * the output takes A = probabilities, B = values with the keys as the inner dimension. A is row-major, B is packed in panels of NR columns:
 * [inner / unit][NR][unit], unit 2 for bf16 (pairs), 1 for f32. Buffers are 64-byte aligned and padded with zeros to whole tiles. */
#ifndef REEL_CPU_ATTN_H
#define REEL_CPU_ATTN_H

#include "backends/device/cpu/cpu.h"

enum { REEL_ATTN_MR = 6 };

typedef struct reel_attn_kernels {
    reel_dtype element; /* of A and B: F32 or BF16 */
    int32_t nr; /* columns of a tile */
    int32_t unit; /* inner elements per step */
    /* a: MR rows, lda elements apart; b: one panel; inner: multiple of unit; c: MR rows, ldc floats apart; add: C += */
    void (*tile)(const void *a, int64_t lda, const void *b, int64_t inner, float *c, int64_t ldc, bool add);
    /* s ← s·scale + key_bias + relative; returns the maximum. n a multiple of 16; the biases may be NULL and are read below n_valid only. */
    float (*bias_max)(float *s, int64_t n, int64_t n_valid, float scale, const float *key_bias, const float *relative);
    /* p ← e^(s − m) in the element type (may be s itself for f32); returns the sum of the unrounded values. n a multiple of 16. */
    float (*exponent)(const float *s, int64_t n, float m, void *p);
    /* x ← x·f; n a multiple of 16 */
    void (*scale)(float *x, int64_t n, float f);
    /* n elements of dtype at src → element type */
    void (*load)(const void *src, reel_dtype dtype, int64_t n, void *dst);
    /* x·f → dtype */
    void (*store)(const float *x, int64_t n, float f, void *dst, reel_dtype dtype);
} reel_attn_kernels;

extern const reel_attn_kernels reel_attn_avx2;
extern const reel_attn_kernels reel_attn_avx512;
extern const reel_attn_kernels reel_attn_avx512bf16;

/* attn_flash.c: attention with these kernels. */
reel_status reel_cpu_attention_flash(reel_device *device, const reel_attn_kernels *kernels, const reel_op_attention *args, reel_error *err);
/* attn_plain.c: any processor, any dtype, f32 arithmetic, one query at a time. */
reel_status reel_cpu_attention_plain(reel_device *device, const reel_op_attention *args, reel_error *err);

#endif
