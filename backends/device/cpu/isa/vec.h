/* SPDX-License-Identifier: Apache-2.0
 *
 * One vector of floats, 8 or 16 wide, under one set of names, for the kernel templates of this folder.
 *
 * Only files below isa/<name>/ include it, compiled with that set's flags. Tails go through masks, so no byte beyond a row is
 * read or written. 16-bit stores round to nearest even and keep NaN, bit for bit as reel-plugin/tensor_util.h does. */
#ifndef REEL_CPU_ISA_VEC_H
#define REEL_CPU_ISA_VEC_H

#include <immintrin.h>

#include "reel-plugin/tensor_util.h"

#define VEC_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)

enum { VEC_N = 16 };
typedef __m512 vec;

VEC_INLINE vec vec_zero(void)
{
    return _mm512_setzero_ps();
}
VEC_INLINE vec vec_set1(float a)
{
    return _mm512_set1_ps(a);
}
VEC_INLINE vec vec_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
VEC_INLINE void vec_store(float *p, vec a)
{
    _mm512_storeu_ps(p, a);
}
VEC_INLINE __mmask16 vec_mask(int64_t n)
{
    return (__mmask16)((1U << n) - 1U);
}
VEC_INLINE vec vec_load_n(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps(vec_mask(n), p);
}
VEC_INLINE void vec_store_n(float *p, vec a, int64_t n)
{
    _mm512_mask_storeu_ps(p, vec_mask(n), a);
}
VEC_INLINE vec vec_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}
VEC_INLINE vec vec_sub(vec a, vec b)
{
    return _mm512_sub_ps(a, b);
}
VEC_INLINE vec vec_mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}
VEC_INLINE vec vec_div(vec a, vec b)
{
    return _mm512_div_ps(a, b);
}
VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}
/* NaN in b is kept. */
VEC_INLINE vec vec_min(vec a, vec b)
{
    return _mm512_min_ps(a, b);
}
VEC_INLINE vec vec_max(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}
VEC_INLINE vec vec_round(vec a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* a·2^n for whole n within −150 … 128 */
VEC_INLINE vec vec_scale2(vec a, vec n)
{
    return _mm512_scalef_ps(a, n);
}
VEC_INLINE float vec_sum(vec a)
{
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    quarter = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_shuffle_ps(quarter, quarter, 1)));
}
/* (a0, a1, a2, …) → (a1, a0, a3, …) */
VEC_INLINE vec vec_swap_pairs(vec a)
{
    return _mm512_permute_ps(a, 0xB1);
}
/* (a0, a0, a2, a2, …) and (a1, a1, a3, a3, …) */
VEC_INLINE vec vec_even(vec a)
{
    return _mm512_moveldup_ps(a);
}
VEC_INLINE vec vec_odd(vec a)
{
    return _mm512_movehdup_ps(a);
}
/* −|a|, and n where a is negative, else p */
VEC_INLINE vec vec_negative_abs(vec a)
{
    return _mm512_or_ps(a, _mm512_set1_ps(-0.0F));
}
VEC_INLINE vec vec_pick_negative(vec a, vec n, vec p)
{
    return _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(a)), p, n);
}
/* How many of the first n lanes are NaN or infinite. */
VEC_INLINE int32_t vec_count_nonfinite(vec a, int64_t n)
{
    __mmask16 bad =
        _mm512_mask_cmp_epu32_mask((__mmask16)((1U << n) - 1U), _mm512_and_si512(_mm512_castps_si512(a), _mm512_set1_epi32(0x7F800000)),
                                   _mm512_set1_epi32(0x7F800000), _MM_CMPINT_EQ);
    return (int32_t)_mm_popcnt_u32(bad);
}
VEC_INLINE vec vec_load_bf16(const uint16_t *p)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
VEC_INLINE vec vec_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
VEC_INLINE void vec_store_bf16(uint16_t *p, vec a)
{
    __m512i bits = _mm512_castps_si512(a), high = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF))), 16);
    __mmask16 is_nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, is_nan, high, _mm512_set1_epi32(0x40));
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(rounded));
}
VEC_INLINE void vec_store_f16(uint16_t *p, vec a)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#else /* AVX2 */

enum { VEC_N = 8 };
typedef __m256 vec;

VEC_INLINE vec vec_zero(void)
{
    return _mm256_setzero_ps();
}
VEC_INLINE vec vec_set1(float a)
{
    return _mm256_set1_ps(a);
}
VEC_INLINE vec vec_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
VEC_INLINE void vec_store(float *p, vec a)
{
    _mm256_storeu_ps(p, a);
}
VEC_INLINE __m256i vec_mask(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
VEC_INLINE vec vec_load_n(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, vec_mask(n));
}
VEC_INLINE void vec_store_n(float *p, vec a, int64_t n)
{
    _mm256_maskstore_ps(p, vec_mask(n), a);
}
VEC_INLINE vec vec_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}
VEC_INLINE vec vec_sub(vec a, vec b)
{
    return _mm256_sub_ps(a, b);
}
VEC_INLINE vec vec_mul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}
VEC_INLINE vec vec_div(vec a, vec b)
{
    return _mm256_div_ps(a, b);
}
VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}
VEC_INLINE vec vec_min(vec a, vec b)
{
    return _mm256_min_ps(a, b);
}
VEC_INLINE vec vec_max(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}
VEC_INLINE vec vec_round(vec a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* In two halves, so that results below 2^-126 stay right. */
VEC_INLINE vec vec_scale2(vec a, vec n)
{
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1), rest = _mm256_sub_epi32(whole, half);
    __m256 first = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, _mm256_set1_epi32(127)), 23));
    __m256 second = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, _mm256_set1_epi32(127)), 23));
    return _mm256_mul_ps(_mm256_mul_ps(a, first), second);
}
VEC_INLINE float vec_sum(vec a)
{
    __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    quarter = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
    return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_shuffle_ps(quarter, quarter, 1)));
}
VEC_INLINE vec vec_swap_pairs(vec a)
{
    return _mm256_permute_ps(a, 0xB1);
}
VEC_INLINE vec vec_even(vec a)
{
    return _mm256_moveldup_ps(a);
}
VEC_INLINE vec vec_odd(vec a)
{
    return _mm256_movehdup_ps(a);
}
VEC_INLINE vec vec_negative_abs(vec a)
{
    return _mm256_or_ps(a, _mm256_set1_ps(-0.0F));
}
VEC_INLINE vec vec_pick_negative(vec a, vec n, vec p)
{
    return _mm256_blendv_ps(p, n, a);
}
VEC_INLINE int32_t vec_count_nonfinite(vec a, int64_t n)
{
    __m256i exponent = _mm256_and_si256(_mm256_castps_si256(a), _mm256_set1_epi32(0x7F800000));
    __m256i bad = _mm256_and_si256(_mm256_cmpeq_epi32(exponent, _mm256_set1_epi32(0x7F800000)), vec_mask(n));
    return __builtin_popcount((uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(bad)));
}
VEC_INLINE vec vec_load_bf16(const uint16_t *p)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
VEC_INLINE vec vec_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
VEC_INLINE void vec_store_bf16(uint16_t *p, vec a)
{
    __m256i bits = _mm256_castps_si256(a), high = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    rounded = _mm256_blendv_epi8(rounded, _mm256_or_si256(high, _mm256_set1_epi32(0x40)), is_nan);
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(rounded, rounded), 0x08);
    _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(packed));
}
VEC_INLINE void vec_store_f16(uint16_t *p, vec a)
{
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#endif

/* e^x, relative error below 1.2e-7: x = n·ln 2 + r, |r| ≤ ln 2 / 2, ln 2 in two parts, and the Taylor series of e^r to r^7/7! with
 * its last terms balanced. Below −104 the result is 0, above 88.7 infinite. */
VEC_INLINE vec vec_exp(vec x)
{
    vec y = vec_max(vec_set1(-104.0F), vec_min(vec_set1(89.0F), x));
    vec n = vec_round(vec_mul(y, vec_set1(1.44269504088896341F)));
    vec r = vec_fma(n, vec_set1(-0.693359375F), y);
    r = vec_fma(n, vec_set1(2.12194440e-4F), r);
    vec p = vec_set1(1.98412698e-4F);
    p = vec_fma(p, r, vec_set1(1.38888889e-3F));
    p = vec_fma(p, r, vec_set1(8.33333333e-3F));
    p = vec_fma(p, r, vec_set1(4.16666667e-2F));
    p = vec_fma(p, r, vec_set1(1.66666667e-1F));
    p = vec_fma(p, r, vec_set1(0.5F));
    p = vec_fma(p, vec_mul(r, r), r);
    return vec_scale2(vec_add(p, vec_set1(1.0F)), n);
}

/* x / (1 + e^−y) as x·e^y / (1 + e^y) for negative y, so that nothing overflows and tails keep their digits. */
VEC_INLINE vec vec_logistic_times(vec x, vec y)
{
    vec e = vec_exp(vec_negative_abs(y));
    return vec_div(vec_mul(x, vec_pick_negative(y, e, vec_set1(1.0F))), vec_add(vec_set1(1.0F), e));
}

/* x / (1 + e^−x) */
VEC_INLINE vec vec_silu(vec x)
{
    return vec_logistic_times(x, x);
}

/* 0.5·z·(1 + tanh u) = z / (1 + e^−2u), u = √(2/π)·(z + 0.044715·z³): without the cancellation of 1 + tanh. */
VEC_INLINE vec vec_gelu_tanh(vec z)
{
    vec inner = vec_fma(vec_mul(vec_mul(z, z), z), vec_set1(0.044715F), z);
    return vec_logistic_times(z, vec_mul(inner, vec_set1(1.59576912160573071F)));
}

#endif
