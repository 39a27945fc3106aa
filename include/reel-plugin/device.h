/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract of a compute device: memory, streams, events, copies and a table of operations.
 *
 * Work is enqueued on a stream and runs in order; the host reads a result only after stream_sync or event_sync. A device whose
 * operations run at once (CPU) satisfies this trivially; the test device defers everything and poisons what is read early.
 * No exception, exit or signal leaves a plug-in; it keeps no state of the host's. Structs start with their size, so fields
 * can be added at the end. One thread per device at a time; different devices may be used from different threads. */
#ifndef REEL_PLUGIN_DEVICE_H
#define REEL_PLUGIN_DEVICE_H

#include "reel-plugin/attn.h"
#include "reel-plugin/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { REEL_PLUGIN_ABI = 1 };

typedef struct reel_event reel_event;

/* Services of the host, valid from open to close. */
typedef struct reel_host {
    uint32_t size;
    void *user;
    void (*log)(void *user, int32_t level, const char *text); /* 0 error, 1 warning, 2 information, 3 detail */
} reel_host;

typedef struct reel_device_options {
    uint32_t size;
    int32_t ordinal; /* which device of the kind, from 0 */
    int32_t n_thread; /* host threads for computing; 0: one per core that this process may use */
    const char *isa_max; /* CPU: highest instruction set to use ("avx2", "avx512", "avx512-bf16", "amx"); NULL: all there is */
} reel_device_options;

/* Facts about an opened device, as data for the plan. */
typedef struct reel_device_props {
    uint32_t size;
    char kind[16]; /* "cpu" */
    char name[96]; /* "AMD EPYC 9B14, 2 threads" */
    char isa[128]; /* instruction sets in use, or the compute capability */
    char library[96]; /* "oneDNN 2.6.3" */
    uint64_t memory_bytes, memory_free_bytes;
    int32_t n_thread;
    int32_t is_host_memory; /* the host may read and write its memory directly (after a wait) */
    int32_t is_deterministic; /* same inputs, same bits */
    int32_t has_fast_bf16; /* `--dtype auto` means bf16 */
    size_t alignment_bytes; /* of buffers; a weight read where it lies in a file is aligned to its elements only */
    size_t scratch_bytes; /* upper bound of what operations of this device allocate for themselves */
    uint32_t weight_dtypes; /* bit (1 << dtype): linears and convolutions take these as stored */
} reel_device_props;

typedef struct reel_device_vt {
    uint32_t size;
    reel_status (*open)(const reel_host *host, const reel_device_options *options, reel_device **out, reel_error *err);
    void (*close)(reel_device *device);
    reel_status (*props)(reel_device *device, reel_device_props *out, reel_error *err);

    /* Memory: aligned to props.alignment_bytes, not cleared. */
    reel_status (*buffer_new)(reel_device *device, size_t bytes, void **out, reel_error *err);
    void (*buffer_free)(reel_device *device, void *buffer);

    reel_status (*stream_new)(reel_device *device, reel_stream **out, reel_error *err);
    void (*stream_free)(reel_stream *stream);
    reel_status (*stream_sync)(reel_stream *stream, reel_error *err);
    reel_status (*event_new)(reel_stream *stream, reel_event **out, reel_error *err);
    reel_status (*event_record)(reel_event *event, reel_error *err);
    reel_status (*event_sync)(reel_event *event, reel_error *err);
    void (*event_free)(reel_event *event);

    /* Copies between host and device memory or within the device, in stream order. Host memory handed to `upload` may be reused at once;
     * memory handed to `download` is written when the stream has been waited for. */
    reel_status (*upload)(reel_stream *stream, void *device_dst, const void *host_src, size_t bytes, reel_error *err);
    reel_status (*download)(reel_stream *stream, void *host_dst, const void *device_src, size_t bytes, reel_error *err);
    reel_status (*copy)(reel_stream *stream, void *dst, const void *src, size_t bytes, reel_error *err); /* may not overlap */
    reel_status (*fill)(reel_stream *stream, void *dst, int32_t byte, size_t bytes, reel_error *err);

    /* The operation of that name and version, or NULL when this device has none. */
    reel_op_fn (*op)(reel_device *device, const char *name, uint32_t version);
    /* Attention implementations, best first; the array is NULL-terminated and lives as long as the device. */
    const reel_attn_impl *const *(*attention)(reel_device *device);

    /* (optional) Puts a weight into the device's own layout for inputs of dtype `compute`; *bytes says what it takes.
     * Convolutions are always packed; linears only when the plan says so. weight_pack_bytes tells the size beforehand. */
    reel_status (*weight_pack)(reel_device *device, const reel_weight *weight, reel_dtype compute, reel_packed **out, size_t *bytes,
                               reel_error *err);
    void (*weight_free)(reel_device *device, reel_packed *packed);
} reel_device_vt;

/* What a plug-in's shared object exports as `reel_plugin_entry`, and a built-in lists in the static table. */
typedef enum reel_plugin_kind { REEL_PLUGIN_DEVICE = 1 } reel_plugin_kind;

typedef struct reel_plugin {
    uint32_t size;
    uint32_t abi; /* REEL_PLUGIN_ABI */
    reel_plugin_kind kind;
    const char *name; /* "cpu" */
    const char *version; /* for people */
    int32_t (*score)(void); /* 0: cannot run here; the highest score of a kind wins when the user names none */
    const reel_device_vt *device;
} reel_plugin;

#ifdef __cplusplus
}
#endif
#endif
