/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention implementations of a device, as an ordered list: most special first, the reference last.
 *
 * The plan asks each in turn whether it takes a shape; the first that accepts is used, unless the user forces one by name. A
 * refusal carries its reason, which `reel devices` and `reel plan` print. There is no second list of what is supported. */
#ifndef REEL_PLUGIN_ATTN_H
#define REEL_PLUGIN_ATTN_H

#include "reel-plugin/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the plan knows of an attention before it runs. */
typedef struct reel_attn_shape {
    uint32_t size;
    reel_dtype dtype; /* of q, k, v and out */
    int32_t head_dim, n_head;
    int32_t has_key_bias, has_relative_bias, wants_lse;
} reel_attn_shape;

typedef struct reel_device reel_device;

typedef struct reel_attn_impl {
    uint32_t size;
    const char *name; /* "flash-avx512-bf16" */
    const char *summary; /* one line for `reel devices` */
    /* 1 when taken; 0 with the reason (a sentence without capital or full stop) in `reason`. */
    int32_t (*supports)(reel_device *device, const reel_attn_shape *shape, char *reason, size_t reason_bytes);
    reel_op_fn run; /* args: reel_op_attention */
} reel_attn_impl;

#ifdef __cplusplus
}
#endif
#endif
