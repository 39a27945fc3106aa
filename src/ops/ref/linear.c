/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `linear`: y = act(x·Wᵀ + bias + Σ scale·(x·Aᵀ)·Bᵀ), one row of x at a time. */
#include <stdlib.h>

#include "ops/ref/ref.h"

/* acc[n] += scale·Σ_r (Σ_k x[k]·A[r, k])·B[row_begin + n, r] */
static void add_low_rank(const reel_weight *w, const reel_low_rank *lr, const double *x, double *acc)
{
    for (int64_t r = 0; r < lr->rank; r++) {
        double inner = 0.0;
        for (int64_t k = 0; k < w->n_col; k++) inner += x[k] * (double)reel_ref_load(lr->a, lr->dtype, r * w->n_col + k);
        for (int64_t n = w->row_begin; n < w->row_end; n++)
            acc[n - w->row_begin] += (double)lr->scale * inner * (double)reel_ref_load(lr->b, lr->dtype, n * lr->rank + r);
    }
}

reel_status reel_ref_linear(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream;
    const reel_op_linear *a = args;
    int64_t n_in = a->w.n_col, n_out = a->w.row_end - a->w.row_begin;
    float *w = NULL; /* [K][N'] */
    double *x = NULL;
    REEL_TRY(reel_ref_weight_columns(&a->w, a->x.dtype, &w, err));
    reel_status status = reel_ref_alloc(n_in + n_out, &x, err);
    if (status != REEL_OK) goto cleanup;
    double *acc = x + n_in;
    for (int64_t m = 0; m < a->x.extent[0]; m++) {
        for (int64_t k = 0; k < n_in; k++) x[k] = reel_ref_get(&a->x, m * a->x.stride[0] + k * a->x.stride[1]);
        for (int64_t n = 0; n < n_out; n++) acc[n] = 0.0;
        for (int64_t k = 0; k < n_in; k++)
            for (int64_t n = 0; n < n_out; n++) acc[n] += x[k] * (double)w[k * n_out + n];
        for (int32_t i = 0; i < a->w.n_low_rank; i++) add_low_rank(&a->w, &a->w.low_rank[i], x, acc);
        for (int64_t n = 0; n < n_out; n++) {
            double bias = a->bias.data ? reel_ref_get(&a->bias, n * a->bias.stride[0]) : 0.0;
            reel_ref_set(&a->y, m * a->y.stride[0] + n * a->y.stride[1], reel_ref_activate(a->act, acc[n] + bias));
        }
    }
cleanup:
    free(x);
    free(w);
    return status;
}
