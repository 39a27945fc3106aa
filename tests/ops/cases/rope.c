/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of the QK norm with rotation: whole (rms_norm_rope) and its second half (rms_apply_rope). The table is random: an operation
 * must not assume that cos² + sin² = 1, nor where a table comes from. */
#include "bed.h"

/* A sum of squares over up to 13·128 channels, a root, two products and a sum, all f32. */
static const bed_tolerance tolerance = {{1e-6, 1e-5}, {1e-3, 4e-2}, {2e-4, 5e-3}};

static reel_rope random_rope(bed *b, int64_t n_token, int64_t d)
{
    reel_rope r = {.first_token = bed_range(b, 0, 30), .grid_h = bed_range(b, 1, 5), .grid_w = bed_range(b, 1, 7)};
    r.pair_t = (int32_t)bed_range(b, 0, d / 2);
    r.pair_h = (int32_t)bed_range(b, 0, d / 2 - r.pair_t);
    int64_t n_position = (r.first_token + n_token - 1) / r.grid_w / r.grid_h + 1;
    n_position = n_position > r.grid_h ? n_position : r.grid_h;
    n_position = n_position > r.grid_w ? n_position : r.grid_w;
    r.table = bed_input(b, REEL_DTYPE_F32, BED_DENSE, n_position, d / 2, 2, 0);
    return r;
}

typedef struct sizes {
    int64_t s, h, d;
    bool is_rotated;
    bed_layout layout;
} sizes;

static sizes draw(bed *b)
{
    static const int64_t tokens[] = {1, 5, 18, 37}, widths[] = {64, 128, 40, 2, 80};
    sizes z = {
        .s = tokens[bed_range(b, 0, 3)], .h = bed_range(b, 1, 13), .d = widths[bed_range(b, 0, 4)], .is_rotated = bed_range(b, 0, 3) > 0};
    z.layout = (bed_layout)bed_range(b, BED_DENSE, BED_ROWS);
    if (!z.is_rotated && bed_range(b, 0, 1)) z.d = 3; /* odd widths only without rotation */
    return z;
}

/* [S, H, D], heads of a token side by side, tokens apart by a gap unless dense: how a projection leaves them. */
static reel_tensor tokens(bed *b, reel_dtype dtype, const sizes *z, bool is_output)
{
    reel_tensor rows =
        is_output ? bed_output(b, dtype, z->layout, z->s, z->h * z->d, 0, 0) : bed_input(b, dtype, z->layout, z->s, z->h * z->d, 0, 0);
    return (reel_tensor){.data = rows.data, .dtype = dtype, .n_dim = 3, .extent = {z->s, z->h, z->d}, .stride = {rows.stride[0], z->d, 1}};
}

void case_rms_apply_rope(bed *b)
{
    for (const reel_dtype *x = bed_floats; *x; x++)
        for (const reel_dtype *y = bed_floats; *y; y++)
            for (int32_t i = 0; i < 6; i++) {
                bed_clear(b);
                sizes z = draw(b);
                reel_op_rms_apply_rope a = {
                    .size = sizeof a, .eps = 1e-6F, .n = z.h * z.d * bed_range(b, 1, 2), .x = tokens(b, *x, &z, false)};
                a.sum = bed_input(b, REEL_DTYPE_F32, BED_DENSE, z.s, 0, 0, 0);
                for (int64_t s = 0; s < z.s; s++) bed_set(&a.sum, s, (double)a.n * (0.1 + bed_uniform(b)));
                a.weight = bed_input(b, REEL_DTYPE_F32, BED_DENSE, z.h * z.d, 0, 0, 0);
                if (z.is_rotated) a.rope = random_rope(b, z.s, z.d);
                a.y = *x == *y && bed_range(b, 0, 1) ? a.x : tokens(b, *y, &z, true);
                bed_check(b, "rms_apply_rope", &a, tolerance, "x %s [%lld, %lld, %lld], y %s, rope %d, in place %d", reel_dtype_name(*x),
                          (long long)z.s, (long long)z.h, (long long)z.d, reel_dtype_name(*y), z.is_rotated, a.x.data == a.y.data);
            }
}

void case_rms_norm_rope(bed *b)
{
    for (const reel_dtype *x = bed_floats; *x; x++)
        for (const reel_dtype *y = bed_floats; *y; y++)
            for (int32_t i = 0; i < 6; i++) {
                bed_clear(b);
                sizes z = draw(b);
                reel_op_rms_norm_rope a = {.size = sizeof a, .eps = 1e-6F, .x = tokens(b, *x, &z, false)};
                a.weight = bed_input(b, REEL_DTYPE_F32, BED_DENSE, z.h * z.d, 0, 0, 0);
                if (z.is_rotated) a.rope = random_rope(b, z.s, z.d);
                a.y = *x == *y && bed_range(b, 0, 1) ? a.x : tokens(b, *y, &z, true);
                bed_check(b, "rms_norm_rope", &a, tolerance, "x %s [%lld, %lld, %lld], y %s, rope %d, in place %d", reel_dtype_name(*x),
                          (long long)z.s, (long long)z.h, (long long)z.d, reel_dtype_name(*y), z.is_rotated, a.x.data == a.y.data);
            }
}
