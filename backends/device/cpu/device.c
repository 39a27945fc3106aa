/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU device: open, facts, memory, streams that run everything at once, and copies.
 *
 * A call on a stream has finished when it returns, so events and waits are empty; the engine still goes through them, which keeps it
 * right on devices that queue. Opening lowers the instruction set to options.isa_max for our kernels and for oneDNN. */
#include "backends/device/cpu/device.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/device/cpu/onednn.h"
#include "base/file.h"

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

struct reel_event {
    reel_stream *stream;
};

/* Large blocks lie on huge pages where the system allows it: the convolutions of a decoder are some per cent faster for it. */
static void *memory_new(size_t bytes)
{
    if (bytes > SIZE_MAX - HUGE_PAGE) return NULL;
    size_t alignment = bytes >= (size_t)2 * HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;
    void *memory = NULL;
    if (posix_memalign(&memory, alignment, bytes ? bytes : 1) != 0) return NULL;
    if (alignment == HUGE_PAGE) (void)madvise(memory, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    return memory;
}

void *reel_cpu_scratch(reel_device *device, size_t bytes)
{
    if (bytes <= device->scratch_bytes) return device->scratch;
    void *memory = memory_new(bytes);
    if (!memory) return NULL;
    free(device->scratch);
    device->scratch = memory;
    device->scratch_bytes = bytes;
    return memory;
}

/* The "model name" line of /proc/cpuinfo. */
static void read_cpu_name(char *out, size_t out_bytes)
{
    (void)snprintf(out, out_bytes, "x86-64 processor");
    reel_buf text = {.max = 16U << 20};
    if (reel_read_file("/proc/cpuinfo", 16U << 20, &text, NULL) == REEL_OK && text.n > 0) {
        const char *line = strstr(text.data, "model name");
        const char *value = line ? strchr(line, ':') : NULL;
        if (value) {
            value += strspn(value, ": \t");
            (void)snprintf(out, out_bytes, "%.*s", (int)strcspn(value, "\n"), value);
        }
    }
    reel_buf_deinit(&text);
}

static reel_status pick_isa(const reel_device_options *options, reel_cpu_isa *out, reel_error *err)
{
    reel_cpu_isa isa = reel_cpu_detect();
    if (options && options->isa_max) {
        reel_cpu_isa most;
        if (!reel_cpu_isa_parse(options->isa_max, &most)) {
            return REEL_FAIL(err, REEL_E_ARGUMENT,
                             "unknown instruction set\ngiven: %s\nallowed: base, avx2, avx512, avx512-bf16, amx\n"
                             "remedy: leave it out to use all that the processor has",
                             options->isa_max);
        }
        if (most < isa) isa = most;
    }
    *out = isa;
    return REEL_OK;
}

static reel_status cpu_open(const reel_host *host, const reel_device_options *options, reel_device **out, reel_error *err)
{
    if (options && options->ordinal != 0) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "there is one CPU device\ngiven: number %d\nallowed: 0\nremedy: use --threads to use part of it",
                         options->ordinal);
    }
    if (options && (options->n_thread < 0 || options->n_thread > 4096)) {
        return REEL_FAIL(err, REEL_E_ARGUMENT, "wrong number of threads\ngiven: %d\nallowed: 0 to 4096\nremedy: 0 takes one per core",
                         options->n_thread);
    }
    reel_device *device = calloc(1, sizeof *device);
    if (!device) return REEL_FAIL(err, REEL_E_MEMORY, "no memory for the CPU device\nremedy: close other programs");
    reel_status status = REEL_OK;
    if (host) device->host = *host;
    REEL_TRY_GOTO(pick_isa(options, &device->isa, err), cleanup);
    REEL_TRY_GOTO(reel_cpu_onednn_open(device, err), cleanup);
    REEL_TRY_GOTO(reel_cpu_threads_open(device, options ? options->n_thread : 0, err), cleanup);
    read_cpu_name(device->cpu_name, sizeof device->cpu_name);
    *out = device;
    return REEL_OK;
cleanup:
    reel_cpu_threads_close(device);
    reel_cpu_onednn_close(device);
    free(device);
    return status;
}

static void cpu_close(reel_device *device)
{
    if (!device) return;
    reel_cpu_threads_close(device);
    reel_cpu_onednn_close(device);
    free(device->scratch);
    free(device);
}

/* The number after a name at the start of a line of /proc/meminfo, in bytes; 0 when absent. */
static uint64_t meminfo_bytes(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    return line ? strtoull(line + strlen(name), NULL, 10) * 1024U : 0;
}

/* A number that fills a small file, such as a control group's limit; UINT64_MAX for "max" and for no file. */
static uint64_t file_number(const char *path)
{
    reel_buf text = {.max = 4096};
    uint64_t value = UINT64_MAX;
    if (reel_read_file(path, 4096, &text, NULL) == REEL_OK && text.n > 0 && text.data[0] >= '0' && text.data[0] <= '9') {
        value = strtoull(text.data, NULL, 10);
    }
    reel_buf_deinit(&text);
    return value;
}

/* What the machine has, lowered to the limit of the control group (containers; version 2, then 1). */
static void read_memory(uint64_t *total, uint64_t *available)
{
    reel_buf text = {.max = 1U << 20};
    *total = *available = 0;
    if (reel_read_file("/proc/meminfo", 1U << 20, &text, NULL) == REEL_OK && text.n > 0) {
        *total = meminfo_bytes(text.data, "MemTotal:");
        *available = meminfo_bytes(text.data, "MemAvailable:");
    }
    reel_buf_deinit(&text);
    static const char *const limits[][2] = {
        {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
    };
    for (size_t i = 0; i < REEL_COUNT(limits); i++) {
        uint64_t limit = file_number(limits[i][0]), used = file_number(limits[i][1]);
        if (limit >= *total || used == UINT64_MAX) continue;
        *total = limit;
        uint64_t left = limit > used ? limit - used : 0;
        if (left < *available) *available = left;
    }
}

static reel_status cpu_props(reel_device *device, reel_device_props *out, reel_error *err)
{
    (void)err;
    reel_device_props props = {.size = sizeof props,
                               .kind = "cpu",
                               .n_thread = device->n_thread,
                               .is_host_memory = 1,
                               .is_deterministic = 1,
                               .alignment_bytes = ALIGNMENT,
                               .scratch_bytes = REEL_CPU_SCRATCH_MAX,
                               .weight_dtypes = 1U << REEL_DTYPE_F32 | 1U << REEL_DTYPE_BF16 | 1U << REEL_DTYPE_F16};
    (void)snprintf(props.name, sizeof props.name, "%s, %d %s", device->cpu_name, device->n_thread,
                   device->n_thread == 1 ? "thread" : "threads");
    (void)snprintf(props.isa, sizeof props.isa, "%s", reel_cpu_isa_name(device->isa));
    reel_cpu_onednn_version(props.library, sizeof props.library);
    props.has_fast_bf16 = reel_cpu_has_fast_bf16(device) ? 1 : 0;
    read_memory(&props.memory_bytes, &props.memory_free_bytes);
    *out = props;
    return REEL_OK;
}

static reel_status cpu_buffer_new(reel_device *device, size_t bytes, void **out, reel_error *err)
{
    (void)device;
    void *memory = memory_new(bytes);
    if (!memory) {
        return REEL_FAIL(err, REEL_E_MEMORY, "no memory for a buffer\ngiven: %zu bytes\nremedy: `reel plan` says what would fit", bytes);
    }
    *out = memory;
    return REEL_OK;
}

static void cpu_buffer_free(reel_device *device, void *buffer)
{
    (void)device;
    free(buffer);
}

static reel_status cpu_stream_new(reel_device *device, reel_stream **out, reel_error *err)
{
    reel_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return REEL_FAIL(err, REEL_E_MEMORY, "no memory for a stream\nremedy: close other programs");
    stream->device = device;
    *out = stream;
    return REEL_OK;
}

static void cpu_stream_free(reel_stream *stream)
{
    free(stream);
}

static reel_status cpu_stream_sync(reel_stream *stream, reel_error *err)
{
    (void)stream, (void)err;
    return REEL_OK;
}

static reel_status cpu_event_new(reel_stream *stream, reel_event **out, reel_error *err)
{
    reel_event *event = calloc(1, sizeof *event);
    if (!event) return REEL_FAIL(err, REEL_E_MEMORY, "no memory for an event\nremedy: close other programs");
    event->stream = stream;
    *out = event;
    return REEL_OK;
}

static reel_status cpu_event_done(reel_event *event, reel_error *err)
{
    (void)event, (void)err;
    return REEL_OK;
}

static void cpu_event_free(reel_event *event)
{
    free(event);
}

static reel_status cpu_upload(reel_stream *stream, void *device_dst, const void *host_src, size_t bytes, reel_error *err)
{
    (void)stream, (void)err;
    if (bytes > 0) memcpy(device_dst, host_src, bytes);
    return REEL_OK;
}

static reel_status cpu_fill(reel_stream *stream, void *dst, int32_t byte, size_t bytes, reel_error *err)
{
    (void)stream, (void)err;
    if (bytes > 0) memset(dst, byte, bytes);
    return REEL_OK;
}

const reel_device_vt reel_cpu_vt = {
    .size = sizeof(reel_device_vt),
    .open = cpu_open,
    .close = cpu_close,
    .props = cpu_props,
    .buffer_new = cpu_buffer_new,
    .buffer_free = cpu_buffer_free,
    .stream_new = cpu_stream_new,
    .stream_free = cpu_stream_free,
    .stream_sync = cpu_stream_sync,
    .event_new = cpu_event_new,
    .event_record = cpu_event_done,
    .event_sync = cpu_event_done,
    .event_free = cpu_event_free,
    .upload = cpu_upload,
    .download = cpu_upload,
    .copy = cpu_upload,
    .fill = cpu_fill,
    .op = reel_cpu_op,
    .attention = reel_cpu_attention_list,
    .weight_pack = reel_cpu_weight_pack,
    .weight_free = reel_cpu_weight_free,
};
