/* SPDX-License-Identifier: Apache-2.0
 *
 * What the C references share: reading and writing an element of any float dtype, walking rows of strided tensors, weights as f32.
 *
 * A reference states what an operation means (include/reel-plugin/ops.h) in the plainest code that can be checked by eye. Each sum is
 * formed in double, in a fixed order, and rounded once at the store, so a reference is more exact than any device and never
 * depends on how many rows are handed over. References run at once on host memory, take any strides, and trust their
 * arguments: reel_ops_<name> has checked them. No device is known here. */
#ifndef REEL_OPS_REF_REF_H
#define REEL_OPS_REF_REF_H

#include <stdint.h>

#include "base/check.h"
#include "reel-plugin/ops.h"
#include "reel-plugin/tensor_util.h"

#define X(name, version, need) reel_status reel_ref_##name(reel_stream *stream, const void *args, reel_error *err);
REEL_OP_LIST(X)
#undef X

/* One stored value as f32. F64 is rounded to f32, as PyTorch does on the way to a 16-bit float. */
static inline float reel_ref_load(const void *data, reel_dtype dtype, int64_t index)
{
    switch (dtype) {
    case REEL_DTYPE_F32: return ((const float *)data)[index];
    case REEL_DTYPE_BF16: return reel_f32_from_bf16(((const uint16_t *)data)[index]);
    case REEL_DTYPE_F16: return reel_f32_from_f16(((const uint16_t *)data)[index]);
    case REEL_DTYPE_F64: return (float)((const double *)data)[index];
    case REEL_DTYPE_F8_E4M3: return reel_f32_from_e4m3(((const uint8_t *)data)[index]);
    case REEL_DTYPE_F8_E5M2: return reel_f32_from_e5m2(((const uint8_t *)data)[index]);
    default: return NAN;
    }
}

/* The element at an offset counted in elements from the tensor's first. */
static inline double reel_ref_get(const reel_tensor *t, int64_t offset)
{
    return (double)reel_ref_load(t->data, t->dtype, offset);
}

/* Rounds to the tensor's dtype (to nearest even) and stores. */
static inline void reel_ref_set(const reel_tensor *t, int64_t offset, double value)
{
    float f = (float)value;
    switch (t->dtype) {
    case REEL_DTYPE_BF16: ((uint16_t *)t->data)[offset] = reel_bf16_from_f32(f); break;
    case REEL_DTYPE_F16: ((uint16_t *)t->data)[offset] = reel_f16_from_f32(f); break;
    default: ((float *)t->data)[offset] = f; break;
    }
}

/* Number of rows: the product of all extents but the last. */
static inline int64_t reel_ref_n_row(const reel_tensor *t)
{
    int64_t n = 1;
    for (int32_t i = 0; i + 1 < t->n_dim; i++) n *= t->extent[i];
    return n;
}

/* Length of a row, and the distance of its elements. */
static inline int64_t reel_ref_n_col(const reel_tensor *t)
{
    return t->n_dim > 0 ? t->extent[t->n_dim - 1] : 1;
}
static inline int64_t reel_ref_step(const reel_tensor *t)
{
    return t->n_dim > 0 ? t->stride[t->n_dim - 1] : 1;
}

/* Offset of the first element of row `row`, rows counted through all leading dimensions. */
static inline int64_t reel_ref_row(const reel_tensor *t, int64_t row)
{
    int64_t offset = 0;
    for (int32_t i = t->n_dim - 2; i >= 0; i--) {
        offset += row % t->extent[i] * t->stride[i];
        row /= t->extent[i];
    }
    return offset;
}

/* Row u of a modulation table for row s: through the index when there is one, else row 0. */
static inline int64_t reel_ref_table_row(const reel_tensor *table, const reel_tensor *row_index, int64_t s)
{
    int64_t u = row_index->data ? ((const int32_t *)row_index->data)[s * row_index->stride[0]] : 0;
    return u * table->stride[0];
}

double reel_ref_activate(reel_activation act, double z);

/* Rotates the channels row[0 … D) of one head of the call's token s (ops.h, reel_rope). */
void reel_ref_rotate(const reel_rope *rope, int64_t s, int64_t n_channel, double *row);

/* Memory for n doubles, or REEL_E_MEMORY. */
reel_status reel_ref_alloc(int64_t n, double **out, reel_error *err);

/* The rows [row_begin, row_end) of a weight as f32, transposed to [n_col][rows]: loops then run over outputs, and each output's sum
 * keeps the order of its columns. Inputs of dtype bf16 see weights rounded to bf16. Freed by the caller. */
reel_status reel_ref_weight_columns(const reel_weight *w, reel_dtype x_dtype, float **out, reel_error *err);

#endif
