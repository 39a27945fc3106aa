/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `rms_norm` (T5: no mean, no shift). */
#include <math.h>

#include "ops/ref/ref.h"

reel_status reel_ref_rms_norm(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)err;
    const reel_op_rms_norm *a = args;
    int64_t n = a->x.extent[1];
    for (int64_t s = 0; s < a->x.extent[0]; s++) {
        double sum = 0.0;
        for (int64_t d = 0; d < n; d++) {
            double v = reel_ref_get(&a->x, s * a->x.stride[0] + d * a->x.stride[1]);
            sum += v * v;
        }
        double inverse = 1.0 / sqrt(sum / (double)n + (double)a->eps);
        for (int64_t d = 0; d < n; d++) {
            double v = reel_ref_get(&a->x, s * a->x.stride[0] + d * a->x.stride[1]) * inverse;
            reel_ref_set(&a->y, s * a->y.stride[0] + d * a->y.stride[1], v * reel_ref_get(&a->weight, d * a->weight.stride[0]));
        }
    }
    return REEL_OK;
}
