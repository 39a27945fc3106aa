/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention kernels in f32 with AVX-512: tiles of 6 × 64, 24 accumulators. Per inner step 4 loads and 6 broadcasts feed 24 multiply-adds, so the
 * tile is bound by arithmetic, not by loads. */
#include "backends/device/cpu/isa/avx512/attn_common.h"

enum { NR = 64, COLUMNS = NR / 16 };

static void tile(const void *a, int64_t lda, const void *b, int64_t inner, float *c, int64_t ldc, bool add)
{
    const float *rows = a, *panel = b;
    __m512 sum[REEL_ATTN_MR][COLUMNS];
    for (int r = 0; r < REEL_ATTN_MR; r++) {
        for (int k = 0; k < COLUMNS; k++) sum[r][k] = add ? _mm512_load_ps(c + r * ldc + 16 * k) : _mm512_setzero_ps();
    }
    for (int64_t i = 0; i < inner; i++, panel += NR) {
        __m512 column[COLUMNS];
        for (int k = 0; k < COLUMNS; k++) column[k] = _mm512_load_ps(panel + 16 * k);
        for (int r = 0; r < REEL_ATTN_MR; r++) {
            const __m512 x = _mm512_set1_ps(rows[r * lda + i]);
            for (int k = 0; k < COLUMNS; k++) sum[r][k] = _mm512_fmadd_ps(x, column[k], sum[r][k]);
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
    float *out = p;
    for (int64_t i = 0; i < n; i += 16) {
        const __m512 e = attn_exp(_mm512_sub_ps(_mm512_load_ps(s + i), most));
        _mm512_store_ps(out + i, e);
        total = _mm512_add_ps(total, e);
    }
    return _mm512_reduce_add_ps(total);
}

static void load(const void *src, reel_dtype dtype, int64_t n, void *dst)
{
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 valid = attn_valid(i, n);
        _mm512_mask_storeu_ps((float *)dst + i, valid, attn_read(src, dtype, i, valid));
    }
}

const reel_attn_kernels reel_attn_avx512 = {.element = REEL_DTYPE_F32,
                                            .nr = NR,
                                            .unit = 1,
                                            .tile = tile,
                                            .bias_max = attn_bias_max,
                                            .exponent = exponent,
                                            .scale = attn_scale,
                                            .load = load,
                                            .store = attn_store};
