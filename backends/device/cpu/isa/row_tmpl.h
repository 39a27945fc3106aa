/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels over rows and runs of elements, for any vec of vec.h: norms, modulation, rotary embedding, gates, activations, conversions.
 *
 * All arithmetic is f32. A 16-bit row is widened into the thread's buffer first and narrowed from it at the end, so each kernel
 * exists once; the buffer stays in the first-level cache. Sums are kept in four vectors by position, then added: the order
 * depends on the row's length only. */
#include "backends/device/cpu/isa/vec.h"
#include "backends/device/cpu/kernels.h"

#include <math.h>

/* ---- widening and narrowing ------------------------------------------------------------------------------------------------- */

static void to_f32(float *restrict out, const void *restrict x, reel_dtype dtype, int64_t n)
{
    int64_t i = 0;
    if (dtype == REEL_DTYPE_F32) {
        memcpy(out, x, (size_t)n * sizeof(float));
    } else if (dtype == REEL_DTYPE_BF16) {
        const uint16_t *p = x;
        for (; i + VEC_N <= n; i += VEC_N) vec_store(out + i, vec_load_bf16(p + i));
        for (; i < n; i++) out[i] = reel_f32_from_bf16(p[i]);
    } else {
        const uint16_t *p = x;
        for (; i + VEC_N <= n; i += VEC_N) vec_store(out + i, vec_load_f16(p + i));
        for (; i < n; i++) out[i] = reel_f32_from_f16(p[i]);
    }
}

static void from_f32(void *restrict out, reel_dtype dtype, const float *restrict x, int64_t n)
{
    int64_t i = 0;
    if (dtype == REEL_DTYPE_F32) {
        memcpy(out, x, (size_t)n * sizeof(float));
    } else if (dtype == REEL_DTYPE_BF16) {
        uint16_t *p = out;
        for (; i + VEC_N <= n; i += VEC_N) vec_store_bf16(p + i, vec_load(x + i));
        for (; i < n; i++) p[i] = reel_bf16_from_f32(x[i]);
    } else {
        uint16_t *p = out;
        for (; i + VEC_N <= n; i += VEC_N) vec_store_f16(p + i, vec_load(x + i));
        for (; i < n; i++) p[i] = reel_f16_from_f32(x[i]);
    }
}

/* The row as f32: itself, or widened into buffer. */
VEC_INLINE const float *wide(const void *x, reel_dtype dtype, int64_t n, float *buffer)
{
    if (dtype == REEL_DTYPE_F32) return x;
    to_f32(buffer, x, dtype, n);
    return buffer;
}

/* Where a row's result goes before narrowing: the row itself when it is f32. */
VEC_INLINE float *wide_out(void *y, reel_dtype dtype, float *buffer)
{
    return dtype == REEL_DTYPE_F32 ? y : buffer;
}

VEC_INLINE void narrow(void *y, reel_dtype dtype, const float *buffer, int64_t n)
{
    if (dtype != REEL_DTYPE_F32) from_f32(y, dtype, buffer, n);
}

VEC_INLINE void *at(const reel_tensor *t, int64_t element)
{
    return (char *)t->data + (size_t)element * (t->dtype == REEL_DTYPE_F32 ? 4U : 2U);
}

VEC_INLINE vec load_tail(const float *p, int64_t n)
{
    return n >= VEC_N ? vec_load(p) : vec_load_n(p, n);
}

VEC_INLINE void store_tail(float *p, vec a, int64_t n)
{
    if (n >= VEC_N) {
        vec_store(p, a);
    } else {
        vec_store_n(p, a, n);
    }
}

/* ---- sums ------------------------------------------------------------------------------------------------------------------- */

static float row_sum(const float *x, int64_t n)
{
    vec s[4] = {vec_zero(), vec_zero(), vec_zero(), vec_zero()};
    int64_t i = 0;
    for (; i + 4 * VEC_N <= n; i += 4 * VEC_N) {
        for (int j = 0; j < 4; j++) s[j] = vec_add(s[j], vec_load(x + i + j * VEC_N));
    }
    for (; i < n; i += VEC_N) s[0] = vec_add(s[0], load_tail(x + i, n - i));
    return vec_sum(vec_add(vec_add(s[0], s[1]), vec_add(s[2], s[3])));
}

/* Σ (x − mean)²; lanes beyond the row count nothing. */
static float row_square_sum(const float *x, int64_t n, float mean)
{
    vec s[4] = {vec_zero(), vec_zero(), vec_zero(), vec_zero()}, m = vec_set1(mean);
    int64_t i = 0;
    for (; i + 4 * VEC_N <= n; i += 4 * VEC_N) {
        for (int j = 0; j < 4; j++) {
            vec d = vec_sub(vec_load(x + i + j * VEC_N), m);
            s[j] = vec_fma(d, d, s[j]);
        }
    }
    for (; i + VEC_N <= n; i += VEC_N) {
        vec d = vec_sub(vec_load(x + i), m);
        s[0] = vec_fma(d, d, s[0]);
    }
    float sum = vec_sum(vec_add(vec_add(s[0], s[1]), vec_add(s[2], s[3])));
    for (; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
    return sum;
}

/* ---- norms ------------------------------------------------------------------------------------------------------------------ */

VEC_INLINE const float *table_row(const reel_tensor *table, const reel_tensor *row_index, int64_t s)
{
    if (!table->data) return NULL;
    int64_t u = row_index->data ? ((const int32_t *)row_index->data)[s * row_index->stride[0]] : 0;
    return (const float *)table->data + u * table->stride[0];
}

static void layer_norm(const reel_op_layer_norm *op, int64_t begin, int64_t end, float *row)
{
    int64_t n = op->x.extent[1];
    vec one = vec_set1(op->one_plus ? 1.0F : 0.0F);
    for (int64_t s = begin; s < end; s++) {
        const float *x = wide(at(&op->x, s * op->x.stride[0]), op->x.dtype, n, row);
        void *y = at(&op->y, s * op->y.stride[0]);
        float *out = wide_out(y, op->y.dtype, row);
        const float *scale = table_row(&op->scale, &op->row_index, s), *shift = table_row(&op->shift, &op->row_index, s);
        float mean = row_sum(x, n) / (float)n;
        float factor = 1.0F / sqrtf(row_square_sum(x, n, mean) / (float)n + op->eps);
        vec m = vec_set1(mean), f = vec_set1(factor);
        for (int64_t i = 0; i < n; i += VEC_N) {
            vec v = vec_mul(vec_sub(load_tail(x + i, n - i), m), f);
            vec add = shift ? load_tail(shift + i, n - i) : vec_zero();
            vec mul = scale ? vec_add(one, load_tail(scale + i, n - i)) : vec_set1(1.0F);
            store_tail(out + i, vec_fma(v, mul, add), n - i);
        }
        narrow(y, op->y.dtype, out, n);
    }
}

static void rms_norm(const reel_op_rms_norm *op, int64_t begin, int64_t end, float *row)
{
    int64_t n = op->x.extent[1];
    const float *weight = op->weight.data;
    for (int64_t s = begin; s < end; s++) {
        const float *x = wide(at(&op->x, s * op->x.stride[0]), op->x.dtype, n, row);
        void *y = at(&op->y, s * op->y.stride[0]);
        float *out = wide_out(y, op->y.dtype, row);
        vec f = vec_set1(1.0F / sqrtf(row_square_sum(x, n, 0.0F) / (float)n + op->eps));
        for (int64_t i = 0; i < n; i += VEC_N) {
            store_tail(out + i, vec_mul(vec_mul(load_tail(x + i, n - i), f), load_tail(weight + i, n - i)), n - i);
        }
        narrow(y, op->y.dtype, out, n);
    }
}

static void rms_sum(const reel_op_rms_sum *op, int64_t begin, int64_t end, float *row)
{
    int64_t n = op->x.extent[1];
    float *sum = op->sum.data;
    for (int64_t s = begin; s < end; s++) {
        const float *x = wide(at(&op->x, s * op->x.stride[0]), op->x.dtype, n, row);
        sum[s * op->sum.stride[0]] = row_square_sum(x, n, 0.0F);
    }
}

/* Rotates n/2 pairs of one head in place; cs points at the cosine and sine of its first pair, pairs lie together. */
VEC_INLINE void rotate(float *x, const float *cs, int64_t n)
{
    const vec sign = vec_load((const float[16]){-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1});
    int64_t i = 0;
    for (; i + VEC_N <= n; i += VEC_N) {
        vec v = vec_load(x + i), t = vec_load(cs + i);
        vec cosine = vec_even(t), sine = vec_mul(vec_odd(t), sign);
        vec_store(x + i, vec_fma(v, cosine, vec_mul(vec_swap_pairs(v), sine)));
    }
    for (; i < n; i += 2) {
        float a = x[i], b = x[i + 1];
        x[i] = a * cs[i] - b * cs[i + 1];
        x[i + 1] = a * cs[i + 1] + b * cs[i];
    }
}

/* The cosines and sines of one token, D/2 pairs: time, then rows, then columns. */
static void token_rope(const reel_rope *rope, int64_t token, int64_t d, float *out)
{
    int64_t g = rope->first_token + token, x = g % rope->grid_w, y = g / rope->grid_w % rope->grid_h, t = g / rope->grid_w / rope->grid_h;
    int64_t place[3] = {t, y, x}, end[3] = {2 * rope->pair_t, 2 * (rope->pair_t + rope->pair_h), d};
    const float *table = rope->table.data;
    int64_t i = 0;
    for (int part = 0; part < 3; part++) {
        const float *p = table + place[part] * rope->table.stride[0];
        for (; i < end[part]; i++) out[i] = p[i / 2 * rope->table.stride[1] + i % 2];
    }
}

static void rms_rope(const reel_op_rms_apply_rope *op, int64_t begin, int64_t end, float *row)
{
    int64_t n_head = op->x.extent[1], d = op->x.extent[2], n = n_head * d;
    const float *weight = op->weight.data;
    float *wide_x = row, *cs = row + n;
    for (int64_t s = begin; s < end; s++) {
        for (int64_t h = 0; h < n_head; h++) to_f32(wide_x + h * d, at(&op->x, s * op->x.stride[0] + h * op->x.stride[1]), op->x.dtype, d);
        float sum = op->sum.data ? ((const float *)op->sum.data)[s * op->sum.stride[0]] : row_square_sum(wide_x, n, 0.0F);
        vec f = vec_set1(1.0F / sqrtf(sum / (float)op->n + op->eps));
        for (int64_t i = 0; i < n; i += VEC_N) {
            store_tail(wide_x + i, vec_mul(vec_mul(load_tail(wide_x + i, n - i), f), load_tail(weight + i, n - i)), n - i);
        }
        if (op->rope.table.data) {
            token_rope(&op->rope, s, d, cs);
            for (int64_t h = 0; h < n_head; h++) rotate(wide_x + h * d, cs, d);
        }
        for (int64_t h = 0; h < n_head; h++)
            from_f32(at(&op->y, s * op->y.stride[0] + h * op->y.stride[1]), op->y.dtype, wide_x + h * d, d);
    }
}

static void channel_norm_row(const float *x, float *out, const float *gamma, int64_t n, float root, bool silu)
{
    float length = sqrtf(row_square_sum(x, n, 0.0F));
    vec f = vec_set1(root / (length > 1e-12F ? length : 1e-12F));
    if (isnan(length)) f = vec_set1(length);
    for (int64_t i = 0; i < n; i += VEC_N) {
        vec v = vec_mul(vec_mul(load_tail(x + i, n - i), f), load_tail(gamma + i, n - i));
        store_tail(out + i, silu ? vec_silu(v) : v, n - i);
    }
}

static void channel_norm(const reel_op_channel_norm *op, int64_t begin, int64_t end, float *row)
{
    int32_t last = op->x.n_dim - 1;
    int64_t n = op->x.extent[last];
    float root = sqrtf((float)n);
    bool silu = op->act == REEL_ACTIVATION_SILU;
    const float *gamma = op->gamma.data;
    for (int64_t s = begin; s < end; s++) {
        int64_t x_at = 0, y_at = 0, rest = s;
        for (int32_t i = last - 1; i >= 0; i--) {
            int64_t index = i > 0 ? rest % op->x.extent[i] : rest;
            rest = i > 0 ? rest / op->x.extent[i] : 0;
            x_at += index * op->x.stride[i];
            y_at += index * op->y.stride[i];
        }
        const float *x = wide(at(&op->x, x_at), op->x.dtype, n, row);
        void *y = at(&op->y, y_at);
        float *out = wide_out(y, op->y.dtype, row);
        channel_norm_row(x, out, gamma, n, root, silu);
        narrow(y, op->y.dtype, out, n);
    }
}

/* ---- element by element ----------------------------------------------------------------------------------------------------- */

static void gate_residual(const reel_op_gate_residual *op, int64_t begin, int64_t end, float *row)
{
    int64_t n = op->x.extent[1];
    for (int64_t s = begin; s < end; s++) {
        const float *gate = table_row(&op->gate, &op->row_index, s);
        for (int64_t b = 0; b < n; b += REEL_CPU_BLOCK) {
            int64_t m = n - b < REEL_CPU_BLOCK ? n - b : REEL_CPU_BLOCK;
            const float *x = wide(at(&op->x, s * op->x.stride[0] + b), op->x.dtype, m, row);
            const float *a = wide(at(&op->a, s * op->a.stride[0] + b), op->a.dtype, m, row + REEL_CPU_BLOCK);
            void *y = at(&op->y, s * op->y.stride[0] + b);
            float *out = wide_out(y, op->y.dtype, row);
            for (int64_t i = 0; i < m; i += VEC_N) {
                vec g = gate ? load_tail(gate + b + i, m - i) : vec_set1(1.0F);
                store_tail(out + i, vec_fma(load_tail(a + i, m - i), g, load_tail(x + i, m - i)), m - i);
            }
            narrow(y, op->y.dtype, out, m);
        }
    }
}

static void gated_gelu(const reel_op_gated_gelu *op, int64_t begin, int64_t end, float *row)
{
    int64_t n = op->gate.extent[1];
    for (int64_t s = begin; s < end; s++) {
        for (int64_t b = 0; b < n; b += REEL_CPU_BLOCK) {
            int64_t m = n - b < REEL_CPU_BLOCK ? n - b : REEL_CPU_BLOCK;
            const float *gate = wide(at(&op->gate, s * op->gate.stride[0] + b), op->gate.dtype, m, row);
            const float *up = wide(at(&op->up, s * op->up.stride[0] + b), op->up.dtype, m, row + REEL_CPU_BLOCK);
            void *y = at(&op->y, s * op->y.stride[0] + b);
            float *out = wide_out(y, op->y.dtype, row);
            for (int64_t i = 0; i < m; i += VEC_N) {
                store_tail(out + i, vec_mul(vec_gelu_tanh(load_tail(gate + i, m - i)), load_tail(up + i, m - i)), m - i);
            }
            narrow(y, op->y.dtype, out, m);
        }
    }
}

static void silu(void *y, reel_dtype y_dtype, const void *x, reel_dtype x_dtype, int64_t n, float *row)
{
    const float *in = wide(x, x_dtype, n, row);
    float *out = wide_out(y, y_dtype, row);
    for (int64_t i = 0; i < n; i += VEC_N) store_tail(out + i, vec_silu(load_tail(in + i, n - i)), n - i);
    narrow(y, y_dtype, out, n);
}

static void combine(const reel_op_combine *op, int64_t begin, int64_t end, float *row)
{
    for (int64_t b = begin; b < end; b += REEL_CPU_BLOCK) {
        int64_t m = end - b < REEL_CPU_BLOCK ? end - b : REEL_CPU_BLOCK;
        const float *x[REEL_COMBINE_MAX];
        for (int32_t k = 0; k < op->n; k++) x[k] = wide(at(&op->x[k], b), op->x[k].dtype, m, row + (k + 1) * REEL_CPU_BLOCK);
        void *y = at(&op->y, b);
        float *out = wide_out(y, op->y.dtype, row);
        for (int64_t i = 0; i < m; i += VEC_N) {
            vec sum = vec_mul(vec_set1(op->coef[0]), load_tail(x[0] + i, m - i));
            for (int32_t k = 1; k < op->n; k++) sum = vec_fma(vec_set1(op->coef[k]), load_tail(x[k] + i, m - i), sum);
            store_tail(out + i, sum, m - i);
        }
        narrow(y, op->y.dtype, out, m);
    }
}

static void finish(void *out, reel_dtype dtype, const float *x, const float *bias, const void *residual, reel_dtype residual_dtype,
                   reel_activation act, int64_t n)
{
    float wide_y[REEL_CPU_BLOCK], wide_r[REEL_CPU_BLOCK];
    size_t bytes = reel_dtype_bytes(dtype), residual_bytes = reel_dtype_bytes(residual_dtype);
    for (int64_t b = 0; b < n; b += REEL_CPU_BLOCK) {
        int64_t m = n - b < REEL_CPU_BLOCK ? n - b : REEL_CPU_BLOCK;
        void *y = (char *)out + (size_t)b * bytes;
        float *to = wide_out(y, dtype, wide_y);
        const float *r = residual ? wide((const char *)residual + (size_t)b * residual_bytes, residual_dtype, m, wide_r) : NULL;
        for (int64_t i = 0; i < m; i += VEC_N) {
            vec v = load_tail(x + b + i, m - i);
            if (bias) v = vec_add(v, load_tail(bias + b + i, m - i));
            if (r) v = vec_add(v, load_tail(r + i, m - i));
            if (act == REEL_ACTIVATION_GELU_TANH) v = vec_gelu_tanh(v);
            if (act == REEL_ACTIVATION_SILU) v = vec_silu(v);
            store_tail(to + i, v, m - i);
        }
        narrow(y, dtype, to, m);
    }
}

/* round_half_even(clamp(x, −1, 1)/2 + 0.5 … ·255): each step rounds as the reference's does, so samples agree. NaN becomes 0. */
static void frame_u8(uint8_t *y, const void *x, reel_dtype x_dtype, int64_t n, float *row)
{
    const float *in = wide(x, x_dtype, n, row);
    float *rounded = row + REEL_CPU_BLOCK;
    for (int64_t i = 0; i < n; i += VEC_N) {
        vec v = vec_min(vec_max(load_tail(in + i, n - i), vec_set1(-1.0F)), vec_set1(1.0F));
        v = vec_add(vec_mul(v, vec_set1(0.5F)), vec_set1(0.5F));
        store_tail(rounded + i, vec_round(vec_mul(v, vec_set1(255.0F))), n - i);
    }
    for (int64_t i = 0; i < n; i++) y[i] = (uint8_t)rounded[i];
}

static int64_t count_nonfinite(const void *x, reel_dtype dtype, int64_t n)
{
    float buffer[REEL_CPU_BLOCK];
    int64_t count = 0;
    size_t bytes = reel_dtype_bytes(dtype);
    for (int64_t b = 0; b < n; b += REEL_CPU_BLOCK) {
        int64_t m = n - b < REEL_CPU_BLOCK ? n - b : REEL_CPU_BLOCK;
        const float *in = wide((const char *)x + (size_t)b * bytes, dtype, m, buffer);
        for (int64_t i = 0; i < m; i += VEC_N) count += vec_count_nonfinite(load_tail(in + i, m - i), m - i < VEC_N ? m - i : VEC_N);
    }
    return count;
}
