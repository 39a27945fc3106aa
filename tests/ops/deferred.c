/* SPDX-License-Identifier: Apache-2.0
 *
 * A device that puts everything off: it wraps another device, queues all work, and does it only when the host waits.
 *
 * The host sees "visible" memory; operations work on a shadow of it. From the moment an operation is queued until the host has waited for
 * it, the elements that it will write are poison in visible memory, and so is host memory handed to `download`. Who reads early reads
 * NaN; who changes memory or argument structs after handing them over changes nothing, or is found out by the results. With
 * is_host_memory off, visible memory stays poison for ever. One queue for all streams of the device; a test program wraps one inner table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bed.h"

enum { POISON = 0xFF, N_BUFFER = 512, N_IMPL = 8, N_LOW_RANK = 8 };

enum op_id {
#define X(op, version, need) OP_##op,
    REEL_OP_LIST(X)
#undef X
        N_OP
};

typedef union op_args {
#define X(op, version, need) reel_op_##op op;
    REEL_OP_LIST(X)
#undef X
} op_args;

typedef enum entry_kind { ENTRY_OP, ENTRY_UPLOAD, ENTRY_DOWNLOAD, ENTRY_COPY, ENTRY_FILL } entry_kind;

typedef struct entry {
    entry_kind kind;
    enum op_id op;
    const reel_attn_impl *impl; /* attention by this one, else the operation */
    op_args args;
    void *dst;
    const void *src;
    void *owned; /* what upload was handed */
    size_t bytes;
    int32_t byte;
} entry;

typedef struct buffer {
    uint8_t *visible, *shadow;
    size_t bytes;
} buffer;

struct reel_device {
    const reel_device_vt *inner;
    reel_device *device;
    reel_stream *stream;
    bool is_host_memory;
    reel_op_fn fn[N_OP];
    buffer buffers[N_BUFFER];
    entry *queue;
    size_t n_entry, capacity;
    uint64_t n_done; /* entries run since open: the place of queue[0] */
    reel_attn_impl impl[N_IMPL];
    const reel_attn_impl *inner_impl[N_IMPL], *impl_list[N_IMPL + 1];
};

struct reel_stream {
    reel_device *device;
};

struct reel_event {
    reel_device *device;
    uint64_t mark;
};

/* Which table the next open wraps; fixed before any device is opened. */
static const reel_device_vt *wrapped_vt;
static bool wrapped_is_host;

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

/* The shadow of an address; one that is not in a buffer (a mapped weight) stands for itself. */
static void *shadow_of(const reel_device *d, const void *p)
{
    const uint8_t *q = p;
    for (int32_t i = 0; i < N_BUFFER; i++) {
        const buffer *b = &d->buffers[i];
        if (b->visible && q >= b->visible && q < b->visible + b->bytes) return b->shadow + (q - b->visible);
    }
    return (void *)(uintptr_t)p;
}

static void copy_all(const reel_device *d, bool to_shadow)
{
    if (!d->is_host_memory) return;
    for (int32_t i = 0; i < N_BUFFER; i++) {
        const buffer *b = &d->buffers[i];
        if (b->visible) memcpy(to_shadow ? b->shadow : b->visible, to_shadow ? b->visible : b->shadow, b->bytes);
    }
}

static void poison_tensor(const reel_tensor *t)
{
    size_t bytes = reel_dtype_bytes(t->dtype);
    for (int64_t r = 0; r < reel_ref_n_row(t); r++)
        for (int64_t c = 0; c < reel_ref_n_col(t); c++)
            memset((char *)t->data + (size_t)(reel_ref_row(t, r) + c * reel_ref_step(t)) * bytes, POISON, bytes);
}

static void poison_outputs(const entry *e)
{
    if (e->kind != ENTRY_OP) {
        if (e->bytes > 0) memset(e->dst, POISON, e->bytes);
        return;
    }
    const reel_args_rule *rule = bed_op_at((int32_t)e->op)->rule;
    for (int32_t i = 0; i < rule->n_operand; i++) {
        const reel_tensor *t = (const reel_tensor *)(const void *)((const char *)&e->args + rule->operand[i].offset);
        if (rule->operand[i].flags & REEL_OPERAND_OUT && t->data) poison_tensor(t);
    }
}

/* ---- queue --------------------------------------------------------------------------------------------------------------- */

static reel_status enqueue(reel_device *d, const entry *e, reel_error *err)
{
    if (d->n_entry == 0) copy_all(d, true);
    if (d->n_entry == d->capacity) {
        d->capacity = d->capacity > 0 ? 2 * d->capacity : 64;
        d->queue = realloc(d->queue, d->capacity * sizeof *d->queue);
        if (!d->queue) abort();
    }
    d->queue[d->n_entry++] = *e;
    poison_outputs(e);
    (void)err;
    return REEL_OK;
}

static void move_weight(const reel_device *d, reel_weight *w, reel_low_rank *low_rank)
{
    if (w->data) w->data = shadow_of(d, w->data);
    for (int32_t i = 0; i < w->n_low_rank; i++) {
        low_rank[i] = w->low_rank[i];
        low_rank[i].a = shadow_of(d, low_rank[i].a);
        low_rank[i].b = shadow_of(d, low_rank[i].b);
    }
    if (w->n_low_rank > 0) w->low_rank = low_rank;
}

static reel_status run_op(const reel_device *d, entry *e, reel_error *err)
{
    reel_low_rank low_rank[N_LOW_RANK];
    const reel_args_rule *rule = bed_op_at((int32_t)e->op)->rule;
    for (int32_t i = 0; i < rule->n_operand; i++) {
        void *field = (char *)&e->args + rule->operand[i].offset;
        reel_tensor *t = field;
        if (rule->operand[i].kind == REEL_OPERAND_WEIGHT)
            move_weight(d, field, low_rank);
        else if (t->data)
            t->data = shadow_of(d, t->data);
    }
    return e->impl ? e->impl->run(d->stream, &e->args, err) : d->fn[e->op](d->stream, &e->args, err);
}

static reel_status run_entry(const reel_device *d, entry *e, reel_error *err)
{
    void *dst = e->kind == ENTRY_DOWNLOAD ? e->dst : e->dst ? shadow_of(d, e->dst) : NULL;
    const void *src = e->kind == ENTRY_UPLOAD ? e->src : e->src ? shadow_of(d, e->src) : NULL;
    switch (e->kind) {
    case ENTRY_OP: return run_op(d, e, err);
    case ENTRY_UPLOAD: return d->inner->upload(d->stream, dst, src, e->bytes, err);
    case ENTRY_DOWNLOAD: return d->inner->download(d->stream, dst, src, e->bytes, err);
    case ENTRY_COPY: return d->inner->copy(d->stream, dst, src, e->bytes, err);
    case ENTRY_FILL: return d->inner->fill(d->stream, dst, e->byte, e->bytes, err);
    }
    return REEL_OK;
}

/* Runs the first n entries; what the rest will write stays poison. */
static reel_status run_first(reel_device *d, size_t n, reel_error *err)
{
    reel_status status = REEL_OK;
    if (n == 0) return REEL_OK;
    for (size_t i = 0; i < n; i++) {
        if (status == REEL_OK) status = run_entry(d, &d->queue[i], err);
        free(d->queue[i].owned);
    }
    if (status == REEL_OK) status = d->inner->stream_sync(d->stream, err);
    memmove(d->queue, d->queue + n, (d->n_entry - n) * sizeof *d->queue);
    d->n_entry -= n;
    d->n_done += n;
    copy_all(d, false);
    for (size_t i = 0; i < d->n_entry; i++) poison_outputs(&d->queue[i]);
    return status;
}

static reel_status queue_op(reel_stream *stream, enum op_id op, const reel_attn_impl *impl, const void *args, reel_error *err)
{
    entry e = {.kind = ENTRY_OP, .op = op, .impl = impl};
    memcpy(&e.args, args, bed_op_at((int32_t)op)->rule->struct_bytes);
    return enqueue(stream->device, &e, err);
}

#define X(name, version, need)                                                              \
    static reel_status queue_##name(reel_stream *stream, const void *args, reel_error *err) \
    {                                                                                       \
        return queue_op(stream, OP_##name, NULL, args, err);                                \
    }
REEL_OP_LIST(X)
#undef X

static reel_op_fn deferred_op(reel_device *d, const char *name, uint32_t version)
{
    reel_op_fn fn = d->inner->op(d->device, name, version);
    if (!fn) return NULL;
#define X(op, v, need)            \
    if (strcmp(name, #op) == 0) { \
        d->fn[OP_##op] = fn;      \
        return queue_##op;        \
    }
    REEL_OP_LIST(X)
#undef X
    return NULL;
}

/* ---- attention: one pair of functions per place in the list, because an implementation has no closure ---------------------------- */

#define PLACES(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define X(i)                                                                                              \
    static reel_status attend_##i(reel_stream *stream, const void *args, reel_error *err)                 \
    {                                                                                                     \
        return queue_op(stream, OP_attention, stream->device->inner_impl[i], args, err);                  \
    }                                                                                                     \
    static int32_t supports_##i(reel_device *d, const reel_attn_shape *shape, char *reason, size_t bytes) \
    {                                                                                                     \
        return d->inner_impl[i]->supports(d->device, shape, reason, bytes);                               \
    }
PLACES(X)
#undef X

static void wrap_attention(reel_device *d)
{
    static const reel_op_fn runs[N_IMPL] = {attend_0, attend_1, attend_2, attend_3, attend_4, attend_5, attend_6, attend_7};
    static int32_t (*const supports[N_IMPL])(reel_device *, const reel_attn_shape *, char *, size_t) = {
        supports_0, supports_1, supports_2, supports_3, supports_4, supports_5, supports_6, supports_7};
    const reel_attn_impl *const *list = d->inner->attention(d->device);
    for (int32_t i = 0; list[i]; i++) {
        if (i == N_IMPL) abort();
        d->inner_impl[i] = list[i];
        d->impl[i] = *list[i];
        d->impl[i].run = runs[i];
        d->impl[i].supports = supports[i];
        d->impl_list[i] = &d->impl[i];
    }
}

static const reel_attn_impl *const *deferred_attention(reel_device *d)
{
    return d->impl_list;
}

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

static reel_status deferred_open(const reel_host *host, const reel_device_options *options, reel_device **out, reel_error *err)
{
    reel_device *d = calloc(1, sizeof *d);
    if (!d) abort();
    d->inner = wrapped_vt;
    d->is_host_memory = wrapped_is_host;
    reel_status status = d->inner->open(host, options, &d->device, err);
    if (status == REEL_OK) status = d->inner->stream_new(d->device, &d->stream, err);
    if (status != REEL_OK) {
        free(d);
        return status;
    }
    wrap_attention(d);
    *out = d;
    return REEL_OK;
}

static void deferred_close(reel_device *d)
{
    (void)run_first(d, d->n_entry, NULL);
    for (int32_t i = 0; i < N_BUFFER; i++)
        if (d->buffers[i].visible) {
            (void)fprintf(stderr, "deferred device: a buffer was not freed\n");
            abort();
        }
    d->inner->stream_free(d->stream);
    d->inner->close(d->device);
    free(d->queue);
    free(d);
}

static reel_status deferred_props(reel_device *d, reel_device_props *out, reel_error *err)
{
    REEL_TRY(d->inner->props(d->device, out, err));
    out->is_host_memory = d->is_host_memory ? 1 : 0;
    (void)snprintf(out->kind, sizeof out->kind, "deferred");
    return REEL_OK;
}

static reel_status deferred_buffer_new(reel_device *d, size_t bytes, void **out, reel_error *err)
{
    int32_t i = 0;
    while (i < N_BUFFER && d->buffers[i].visible) i++;
    if (i == N_BUFFER)
        return REEL_FAIL(err, REEL_E_MEMORY, "the deferred device has no buffer left\ngiven: %d\nremedy: raise N_BUFFER", N_BUFFER);
    void *visible = NULL, *shadow = NULL;
    if (posix_memalign(&visible, 64, bytes > 0 ? bytes : 1) != 0) abort();
    REEL_TRY(d->inner->buffer_new(d->device, bytes, &shadow, err));
    memset(visible, POISON, bytes);
    memset(shadow, POISON, bytes);
    d->buffers[i] = (buffer){.visible = visible, .shadow = shadow, .bytes = bytes};
    *out = visible;
    return REEL_OK;
}

static void deferred_buffer_free(reel_device *d, void *p)
{
    if (!p) return;
    (void)run_first(d, d->n_entry, NULL);
    for (int32_t i = 0; i < N_BUFFER; i++)
        if (d->buffers[i].visible == p) {
            free(p);
            d->inner->buffer_free(d->device, d->buffers[i].shadow);
            d->buffers[i].visible = NULL;
            return;
        }
    (void)fprintf(stderr, "deferred device: freeing what is no buffer\n");
    abort();
}

static reel_status deferred_stream_new(reel_device *d, reel_stream **out, reel_error *err)
{
    (void)err;
    reel_stream *s = calloc(1, sizeof *s);
    if (!s) abort();
    s->device = d;
    *out = s;
    return REEL_OK;
}

static void deferred_stream_free(reel_stream *s)
{
    free(s);
}

static reel_status deferred_stream_sync(reel_stream *s, reel_error *err)
{
    return run_first(s->device, s->device->n_entry, err);
}

static reel_status deferred_event_new(reel_stream *s, reel_event **out, reel_error *err)
{
    (void)err;
    reel_event *e = calloc(1, sizeof *e);
    if (!e) abort();
    e->device = s->device;
    *out = e;
    return REEL_OK;
}

static reel_status deferred_event_record(reel_event *e, reel_error *err)
{
    (void)err;
    e->mark = e->device->n_done + e->device->n_entry;
    return REEL_OK;
}

static reel_status deferred_event_sync(reel_event *e, reel_error *err)
{
    uint64_t done = e->device->n_done;
    return e->mark > done ? run_first(e->device, (size_t)(e->mark - done), err) : REEL_OK;
}

static void deferred_event_free(reel_event *e)
{
    free(e);
}

static reel_status deferred_upload(reel_stream *s, void *dst, const void *src, size_t bytes, reel_error *err)
{
    entry e = {.kind = ENTRY_UPLOAD, .dst = dst, .bytes = bytes, .owned = malloc(bytes > 0 ? bytes : 1)};
    if (!e.owned) abort();
    memcpy(e.owned, src, bytes);
    e.src = e.owned;
    return enqueue(s->device, &e, err);
}

static reel_status deferred_download(reel_stream *s, void *dst, const void *src, size_t bytes, reel_error *err)
{
    entry e = {.kind = ENTRY_DOWNLOAD, .dst = dst, .src = src, .bytes = bytes};
    return enqueue(s->device, &e, err);
}

static reel_status deferred_copy(reel_stream *s, void *dst, const void *src, size_t bytes, reel_error *err)
{
    entry e = {.kind = ENTRY_COPY, .dst = dst, .src = src, .bytes = bytes};
    return enqueue(s->device, &e, err);
}

static reel_status deferred_fill(reel_stream *s, void *dst, int32_t byte, size_t bytes, reel_error *err)
{
    entry e = {.kind = ENTRY_FILL, .dst = dst, .bytes = bytes, .byte = byte};
    return enqueue(s->device, &e, err);
}

/* Packing reads the weight on the host at once, so queued work that may fill it is done first. */
static reel_status deferred_weight_pack(reel_device *d, const reel_weight *weight, reel_dtype compute, reel_packed **out, size_t *bytes,
                                        reel_error *err)
{
    if (d->n_entry == 0) copy_all(d, true);
    REEL_TRY(run_first(d, d->n_entry, err));
    reel_low_rank low_rank[N_LOW_RANK];
    reel_weight w = *weight;
    move_weight(d, &w, low_rank);
    REEL_TRY(d->inner->weight_pack(d->device, &w, compute, out, bytes, err));
    return REEL_OK;
}

static void deferred_weight_free(reel_device *d, reel_packed *packed)
{
    (void)run_first(d, d->n_entry, NULL);
    d->inner->weight_free(d->device, packed);
}

static const reel_device_vt whole_vt = {
    .size = sizeof(reel_device_vt),
    .open = deferred_open,
    .close = deferred_close,
    .props = deferred_props,
    .buffer_new = deferred_buffer_new,
    .buffer_free = deferred_buffer_free,
    .stream_new = deferred_stream_new,
    .stream_free = deferred_stream_free,
    .stream_sync = deferred_stream_sync,
    .event_new = deferred_event_new,
    .event_record = deferred_event_record,
    .event_sync = deferred_event_sync,
    .event_free = deferred_event_free,
    .upload = deferred_upload,
    .download = deferred_download,
    .copy = deferred_copy,
    .fill = deferred_fill,
    .op = deferred_op,
    .attention = deferred_attention,
    .weight_pack = deferred_weight_pack,
    .weight_free = deferred_weight_free,
};

static reel_device_vt plain_vt; /* whole_vt without packing, for devices that have none */

const reel_device_vt *deferred_vt(const reel_device_vt *inner, bool is_host_memory)
{
    wrapped_vt = inner;
    wrapped_is_host = is_host_memory;
    if (inner->weight_pack) return &whole_vt;
    plain_vt = whole_vt;
    plain_vt.weight_pack = NULL;
    plain_vt.weight_free = NULL;
    return &plain_vt;
}
