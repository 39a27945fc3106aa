/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of the norms over rows: layer_norm, rms_norm, rms_sum, channel_norm. */
#include "bed.h"

static const int64_t row_counts[] = {1, 2, 7, 33, 101}, widths[] = {1, 3, 16, 31, 96, 129, 384, 1536};

static int64_t pick(bed *b, const int64_t *list, size_t n)
{
    return list[bed_range(b, 0, (int64_t)n - 1)];
}

/* y is a new tensor, or x itself when the dtypes allow and chance says so. */
static reel_tensor output_for(bed *b, const reel_tensor *x, reel_dtype dtype, bed_layout layout)
{
    if (dtype == x->dtype && bed_range(b, 0, 2) == 0) return *x;
    return bed_output(b, dtype, layout, x->extent[0], x->extent[1], x->extent[2], x->extent[3]);
}

static void one_layer_norm(bed *b, reel_dtype x_dtype, reel_dtype y_dtype)
{
    bed_clear(b);
    int64_t s = pick(b, row_counts, REEL_COUNT(row_counts)), d = pick(b, widths + 1, REEL_COUNT(widths) - 1), n_table = bed_range(b, 1, 4);
    bed_layout layout = (bed_layout)bed_range(b, BED_DENSE, BED_ROWS);
    reel_op_layer_norm a = {
        .size = sizeof a, .eps = 1e-6F, .one_plus = (int32_t)bed_range(b, 0, 1), .x = bed_input(b, x_dtype, layout, s, d, 0, 0)};
    for (int64_t i = 0; i < s; i++) bed_set(&a.x, i * a.x.stride[0], 3.0 + bed_normal(b)); /* a mean away from 0 */
    if (bed_range(b, 0, 2)) a.scale = bed_input(b, REEL_DTYPE_F32, layout, n_table, d, 0, 0);
    if (bed_range(b, 0, 2)) a.shift = bed_input(b, REEL_DTYPE_F32, layout, n_table, d, 0, 0);
    if (!a.scale.data) a.one_plus = 0; /* factor 1 either way; one_plus means nothing */
    if (bed_range(b, 0, 1)) a.row_index = bed_indices(b, s, n_table);
    a.y = output_for(b, &a.x, y_dtype, layout);
    bed_check(b, "layer_norm", &a, bed_rounding, "x %s [%lld, %lld], y %s, scale %d, shift %d, index %d, one_plus %d, in place %d",
              reel_dtype_name(x_dtype), (long long)s, (long long)d, reel_dtype_name(y_dtype), a.scale.data != NULL, a.shift.data != NULL,
              a.row_index.data != NULL, a.one_plus, a.x.data == a.y.data);
}

/* A row with all values near 1000: the variance must be taken around the mean, not as a difference of large sums. */
static void far_from_zero(bed *b)
{
    bed_clear(b);
    reel_op_layer_norm a = {.size = sizeof a, .eps = 1e-6F, .x = bed_input(b, REEL_DTYPE_F32, BED_DENSE, 3, 129, 0, 0)};
    for (int64_t i = 0; i < 3 * 129; i++) bed_set(&a.x, i, 1000.0 + bed_normal(b));
    a.y = bed_output(b, REEL_DTYPE_F32, BED_DENSE, 3, 129, 0, 0);
    /* the mean itself has an f32 error of 1000·2^-24 ≈ 6e-5 */
    bed_check(b, "layer_norm", &a, (bed_tolerance){{2e-4, 5e-4}, {0, 0}, {0, 0}}, "mean 1000");
}

void case_layer_norm(bed *b)
{
    for (const reel_dtype *x = bed_floats; *x; x++)
        for (const reel_dtype *y = bed_floats; *y; y++)
            for (int32_t i = 0; i < 10; i++) one_layer_norm(b, *x, *y);
    far_from_zero(b);
}

void case_rms_norm(bed *b)
{
    for (const reel_dtype *x = bed_floats; *x; x++)
        for (const reel_dtype *y = bed_floats; *y; y++)
            for (int32_t i = 0; i < 6; i++) {
                bed_clear(b);
                int64_t s = pick(b, row_counts, REEL_COUNT(row_counts)), d = pick(b, widths, REEL_COUNT(widths));
                bed_layout layout = (bed_layout)bed_range(b, BED_DENSE, BED_ROWS);
                reel_op_rms_norm a = {.size = sizeof a, .eps = 1e-6F, .x = bed_input(b, *x, layout, s, d, 0, 0)};
                a.weight = bed_input(b, REEL_DTYPE_F32, BED_DENSE, d, 0, 0, 0);
                a.y = output_for(b, &a.x, *y, layout);
                bed_check(b, "rms_norm", &a, bed_rounding, "x %s [%lld, %lld], y %s, in place %d", reel_dtype_name(*x), (long long)s,
                          (long long)d, reel_dtype_name(*y), a.x.data == a.y.data);
            }
}

void case_rms_sum(bed *b)
{
    for (const reel_dtype *x = bed_floats; *x; x++)
        for (int32_t i = 0; i < 8; i++) {
            bed_clear(b);
            int64_t s = pick(b, row_counts, REEL_COUNT(row_counts)), d = pick(b, widths, REEL_COUNT(widths));
            reel_op_rms_sum a = {.size = sizeof a, .x = bed_input(b, *x, (bed_layout)bed_range(b, BED_DENSE, BED_ROWS), s, d, 0, 0)};
            a.sum = bed_output(b, REEL_DTYPE_F32, BED_DENSE, s, 0, 0, 0);
            bed_check(b, "rms_sum", &a, bed_rounding, "x %s [%lld, %lld]", reel_dtype_name(*x), (long long)s, (long long)d);
        }
}

/* One of the shapes that the autoencoder hands over: rows, pictures, frames. */
static reel_tensor pictures(bed *b, reel_dtype dtype, bed_layout layout, int64_t c, bool is_output, const reel_tensor *like)
{
    if (is_output) return bed_output(b, dtype, layout, like->extent[0], like->extent[1], like->extent[2], like->extent[3]);
    switch (bed_range(b, 0, 2)) {
    case 0: return bed_input(b, dtype, layout, bed_range(b, 1, 70), c, 0, 0);
    case 1: return bed_input(b, dtype, layout, bed_range(b, 1, 5), bed_range(b, 1, 9), c, 0);
    default: return bed_input(b, dtype, layout, bed_range(b, 1, 3), bed_range(b, 1, 5), bed_range(b, 1, 7), c);
    }
}

void case_channel_norm(bed *b)
{
    for (const reel_dtype *x = bed_floats; *x; x++)
        for (const reel_dtype *y = bed_floats; *y; y++)
            for (int32_t i = 0; i < 8; i++) {
                bed_clear(b);
                int64_t c = pick(b, widths, REEL_COUNT(widths) - 1);
                bed_layout layout = (bed_layout)bed_range(b, BED_DENSE, BED_ROWS);
                reel_op_channel_norm a = {.size = sizeof a, .act = bed_range(b, 0, 1) ? REEL_ACTIVATION_SILU : REEL_ACTIVATION_NONE};
                a.x = pictures(b, *x, layout, c, false, NULL);
                if (i == 0) /* a row of zeros stays zero, it is not divided by zero */
                    for (int64_t j = 0; j < c; j++) bed_set(&a.x, j, 0.0);
                a.gamma = bed_input(b, REEL_DTYPE_F32, BED_DENSE, c, 0, 0, 0);
                a.y = *x == *y && bed_range(b, 0, 2) == 0 ? a.x : pictures(b, *y, layout, c, true, &a.x);
                bed_check(b, "channel_norm", &a, bed_rounding,
                          "x %s, %lld rows of %lld in %d dimensions, y %s, act %d, layout %d, in place %d", reel_dtype_name(*x),
                          (long long)reel_ref_n_row(&a.x), (long long)c, a.x.n_dim, reel_dtype_name(*y), (int)a.act, (int)layout,
                          a.x.data == a.y.data);
            }
}
