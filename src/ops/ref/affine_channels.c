/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `affine_channels`: x·mul[c] + add[c], or x / div[c] + add[c]. */
#include "ops/ref/ref.h"

static double factor_at(const reel_tensor *t, int64_t c, double absent)
{
    return t->data ? reel_ref_get(t, c * t->stride[0]) : absent;
}

reel_status reel_ref_affine_channels(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)err;
    const reel_op_affine_channels *a = args;
    int32_t dim = a->channel_dim, last = a->x.n_dim - 1;
    int64_t below = 1; /* rows per step of the channel dimension */
    for (int32_t i = dim + 1; i < last; i++) below *= a->x.extent[i];
    for (int64_t r = 0; r < reel_ref_n_row(&a->x); r++) {
        int64_t x = reel_ref_row(&a->x, r), y = reel_ref_row(&a->y, r);
        for (int64_t i = 0; i < reel_ref_n_col(&a->x); i++) {
            int64_t c = dim == last ? i : r / below % a->x.extent[dim];
            double v = reel_ref_get(&a->x, x + i * reel_ref_step(&a->x));
            v = a->div.data ? v / factor_at(&a->div, c, 1.0) : v * factor_at(&a->mul, c, 1.0);
            reel_ref_set(&a->y, y + i * reel_ref_step(&a->y), v + factor_at(&a->add, c, 0.0));
        }
    }
    return REEL_OK;
}
