/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of a softmax with AVX-512, shared by the f32 and the bf16 attention: bias and maximum, exponential, row scaling, and rows of any dtype. */
#ifndef REEL_CPU_AVX512_ATTN_COMMON_H
#define REEL_CPU_AVX512_ATTN_COMMON_H

#include <immintrin.h>
#include <math.h>

#include "backends/device/cpu/attn.h"

/* e^x for x ≤ 0: x = n·ln 2 + r, |r| ≤ ln 2 / 2, a polynomial of degree 6 in r (relative error below 2e-7), scaled by 2^n. Below −103.97 exactly 0. */
static inline __m512 attn_exp(__m512 x)
{
    const __mmask16 in_range = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-103.97F), _CMP_GE_OQ);
    x = _mm512_max_ps(x, _mm512_set1_ps(-104.0F));
    const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504F)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375F), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4F), r);
    __m512 p = _mm512_set1_ps(1.0F / 720.0F);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 120.0F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 24.0F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 6.0F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
    return _mm512_maskz_scalef_ps(in_range, p, n);
}

static inline __mmask16 attn_valid(int64_t at, int64_t n_valid)
{
    const int64_t n = n_valid - at;
    return (__mmask16)(n >= 16 ? 0xFFFFU : n <= 0 ? 0U : (1U << n) - 1U);
}

static float attn_bias_max(float *s, int64_t n, int64_t n_valid, float scale, const float *key_bias, const float *relative)
{
    const __m512 minus = _mm512_set1_ps(-INFINITY), factor = _mm512_set1_ps(scale);
    __m512 most = minus;
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 valid = attn_valid(i, n_valid);
        __m512 x = _mm512_mul_ps(_mm512_load_ps(s + i), factor);
        if (key_bias) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(valid, key_bias + i));
        if (relative) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(valid, relative + i));
        x = _mm512_mask_mov_ps(minus, valid, x);
        _mm512_store_ps(s + i, x);
        most = _mm512_max_ps(most, x);
    }
    return _mm512_reduce_max_ps(most);
}

static void attn_scale(float *x, int64_t n, float f)
{
    const __m512 factor = _mm512_set1_ps(f);
    for (int64_t i = 0; i < n; i += 16) _mm512_store_ps(x + i, _mm512_mul_ps(_mm512_load_ps(x + i), factor));
}

/* 16 elements of any float dtype, those beyond the mask zero. */
static inline __m512 attn_read(const void *src, reel_dtype dtype, int64_t i, __mmask16 valid)
{
    if (dtype == REEL_DTYPE_F32) return _mm512_maskz_loadu_ps(valid, (const float *)src + i);
    const __m256i half = _mm256_maskz_loadu_epi16(valid, (const uint16_t *)src + i);
    if (dtype == REEL_DTYPE_BF16) return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
    return _mm512_cvtph_ps(half);
}

static void attn_store(const float *x, int64_t n, float f, void *dst, reel_dtype dtype)
{
    const __m512 factor = _mm512_set1_ps(f);
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 valid = attn_valid(i, n);
        const __m512 y = _mm512_mul_ps(_mm512_load_ps(x + i), factor);
        if (dtype == REEL_DTYPE_F32) {
            _mm512_mask_storeu_ps((float *)dst + i, valid, y);
        } else if (dtype == REEL_DTYPE_BF16) { /* round to nearest even; NaN stays one */
            const __m512i bits = _mm512_castps_si512(y);
            const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
            __m512i r = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF))), 16);
            r = _mm512_mask_mov_epi32(r, _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q), _mm512_set1_epi32(0x7FC0));
            _mm256_mask_storeu_epi16((uint16_t *)dst + i, valid, _mm512_cvtepi32_epi16(r));
        } else {
            _mm256_mask_storeu_epi16((uint16_t *)dst + i, valid, _mm512_cvtps_ph(y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        }
    }
}

#endif
