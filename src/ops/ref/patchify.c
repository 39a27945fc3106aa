/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `patchify`: latents to tokens; channels outermost within a token, as the patch convolution's weight is stored. */
#include "ops/ref/ref.h"

reel_status reel_ref_patchify(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)err;
    const reel_op_patchify *a = args;
    int64_t ph = a->patch_h, pw = a->patch_w, rows = a->x.extent[2] / ph, columns = a->x.extent[3] / pw;
    for (int64_t s = 0; s < a->y.extent[0]; s++) {
        int64_t n = a->first_token + s, column = n % columns, row = n / columns % rows, t = n / columns / rows;
        for (int64_t i = 0; i < a->y.extent[1]; i++) {
            int64_t c = i / (ph * pw), dy = i / pw % ph, dx = i % pw;
            int64_t x = c * a->x.stride[0] + t * a->x.stride[1] + (row * ph + dy) * a->x.stride[2] + (column * pw + dx) * a->x.stride[3];
            reel_ref_set(&a->y, s * a->y.stride[0] + i * a->y.stride[1], reel_ref_get(&a->x, x));
        }
    }
    return REEL_OK;
}
