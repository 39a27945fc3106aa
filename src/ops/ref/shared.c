/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of ref.h that are too long for the header: activations, rotation, scratch, weights as f32, and the table of references. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/ops.h"
#include "ops/ref/ref.h"

reel_op_fn reel_ref_op(const char *name)
{
#define X(op, version, need) \
    if (strcmp(name, #op) == 0) return reel_ref_##op;
    REEL_OP_LIST(X)
#undef X
    return NULL;
}

double reel_ref_activate(reel_activation act, double z)
{
    static const double sqrt_2_over_pi = 0.79788456080286535588;
    switch (act) {
    case REEL_ACTIVATION_NONE: break;
    case REEL_ACTIVATION_GELU_TANH: return 0.5 * z * (1.0 + tanh(sqrt_2_over_pi * (z + 0.044715 * z * z * z)));
    case REEL_ACTIVATION_SILU: return z / (1.0 + exp(-z));
    }
    return z;
}

void reel_ref_rotate(const reel_rope *rope, int64_t s, int64_t n_channel, double *row)
{
    if (!rope->table.data) return;
    int64_t token = rope->first_token + s;
    int64_t column = token % rope->grid_w, line = token / rope->grid_w % rope->grid_h, frame = token / rope->grid_w / rope->grid_h;
    for (int64_t j = 0; j < n_channel / 2; j++) {
        int64_t p = j < rope->pair_t ? frame : j < rope->pair_t + rope->pair_h ? line : column;
        int64_t at = p * rope->table.stride[0] + j * rope->table.stride[1];
        double c = reel_ref_get(&rope->table, at), i = reel_ref_get(&rope->table, at + rope->table.stride[2]);
        double x0 = row[2 * j], x1 = row[2 * j + 1];
        row[2 * j] = x0 * c - x1 * i;
        row[2 * j + 1] = x0 * i + x1 * c;
    }
}

reel_status reel_ref_alloc(int64_t n, double **out, reel_error *err)
{
    double *p = malloc((size_t)n * sizeof *p);
    if (!p)
        return REEL_FAIL(
            err, REEL_E_MEMORY,
            "a reference operation found no memory for its scratch\ngiven: %lld bytes\nremedy: free memory, or choose a smaller clip",
            (long long)n * (long long)sizeof *p);
    *out = p;
    return REEL_OK;
}

reel_status reel_ref_weight_columns(const reel_weight *w, reel_dtype x_dtype, float **out, reel_error *err)
{
    if (w->scale || w->zero_point || w->block_elements != 1 || !w->data)
        return REEL_FAIL(
            err, REEL_E_UNSUPPORTED,
            "the C reference reads dense weights only\ngiven: %s, %d elements in a block of %d bytes%s\nallowed: one element a block, no "
            "scales\nremedy: use a device that takes this format",
            reel_dtype_name(w->dtype), w->block_elements, w->block_bytes, w->data ? "" : ", packed by a device without the plain copy");
    int64_t n = w->row_end - w->row_begin;
    float *p = malloc((size_t)(n * w->n_col) * sizeof *p);
    if (!p)
        return REEL_FAIL(err, REEL_E_MEMORY,
                         "a reference operation found no memory for a weight as f32\ngiven: %lld rows of %lld\nremedy: free memory, or use "
                         "a device with "
                         "this operation",
                         (long long)n, (long long)w->n_col);
    for (int64_t r = 0; r < n; r++) {
        const char *row = (const char *)w->data + (w->row_begin + r) * w->row_stride_bytes;
        for (int64_t c = 0; c < w->n_col; c++) {
            float f = reel_ref_load(row, w->dtype, c);
            p[c * n + r] = x_dtype == REEL_DTYPE_BF16 ? reel_f32_from_bf16(reel_bf16_from_f32(f)) : f;
        }
    }
    *out = p;
    return REEL_OK;
}
