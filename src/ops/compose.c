/* SPDX-License-Identifier: Apache-2.0
 *
 * Compositions. Scratch is small and fixed: an operation that needs a number per token goes through the tokens in pieces, which changes no
 * bit because results do not depend on how many rows one call has. The pieces share the scratch; stream order keeps them apart. */
#include "ops/compose.h"

#include <string.h>

/* rms_sum, then rms_apply_rope, in pieces of as many tokens as the scratch holds sums. */
static reel_status rms_norm_rope(const reel_ops *ops, const void *args, reel_error *err)
{
    const reel_op_rms_norm_rope *a = args;
    int64_t n_token = a->x.extent[0], n_head = a->x.extent[1], n_channel = a->x.extent[2];
    int64_t step = (int64_t)(ops->compose_scratch_bytes / sizeof(float));
    if (n_head > 1 && a->x.stride[1] != n_channel)
        return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                         "rms_norm_rope is composed on this device, which needs the heads of a token side by side\ngiven: a head stride of "
                         "%lld\nallowed: "
                         "%lld\nremedy: use a device with the fused operation",
                         (long long)a->x.stride[1], (long long)n_channel);
    for (int64_t s = 0; s < n_token; s += step) {
        int64_t end = s + step < n_token ? s + step : n_token;
        reel_tensor x = reel_tensor_slice(a->x, 0, s, end);
        reel_tensor rows = {
            .data = x.data, .dtype = x.dtype, .n_dim = 2, .extent = {end - s, n_head * n_channel}, .stride = {x.stride[0], 1}};
        reel_tensor sum = reel_tensor_dense(ops->compose_scratch, REEL_DTYPE_F32, end - s, 0, 0, 0);
        REEL_TRY(REEL_OP(ops, rms_sum, err, .x = rows, .sum = sum));
        reel_rope rope = a->rope;
        rope.first_token += s;
        REEL_TRY(REEL_OP(ops, rms_apply_rope, err, .x = x, .sum = sum, .weight = a->weight, .y = reel_tensor_slice(a->y, 0, s, end),
                         .n = n_head * n_channel, .eps = a->eps, .rope = rope));
    }
    return REEL_OK;
}

reel_status reel_compose_run(const reel_ops *ops, const char *name, const void *args, reel_error *err)
{
    if (strcmp(name, "rms_norm_rope") == 0) return rms_norm_rope(ops, args, err);
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "this device has no operation %s, and reel knows no way to compose it\nremedy: use another device", name);
}
