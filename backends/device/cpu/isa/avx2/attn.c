/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention kernels in f32 with AVX2 and FMA: tiles of 6 × 16, 12 accumulators in 16 registers. */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "backends/device/cpu/attn.h"

enum { NR = 16, COLUMNS = NR / 8 };

static void tile(const void *a, int64_t lda, const void *b, int64_t inner, float *c, int64_t ldc, bool add)
{
    const float *rows = a, *panel = b;
    __m256 sum[REEL_ATTN_MR][COLUMNS];
    for (int r = 0; r < REEL_ATTN_MR; r++) {
        for (int k = 0; k < COLUMNS; k++) sum[r][k] = add ? _mm256_load_ps(c + r * ldc + 8 * k) : _mm256_setzero_ps();
    }
    for (int64_t i = 0; i < inner; i++, panel += NR) {
        const __m256 left = _mm256_load_ps(panel), right = _mm256_load_ps(panel + 8);
        for (int r = 0; r < REEL_ATTN_MR; r++) {
            const __m256 x = _mm256_broadcast_ss(rows + r * lda + i);
            sum[r][0] = _mm256_fmadd_ps(x, left, sum[r][0]);
            sum[r][1] = _mm256_fmadd_ps(x, right, sum[r][1]);
        }
    }
    for (int r = 0; r < REEL_ATTN_MR; r++) {
        for (int k = 0; k < COLUMNS; k++) _mm256_store_ps(c + r * ldc + 8 * k, sum[r][k]);
    }
}

static float bias_max(float *s, int64_t n, int64_t n_valid, float scale, const float *key_bias, const float *relative)
{
    float most = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        float x = s[i] * scale;
        if (i >= n_valid) {
            x = -INFINITY;
        } else {
            if (key_bias) x += key_bias[i];
            if (relative) x += relative[i];
        }
        s[i] = x;
        most = x > most ? x : most;
    }
    return most;
}

/* e^x for x ≤ 0 as in the AVX-512 version; n·ln 2 is applied in two halves so that small results are denormal, below −103.97 exactly 0. */
static inline __m256 exp256(__m256 x)
{
    const __m256 in_range = _mm256_cmp_ps(x, _mm256_set1_ps(-103.97F), _CMP_GE_OQ);
    x = _mm256_max_ps(x, _mm256_set1_ps(-104.0F));
    const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504F)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375F), x);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4F), r);
    __m256 p = _mm256_set1_ps(1.0F / 720.0F);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 120.0F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 24.0F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 6.0F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
    const __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1), rest = _mm256_sub_epi32(whole, half);
    const __m256 f = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, _mm256_set1_epi32(127)), 23));
    const __m256 g = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, _mm256_set1_epi32(127)), 23));
    return _mm256_and_ps(in_range, _mm256_mul_ps(_mm256_mul_ps(p, f), g));
}

static float exponent(const float *s, int64_t n, float m, void *p)
{
    const __m256 most = _mm256_set1_ps(m);
    __m256 total = _mm256_setzero_ps();
    float *out = p, lane[8], sum = 0.0F;
    for (int64_t i = 0; i < n; i += 8) {
        const __m256 e = exp256(_mm256_sub_ps(_mm256_load_ps(s + i), most));
        _mm256_store_ps(out + i, e);
        total = _mm256_add_ps(total, e);
    }
    _mm256_storeu_ps(lane, total);
    for (int i = 0; i < 8; i++) sum += lane[i];
    return sum;
}

static void scale(float *x, int64_t n, float f)
{
    for (int64_t i = 0; i < n; i++) x[i] *= f;
}

static void load(const void *src, reel_dtype dtype, int64_t n, void *dst)
{
    float *out = dst;
    if (dtype == REEL_DTYPE_F32) memcpy(out, src, sizeof *out * (size_t)n);
    if (dtype == REEL_DTYPE_BF16) {
        for (int64_t i = 0; i < n; i++) out[i] = reel_f32_from_bf16(((const uint16_t *)src)[i]);
    }
    if (dtype == REEL_DTYPE_F16) {
        for (int64_t i = 0; i < n; i++) out[i] = _cvtsh_ss(((const uint16_t *)src)[i]);
    }
}

static void store(const float *x, int64_t n, float f, void *dst, reel_dtype dtype)
{
    for (int64_t i = 0; i < n; i++) {
        const float y = x[i] * f;
        if (dtype == REEL_DTYPE_F32) ((float *)dst)[i] = y;
        if (dtype == REEL_DTYPE_BF16) ((uint16_t *)dst)[i] = reel_bf16_from_f32(y);
        if (dtype == REEL_DTYPE_F16) ((uint16_t *)dst)[i] = (uint16_t)_cvtss_sh(y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
}

const reel_attn_kernels reel_attn_avx2 = {.element = REEL_DTYPE_F32,
                                          .nr = NR,
                                          .unit = 1,
                                          .tile = tile,
                                          .bias_max = bias_max,
                                          .exponent = exponent,
                                          .scale = scale,
                                          .load = load,
                                          .store = store};
