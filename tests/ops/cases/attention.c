/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of `attention`: the operation and every implementation of the device that takes the shape; all head widths that matter and two
 * odd ones, lengths that no block divides, cross lengths, both biases, log-sum-exp, strided heads, output on the query. */
#include <math.h>

#include "bed.h"

/* f32: exponentials and sums in f32. 16-bit inputs: a device may round the probabilities to that dtype before they meet the values
 * (2^-9, 2^-12 each, averaged over the keys), and the output is rounded again; log-sum-exp stays f32. */
static const bed_tolerance tolerance = {{3e-6, 4e-5}, {5e-3, 6e-2}, {1e-3, 1e-2}};

/* [B, S, H, D] with the heads inside or outside of S in memory, rows of D apart by a gap. */
static reel_tensor heads(bed *b, reel_dtype dtype, bool is_output, int64_t n_batch, int64_t s, int64_t h, int64_t d)
{
    bed_layout layout = (bed_layout)bed_range(b, BED_DENSE, BED_ROWS);
    bool is_outside = bed_range(b, 0, 1) != 0;
    int64_t e1 = is_outside ? h : s, e2 = is_outside ? s : h;
    reel_tensor t = is_output ? bed_output(b, dtype, layout, n_batch, e1, e2, d) : bed_input(b, dtype, layout, n_batch, e1, e2, d);
    if (!is_outside) return t;
    int64_t stride = t.stride[1];
    t.stride[1] = t.stride[2], t.stride[2] = stride;
    t.extent[1] = s, t.extent[2] = h;
    return t;
}

static void one(bed *b, reel_dtype dtype, int64_t d, int64_t n_query, int64_t n_key)
{
    bed_clear(b);
    int64_t n_batch = bed_range(b, 1, 2), h = bed_range(b, 1, 3);
    reel_op_attention a = {.size = sizeof a, .scale = (float)(1.0 / sqrt((double)d))};
    a.q = heads(b, dtype, false, n_batch, n_query, h, d);
    a.k = heads(b, dtype, false, n_batch, n_key, h, d);
    a.v = heads(b, dtype, false, n_batch, n_key, h, d);
    a.out = bed_range(b, 0, 2) == 0 ? a.q : heads(b, dtype, true, n_batch, n_query, h, d);
    if (bed_range(b, 0, 2) == 0) a.key_bias = bed_input(b, REEL_DTYPE_F32, BED_DENSE, n_key, 0, 0, 0);
    if (bed_range(b, 0, 2) == 0)
        a.relative_bias = bed_input(b, REEL_DTYPE_F32, (bed_layout)bed_range(b, BED_DENSE, BED_ROWS), h, n_query + n_key - 1, 0, 0);
    if (bed_range(b, 0, 1)) a.lse = bed_output(b, REEL_DTYPE_F32, BED_DENSE, n_batch, h, n_query, 0);
    reel_attn_shape shape = {.size = sizeof shape, .dtype = dtype, .head_dim = (int32_t)d, .n_head = (int32_t)h};
    shape.has_key_bias = a.key_bias.data != NULL;
    shape.has_relative_bias = a.relative_bias.data != NULL;
    shape.wants_lse = a.lse.data != NULL;
    const reel_attn_impl *const *list = b->dev->vt->attention(b->dev->device);
    for (int32_t i = -1; i < 0 || list[i]; i++) {
        char reason[128];
        b->attention = i < 0 ? NULL : list[i];
        if (b->attention && !b->attention->supports(b->dev->device, &shape, reason, sizeof reason)) continue;
        bed_check(b, "attention", &a, tolerance,
                  "%s %s B %lld, q %lld, k %lld, H %lld, D %lld, key bias %d, relative bias %d, lse %d, in place %d",
                  b->attention ? b->attention->name : "(operation)", reel_dtype_name(dtype), (long long)n_batch, (long long)n_query,
                  (long long)n_key, (long long)h, (long long)d, shape.has_key_bias, shape.has_relative_bias, shape.wants_lse,
                  a.out.data == a.q.data);
    }
    b->attention = NULL;
}

/* Scores in the hundreds: an implementation that does not subtract the maximum overflows. */
static void large_scores(bed *b, reel_dtype dtype)
{
    bed_clear(b);
    reel_op_attention a = {.size = sizeof a, .scale = 20.0F};
    a.q = bed_input(b, dtype, BED_DENSE, 1, 19, 2, 64);
    a.k = bed_input(b, dtype, BED_DENSE, 1, 35, 2, 64);
    a.v = bed_input(b, dtype, BED_DENSE, 1, 35, 2, 64);
    a.out = bed_output(b, dtype, BED_DENSE, 1, 19, 2, 64);
    /* a score of several hundred has an f32 error of some 1e-4, which the exponential turns into a relative error of the same size */
    bed_check(b, "attention", &a, (bed_tolerance){{5e-4, 5e-3}, {5e-3, 6e-2}, {2e-3, 2e-2}}, "large scores, %s", reel_dtype_name(dtype));
}

void case_attention(bed *b)
{
    static const int64_t widths[] = {64, 80, 128, 384, 40, 3}, lengths[][2] = {{1, 1}, {7, 7}, {33, 33}, {67, 131}, {129, 5}, {1, 77}};
    for (const reel_dtype *dtype = bed_floats; *dtype; dtype++) {
        for (size_t w = 0; w < REEL_COUNT(widths); w++)
            for (size_t l = 0; l < REEL_COUNT(lengths); l++)
                for (int32_t i = 0; i < 2; i++) one(b, *dtype, widths[w], lengths[l][0], lengths[l][1]);
        large_scores(b, *dtype);
    }
}
