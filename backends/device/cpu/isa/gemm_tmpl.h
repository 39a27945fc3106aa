/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of f32 matrices, for any vec of vec.h: a block of rows against one packed panel of two vectors' width.
 *
 * Every output element is one chain of fused multiply-adds over k in order, carried on through c when k comes in pieces. The chain
 * does not depend on the block of rows it was computed in, so neither do the bits. */
#include "backends/device/cpu/isa/vec.h"
#include "backends/device/cpu/kernels.h"

enum {
    GEMM_PANEL = 2 * VEC_N,
#if defined(__AVX512F__)
    GEMM_ROWS = 12, /* 24 of 32 registers hold sums */
#else
    GEMM_ROWS = 6, /* 12 of 16 */
#endif
};

enum { GEMM_PACK_K = 64 };

/* 64 columns of every row are widened side by side, then turned. */
static void gemm_pack(const reel_weight *w, int64_t row, bool rounds, float *out)
{
    float line[GEMM_PANEL][GEMM_PACK_K];
    uint16_t half[GEMM_PACK_K];
    int64_t n_row = w->row_end - row < GEMM_PANEL ? w->row_end - row : GEMM_PANEL, n_col = w->n_col;
    memset(line, 0, sizeof line);
    for (int64_t k = 0; k < n_col; k += GEMM_PACK_K) {
        int64_t n = n_col - k < GEMM_PACK_K ? n_col - k : GEMM_PACK_K;
        for (int64_t r = 0; r < n_row; r++) {
            to_f32(line[r], (const char *)w->data + (row + r) * w->row_stride_bytes + (size_t)k * reel_dtype_bytes(w->dtype), w->dtype, n);
            if (!rounds) continue;
            from_f32(half, REEL_DTYPE_BF16, line[r], n);
            to_f32(line[r], half, REEL_DTYPE_BF16, n);
        }
        for (int64_t i = 0; i < n; i++) {
            float *to = out + (k + i) * GEMM_PANEL;
            for (int r = 0; r < GEMM_PANEL; r++) to[r] = line[r][i];
        }
    }
}

/* c [rows][c_stride] (+)= a [rows][a_stride] · b [k][panel] */
typedef struct gemm_part {
    const float *a, *b;
    float *c;
    int64_t a_stride, c_stride, k;
    bool adds;
} gemm_part;

/* rows and width (vectors) are constants at every call, so the sums stay in registers. */
VEC_INLINE void gemm_block(int rows, int width, const gemm_part *p)
{
    const float *a = p->a, *b = p->b;
    int64_t a_stride = p->a_stride, k = p->k;
    vec sum[GEMM_ROWS][2];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < width; v++) sum[r][v] = p->adds ? vec_load(p->c + r * p->c_stride + v * VEC_N) : vec_zero();
    }
    for (int64_t i = 0; i < k; i++) {
        vec line[2];
        for (int v = 0; v < width; v++) line[v] = vec_load(b + (i * width + v) * VEC_N);
        for (int r = 0; r < rows; r++) {
            vec x = vec_set1(a[r * a_stride + i]);
            for (int v = 0; v < width; v++) sum[r][v] = vec_fma(x, line[v], sum[r][v]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < width; v++) vec_store(p->c + r * p->c_stride + v * VEC_N, sum[r][v]);
    }
}

/* The last rows go in one block of their number: a single row costs as much as four, the latency of an addition. */
VEC_INLINE void gemm_rows(int width, int64_t m, gemm_part p)
{
    for (; m >= GEMM_ROWS; m -= GEMM_ROWS) {
        gemm_block(GEMM_ROWS, width, &p);
        p.a += GEMM_ROWS * p.a_stride;
        p.c += GEMM_ROWS * p.c_stride;
    }
    switch (m) {
#define GEMM_REST(rows) \
    case rows: gemm_block(rows, width, &p); break;
        GEMM_REST(1)
        GEMM_REST(2)
        GEMM_REST(3)
        GEMM_REST(4)
        GEMM_REST(5)
#if defined(__AVX512F__)
        GEMM_REST(6)
        GEMM_REST(7)
        GEMM_REST(8)
        GEMM_REST(9)
        GEMM_REST(10)
        GEMM_REST(11)
#endif
#undef GEMM_REST
    default: break;
    }
}

static void gemm_product(const float *a, int64_t a_stride, int64_t m, int64_t k, const float *b, float *c, int64_t c_stride)
{
    gemm_rows(2, m, (gemm_part){.a = a, .b = b, .c = c, .a_stride = a_stride, .c_stride = c_stride, .k = k});
}

static void conv_product(const void *a, int64_t a_stride, int64_t m, int64_t k, const void *b, float *c, int64_t c_stride)
{
    gemm_rows(2, m, (gemm_part){.a = a, .b = b, .c = c, .a_stride = a_stride, .c_stride = c_stride, .k = k, .adds = true});
}

static void conv_narrow(const void *a, int64_t a_stride, int64_t m, int64_t k, const void *b, float *c, int64_t c_stride)
{
    gemm_rows(1, m, (gemm_part){.a = a, .b = b, .c = c, .a_stride = a_stride, .c_stride = c_stride, .k = k, .adds = true});
}

/* ---- few outputs: lanes over k ------------------------------------------------------------------------------------------------- */

enum { DOT_ROWS = GEMM_ROWS / 3 }; /* with four outputs: 16 of 32, 8 of 16 registers */

/* Rows from `first` on. */
VEC_INLINE void dot_block(int rows, int n_out, const reel_cpu_dot *d, int64_t first)
{
    const float *a = (const float *)d->a + first * d->a_stride, *b = d->b;
    float *c = d->c + first * n_out * VEC_N;
    int64_t k = d->k;
    vec sum[DOT_ROWS][REEL_CPU_DOT_MAX];
    for (int r = 0; r < rows; r++) {
        for (int o = 0; o < n_out; o++) sum[r][o] = vec_load(c + (r * n_out + o) * VEC_N);
    }
    for (int64_t i = 0; i < k; i += VEC_N) {
        vec w[REEL_CPU_DOT_MAX];
        for (int o = 0; o < n_out; o++) w[o] = load_tail(b + o * d->b_stride + i, k - i);
        for (int r = 0; r < rows; r++) {
            vec x = load_tail(a + r * d->a_stride + i, k - i);
            for (int o = 0; o < n_out; o++) sum[r][o] = vec_fma(x, w[o], sum[r][o]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int o = 0; o < n_out; o++) vec_store(c + (r * n_out + o) * VEC_N, sum[r][o]);
    }
}

VEC_INLINE void dot_rows(int n_out, const reel_cpu_dot *d)
{
    int64_t i = 0;
    for (; i + DOT_ROWS <= d->m; i += DOT_ROWS) dot_block(DOT_ROWS, n_out, d, i);
    for (; i < d->m; i++) dot_block(1, n_out, d, i);
}

static void conv_dot(const reel_cpu_dot *d)
{
    if (d->n_out == 1) dot_rows(1, d);
    if (d->n_out == 2) dot_rows(2, d);
    if (d->n_out == 3) dot_rows(3, d);
    if (d->n_out == 4) dot_rows(4, d);
}

static void conv_add_lanes(const float *c, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = vec_sum(vec_load(c + i * VEC_N));
}
