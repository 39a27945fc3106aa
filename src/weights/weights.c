/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions of weights on a device, resident policy: what add_region loads stays until the weights are freed (weights/weights.h).
 *
 * One device buffer per region holds whatever cannot be used as it lies in the file: vectors as f32, matrices of dtypes or alignments that the
 * device does not take. Packed weights belong to the device. Once a tensor was converted or packed, its pages of the mapping are given back to
 * the system, so that the process does not hold both copies. Conversions are exact: F64 vectors excepted, which are rounded to f32. */
#include "weights/weights.h"

#include <stdlib.h>
#include <string.h>

#include "reel-plugin/tensor_util.h"
#include "weights/store_internal.h"

typedef struct region {
    int32_t n;
    reel_weight *weight;
    reel_tensor *vector;
    void *buffer; /* device */
    int32_t n_lease;
} region;

struct reel_weights {
    const reel_store *store;
    const reel_device_vt *vt;
    reel_device *device;
    reel_stream *stream;
    reel_device_props props;
    reel_weights_options options;
    region *region;
    int32_t n_region;
    size_t bytes;
};

/* What one request needs of the region's buffer. */
typedef struct need {
    const reel_stored *stored; /* NULL: optional and absent */
    reel_dtype dtype; /* in the buffer */
    size_t bytes; /* 0: used where it lies */
    size_t at; /* offset in the buffer */
} need;

static int64_t count_of(const reel_stored *t)
{
    int64_t n = 1;
    for (int32_t i = 0; i < t->n_dim; i++) n *= t->extent[i];
    return n;
}

static float read_element(const reel_stored *t, int64_t i)
{
    const uint8_t *p = t->data + (size_t)i * reel_dtype_bytes(t->dtype);
    uint16_t half;
    float f;
    double d;
    switch (t->dtype) {
    case REEL_DTYPE_F32: memcpy(&f, p, sizeof f); return f;
    case REEL_DTYPE_F64: memcpy(&d, p, sizeof d); return (float)d;
    case REEL_DTYPE_BF16: memcpy(&half, p, sizeof half); return reel_f32_from_bf16(half);
    case REEL_DTYPE_F16: memcpy(&half, p, sizeof half); return reel_f32_from_f16(half);
    case REEL_DTYPE_F8_E4M3: return reel_f32_from_e4m3(*p);
    case REEL_DTYPE_F8_E5M2: return reel_f32_from_e5m2(*p);
    default: return 0.0F; /* refused by find_tensor */
    }
}

static reel_status find_tensor(const reel_weights *w, const reel_weight_request *request, const reel_stored **out, reel_error *err)
{
    const reel_stored *t = reel_store_find(w->store, request->name);
    *out = t;
    if (!t && request->is_optional) return REEL_OK;
    if (!t) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "a tensor is missing\ngiven: no \"%s\" in the files of this component\nremedy: fetch the model's files again; "
                         "`reel inspect` lists what is "
                         "missing",
                         request->name);
    }
    switch (t->dtype) {
    case REEL_DTYPE_F32:
    case REEL_DTYPE_F64:
    case REEL_DTYPE_BF16:
    case REEL_DTYPE_F16:
    case REEL_DTYPE_F8_E4M3:
    case REEL_DTYPE_F8_E5M2: break;
    default:
        return REEL_FAIL(err, REEL_E_MODEL,
                         "a weight has a dtype that cannot be computed with\ngiven: \"%s\" in %s is %s\nallowed: F64, F32, F16, BF16, "
                         "F8_E4M3, F8_E5M2\nremedy: convert the "
                         "model",
                         t->name, t->file, t->dtype_name);
    }
    if (count_of(t) == 0 || (request->kind != REEL_WEIGHT_VECTOR && t->n_dim < 2) ||
        (request->kind == REEL_WEIGHT_CONV && t->n_dim != 4 && t->n_dim != 5)) {
        return REEL_FAIL(
            err, REEL_E_MODEL,
            "a weight has a shape that does not fit its use\ngiven: \"%s\" in %s has %d dimensions\nremedy: fetch the model's files again",
            t->name, t->file, (int)t->n_dim);
    }
    return REEL_OK;
}

/* Whether a tensor can be used as it lies in the file. */
static bool lies_well(const reel_weights *w, const reel_stored *t, reel_weight_kind kind)
{
    if (!w->props.is_host_memory) return false;
    const size_t element = reel_dtype_bytes(t->dtype);
    if ((uintptr_t)t->data % element != 0) return false;
    return kind == REEL_WEIGHT_ROWS || ((w->props.weight_dtypes >> t->dtype) & 1U);
}

static need need_of(const reel_weights *w, const reel_stored *t, reel_weight_kind kind)
{
    need n = {.stored = t};
    if (!t) return n;
    if (kind == REEL_WEIGHT_VECTOR) {
        n.dtype = REEL_DTYPE_F32;
    } else if (lies_well(w, t, kind)) {
        n.dtype = t->dtype;
        return n;
    } else {
        const bool is_taken = kind == REEL_WEIGHT_ROWS || ((w->props.weight_dtypes >> t->dtype) & 1U);
        const bool is_f8 = t->dtype == REEL_DTYPE_F8_E4M3 || t->dtype == REEL_DTYPE_F8_E5M2;
        const bool takes_bf16 = (w->props.weight_dtypes >> REEL_DTYPE_BF16) & 1U;
        n.dtype = is_taken ? t->dtype : is_f8 && takes_bf16 ? REEL_DTYPE_BF16 : REEL_DTYPE_F32;
    }
    n.bytes = (size_t)count_of(t) * reel_dtype_bytes(n.dtype);
    return n;
}

/* Writes the tensor's elements in n->dtype to host memory. */
static void convert(const need *n, void *out)
{
    const int64_t count = count_of(n->stored);
    if (n->dtype == n->stored->dtype) {
        memcpy(out, n->stored->data, n->bytes);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const float f = read_element(n->stored, i);
        if (n->dtype == REEL_DTYPE_F32) {
            ((float *)out)[i] = f;
        } else {
            ((uint16_t *)out)[i] = reel_bf16_from_f32(f);
        }
    }
}

static reel_status place(const reel_weights *w, const region *r, const need *n, reel_error *err)
{
    if (n->bytes == 0) return REEL_OK;
    char *target = (char *)r->buffer + n->at;
    if (w->props.is_host_memory) {
        convert(n, target);
        return REEL_OK;
    }
    if (n->dtype == n->stored->dtype) return w->vt->upload(w->stream, target, n->stored->data, n->bytes, err);
    void *host = malloc(n->bytes);
    if (!host) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory while loading \"%s\"\nremedy: close other programs", n->stored->name);
    convert(n, host);
    reel_status status = w->vt->upload(w->stream, target, host, n->bytes, err);
    free(host);
    return status;
}

static reel_weight describe(const need *n, const void *data, reel_weight_kind kind)
{
    const reel_stored *t = n->stored;
    const size_t element = reel_dtype_bytes(n->dtype);
    reel_weight d = {
        .size = sizeof d, .dtype = n->dtype, .block_elements = 1, .block_bytes = (int32_t)element, .n_row = t->extent[0], .data = data};
    d.n_col = count_of(t) / t->extent[0];
    d.row_end = d.n_row;
    d.row_stride_bytes = d.n_col * (int64_t)element;
    if (kind == REEL_WEIGHT_CONV) {
        d.kernel[0] = t->n_dim == 5 ? (int32_t)t->extent[2] : 1;
        d.kernel[1] = (int32_t)t->extent[t->n_dim - 2];
        d.kernel[2] = (int32_t)t->extent[t->n_dim - 1];
    }
    return d;
}

static reel_status pack(reel_weights *w, reel_weight_kind kind, reel_weight *d, reel_error *err)
{
    const bool wants = kind == REEL_WEIGHT_CONV || (w->options.is_packed && (kind == REEL_WEIGHT_MATRIX || kind == REEL_WEIGHT_MATRIX_F32));
    if (!wants || !w->vt->weight_pack) return REEL_OK;
    const reel_dtype compute = kind == REEL_WEIGHT_MATRIX_F32 ? REEL_DTYPE_F32 : w->options.compute;
    reel_packed *packed = NULL;
    size_t bytes = 0;
    REEL_TRY(w->vt->weight_pack(w->device, d, compute, &packed, &bytes, err));
    d->packed = packed;
    w->bytes += bytes;
    return REEL_OK;
}

static void free_region(reel_weights *w, region *r)
{
    for (int32_t i = 0; r->weight && i < r->n; i++) {
        if (r->weight[i].packed && w->vt->weight_free) w->vt->weight_free(w->device, (reel_packed *)(uintptr_t)r->weight[i].packed);
    }
    if (r->buffer) w->vt->buffer_free(w->device, r->buffer);
    free(r->weight);
    free(r->vector);
    *r = (region){0};
}

static size_t align_up(size_t n, size_t a)
{
    return (n + a - 1) / a * a;
}

static reel_status load(reel_weights *w, const reel_weight_request *requests, need *needs, region *r, reel_error *err)
{
    const size_t a = w->props.alignment_bytes ? w->props.alignment_bytes : 64;
    size_t total = 0;
    for (int32_t i = 0; i < r->n; i++) {
        const reel_stored *t = NULL;
        REEL_TRY(find_tensor(w, &requests[i], &t, err));
        needs[i] = need_of(w, t, requests[i].kind);
        needs[i].at = total;
        total += align_up(needs[i].bytes, a);
    }
    if (total > 0) REEL_TRY(w->vt->buffer_new(w->device, total, &r->buffer, err));
    w->bytes += total;
    for (int32_t i = 0; i < r->n; i++) {
        if (!needs[i].stored) continue;
        REEL_TRY(place(w, r, &needs[i], err));
        const void *data = needs[i].bytes > 0 ? (const void *)((char *)r->buffer + needs[i].at) : needs[i].stored->data;
        if (requests[i].kind == REEL_WEIGHT_VECTOR) {
            r->vector[i] = reel_tensor_dense((void *)(uintptr_t)data, REEL_DTYPE_F32, count_of(needs[i].stored), 0, 0, 0);
            reel_store_forget(w->store, needs[i].stored);
            continue;
        }
        r->weight[i] = describe(&needs[i], data, requests[i].kind);
        REEL_TRY(pack(w, requests[i].kind, &r->weight[i], err));
        if (needs[i].bytes > 0 || r->weight[i].packed) reel_store_forget(w->store, needs[i].stored);
    }
    return w->vt->stream_sync(w->stream, err);
}

reel_status reel_weights_new(const reel_store *store, const reel_device_vt *vt, reel_device *device, reel_stream *stream,
                             const reel_weights_options *options, reel_weights **out, reel_error *err)
{
    reel_weights *w = calloc(1, sizeof *w);
    if (!w) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for weights\nremedy: close other programs");
    w->store = store;
    w->vt = vt;
    w->device = device;
    w->stream = stream;
    w->options = *options;
    w->props.size = sizeof w->props;
    reel_status status = vt->props(device, &w->props, err);
    if (status != REEL_OK) {
        free(w);
        return status;
    }
    *out = w;
    return REEL_OK;
}

void reel_weights_free(reel_weights **weights)
{
    reel_weights *w = *weights;
    if (!w) return;
    for (int32_t i = 0; i < w->n_region; i++) free_region(w, &w->region[i]);
    free(w->region);
    free(w);
    *weights = NULL;
}

reel_status reel_weights_add_region(reel_weights *weights, const reel_weight_request *requests, int32_t n, int32_t *out, reel_error *err)
{
    region r = {.n = n, .weight = calloc((size_t)n, sizeof *r.weight), .vector = calloc((size_t)n, sizeof *r.vector)};
    need *needs = calloc((size_t)n, sizeof *needs);
    region *grown = realloc(weights->region, ((size_t)weights->n_region + 1) * sizeof *grown);
    reel_status status = REEL_OK;
    const size_t bytes_before = weights->bytes;
    if (grown) weights->region = grown;
    if (!r.weight || !r.vector || !needs || !grown) {
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory for weights\nremedy: close other programs");
    } else {
        status = load(weights, requests, needs, &r, err);
    }
    free(needs);
    if (status != REEL_OK) {
        free_region(weights, &r);
        weights->bytes = bytes_before;
        return status;
    }
    weights->region[weights->n_region] = r;
    *out = weights->n_region++;
    return REEL_OK;
}

reel_status reel_weights_acquire(reel_weights *weights, int32_t index, reel_region *out, reel_error *err)
{
    if (index < 0 || index >= weights->n_region)
        return REEL_FAIL(err, REEL_E_INTERNAL, "a weight region that is not there\nremedy: report this as a fault of reel");
    region *r = &weights->region[index];
    r->n_lease++;
    *out = (reel_region){.n = r->n, .weight = r->weight, .vector = r->vector};
    return REEL_OK;
}

void reel_weights_release(reel_weights *weights, int32_t index)
{
    assert(weights->region[index].n_lease > 0);
    weights->region[index].n_lease--;
}

size_t reel_weights_bytes(const reel_weights *weights)
{
    return weights->bytes;
}
