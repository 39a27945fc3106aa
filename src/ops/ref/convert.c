/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `convert`: another dtype, other strides, the same values. */
#include "ops/ref/ref.h"

reel_status reel_ref_convert(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)err;
    const reel_op_convert *a = args;
    for (int64_t r = 0; r < reel_ref_n_row(&a->x); r++) {
        int64_t x = reel_ref_row(&a->x, r), y = reel_ref_row(&a->y, r);
        for (int64_t c = 0; c < reel_ref_n_col(&a->x); c++)
            reel_ref_set(&a->y, y + c * reel_ref_step(&a->y), reel_ref_get(&a->x, x + c * reel_ref_step(&a->x)));
    }
    return REEL_OK;
}
