/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of the operations that only move values: patchify, unpatchify, gather_rows. Equal bits where the dtype stays. */
#include "bed.h"

static const bed_tolerance exact = {{0, 0}, {0, 0}, {0, 0}};

typedef struct latents {
    int64_t c, t, rows, columns, first, n_token;
    int32_t ph, pw;
} latents;

static latents draw(bed *b)
{
    latents l = {.c = bed_range(b, 1, 17), .t = bed_range(b, 1, 4), .rows = bed_range(b, 1, 5), .columns = bed_range(b, 1, 6)};
    l.ph = (int32_t)bed_range(b, 1, 3);
    l.pw = (int32_t)bed_range(b, 1, 3);
    int64_t n = l.t * l.rows * l.columns;
    l.first = bed_range(b, 0, 1) ? 0 : bed_range(b, 0, n - 1);
    l.n_token = l.first == 0 && bed_range(b, 0, 1) ? n : bed_range(b, 1, n - l.first);
    return l;
}

void case_patchify(bed *b)
{
    for (const reel_dtype *x = bed_floats; *x; x++)
        for (const reel_dtype *y = bed_floats; *y; y++)
            for (int32_t i = 0; i < 8; i++) {
                bed_clear(b);
                latents l = draw(b);
                reel_op_patchify a = {.size = sizeof a, .patch_h = l.ph, .patch_w = l.pw, .first_token = l.first};
                a.x = bed_input(b, *x, (bed_layout)(i % 3), l.c, l.t, l.rows * l.ph, l.columns * l.pw);
                a.y = bed_output(b, *y, i % 2 ? BED_DENSE : BED_ROWS, l.n_token, l.c * l.ph * l.pw, 0, 0);
                bed_check(b, "patchify", &a, exact, "x %s [%lld, %lld, %lld, %lld], y %s, patch %d %d, tokens %lld + %lld",
                          reel_dtype_name(*x), (long long)l.c, (long long)l.t, (long long)a.x.extent[2], (long long)a.x.extent[3],
                          reel_dtype_name(*y), l.ph, l.pw, (long long)l.first, (long long)l.n_token);
            }
}

/* A part of the tokens writes a part of y: the rest must keep what it had, so y starts with numbers instead of poison. */
void case_unpatchify(bed *b)
{
    for (const reel_dtype *x = bed_floats; *x; x++)
        for (const reel_dtype *y = bed_floats; *y; y++)
            for (int32_t i = 0; i < 8; i++) {
                bed_clear(b);
                latents l = draw(b);
                reel_op_unpatchify a = {.size = sizeof a, .patch_h = l.ph, .patch_w = l.pw, .first_token = l.first};
                a.x = bed_input(b, *x, i % 2 ? BED_DENSE : BED_ROWS, l.n_token, l.c * l.ph * l.pw, 0, 0);
                a.y = bed_input(b, *y, (bed_layout)(i % 3), l.c, l.t, l.rows * l.ph, l.columns * l.pw);
                bed_check(b, "unpatchify", &a, exact, "x %s, y %s [%lld, %lld, %lld, %lld], patch %d %d, tokens %lld + %lld",
                          reel_dtype_name(*x), reel_dtype_name(*y), (long long)l.c, (long long)l.t, (long long)a.y.extent[2],
                          (long long)a.y.extent[3], l.ph, l.pw, (long long)l.first, (long long)l.n_token);
            }
}

void case_gather_rows(bed *b)
{
    static const reel_dtype weights[] = {REEL_DTYPE_F32, REEL_DTYPE_BF16,    REEL_DTYPE_F16,
                                         REEL_DTYPE_F64, REEL_DTYPE_F8_E4M3, REEL_DTYPE_F8_E5M2};
    for (size_t w = 0; w < REEL_COUNT(weights); w++)
        for (const reel_dtype *y = bed_floats; *y; y++)
            for (int32_t i = 0; i < 3; i++) {
                bed_clear(b);
                int64_t n = bed_range(b, 1, 60), d = bed_range(b, 1, 130), s = bed_range(b, 1, 40);
                reel_op_gather_rows a = {
                    .size = sizeof a, .w = bed_weight(b, weights[w], BED_DENSE, n, d, NULL), .index = bed_indices(b, s, n)};
                a.y = bed_output(b, *y, i % 2 ? BED_DENSE : BED_ROWS, s, d, 0, 0);
                bed_check(b, "gather_rows", &a, exact, "w %s [%lld, %lld], %lld rows, y %s", reel_dtype_name(weights[w]), (long long)n,
                          (long long)d, (long long)s, reel_dtype_name(*y));
            }
}
