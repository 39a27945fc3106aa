/* SPDX-License-Identifier: Apache-2.0
 *
 * Initial noise, bit for bit what torch.randn draws from a CPU generator.
 *
 * The generator is MT19937 seeded with the low 32 bits. From 16 values on, blocks of 16 uniforms become normals through Box-Muller with the
 * polynomials of the reference's 256-bit kernel, in which some steps are fused multiply-adds and the others are rounded one by
 * one; below 16, values come one by one in double precision. Must be compiled without contraction. The fused steps are computed in double
 * (fused below), so the bits need no FMA instruction and no library call.
 * Source of the formulas: PyTorch 2.11, aten's CPU generator and normal kernels. */
#include <math.h>
#include <string.h>

#include "sample/sample.h"

enum { MT_N = 624, MT_M = 397, BLOCK = 16 };

typedef struct twister {
    uint32_t state[MT_N];
    int32_t next;
} twister;

static void twister_seed(twister *mt, uint32_t seed)
{
    mt->state[0] = seed;
    for (uint32_t j = 1; j < MT_N; j++) mt->state[j] = 1812433253U * (mt->state[j - 1] ^ (mt->state[j - 1] >> 30)) + j;
    mt->next = MT_N;
}

static uint32_t twist(uint32_t far, uint32_t high, uint32_t low)
{
    uint32_t y = (high & 0x80000000U) | (low & 0x7FFFFFFFU);
    return far ^ (y >> 1) ^ ((0U - (y & 1U)) & 0x9908B0DFU);
}

static uint32_t twister_next(twister *mt)
{
    if (mt->next == MT_N) {
        uint32_t *s = mt->state;
        for (int32_t j = 0; j < MT_N - MT_M; j++) s[j] = twist(s[j + MT_M], s[j], s[j + 1]);
        for (int32_t j = MT_N - MT_M; j < MT_N - 1; j++) s[j] = twist(s[j + MT_M - MT_N], s[j], s[j + 1]);
        s[MT_N - 1] = twist(s[MT_M - 1], s[MT_N - 1], s[0]);
        mt->next = 0;
    }
    uint32_t y = mt->state[mt->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9D2C5680U;
    y ^= (y << 15) & 0xEFC60000U;
    return y ^ (y >> 18);
}

static float uniform(twister *mt)
{
    return (float)(twister_next(mt) & 0xFFFFFFU) * 0x1p-24F;
}

/* a·b + c with one rounding. The product of two floats is exact in double; the sum is rounded to odd (the last bit keeps that something
 * was cut off), after which the rounding to float is as if nothing had been rounded before. */
static inline float fused(float a, float b, float c)
{
    double product = (double)a * (double)b, addend = (double)c, sum = product + addend;
    double part = sum - product, rest = (product - (sum - part)) + (addend - part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (rest != 0.0 && (bits & 1U) == 0) {
        bits = (rest > 0.0) == (sum > 0.0) ? bits + 1 : bits - 1;
        memcpy(&sum, &bits, sizeof sum);
    }
    return (float)sum;
}

static float natural_log(float x)
{
    static const float c[8] = {-1.1514610310e-1F, 1.1676998740e-1F, -1.2420140846e-1F, 1.4249322787e-1F,
                               -1.6668057665e-1F, 2.0000714765e-1F, -2.4999993993e-1F, 3.3333331174e-1F};
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    float e = (float)((int32_t)(bits >> 23) - 126), m;
    bits = (bits & 0x007FFFFFU) | 0x3F000000U;
    memcpy(&m, &bits, sizeof m);
    float rest = m - 1.0F;
    if (m < 0.707106781186547524F) {
        e -= 1.0F;
        rest += m;
    }
    float z = rest * rest, y = 7.0376836292e-2F;
    for (int32_t i = 0; i < 8; i++) y = fused(y, rest, c[i]);
    y = y * rest;
    float low = e * -2.12194440e-4F;
    y = fused(y, z, low);
    y = fused(-z, 0.5F, y);
    return fused(e, 0.693359375F, rest + y);
}

/* x ≥ 0 */
static void sine_cosine(float x, float *sine, float *cosine)
{
    int32_t j = ((int32_t)(x * 1.27323954473516F) + 1) & ~1;
    float q = (float)j;
    x = fused(q, -0.78515625F, x);
    x = fused(q, -2.4187564849853515625e-4F, x);
    x = fused(q, -3.77489497744594108e-8F, x);
    float z = x * x, half = z * 0.5F;
    float c = fused(2.443315711809948e-5F, z, -1.388731625493765e-3F);
    c = fused(c, z, 4.166664568298827e-2F) * z;
    c = fused(c, z, -half) + 1.0F;
    float s = fused(-1.9515295891e-4F, z, 8.3321608736e-3F);
    s = fused(s, z, -1.6666654611e-1F) * z;
    s = fused(s, x, x);
    float sin_value = (j & 2) == 0 ? s : c, cos_value = (j & 2) == 0 ? c : s;
    *sine = (j & 4) ? -sin_value : sin_value;
    *cosine = (~(j - 2) & 4) ? -cos_value : cos_value;
}

/* 16 uniforms → 16 normals in place. */
static void box_muller(float *d)
{
    for (int32_t j = 0; j < BLOCK / 2; j++) {
        float radius = sqrtf(-2.0F * natural_log(1.0F - d[j])), angle = 6.283185307179586F * d[j + BLOCK / 2], s, c;
        sine_cosine(angle, &s, &c);
        d[j] = radius * c + 0.0F; /* the reference adds the mean, which makes +0 of −0 */
        d[j + BLOCK / 2] = radius * s + 0.0F;
    }
}

static double uniform_double(twister *mt)
{
    uint64_t high = twister_next(mt), low = twister_next(mt);
    return (double)(((high << 32) | low) & ((1ULL << 53) - 1)) * 0x1p-53;
}

/* Fewer than 16 values: pairs in double; the second of a pair is what the reference keeps for its next call. */
static void fill_few(twister *mt, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i += 2) {
        double u1 = uniform_double(mt), u2 = uniform_double(mt);
        double radius = sqrt(-2.0 * log1p(-u2)), angle = 2.0 * 3.14159265358979323846 * u1;
        out[i] = (float)(radius * cos(angle) + 0.0);
        if (i + 1 < n) out[i + 1] = (float)(radius * sin(angle) + 0.0);
    }
}

void reel_noise_fill(uint64_t seed, float *out, int64_t n)
{
    assert(n >= 1);
    twister mt;
    twister_seed(&mt, (uint32_t)(seed & 0xFFFFFFFFU));
    if (n < BLOCK) {
        fill_few(&mt, out, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) out[i] = uniform(&mt);
    for (int64_t i = 0; i + BLOCK <= n; i += BLOCK) box_muller(out + i);
    if (n % BLOCK != 0) { /* the last 16 are drawn afresh, over values made before */
        for (int64_t i = n - BLOCK; i < n; i++) out[i] = uniform(&mt);
        box_muller(out + n - BLOCK);
    }
}
