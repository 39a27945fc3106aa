/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `modulation`: y[u, i, d] = table[i, d] + x[u, i, d]. */
#include "ops/ref/ref.h"

reel_status reel_ref_modulation(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)err;
    const reel_op_modulation *a = args;
    for (int64_t u = 0; u < a->y.extent[0]; u++)
        for (int64_t i = 0; i < a->y.extent[1]; i++)
            for (int64_t d = 0; d < a->y.extent[2]; d++) {
                double t = reel_ref_get(&a->table, i * a->table.stride[0] + d * a->table.stride[1]);
                double x = reel_ref_get(&a->x, u * a->x.stride[0] + i * a->x.stride[1] + d * a->x.stride[2]);
                reel_ref_set(&a->y, u * a->y.stride[0] + i * a->y.stride[1] + d * a->y.stride[2], t + x);
            }
    return REEL_OK;
}
