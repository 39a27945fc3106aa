/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `rms_apply_rope`: scales each row by its (handed in) sum of squares, then rotates channel pairs head by head. */
#include <math.h>
#include <stdlib.h>

#include "ops/ref/ref.h"

reel_status reel_ref_rms_apply_rope(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream;
    const reel_op_rms_apply_rope *a = args;
    int64_t n_head = a->x.extent[1], n_channel = a->x.extent[2];
    double *row = NULL;
    REEL_TRY(reel_ref_alloc(n_channel, &row, err));
    for (int64_t s = 0; s < a->x.extent[0]; s++) {
        double inverse = 1.0 / sqrt(reel_ref_get(&a->sum, s * a->sum.stride[0]) / (double)a->n + (double)a->eps);
        for (int64_t h = 0; h < n_head; h++) {
            for (int64_t d = 0; d < n_channel; d++) {
                double v = reel_ref_get(&a->x, s * a->x.stride[0] + h * a->x.stride[1] + d * a->x.stride[2]);
                row[d] = v * inverse * reel_ref_get(&a->weight, (h * n_channel + d) * a->weight.stride[0]);
            }
            reel_ref_rotate(&a->rope, s, n_channel, row);
            for (int64_t d = 0; d < n_channel; d++)
                reel_ref_set(&a->y, s * a->y.stride[0] + h * a->y.stride[1] + d * a->y.stride[2], row[d]);
        }
    }
    free(row);
    return REEL_OK;
}
