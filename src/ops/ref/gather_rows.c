/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `gather_rows`: rows of a stored matrix by index, for token embeddings. */
#include "ops/ref/ref.h"

reel_status reel_ref_gather_rows(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream;
    const reel_op_gather_rows *a = args;
    for (int64_t i = 0; i < a->y.extent[0]; i++) {
        int64_t r = ((const int32_t *)a->index.data)[i * a->index.stride[0]];
        if (r < 0 || r >= a->w.n_row)
            return REEL_FAIL(
                err, REEL_E_INTERNAL,
                "gather_rows: an index is outside the matrix\ngiven: %lld\nallowed: 0 … %lld\nremedy: report this as a fault of reel",
                (long long)r, (long long)a->w.n_row - 1);
        const char *row = (const char *)a->w.data + r * a->w.row_stride_bytes;
        for (int64_t c = 0; c < a->w.n_col; c++)
            reel_ref_set(&a->y, i * a->y.stride[0] + c * a->y.stride[1], (double)reel_ref_load(row, a->w.dtype, c));
    }
    return REEL_OK;
}
