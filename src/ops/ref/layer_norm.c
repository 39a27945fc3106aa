/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `layer_norm`: mean, then biased variance around it, then modulation or affine per row. */
#include <math.h>

#include "ops/ref/ref.h"

static void norm_row(const reel_op_layer_norm *a, int64_t s)
{
    int64_t n = a->x.extent[1], x = s * a->x.stride[0], y = s * a->y.stride[0];
    double mean = 0.0, variance = 0.0;
    for (int64_t d = 0; d < n; d++) mean += reel_ref_get(&a->x, x + d * a->x.stride[1]);
    mean /= (double)n;
    for (int64_t d = 0; d < n; d++) {
        double v = reel_ref_get(&a->x, x + d * a->x.stride[1]) - mean;
        variance += v * v;
    }
    double inverse = 1.0 / sqrt(variance / (double)n + (double)a->eps);
    int64_t scale = a->scale.data ? reel_ref_table_row(&a->scale, &a->row_index, s) : 0;
    int64_t shift = a->shift.data ? reel_ref_table_row(&a->shift, &a->row_index, s) : 0;
    for (int64_t d = 0; d < n; d++) {
        double factor = a->scale.data ? (a->one_plus ? 1.0 : 0.0) + reel_ref_get(&a->scale, scale + d * a->scale.stride[1]) : 1.0;
        double add = a->shift.data ? reel_ref_get(&a->shift, shift + d * a->shift.stride[1]) : 0.0;
        double v = (reel_ref_get(&a->x, x + d * a->x.stride[1]) - mean) * inverse;
        reel_ref_set(&a->y, y + d * a->y.stride[1], v * factor + add);
    }
}

reel_status reel_ref_layer_norm(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)err;
    const reel_op_layer_norm *a = args;
    for (int64_t s = 0; s < a->x.extent[0]; s++) norm_row(a, s);
    return REEL_OK;
}
