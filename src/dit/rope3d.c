/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary position table over (frame, row, column).
 *
 * A head of D channels is split into pairs for the three axes: rows and columns get 2·(D/6) channels each, frames the rest, every axis with its
 * own denominator. Angles are computed in f64 and stored as f32 cos and sin, as diffusers' WanRotaryPosEmbed does. */
#include <math.h>
#include <stdlib.h>

#include "dit/dit_internal.h"

void reel_dit_rope_split(int32_t head_dim, int32_t *pair_t, int32_t *pair_h)
{
    int32_t side = head_dim / 6; /* pairs of rows, and of columns */
    *pair_h = side;
    *pair_t = head_dim / 2 - 2 * side;
}

reel_status reel_dit_rope_table(reel_dit *dit, reel_error *err)
{
    const int32_t n_pair = dit->config.head_dim / 2, n_position = dit->config.rope_max;
    const int32_t axis_pairs[3] = {dit->pair_t, dit->pair_h, n_pair - dit->pair_t - dit->pair_h};
    float *table = malloc(sizeof *table * 2 * (size_t)n_pair * (size_t)n_position);
    void *device = NULL;
    if (!table) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for the table of positions\nremedy: close other programs");
    for (int32_t p = 0; p < n_position; p++) {
        int32_t pair = 0;
        for (int32_t axis = 0; axis < 3; axis++) {
            for (int32_t j = 0; j < axis_pairs[axis]; j++, pair++) {
                double angle = p * (1.0 / pow(10000.0, (double)(2 * j) / (2.0 * axis_pairs[axis])));
                table[2 * (p * n_pair + pair)] = (float)cos(angle);
                table[2 * (p * n_pair + pair) + 1] = (float)sin(angle);
            }
        }
    }
    reel_tensor t = reel_tensor_dense(NULL, REEL_DTYPE_F32, n_position, n_pair, 2, 0);
    reel_status status = dit->ops->vt->buffer_new(dit->ops->device, reel_tensor_bytes(&t), &device, err);
    t.data = device;
    if (status == REEL_OK) {
        dit->rope = t;
        status = reel_ops_upload(dit->ops, &dit->rope, table, err);
    }
    free(table);
    return status;
}
