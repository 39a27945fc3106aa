/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations as stages call them: a table bound to one device and stream, and the arena that their tensors live in.
 *
 *     REEL_TRY(REEL_OP(ops, linear, err, .x = x, .w = *w, .bias = b, .y = y));
 *
 * Binding takes each operation from the device; where the device has none, a MUST operation falls to the C reference if the host
 * can address the device's memory (else binding fails), and a MAY operation is composed from others. Calls enqueue; the host
 * reads after reel_ops_sync. One thread per reel_ops. */
#ifndef REEL_OPS_OPS_H
#define REEL_OPS_OPS_H

#include <stdbool.h>

#include "base/check.h"
#include "base/log.h"
#include "reel-plugin/device.h"
#include "reel-plugin/tensor_util.h"

typedef struct reel_ops {
    const reel_device_vt *vt;
    reel_device *device;
    reel_stream *stream;
    reel_device_props props;
    reel_log log;
    void *compose_scratch; /* device memory of composed operations */
    size_t compose_scratch_bytes;
#define X(name, version, need) reel_op_fn name;
    REEL_OP_LIST(X)
#undef X
} reel_ops;

/* Fills *out; says through log, once, which operations run as C references or compositions. */
reel_status reel_ops_bind(const reel_device_vt *vt, reel_device *device, reel_stream *stream, const reel_log *log, reel_ops *out,
                          reel_error *err);
void reel_ops_unbind(reel_ops *ops);
/* Waits for all that was enqueued. */
reel_status reel_ops_sync(const reel_ops *ops, reel_error *err);
/* The attention implementation of that name, NULL when the device has none. */
const reel_attn_impl *reel_ops_find_attention(const reel_ops *ops, const char *name);
/* Attention by one implementation (NULL: the device's operation `attention`), arguments checked as by reel_ops_attention. */
reel_status reel_ops_attention_by(const reel_ops *ops, const reel_attn_impl *impl, const reel_op_attention *args, reel_error *err);
/* The C reference of an operation; NULL for an unknown name. Runs on host memory, at once. */
reel_op_fn reel_ref_op(const char *name);

/* Typed calls: reel_ops_linear(ops, &args, err) and so on. */
#define X(name, version, need) reel_status reel_ops_##name(const reel_ops *ops, const reel_op_##name *args, reel_error *err);
REEL_OP_LIST(X)
#undef X
#define REEL_OP(ops, name, err, ...) reel_ops_##name((ops), &(const reel_op_##name){.size = sizeof(reel_op_##name), __VA_ARGS__}, (err))

/* ------------------------------------------------------------------------------------------------------------------------
 * An arena: one device buffer of a size that the plan states, cut from the front. Running out is an internal error (the plan was
 * wrong), never a second allocation. */
typedef struct reel_arena {
    const reel_ops *ops;
    const char *name; /* for messages */
    char *base;
    size_t bytes, used, high; /* high: the most that was ever used */
} reel_arena;

reel_status reel_arena_init(reel_arena *arena, const reel_ops *ops, const char *name, size_t bytes, reel_error *err);
void reel_arena_deinit(reel_arena *arena);
/* A dense tensor of up to four dimensions (extents of 0 end the list), aligned to the device's alignment, contents undefined. */
reel_status reel_arena_take(reel_arena *arena, reel_dtype dtype, int64_t e0, int64_t e1, int64_t e2, int64_t e3, reel_tensor *out,
                            reel_error *err);
/* mark = arena->used before; everything taken since is given back. */
void reel_arena_rewind(reel_arena *arena, size_t mark);
/* What reel_arena_take uses for so many elements: the formula that the plan shares. */
size_t reel_arena_need(size_t alignment, reel_dtype dtype, int64_t n_element);

/* Host to device and back, waiting for the result. */
reel_status reel_ops_upload(const reel_ops *ops, const reel_tensor *dst, const void *src, reel_error *err);
reel_status reel_ops_download(const reel_ops *ops, void *dst, const reel_tensor *src, reel_error *err);

#endif
