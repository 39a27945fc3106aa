/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `gated_gelu`: y = GELU_tanh(gate)·up. */
#include "ops/ref/ref.h"

reel_status reel_ref_gated_gelu(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)err;
    const reel_op_gated_gelu *a = args;
    for (int64_t s = 0; s < a->y.extent[0]; s++)
        for (int64_t d = 0; d < a->y.extent[1]; d++) {
            double g = reel_ref_activate(REEL_ACTIVATION_GELU_TANH, reel_ref_get(&a->gate, s * a->gate.stride[0] + d * a->gate.stride[1]));
            reel_ref_set(&a->y, s * a->y.stride[0] + d * a->y.stride[1],
                         g * reel_ref_get(&a->up, s * a->up.stride[0] + d * a->up.stride[1]));
        }
    return REEL_OK;
}
