/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest back end: host memory, work that runs at once, one operation of its own. Copy this folder to start a device
 * (docs/add-a-device.md). Operations that it lacks are filled by the C references, because the host reaches its memory; fused
 * ones are composed. Built as libreel-device-template.so and run through tests/ops like every device; its score is the lowest
 * there is, so nobody gets it without asking. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "reel-plugin/device.h"
#include "reel-plugin/tensor_util.h"

enum { ALIGNMENT = 64 };

struct reel_device {
    reel_host host;
};

struct reel_stream {
    reel_device *device;
};

struct reel_event {
    reel_stream *stream;
};

static reel_status no_memory(reel_error *err)
{
    return REEL_FAIL(err, REEL_E_MEMORY, "the template device found no memory\nremedy: free memory");
}

static reel_status template_open(const reel_host *host, const reel_device_options *options, reel_device **out, reel_error *err)
{
    if (options->ordinal != 0)
        return REEL_FAIL(err, REEL_E_ARGUMENT, "there is one template device\ngiven: number %d\nallowed: 0\nremedy: leave the number out",
                         options->ordinal);
    reel_device *device = calloc(1, sizeof *device);
    if (!device) return no_memory(err);
    if (host) device->host = *host;
    *out = device;
    return REEL_OK;
}

static void template_close(reel_device *device)
{
    free(device);
}

static reel_status template_props(reel_device *device, reel_device_props *out, reel_error *err)
{
    (void)device, (void)err;
    *out = (reel_device_props){.size = sizeof *out,
                               .kind = "template",
                               .name = "template, 1 thread",
                               .isa = "C",
                               .library = "none",
                               .n_thread = 1,
                               .is_host_memory = 1,
                               .is_deterministic = 1,
                               .alignment_bytes = ALIGNMENT,
                               .weight_dtypes = 1U << REEL_DTYPE_F32 | 1U << REEL_DTYPE_BF16 | 1U << REEL_DTYPE_F16 | 1U << REEL_DTYPE_F64 |
                                                1U << REEL_DTYPE_F8_E4M3 | 1U << REEL_DTYPE_F8_E5M2};
    return REEL_OK;
}

static reel_status template_buffer_new(reel_device *device, size_t bytes, void **out, reel_error *err)
{
    (void)device;
    void *p = NULL;
    if (posix_memalign(&p, ALIGNMENT, bytes > 0 ? bytes : 1) != 0) return no_memory(err);
    *out = p;
    return REEL_OK;
}

static void template_buffer_free(reel_device *device, void *buffer)
{
    (void)device;
    free(buffer);
}

static reel_status template_stream_new(reel_device *device, reel_stream **out, reel_error *err)
{
    reel_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return no_memory(err);
    stream->device = device;
    *out = stream;
    return REEL_OK;
}

static void template_stream_free(reel_stream *stream)
{
    free(stream);
}

static reel_status template_stream_sync(reel_stream *stream, reel_error *err)
{
    (void)stream, (void)err;
    return REEL_OK;
}

static reel_status template_event_new(reel_stream *stream, reel_event **out, reel_error *err)
{
    reel_event *event = calloc(1, sizeof *event);
    if (!event) return no_memory(err);
    event->stream = stream;
    *out = event;
    return REEL_OK;
}

static reel_status template_event_done(reel_event *event, reel_error *err)
{
    (void)event, (void)err;
    return REEL_OK;
}

static void template_event_free(reel_event *event)
{
    free(event);
}

static reel_status template_copy(reel_stream *stream, void *dst, const void *src, size_t bytes, reel_error *err)
{
    (void)stream, (void)err;
    memcpy(dst, src, bytes);
    return REEL_OK;
}

static reel_status template_fill(reel_stream *stream, void *dst, int32_t byte, size_t bytes, reel_error *err)
{
    (void)stream, (void)err;
    memset(dst, byte, bytes);
    return REEL_OK;
}

/* An operation takes all that ops.h allows it to be handed: every float dtype on each side, every stride. The engine has checked
 * extents and dtypes. */
static float load(const reel_tensor *t, int64_t i)
{
    if (t->dtype == REEL_DTYPE_F32) return ((const float *)t->data)[i];
    uint16_t bits = ((const uint16_t *)t->data)[i];
    return t->dtype == REEL_DTYPE_BF16 ? reel_f32_from_bf16(bits) : reel_f32_from_f16(bits);
}

static void store(const reel_tensor *t, int64_t i, float v)
{
    if (t->dtype == REEL_DTYPE_F32)
        ((float *)t->data)[i] = v;
    else
        ((uint16_t *)t->data)[i] = t->dtype == REEL_DTYPE_BF16 ? reel_bf16_from_f32(v) : reel_f16_from_f32(v);
}

static reel_status template_silu(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)err;
    const reel_op_silu *a = args;
    int64_t index[REEL_DIM_MAX] = {0};
    for (int64_t i = reel_tensor_count(&a->x); i > 0; i--) {
        int64_t x = 0, y = 0;
        for (int32_t d = 0; d < a->x.n_dim; d++) {
            x += index[d] * a->x.stride[d];
            y += index[d] * a->y.stride[d];
        }
        float v = load(&a->x, x);
        store(&a->y, y, v / (1.0F + expf(-v)));
        for (int32_t d = a->x.n_dim - 1; d >= 0 && ++index[d] == a->x.extent[d]; d--) index[d] = 0;
    }
    return REEL_OK;
}

static reel_op_fn template_op(reel_device *device, const char *name, uint32_t version)
{
    (void)device;
    return strcmp(name, "silu") == 0 && version == 1 ? template_silu : NULL;
}

static const reel_attn_impl *const *template_attention(reel_device *device)
{
    (void)device;
    static const reel_attn_impl *const none[] = {NULL};
    return none;
}

static int32_t template_score(void)
{
    return 1;
}

static const reel_device_vt template_vt = {
    .size = sizeof(reel_device_vt),
    .open = template_open,
    .close = template_close,
    .props = template_props,
    .buffer_new = template_buffer_new,
    .buffer_free = template_buffer_free,
    .stream_new = template_stream_new,
    .stream_free = template_stream_free,
    .stream_sync = template_stream_sync,
    .event_new = template_event_new,
    .event_record = template_event_done,
    .event_sync = template_event_done,
    .event_free = template_event_free,
    .upload = template_copy,
    .download = template_copy,
    .copy = template_copy,
    .fill = template_fill,
    .op = template_op,
    .attention = template_attention,
};

REEL_API extern const reel_plugin reel_plugin_entry;

const reel_plugin reel_plugin_entry = {
    .size = sizeof(reel_plugin),
    .abi = REEL_PLUGIN_ABI,
    .kind = REEL_PLUGIN_DEVICE,
    .name = "template",
    .version = REEL_VERSION_TEXT,
    .score = template_score,
    .device = &template_vt,
};
