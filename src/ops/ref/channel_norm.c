/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `channel_norm`: the VAE's norm over channels (unit length times √C times gamma), with its activation. */
#include <math.h>

#include "ops/ref/ref.h"

reel_status reel_ref_channel_norm(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)err;
    const reel_op_channel_norm *a = args;
    int64_t n = reel_ref_n_col(&a->x), xs = reel_ref_step(&a->x), ys = reel_ref_step(&a->y);
    for (int64_t r = 0; r < reel_ref_n_row(&a->x); r++) {
        int64_t x = reel_ref_row(&a->x, r), y = reel_ref_row(&a->y, r);
        double sum = 0.0;
        for (int64_t c = 0; c < n; c++) {
            double v = reel_ref_get(&a->x, x + c * xs);
            sum += v * v;
        }
        double length = sqrt(sum);
        double factor = sqrt((double)n) / (length < 1e-12 ? 1e-12 : length);
        for (int64_t c = 0; c < n; c++) {
            double v = reel_ref_get(&a->x, x + c * xs) * factor * reel_ref_get(&a->gamma, c * a->gamma.stride[0]);
            reel_ref_set(&a->y, y + c * ys, reel_ref_activate(a->act, v));
        }
    }
    return REEL_OK;
}
