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

/* c [rows][c_stride] += a [rows][a_stride] · b [k / 2][panel][2] */
typedef struct part {
    const uint16_t *a, *b;
    float *c;
    int64_t a_stride, c_stride, k;
} part;

INLINE void block(int rows, int width, const part *p)
{
    const uint16_t *a = p->a, *b = p->b;
    int64_t a_stride = p->a_stride, k = p->k;
    __m512 sum[ROWS][2];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < width; v++) sum[r][v] = _mm512_loadu_ps(p->c + r * p->c_stride + v * LANES);
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
        for (int v = 0; v < width; v++) _mm512_storeu_ps(p->c + r * p->c_stride + v * LANES, sum[r][v]);
    }
}

INLINE void rows_of(int width, int64_t m, part p)
{
    for (; m >= ROWS; m -= ROWS) {
        block(ROWS, width, &p);
        p.a += ROWS * p.a_stride;
        p.c += ROWS * p.c_stride;
    }
    switch (m) {
#define REST(rows) \
    case rows: block(rows, width, &p); break;
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
    rows_of(2, m, (part){.a = a, .b = b, .c = c, .a_stride = a_stride, .c_stride = c_stride, .k = k});
}

static void narrow(const void *a, int64_t a_stride, int64_t m, int64_t k, const void *b, float *c, int64_t c_stride)
{
    rows_of(1, m, (part){.a = a, .b = b, .c = c, .a_stride = a_stride, .c_stride = c_stride, .k = k});
}

/* ---- few outputs: lanes over pairs of k ------------------------------------------------------------------------------------------ */

enum { DOT_ROWS = 4, PAIRS = 2 * LANES };

/* Of the last n elements; the lanes beyond are zero. */
INLINE __m512bh line_n(const uint16_t *p, int64_t n)
{
    if (n >= PAIRS) return line(p);
    return (__m512bh)_mm512_maskz_loadu_epi16((__mmask32)((1U << n) - 1U), p);
}

/* Rows from `first` on. */
INLINE void dot_block(int rows, int n_out, const reel_cpu_dot *d, int64_t first)
{
    const uint16_t *a = (const uint16_t *)d->a + first * d->a_stride, *b = d->b;
    float *c = d->c + first * n_out * LANES;
    int64_t k = d->k;
    __m512 sum[DOT_ROWS][REEL_CPU_DOT_MAX];
    for (int r = 0; r < rows; r++) {
        for (int o = 0; o < n_out; o++) sum[r][o] = _mm512_loadu_ps(c + (r * n_out + o) * LANES);
    }
    for (int64_t i = 0; i < k; i += PAIRS) {
        __m512bh w[REEL_CPU_DOT_MAX];
        for (int o = 0; o < n_out; o++) w[o] = line_n(b + o * d->b_stride + i, k - i);
        for (int r = 0; r < rows; r++) {
            __m512bh x = line_n(a + r * d->a_stride + i, k - i);
            for (int o = 0; o < n_out; o++) sum[r][o] = _mm512_dpbf16_ps(sum[r][o], x, w[o]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int o = 0; o < n_out; o++) _mm512_storeu_ps(c + (r * n_out + o) * LANES, sum[r][o]);
    }
}

INLINE void dot_rows(int n_out, const reel_cpu_dot *d)
{
    int64_t i = 0;
    for (; i + DOT_ROWS <= d->m; i += DOT_ROWS) dot_block(DOT_ROWS, n_out, d, i);
    for (; i < d->m; i++) dot_block(1, n_out, d, i);
}

static void dot(const reel_cpu_dot *d)
{
    if (d->n_out == 1) dot_rows(1, d);
    if (d->n_out == 2) dot_rows(2, d);
    if (d->n_out == 3) dot_rows(3, d);
    if (d->n_out == 4) dot_rows(4, d);
}

static void add_lanes(const float *c, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = _mm512_reduce_add_ps(_mm512_loadu_ps(c + i * LANES));
}

const reel_cpu_conv_kernels reel_cpu_conv_avx512bf16 = {
    .panel = 2 * LANES, .product = product, .narrow = narrow, .lanes = LANES, .dot = dot, .add_lanes = add_lanes};
