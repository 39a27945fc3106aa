/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `rms_sum`: the sum of squares of each row, the half of a QK norm that ranks add up. */
#include "ops/ref/ref.h"

reel_status reel_ref_rms_sum(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)err;
    const reel_op_rms_sum *a = args;
    for (int64_t s = 0; s < a->x.extent[0]; s++) {
        double sum = 0.0;
        for (int64_t d = 0; d < a->x.extent[1]; d++) {
            double v = reel_ref_get(&a->x, s * a->x.stride[0] + d * a->x.stride[1]);
            sum += v * v;
        }
        reel_ref_set(&a->sum, s * a->sum.stride[0], sum);
    }
    return REEL_OK;
}
