/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention kernels in bf16 with AVX512-BF16: tiles of 6 × 64, two inner elements a step, f32 sums. Probabilities are rounded to bf16 for the second
 * product, their sum is taken before rounding. */
#include <string.h>

#include "backends/device/cpu/isa/avx512/attn_common.h"

enum { NR = 64, COLUMNS = NR / 16 };

static inline __m512i pair_of(const uint16_t *at)
{
    int32_t pair;
    memcpy(&pair, at, sizeof pair);
    return _mm512_set1_epi32(pair);
}

static void tile(const void *a, int64_t lda, const void *b, int64_t inner, float *c, int64_t ldc, bool add)
{
    const uint16_t *rows = a, *panel = b;
    __m512 sum[REEL_ATTN_MR][COLUMNS];
    for (int r = 0; r < REEL_ATTN_MR; r++) {
        for (int k = 0; k < COLUMNS; k++) sum[r][k] = add ? _mm512_load_ps(c + r * ldc + 16 * k) : _mm512_setzero_ps();
    }
    for (int64_t i = 0; i < inner; i += 2, panel += 2 * NR) {
        __m512i column[COLUMNS];
        for (int k = 0; k < COLUMNS; k++) column[k] = _mm512_load_si512(panel + 32 * k);
        for (int r = 0; r < REEL_ATTN_MR; r++) {
            const __m512i x = pair_of(rows + r * lda + i);
            for (int k = 0; k < COLUMNS; k++) sum[r][k] = _mm512_dpbf16_ps(sum[r][k], (__m512bh)x, (__m512bh)column[k]);
        }
    }
    for (int r = 0; r < REEL_ATTN_MR; r++) {
        for (int k = 0; k < COLUMNS; k++) _mm512_store_ps(c + r * ldc + 16 * k, sum[r][k]);
    }
}

static float exponent(const float *s, int64_t n, float m, void *p)
{
    const __m512 most = _mm512_set1_ps(m);
    __m512 total = _mm512_setzero_ps();
    uint16_t *out = p;
    for (int64_t i = 0; i < n; i += 16) {
        const __m512 e = attn_exp(_mm512_sub_ps(_mm512_load_ps(s + i), most));
        total = _mm512_add_ps(total, e);
        _mm256_store_si256((__m256i *)(void *)(out + i), (__m256i)_mm512_cvtneps_pbh(e));
    }
    return _mm512_reduce_add_ps(total);
}

static void load(const void *src, reel_dtype dtype, int64_t n, void *dst)
{
    if (dtype == REEL_DTYPE_BF16) {
        memcpy(dst, src, 2 * (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 valid = attn_valid(i, n);
        _mm256_mask_storeu_epi16((uint16_t *)dst + i, valid, (__m256i)_mm512_cvtneps_pbh(attn_read(src, dtype, i, valid)));
    }
}

const reel_attn_kernels reel_attn_avx512bf16 = {.element = REEL_DTYPE_BF16,
                                                .nr = NR,
                                                .unit = 2,
                                                .tile = tile,
                                                .bias_max = attn_bias_max,
                                                .exponent = exponent,
                                                .scale = attn_scale,
                                                .load = load,
                                                .store = attn_store};
