/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `gate_residual`: y = x + a·gate, the gate chosen per row. */
#include "ops/ref/ref.h"

reel_status reel_ref_gate_residual(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)err;
    const reel_op_gate_residual *a = args;
    for (int64_t s = 0; s < a->x.extent[0]; s++) {
        int64_t gate = a->gate.data ? reel_ref_table_row(&a->gate, &a->row_index, s) : 0;
        for (int64_t d = 0; d < a->x.extent[1]; d++) {
            double factor = a->gate.data ? reel_ref_get(&a->gate, gate + d * a->gate.stride[1]) : 1.0;
            double v = reel_ref_get(&a->a, s * a->a.stride[0] + d * a->a.stride[1]) * factor;
            reel_ref_set(&a->y, s * a->y.stride[0] + d * a->y.stride[1], reel_ref_get(&a->x, s * a->x.stride[0] + d * a->x.stride[1]) + v);
        }
    }
    return REEL_OK;
}
