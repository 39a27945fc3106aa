/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `frames_to_u8`: −1…1 to 0…255. In f32 throughout, because halves decide: x = 0 is 127.5, which goes to the even 128. */
#include <math.h>

#include "ops/ref/ref.h"

static uint8_t to_u8(float x)
{
    float v = fminf(fmaxf(x, -1.0F), 1.0F) / 2.0F + 0.5F; /* fmaxf turns NaN into −1 */
    return (uint8_t)rintf(fminf(fmaxf(v, 0.0F), 1.0F) * 255.0F);
}

reel_status reel_ref_frames_to_u8(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)err;
    const reel_op_frames_to_u8 *a = args;
    for (int64_t r = 0; r < reel_ref_n_row(&a->x); r++) {
        int64_t x = reel_ref_row(&a->x, r), y = reel_ref_row(&a->y, r);
        for (int64_t c = 0; c < reel_ref_n_col(&a->x); c++)
            ((uint8_t *)a->y.data)[y + c * reel_ref_step(&a->y)] = to_u8((float)reel_ref_get(&a->x, x + c * reel_ref_step(&a->x)));
    }
    return REEL_OK;
}
