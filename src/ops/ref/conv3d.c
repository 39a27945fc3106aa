/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `conv3d`: for every output pixel, the sum over taps that fall inside the picture; taps in padding add nothing. */
#include <stdlib.h>

#include "ops/ref/ref.h"

typedef struct conv {
    const reel_op_conv3d *a;
    const float *w; /* [I·kt·kh·kw][O] */
    int64_t n_in, n_out, height, width; /* as the kernel sees them, after upsample2 */
    int64_t top, left;
} conv;

/* acc[o] = Σ over taps and input channels for the output pixel (t, y, x) */
static void pixel(const conv *c, int64_t t, int64_t y, int64_t x, double *acc)
{
    const reel_op_conv3d *a = c->a;
    const int32_t *kernel = a->w.kernel;
    int32_t shift = a->upsample2 ? 1 : 0;
    for (int64_t o = 0; o < c->n_out; o++) acc[o] = 0.0;
    for (int64_t kt = 0; kt < kernel[0]; kt++) {
        int64_t f = t * a->stride[0] + kt - a->pad_front;
        if (f < 0) continue;
        for (int64_t kh = 0; kh < kernel[1]; kh++) {
            int64_t r = y * a->stride[1] + kh - c->top;
            if (r < 0 || r >= c->height) continue;
            for (int64_t kw = 0; kw < kernel[2]; kw++) {
                int64_t s = x * a->stride[2] + kw - c->left;
                if (s < 0 || s >= c->width) continue;
                int64_t at = f * a->x.stride[0] + (r >> shift) * a->x.stride[1] + (s >> shift) * a->x.stride[2];
                for (int64_t i = 0; i < c->n_in; i++) {
                    double v = reel_ref_get(&a->x, at + i * a->x.stride[3]);
                    const float *w = c->w + (((i * kernel[0] + kt) * kernel[1] + kh) * kernel[2] + kw) * c->n_out;
                    for (int64_t o = 0; o < c->n_out; o++) acc[o] += v * (double)w[o];
                }
            }
        }
    }
}

/* y[t, y, x, :] = acc + bias + residual, or zero on rows that are not valid */
static void store(const conv *c, int64_t t, int64_t y, int64_t x, const double *acc)
{
    const reel_op_conv3d *a = c->a;
    for (int64_t o = 0; o < c->n_out; o++) {
        double v = 0.0;
        if (a->valid_rows == 0 || y < a->valid_rows) {
            v = acc[o] + (a->bias.data ? reel_ref_get(&a->bias, o * a->bias.stride[0]) : 0.0);
            const reel_tensor *r = &a->residual;
            if (r->data) v += reel_ref_get(r, t * r->stride[0] + y * r->stride[1] + x * r->stride[2] + o * r->stride[3]);
        }
        reel_ref_set(&a->y, t * a->y.stride[0] + y * a->y.stride[1] + x * a->y.stride[2] + o * a->y.stride[3], v);
    }
}

reel_status reel_ref_conv3d(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream;
    const reel_op_conv3d *a = args;
    float *w = NULL;
    double *acc = NULL;
    REEL_TRY(reel_ref_weight_columns(&a->w, a->x.dtype, &w, err));
    conv c = {.a = a, .w = w, .n_in = a->x.extent[3], .n_out = a->w.row_end - a->w.row_begin};
    c.height = a->x.extent[1] << (a->upsample2 ? 1 : 0);
    c.width = a->x.extent[2] << (a->upsample2 ? 1 : 0);
    c.top = a->halo & 1U ? 0 : a->pad[0];
    c.left = a->halo & 4U ? 0 : a->pad[2];
    reel_status status = reel_ref_alloc(c.n_out, &acc, err);
    if (status != REEL_OK) goto cleanup;
    for (int64_t t = 0; t < a->y.extent[0]; t++)
        for (int64_t y = 0; y < a->y.extent[1]; y++)
            for (int64_t x = 0; x < a->y.extent[2]; x++) {
                pixel(&c, t, y, x, acc);
                store(&c, t, y, x, acc);
            }
cleanup:
    free(acc);
    free(w);
    return status;
}
