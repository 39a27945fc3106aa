/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `unpatchify`: tokens to latents; channels innermost within a token, as the output projection leaves them. */
#include "ops/ref/ref.h"

reel_status reel_ref_unpatchify(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)err;
    const reel_op_unpatchify *a = args;
    int64_t ph = a->patch_h, pw = a->patch_w, rows = a->y.extent[2] / ph, columns = a->y.extent[3] / pw, n_channel = a->y.extent[0];
    for (int64_t s = 0; s < a->x.extent[0]; s++) {
        int64_t n = a->first_token + s, column = n % columns, row = n / columns % rows, t = n / columns / rows;
        for (int64_t i = 0; i < a->x.extent[1]; i++) {
            int64_t c = i % n_channel, dx = i / n_channel % pw, dy = i / n_channel / pw;
            int64_t y = c * a->y.stride[0] + t * a->y.stride[1] + (row * ph + dy) * a->y.stride[2] + (column * pw + dx) * a->y.stride[3];
            reel_ref_set(&a->y, y, reel_ref_get(&a->x, s * a->x.stride[0] + i * a->x.stride[1]));
        }
    }
    return REEL_OK;
}
