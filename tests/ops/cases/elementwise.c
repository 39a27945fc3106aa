/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of the operations that go element by element: gate_residual, gated_gelu, silu, modulation, combine, affine_channels, convert,
 * frames_to_u8, count_nonfinite. */
#include <math.h>

#include "bed.h"

static const bed_tolerance exact = {{0, 0}, {0, 0}, {0, 0}};
/* A device may use its own exponential or tanh, good to some units of f32. */
static const bed_tolerance activation = {{2e-6, 2e-5}, {1e-3, 4e-2}, {2e-4, 5e-3}};

static bed_layout rows_or_dense(bed *b)
{
    return (bed_layout)bed_range(b, BED_DENSE, BED_ROWS);
}

void case_gate_residual(bed *b)
{
    for (const reel_dtype *x = bed_floats; *x; x++)
        for (const reel_dtype *v = bed_floats; *v; v++)
            for (const reel_dtype *y = bed_floats; *y; y++)
                for (int32_t i = 0; i < 3; i++) {
                    bed_clear(b);
                    int64_t s = bed_range(b, 1, 40), d = bed_range(b, 1, 150), u = bed_range(b, 1, 3);
                    reel_op_gate_residual a = {.size = sizeof a,
                                               .x = bed_input(b, *x, rows_or_dense(b), s, d, 0, 0),
                                               .a = bed_input(b, *v, rows_or_dense(b), s, d, 0, 0)};
                    if (bed_range(b, 0, 2)) a.gate = bed_input(b, REEL_DTYPE_F32, rows_or_dense(b), u, d, 0, 0);
                    if (a.gate.data && bed_range(b, 0, 1)) a.row_index = bed_indices(b, s, u);
                    bool is_on_x = *x == *y && bed_range(b, 0, 1), is_on_a = !is_on_x && *v == *y && bed_range(b, 0, 1);
                    a.y = is_on_x ? a.x : is_on_a ? a.a : bed_output(b, *y, rows_or_dense(b), s, d, 0, 0);
                    bed_check(b, "gate_residual", &a, bed_rounding, "x %s, a %s, y %s [%lld, %lld], gate %d, index %d, on x %d, on a %d",
                              reel_dtype_name(*x), reel_dtype_name(*v), reel_dtype_name(*y), (long long)s, (long long)d,
                              a.gate.data != NULL, a.row_index.data != NULL, is_on_x, is_on_a);
                }
}

void case_gated_gelu(bed *b)
{
    for (const reel_dtype *x = bed_floats; *x; x++)
        for (const reel_dtype *y = bed_floats; *y; y++)
            for (int32_t i = 0; i < 5; i++) {
                bed_clear(b);
                int64_t s = bed_range(b, 1, 30), d = bed_range(b, 1, 150);
                reel_op_gated_gelu a = {.size = sizeof a,
                                        .gate = bed_input(b, *x, rows_or_dense(b), s, d, 0, 0),
                                        .up = bed_input(b, *x, rows_or_dense(b), s, d, 0, 0)};
                bed_set(&a.gate, 0, 30.0); /* far out on either side: 30 and −0 */
                if (d > 1) bed_set(&a.gate, 1, -30.0);
                a.y = *x == *y && i == 0 ? a.gate : *x == *y && i == 1 ? a.up : bed_output(b, *y, rows_or_dense(b), s, d, 0, 0);
                bed_check(b, "gated_gelu", &a, activation, "x %s, y %s [%lld, %lld], in place %d", reel_dtype_name(*x), reel_dtype_name(*y),
                          (long long)s, (long long)d, *x == *y ? i : 9);
            }
}

void case_silu(bed *b)
{
    for (const reel_dtype *x = bed_floats; *x; x++)
        for (const reel_dtype *y = bed_floats; *y; y++)
            for (int32_t i = 0; i < 5; i++) {
                bed_clear(b);
                int64_t e[4] = {bed_range(b, 1, 5), bed_range(b, 1, 70), i > 1 ? bed_range(b, 1, 20) : 0, i > 2 ? bed_range(b, 1, 4) : 0};
                bed_layout layout = rows_or_dense(b);
                reel_op_silu a = {.size = sizeof a, .x = bed_input(b, *x, layout, e[0], e[1], e[2], e[3])};
                bed_set(&a.x, 0, i == 0 ? 90.0 : -90.0); /* e^90 overflows f32: the result is 90 and −0 all the same */
                a.y = *x == *y && i == 0 ? a.x : bed_output(b, *y, layout, e[0], e[1], e[2], e[3]);
                bed_check(b, "silu", &a, activation, "x %s, y %s, %d dimensions, layout %d, in place %d", reel_dtype_name(*x),
                          reel_dtype_name(*y), a.x.n_dim, (int)layout, a.x.data == a.y.data);
            }
}

void case_modulation(bed *b)
{
    for (const reel_dtype *x = bed_floats; *x; x++)
        for (int32_t i = 0; i < 6; i++) {
            bed_clear(b);
            int64_t u = bed_range(b, 1, 4), r = i % 2 ? 6 : 2, d = bed_range(b, 1, 150);
            reel_op_modulation a = {.size = sizeof a, .table = bed_input(b, REEL_DTYPE_F32, BED_DENSE, r, d, 0, 0)};
            bool is_repeated = bed_range(b, 0, 1) != 0;
            a.x = bed_input(b, *x, rows_or_dense(b), u, is_repeated ? 1 : r, d, 0);
            if (is_repeated) a.x.extent[1] = r, a.x.stride[1] = 0;
            a.y = bed_output(b, REEL_DTYPE_F32, BED_DENSE, u, r, d, 0);
            bed_check(b, "modulation", &a, bed_rounding, "x %s [%lld, %lld, %lld], repeated %d", reel_dtype_name(*x), (long long)u,
                      (long long)r, (long long)d, is_repeated);
        }
}

void case_combine(bed *b)
{
    for (int32_t n = 1; n <= REEL_COMBINE_MAX; n++)
        for (int32_t i = 0; i < 8; i++) {
            bed_clear(b);
            int64_t e0 = bed_range(b, 1, 9), e1 = bed_range(b, 1, 300);
            reel_op_combine a = {.size = sizeof a, .n = n};
            for (int32_t k = 0; k < n; k++) {
                a.x[k] = bed_input(b, bed_floats[i < 2 ? 0 : bed_range(b, 0, 2)], BED_DENSE, e0, e1, 0, 0);
                a.coef[k] = (float)bed_normal(b);
            }
            int32_t on = i % 2 ? (int32_t)bed_range(b, 0, n - 1) : -1;
            a.y = on >= 0 ? a.x[on] : bed_output(b, bed_floats[bed_range(b, 0, 2)], BED_DENSE, e0, e1, 0, 0);
            bed_check(b, "combine", &a, bed_rounding, "n %d of [%lld, %lld], y %s on %d", n, (long long)e0, (long long)e1,
                      reel_dtype_name(a.y.dtype), on);
        }
}

void case_affine_channels(bed *b)
{
    for (const reel_dtype *x = bed_floats; *x; x++)
        for (const reel_dtype *y = bed_floats; *y; y++)
            for (int32_t i = 0; i < 8; i++) {
                bed_clear(b);
                int64_t e[4] = {bed_range(b, 1, 17), bed_range(b, 1, 3), bed_range(b, 1, 7), bed_range(b, 1, 17)};
                reel_op_affine_channels a = {.size = sizeof a, .channel_dim = (int32_t)bed_range(b, 0, 3)};
                int64_t c = e[a.channel_dim];
                a.x = bed_input(b, *x, BED_FREE, e[0], e[1], e[2], e[3]);
                if (i % 3 == 0) a.mul = bed_input(b, REEL_DTYPE_F32, BED_DENSE, c, 0, 0, 0);
                if (i % 3 == 1) {
                    a.div = bed_input(b, REEL_DTYPE_F32, BED_DENSE, c, 0, 0, 0);
                    for (int64_t k = 0; k < c; k++) bed_set(&a.div, k, 0.5 + bed_uniform(b));
                }
                if (bed_range(b, 0, 2)) a.add = bed_input(b, REEL_DTYPE_F32, BED_DENSE, c, 0, 0, 0);
                a.y = *x == *y && i > 5 ? a.x : bed_output(b, *y, BED_FREE, e[0], e[1], e[2], e[3]);
                bed_check(b, "affine_channels", &a, bed_rounding, "x %s, y %s [%lld, %lld, %lld, %lld] along %d, case %d",
                          reel_dtype_name(*x), reel_dtype_name(*y), (long long)e[0], (long long)e[1], (long long)e[2], (long long)e[3],
                          a.channel_dim, i);
            }
}

void case_convert(bed *b)
{
    static const reel_dtype sources[] = {REEL_DTYPE_F32, REEL_DTYPE_BF16,    REEL_DTYPE_F16,
                                         REEL_DTYPE_F64, REEL_DTYPE_F8_E4M3, REEL_DTYPE_F8_E5M2};
    for (size_t s = 0; s < REEL_COUNT(sources); s++)
        for (const reel_dtype *y = bed_floats; *y; y++)
            for (int32_t i = 0; i < 6; i++) {
                bed_clear(b);
                bed_layout layout = (bed_layout)(i % 3);
                int64_t e[4] = {bed_range(b, 1, 33), i > 0 ? bed_range(b, 1, 19) : 0, i > 1 ? bed_range(b, 1, 9) : 0,
                                i > 2 ? bed_range(b, 1, 5) : 0};
                reel_op_convert a = {.size = sizeof a, .x = bed_input(b, sources[s], layout, e[0], e[1], e[2], e[3])};
                if (sources[s] == REEL_DTYPE_F32)
                    bed_set(&a.x, 0, i == 0 ? 1e30 : i == 1 ? -3e-6 : NAN); /* over and under the range of f16 */
                a.y = bed_output(b, *y, i == 4 ? BED_FREE : layout, e[0], e[1], e[2], e[3]);
                bed_check(b, "convert", &a, exact, "%s to %s, %d dimensions, layout %d", reel_dtype_name(sources[s]), reel_dtype_name(*y),
                          a.x.n_dim, (int)layout);
            }
}

void case_frames_to_u8(bed *b)
{
    for (const reel_dtype *x = bed_floats; *x; x++)
        for (int32_t i = 0; i < 6; i++) {
            bed_clear(b);
            int64_t f = bed_range(b, 1, 3), h = bed_range(b, 1, 9), w = bed_range(b, 2, 13);
            reel_op_frames_to_u8 a = {.size = sizeof a, .x = bed_input(b, *x, rows_or_dense(b), f, h, w, 3)};
            /* the middle (127.5 → 128), ends, beyond them, and NaN; the other values are normal, so a third lies beyond ±1 */
            static const double special[] = {0.0, 1.0, -1.0, 5.0, -INFINITY, NAN};
            bed_set(&a.x, 0, special[i]);
            a.y = bed_output(b, REEL_DTYPE_U8, rows_or_dense(b), f, h, w, 3);
            bed_check(b, "frames_to_u8", &a, exact, "x %s [%lld, %lld, %lld, 3]", reel_dtype_name(*x), (long long)f, (long long)h,
                      (long long)w);
        }
}

void case_count_nonfinite(bed *b)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY};
    for (const reel_dtype *x = bed_floats; *x; x++)
        for (int32_t i = 0; i < 8; i++) {
            bed_clear(b);
            reel_op_count_nonfinite a = {
                .size = sizeof a,
                .x = bed_input(b, *x, i % 2 ? BED_DENSE : BED_ROWS, bed_range(b, 1, 9), bed_range(b, 1, 99), i > 4 ? 3 : 0, 0)};
            for (int64_t r = 0; r < (i == 0 ? 0 : reel_ref_n_row(&a.x)); r++)
                bed_set(&a.x, reel_ref_row(&a.x, r) + bed_range(b, 0, reel_ref_n_col(&a.x) - 1), odd[bed_range(b, 0, 2)]);
            a.count = bed_output(b, REEL_DTYPE_I32, BED_DENSE, 1, 0, 0, 0);
            bed_check(b, "count_nonfinite", &a, exact, "x %s, %lld rows", reel_dtype_name(*x), (long long)reel_ref_n_row(&a.x));
        }
}
