/* SPDX-License-Identifier: Apache-2.0
 *
 * Small pure helpers on tensors and dtypes, shared by the engine and by devices: sizes, dense views, slices, and the exact
 * conversions between 16-bit and 32-bit floats. No memory is touched except by the value conversions. */
#ifndef REEL_PLUGIN_TENSOR_UTIL_H
#define REEL_PLUGIN_TENSOR_UTIL_H

#include <math.h>
#include <string.h>

#include "reel-plugin/tensor.h"

static inline size_t reel_dtype_bytes(reel_dtype dtype)
{
    switch (dtype) {
    case REEL_DTYPE_NONE: return 0;
#define X(name, value, bytes, text) \
    case REEL_DTYPE_##name: return bytes;
        REEL_DTYPE_LIST(X)
#undef X
    }
    return 0;
}

static inline const char *reel_dtype_name(reel_dtype dtype)
{
    switch (dtype) {
    case REEL_DTYPE_NONE: return "none";
#define X(name, value, bytes, text) \
    case REEL_DTYPE_##name: return text;
        REEL_DTYPE_LIST(X)
#undef X
    }
    return "unknown";
}

/* A dense view of up to four dimensions; extents of 0 end the list. */
static inline reel_tensor reel_tensor_dense(void *data, reel_dtype dtype, int64_t e0, int64_t e1, int64_t e2, int64_t e3)
{
    reel_tensor t = {.data = data, .dtype = dtype};
    int64_t e[4] = {e0, e1, e2, e3};
    while (t.n_dim < 4 && e[t.n_dim] > 0) {
        t.extent[t.n_dim] = e[t.n_dim];
        t.n_dim++;
    }
    int64_t stride = 1;
    for (int32_t i = t.n_dim - 1; i >= 0; i--) {
        t.stride[i] = stride;
        stride *= t.extent[i];
    }
    return t;
}

static inline int64_t reel_tensor_count(const reel_tensor *t)
{
    int64_t n = t->data || t->n_dim > 0 ? 1 : 0;
    for (int32_t i = 0; i < t->n_dim; i++) n *= t->extent[i];
    return n;
}

static inline size_t reel_tensor_bytes(const reel_tensor *t)
{
    return (size_t)reel_tensor_count(t) * reel_dtype_bytes(t->dtype);
}

/* Elements [begin, end) of dimension dim. */
static inline reel_tensor reel_tensor_slice(reel_tensor t, int32_t dim, int64_t begin, int64_t end)
{
    t.data = (char *)t.data + (size_t)(begin * t.stride[dim]) * reel_dtype_bytes(t.dtype);
    t.extent[dim] = end - begin;
    return t;
}

static inline int32_t reel_tensor_is_dense(const reel_tensor *t)
{
    int64_t stride = 1;
    for (int32_t i = t->n_dim - 1; i >= 0; i--) {
        if (t->extent[i] != 1 && t->stride[i] != stride) return 0;
        stride *= t->extent[i];
    }
    return 1;
}

static inline float reel_f32_from_bf16(uint16_t bits)
{
    uint32_t u = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Round to nearest even; NaN stays NaN. */
static inline uint16_t reel_bf16_from_f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if ((u & 0x7FFFFFFFU) > 0x7F800000U) return (uint16_t)((u >> 16) | 0x40U);
    return (uint16_t)((u + 0x7FFFU + ((u >> 16) & 1U)) >> 16);
}

static inline float reel_f32_from_f16(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000U) << 16, exponent = (bits >> 10) & 0x1FU, mantissa = bits & 0x3FFU, u;
    if (exponent == 0) {
        float f = (float)mantissa * 5.9604644775390625e-8F; /* 2^-24 */
        return sign ? -f : f;
    }
    u = exponent == 31 ? sign | 0x7F800000U | (mantissa << 13) : sign | ((exponent + 112U) << 23) | (mantissa << 13);
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Round to nearest even; overflow gives infinity. */
static inline uint16_t reel_f16_from_f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    uint16_t sign = (uint16_t)((u >> 16) & 0x8000U);
    uint32_t a = u & 0x7FFFFFFFU;
    if (a > 0x7F800000U) return (uint16_t)(sign | 0x7E00U);
    if (a >= 0x477FF000U) return (uint16_t)(sign | 0x7C00U); /* ≥ 65520 */
    if (a < 0x38800000U) { /* below 2^-14: subnormal, exact scaling then rint */
        float scaled = fabsf(f) * 16777216.0F; /* 2^24 */
        return (uint16_t)(sign | (uint16_t)rintf(scaled));
    }
    uint32_t r = a + 0xFFFU + ((a >> 13) & 1U);
    return (uint16_t)(sign | (uint16_t)((r - 0x38000000U) >> 13));
}

/* E4M3FN: no infinity, 0x7F/0xFF NaN. */
static inline float reel_f32_from_e4m3(uint8_t b)
{
    int32_t e = (b >> 3) & 15, m = b & 7;
    float f = e == 15 && m == 7 ? NAN : e == 0 ? ldexpf((float)m, -9) : ldexpf((float)(8 + m), e - 10);
    return (b & 0x80) ? -f : f;
}

static inline float reel_f32_from_e5m2(uint8_t b)
{
    return reel_f32_from_f16((uint16_t)((uint16_t)b << 8));
}

#endif
