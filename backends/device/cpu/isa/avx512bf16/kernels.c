/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bf16 for convolutions with AVX512-BF16: two neighbouring elements of k at a time, f32 sums.
 *
 * As in gemm_tmpl.h, an output element is one chain over k in order, whatever block it was computed in. */
#include <immintrin.h>

#include "backends/device/cpu/kernels.h"

enum { ROWS = 12, LANES = 16 };

#define INLINE static inline __attribute__((always_inline))

/* Two neighbouring bf16 in every lane. */
INLINE __m512bh pair(const uint16_t *p)
{
    int32_t bits;
    memcpy(&bits, p, sizeof bits);
    return (__m512bh)_mm512_set1_epi32(bits);
}

INLINE __m512bh line(const uint16_t *p)
{
    return (__m512bh)_mm512_loadu_si512(p);
}

INLINE void block(int rows, int width, const uint16_t *a, int64_t a_stride, int64_t k, const uint16_t *b, float *c, int64_t c_stride)
{
    __m512 sum[ROWS][2];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < width; v++) sum[r][v] = _mm512_loadu_ps(c + r * c_stride + v * LANES);
    }
    for (int64_t i = 0; i < k / 2; i++) {
        __m512bh w[2];
        for (int v = 0; v < width; v++) w[v] = line(b + (i * width + v) * 2 * LANES);
        for (int r = 0; r < rows; r++) {
            __m512bh x = pair(a + r * a_stride + 2 * i);
            for (int v = 0; v < width; v++) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], x, w[v]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < width; v++) _mm512_storeu_ps(c + r * c_stride + v * LANES, sum[r][v]);
    }
}

INLINE void rows_of(int width, const uint16_t *a, int64_t a_stride, int64_t m, int64_t k, const uint16_t *b, float *c, int64_t c_stride)
{
    for (; m >= ROWS; m -= ROWS) {
        block(ROWS, width, a, a_stride, k, b, c, c_stride);
        a += ROWS * a_stride;
        c += ROWS * c_stride;
    }
    switch (m) {
#define REST(rows) \
    case rows: block(rows, width, a, a_stride, k, b, c, c_stride); break;
        REST(1)
        REST(2)
        REST(3)
        REST(4)
        REST(5)
        REST(6)
        REST(7)
        REST(8)
        REST(9)
        REST(10)
        REST(11)
#undef REST
    default: break;
    }
}

static void product(const void *a, int64_t a_stride, int64_t m, int64_t k, const void *b, float *c, int64_t c_stride)
{
    rows_of(2, a, a_stride, m, k, b, c, c_stride);
}

static void narrow(const void *a, int64_t a_stride, int64_t m, int64_t k, const void *b, float *c, int64_t c_stride)
{
    rows_of(1, a, a_stride, m, k, b, c, c_stride);
}

const reel_cpu_conv_kernels reel_cpu_conv_avx512bf16 = {.panel = 2 * LANES, .product = product, .narrow = narrow};
