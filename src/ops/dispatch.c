/* SPDX-License-Identifier: Apache-2.0
 *
 * Binding operations to a device, the checked calls, and copies between host and device (ops.h).
 *
 * A C reference runs at once, so the call waits for what the device has queued before it; the device's own operations are only enqueued. */
#include <stdio.h>
#include <string.h>

#include "ops/args.h"
#include "ops/compose.h"
#include "ops/ops.h"
#include "ops/ref/ref.h"

enum need { MUST, MAY };

/* Names of operations for the one log line. */
typedef struct name_list {
    char text[512];
    size_t used;
} name_list;

static void add_name(name_list *list, const char *name)
{
    int n = snprintf(list->text + list->used, sizeof list->text - list->used, "%s%s", list->used > 0 ? ", " : "", name);
    if (n > 0 && (size_t)n < sizeof list->text - list->used) list->used += (size_t)n;
}

/* The device's function; else the reference; NULL for a MAY operation, which is then composed. */
static reel_status bind_one(const reel_ops *ops, const char *name, uint32_t version, enum need need, reel_op_fn *out, reel_error *err)
{
    reel_op_fn fn = ops->vt->op(ops->device, name, version);
    if (!fn && need == MUST) {
        if (!ops->props.is_host_memory)
            return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                             "device \"%s\" lacks the operation %s, version %u, which every device must have when the host cannot reach "
                             "its memory\nremedy: "
                             "use another device, or a version of its plug-in that has the operation",
                             ops->props.kind, name, (unsigned)version);
        fn = reel_ref_op(name);
    }
    *out = fn;
    return REEL_OK;
}

static void report(const reel_ops *ops)
{
    name_list references = {.used = 0}, composed = {.used = 0};
#define X(name, version, need)                                      \
    if (ops->name == reel_ref_##name) add_name(&references, #name); \
    if (!ops->name) add_name(&composed, #name);
    REEL_OP_LIST(X)
#undef X
    if (references.used == 0 && composed.used == 0) return;
    reel_log_write(&ops->log, references.used > 0 ? REEL_LOG_WARNING : REEL_LOG_INFO,
                   "device %s: as slow C references run: %s; composed of other operations: %s", ops->props.kind,
                   references.used > 0 ? references.text : "none", composed.used > 0 ? composed.text : "none");
}

reel_status reel_ops_bind(const reel_device_vt *vt, reel_device *device, reel_stream *stream, const reel_log *log, reel_ops *out,
                          reel_error *err)
{
    reel_ops ops = {.vt = vt, .device = device, .stream = stream};
    if (log) ops.log = *log;
    ops.props.size = sizeof ops.props;
    REEL_TRY(vt->props(device, &ops.props, err));
    bool is_composed = false;
#define X(name, version, need)                                      \
    REEL_TRY(bind_one(&ops, #name, version, need, &ops.name, err)); \
    is_composed = is_composed || !ops.name;
    REEL_OP_LIST(X)
#undef X
    if (is_composed) {
        REEL_TRY(vt->buffer_new(device, REEL_COMPOSE_SCRATCH_BYTES, &ops.compose_scratch, err));
        ops.compose_scratch_bytes = REEL_COMPOSE_SCRATCH_BYTES;
    }
    report(&ops);
    *out = ops;
    return REEL_OK;
}

void reel_ops_unbind(reel_ops *ops)
{
    if (ops->compose_scratch) ops->vt->buffer_free(ops->device, ops->compose_scratch);
    *ops = (reel_ops){.vt = NULL};
}

reel_status reel_ops_sync(const reel_ops *ops, reel_error *err)
{
    REEL_TRY(ops->vt->stream_sync(ops->stream, err));
    return REEL_OK;
}

const reel_attn_impl *reel_ops_find_attention(const reel_ops *ops, const char *name)
{
    const reel_attn_impl *const *list = ops->vt->attention ? ops->vt->attention(ops->device) : NULL;
    for (; list && *list; list++)
        if (strcmp((*list)->name, name) == 0) return *list;
    return NULL;
}

static reel_status run(const reel_ops *ops, const char *name, reel_op_fn fn, reel_op_fn reference, const void *args, reel_error *err)
{
    if (!fn) return reel_compose_run(ops, name, args, err);
    if (fn == reference) REEL_TRY(ops->vt->stream_sync(ops->stream, err));
    REEL_TRY(fn(ops->stream, args, err));
    return REEL_OK;
}

/* The device gets a checked copy of the call in its one form (args.h). */
#define X(name, version, need)                                                                    \
    reel_status reel_ops_##name(const reel_ops *ops, const reel_op_##name *args, reel_error *err) \
    {                                                                                             \
        REEL_TRY(reel_args_check_size(&reel_args_##name, args, err));                             \
        reel_op_##name call = *args;                                                              \
        reel_args_normalise(&reel_args_##name, &call);                                            \
        REEL_TRY(reel_args_check(&reel_args_##name, &call, err));                                 \
        return run(ops, #name, ops->name, reel_ref_##name, &call, err);                           \
    }
REEL_OP_LIST(X)
#undef X

reel_status reel_ops_attention_by(const reel_ops *ops, const reel_attn_impl *impl, const reel_op_attention *args, reel_error *err)
{
    if (!impl) return reel_ops_attention(ops, args, err);
    REEL_TRY(reel_args_check_size(&reel_args_attention, args, err));
    reel_op_attention call = *args;
    reel_args_normalise(&reel_args_attention, &call);
    REEL_TRY(reel_args_check(&reel_args_attention, &call, err));
    REEL_TRY(impl->run(ops->stream, &call, err));
    return REEL_OK;
}

static reel_status check_dense(const reel_tensor *t, const char *what, reel_error *err)
{
    if (t->data && t->n_dim > 0 && reel_tensor_is_dense(t)) return REEL_OK;
    return REEL_FAIL(err, REEL_E_INTERNAL,
                     "%s takes dense tensors only\ngiven: %s of %d dimensions%s\nremedy: this is a fault of reel; please report it", what,
                     reel_dtype_name(t->dtype), t->n_dim, t->data ? "" : ", absent");
}

reel_status reel_ops_upload(const reel_ops *ops, const reel_tensor *dst, const void *src, reel_error *err)
{
    REEL_TRY(check_dense(dst, "upload", err));
    REEL_TRY(ops->vt->upload(ops->stream, dst->data, src, reel_tensor_bytes(dst), err));
    REEL_TRY(ops->vt->stream_sync(ops->stream, err));
    return REEL_OK;
}

reel_status reel_ops_download(const reel_ops *ops, void *dst, const reel_tensor *src, reel_error *err)
{
    REEL_TRY(check_dense(src, "download", err));
    REEL_TRY(ops->vt->download(ops->stream, dst, src->data, reel_tensor_bytes(src), err));
    REEL_TRY(ops->vt->stream_sync(ops->stream, err));
    return REEL_OK;
}
