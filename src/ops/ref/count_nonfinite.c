/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `count_nonfinite`: how many elements are NaN or infinite. The count stays at the largest i32 if there are more. */
#include <math.h>

#include "ops/ref/ref.h"

reel_status reel_ref_count_nonfinite(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)err;
    const reel_op_count_nonfinite *a = args;
    int64_t count = 0;
    for (int64_t r = 0; r < reel_ref_n_row(&a->x); r++) {
        int64_t x = reel_ref_row(&a->x, r);
        for (int64_t c = 0; c < reel_ref_n_col(&a->x); c++)
            if (!isfinite(reel_ref_get(&a->x, x + c * reel_ref_step(&a->x)))) count++;
    }
    *(int32_t *)a->count.data = count > INT32_MAX ? INT32_MAX : (int32_t)count;
    return REEL_OK;
}
