/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of `linear`: every dtype of input and weight, odd sizes, strided rows, row ranges, activations, low-rank additions, packed weights. */
#include <math.h>

#include "bed.h"

/* Sums of up to 257 products in f32; GELU's tanh costs a few units more. Products of bf16 are exact in f32. */
static const bed_tolerance plain = {{2e-6, 3e-5}, {1e-3, 4e-2}, {3e-4, 6e-3}};
/* A device may round x·Aᵀ to bf16 between the two products of a low-rank addition: 2^-9 of that part. */
static const bed_tolerance low_rank_bf16 = {{5e-3, 5e-2}, {5e-3, 8e-2}, {5e-3, 5e-2}};

static void add_low_rank(bed *b, reel_weight *w)
{
    w->n_low_rank = (int32_t)bed_range(b, 1, 2);
    w->low_rank = b->low_rank;
    for (int32_t i = 0; i < w->n_low_rank; i++) {
        int64_t rank = bed_range(b, 1, 9);
        reel_dtype dtype = bed_floats[bed_range(b, 0, 2)];
        b->low_rank[i] = (reel_low_rank){.dtype = dtype, .rank = (int32_t)rank, .scale = 0.25F + (float)bed_uniform(b)};
        b->low_rank[i].a = bed_input(b, dtype, BED_DENSE, rank, w->n_col, 0, 0).data;
        b->low_rank[i].b = bed_input(b, dtype, BED_DENSE, w->n_row, rank, 0, 0).data;
    }
}

static void one(bed *b, reel_dtype x_dtype, reel_dtype w_dtype, reel_dtype y_dtype)
{
    static const int64_t sizes[] = {1, 3, 5, 16, 31, 64, 67, 129, 257};
    bed_clear(b);
    int64_t m = sizes[bed_range(b, 0, 6)], k = sizes[bed_range(b, 0, 8)], n = sizes[bed_range(b, 0, 7)];
    bed_layout layout = (bed_layout)bed_range(b, BED_DENSE, BED_ROWS);
    reel_op_linear a = {.size = sizeof a, .x = bed_input(b, x_dtype, layout, m, k, 0, 0), .w = bed_weight(b, w_dtype, layout, n, k, NULL)};
    if (bed_range(b, 0, 1)) {
        a.w.row_begin = bed_range(b, 0, n - 1);
        a.w.row_end = bed_range(b, a.w.row_begin + 1, n);
        n = a.w.row_end - a.w.row_begin;
    }
    if (bed_range(b, 0, 1)) a.bias = bed_input(b, REEL_DTYPE_F32, BED_DENSE, n, 0, 0, 0);
    if (bed_range(b, 0, 3) == 0) add_low_rank(b, &a.w);
    a.act = (reel_activation)bed_range(b, REEL_ACTIVATION_NONE, REEL_ACTIVATION_SILU);
    a.y = bed_output(b, y_dtype, layout, m, n, 0, 0);
    b->least_rms = 0.3 * sqrt((double)k);
    b->is_packed = bed_range(b, 0, 1) != 0;
    bed_check(b, "linear", &a, a.w.n_low_rank > 0 && x_dtype == REEL_DTYPE_BF16 ? low_rank_bf16 : plain,
              "x %s [%lld, %lld], w %s rows %lld … %lld, y %s, bias %d, act %d, low rank %d, packed %d, layout %d",
              reel_dtype_name(x_dtype), (long long)m, (long long)k, reel_dtype_name(w_dtype), (long long)a.w.row_begin,
              (long long)a.w.row_end, reel_dtype_name(y_dtype), a.bias.data != NULL, (int)a.act, a.w.n_low_rank, b->is_packed, (int)layout);
}

void case_linear(bed *b)
{
    static const reel_dtype weights[] = {REEL_DTYPE_F32, REEL_DTYPE_BF16,    REEL_DTYPE_F16,
                                         REEL_DTYPE_F64, REEL_DTYPE_F8_E4M3, REEL_DTYPE_F8_E5M2};
    for (size_t w = 0; w < REEL_COUNT(weights); w++) {
        if (!(b->dev->ops.props.weight_dtypes >> weights[w] & 1U)) continue; /* the loader converts what a device does not take */
        for (const reel_dtype *x = bed_floats; *x; x++)
            for (const reel_dtype *y = bed_floats; *y; y++)
                for (int32_t i = 0; i < 4; i++) one(b, *x, weights[w], *y);
    }
}
