/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `combine`: Σ coef[i]·x[i] in f32, in the order given. The only reference that sums in f32: guidance and scheduler steps are
 * to follow the reference pipeline's own arithmetic as closely as they can. */
#include "ops/ref/ref.h"

reel_status reel_ref_combine(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)err;
    const reel_op_combine *a = args;
    for (int64_t i = 0; i < reel_tensor_count(&a->y); i++) {
        float sum = a->coef[0] * (float)reel_ref_get(&a->x[0], i);
        for (int32_t k = 1; k < a->n; k++) sum += a->coef[k] * (float)reel_ref_get(&a->x[k], i);
        reel_ref_set(&a->y, i, (double)sum);
    }
    return REEL_OK;
}
