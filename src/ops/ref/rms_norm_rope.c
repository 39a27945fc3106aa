/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `rms_norm_rope`: sum of squares over all heads of a token, then scale and rotate. Unlike the two halves in a row, the sum
 * is never rounded to f32. */
#include <math.h>
#include <stdlib.h>

#include "ops/ref/ref.h"

reel_status reel_ref_rms_norm_rope(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream;
    const reel_op_rms_norm_rope *a = args;
    int64_t n_head = a->x.extent[1], n_channel = a->x.extent[2], n = n_head * n_channel;
    double *row = NULL;
    REEL_TRY(reel_ref_alloc(n, &row, err));
    for (int64_t s = 0; s < a->x.extent[0]; s++) {
        double sum = 0.0;
        for (int64_t c = 0; c < n; c++) {
            row[c] = reel_ref_get(&a->x, s * a->x.stride[0] + c / n_channel * a->x.stride[1] + c % n_channel * a->x.stride[2]);
            sum += row[c] * row[c];
        }
        double inverse = 1.0 / sqrt(sum / (double)n + (double)a->eps);
        for (int64_t c = 0; c < n; c++) row[c] *= inverse * reel_ref_get(&a->weight, c * a->weight.stride[0]);
        for (int64_t h = 0; h < n_head; h++) reel_ref_rotate(&a->rope, s, n_channel, row + h * n_channel);
        for (int64_t c = 0; c < n; c++)
            reel_ref_set(&a->y, s * a->y.stride[0] + c / n_channel * a->y.stride[1] + c % n_channel * a->y.stride[2], row[c]);
    }
    free(row);
    return REEL_OK;
}
