/* SPDX-License-Identifier: Apache-2.0
 *
 * See vae_support.h. */
#include "vae_support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/hashed.h"
#include "device/device.h"
#include "model/model.h"

static reel_error fault;
#define GOOD(call)                                                                       \
    do {                                                                                 \
        if ((call) != REEL_OK) fail_msg("%s: %s\n(%s)", #call, fault.text, fault.trace); \
    } while (0)

/* ---- device -------------------------------------------------------------------------------------------------------------- */

static const reel_device_vt *real_vt;

static reel_status poisoned_buffer(reel_device *device, size_t bytes, void **out, reel_error *err)
{
    REEL_TRY(real_vt->buffer_new(device, bytes, out, err));
    memset(*out, 0xFF, bytes);
    return REEL_OK;
}

static reel_op_fn no_op(reel_device *device, const char *name, uint32_t version)
{
    (void)device, (void)name, (void)version;
    return NULL;
}

static const reel_attn_impl *const *no_attention(reel_device *device)
{
    static const reel_attn_impl *const nothing[] = {NULL};
    (void)device;
    return nothing;
}

void vae_device_open(vae_device *device, bool is_reference)
{
    reel_registry *registry = NULL;
    const reel_plugin *plugin = NULL;
    const reel_host host = {.size = sizeof host};
    const reel_device_options options = {.size = sizeof options, .n_thread = 2};
    GOOD(reel_registry_open(NULL, NULL, &registry, &fault));
    GOOD(reel_registry_find(registry, "cpu", &plugin, &fault));
    memset(device, 0, sizeof *device);
    device->real = real_vt = plugin->device;
    device->vt = *plugin->device;
    reel_registry_close(&registry); /* the CPU device is built in: its table stays */
    device->vt.buffer_new = poisoned_buffer;
    if (is_reference) {
        device->vt.op = no_op;
        device->vt.attention = no_attention;
        device->vt.weight_pack = NULL;
    }
    GOOD(device->vt.open(&host, &options, &device->device, &fault));
    GOOD(device->vt.stream_new(device->device, &device->stream, &fault));
    GOOD(reel_ops_bind(&device->vt, device->device, device->stream, NULL, &device->ops, &fault));
}

void vae_device_close(vae_device *device)
{
    reel_ops_unbind(&device->ops);
    device->vt.stream_free(device->stream);
    device->vt.close(device->device);
}

/* ---- models -------------------------------------------------------------------------------------------------------------- */

/* One line of the metadata's list: "name:dtype:e0,e1,…;". */
typedef struct listed {
    char name[128], dtype[8], shape[64];
    int64_t n, n_row;
} listed;

static const char *next_listed(const char *at, listed *out)
{
    int used = 0;
    if (sscanf(at, "%127[^:]:%7[^:]:%63[^;];%n", out->name, out->dtype, out->shape, &used) != 3) return NULL;
    out->n = 1;
    out->n_row = 0;
    for (char *s = out->shape; *s;) {
        int64_t e = strtoll(s, &s, 10);
        if (out->n_row == 0) out->n_row = e;
        out->n *= e;
        if (*s == ',') s++;
    }
    return at + used;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The weight's values, in its stored dtype, at out. */
static void make_weight(const listed *l, uint8_t *out)
{
    float *v = malloc((size_t)l->n * sizeof *v);
    assert_non_null(v);
    hashed_values(l->name, v, l->n);
    float scale = sqrtf(3.0F / (float)(l->n / l->n_row));
    for (int64_t i = 0; i < l->n; i++) {
        if (ends_with(l->name, "gamma"))
            v[i] = v[i] * 0.25F + 1.0F;
        else
            v[i] *= ends_with(l->name, "bias") ? 0.1F : scale;
        uint16_t half = l->dtype[0] == 'B' ? reel_bf16_from_f32(v[i]) : reel_f16_from_f32(v[i]);
        if (strcmp(l->dtype, "F32") == 0)
            memcpy(out + 4 * i, &v[i], 4);
        else
            memcpy(out + 2 * i, &half, 2);
    }
    free(v);
}

/* A safetensors file in memory: length, header, data. */
static void make_store(vae_bench *bench, const char *list)
{
    char *header = malloc(1 << 20);
    listed l;
    size_t used = 1, data = 0, header_bytes;
    assert_non_null(header);
    header[0] = '{';
    for (const char *at = list; (at = next_listed(at, &l));) {
        size_t bytes = (size_t)l.n * (strcmp(l.dtype, "F32") == 0 ? 4 : 2);
        used += (size_t)sprintf(header + used, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", used > 1 ? "," : "",
                                l.name, l.dtype, l.shape, data, data + bytes);
        data += bytes;
    }
    header[used++] = '}';
    while (used % 8 != 0) header[used++] = ' ';
    header_bytes = used;
    uint8_t *bytes = malloc(8 + header_bytes + data);
    assert_non_null(bytes);
    for (int32_t i = 0; i < 8; i++) bytes[i] = (uint8_t)((uint64_t)header_bytes >> (8 * i));
    memcpy(bytes + 8, header, header_bytes);
    free(header);
    uint8_t *at_data = bytes + 8 + header_bytes;
    for (const char *at = list; (at = next_listed(at, &l));) {
        make_weight(&l, at_data);
        at_data += (size_t)l.n * (strcmp(l.dtype, "F32") == 0 ? 4 : 2);
    }
    bench->bytes = bytes;
    GOOD(reel_store_parse(bytes, 8 + header_bytes + data, "made", &bench->store, &fault));
}

static int64_t number_after(const char *text, const char *key, int32_t index)
{
    const char *at = strstr(text, key);
    assert_non_null(at);
    char *s = (char *)(uintptr_t)(at + strlen(key));
    int64_t v = 0;
    for (int32_t i = 0; i <= index; i++) v = strtoll(s, &s, 10);
    return v;
}

static void read_config(const char *text, reel_vae_config *c, vae_clip *clip)
{
    float v[REEL_LATENT_CHANNELS_MAX];
    *c = (reel_vae_config){.in_channels = 3, .out_channels = 3, .patch = 1, .spatial_factor = 1, .temporal_factor = 1};
    c->base_dim = (int32_t)number_after(text, "base_dim ", 0);
    c->decoder_base_dim = (int32_t)number_after(text, "decoder_base_dim ", 0);
    c->z_dim = (int32_t)number_after(text, "z_dim ", 0);
    c->n_res_block = (int32_t)number_after(text, "n_res_block ", 0);
    c->n_stage = (int32_t)number_after(text, "n_stage ", 0);
    for (int32_t i = 0; i < c->n_stage; i++) c->dim_mult[i] = (int32_t)number_after(text, "mult ", i);
    for (int32_t i = 0; i + 1 < c->n_stage; i++) {
        c->temporal_downsample[i] = number_after(text, "temporal ", i) != 0;
        c->spatial_factor *= 2;
        c->temporal_factor *= c->temporal_downsample[i] ? 2 : 1;
    }
    hashed_values("latents_mean", v, c->z_dim);
    for (int32_t i = 0; i < c->z_dim; i++) c->latents_mean[i] = (double)v[i];
    hashed_values("latents_std", v, c->z_dim);
    for (int32_t i = 0; i < c->z_dim; i++) c->latents_std[i] = (double)(v[i] + 2.0F);
    clip->lat_t = number_after(text, "latent ", 0);
    clip->lat_h = number_after(text, "latent ", 1);
    clip->lat_w = number_after(text, "latent ", 2);
    clip->n_frame = number_after(text, "pixels ", 0);
    clip->px_h = number_after(text, "pixels ", 1);
    clip->px_w = number_after(text, "pixels ", 2);
}

static void open_vae(vae_bench *bench, const reel_vae_options *options)
{
    vae_device *d = bench->device;
    const reel_weights_options w = {.compute = options->compute};
    bench->compute = options->compute;
    GOOD(reel_weights_new(bench->store, &d->vt, d->device, d->stream, &w, &bench->weights, &fault));
    GOOD(reel_vae_new(&bench->config, &d->ops, bench->weights, options, &bench->vae, &fault));
}

void vae_bench_bundled(vae_bench *bench, vae_device *device, const reel_vae_options *options)
{
    static reel_model model;
    *bench = (vae_bench){.device = device};
    GOOD(reel_model_open(REEL_SOURCE_DIR "/models/wan-tiny-t2v", &model, &fault));
    bench->config = model.vae;
    GOOD(reel_store_open(REEL_SOURCE_DIR "/models/wan-tiny-t2v/vae", "diffusion_pytorch_model", &bench->store, &fault));
    open_vae(bench, options);
}

void vae_bench_fixture(vae_bench *bench, vae_device *device, const reel_store *fixture, const reel_vae_options *options, vae_clip *clip)
{
    const char *config = reel_store_metadata(fixture, "config"), *list = reel_store_metadata(fixture, "weights");
    assert_non_null(config);
    assert_non_null(list);
    *bench = (vae_bench){.device = device};
    read_config(config, &bench->config, clip);
    make_store(bench, list);
    open_vae(bench, options);
    int64_t n = bench->config.z_dim * clip->lat_t * clip->lat_h * clip->lat_w, m = clip->n_frame * clip->px_h * clip->px_w * 3;
    clip->latents = malloc((size_t)n * sizeof(float));
    clip->pixels = malloc((size_t)m * sizeof(float));
    assert_true(clip->latents && clip->pixels);
    hashed_values("latents", clip->latents, n);
    for (int64_t i = 0; i < n; i++) clip->latents[i] *= 2.0F;
    hashed_values("pixels", clip->pixels, m);
}

void vae_bench_close(vae_bench *bench)
{
    reel_vae_free(&bench->vae);
    reel_weights_free(&bench->weights);
    reel_store_close(&bench->store);
    free(bench->bytes);
}

void vae_clip_free(vae_clip *clip)
{
    free(clip->latents);
    free(clip->pixels);
    *clip = (vae_clip){.lat_t = 0};
}

/* ---- clips --------------------------------------------------------------------------------------------------------------- */

/* Where a sink puts frames. */
typedef struct sink_user {
    const reel_ops *ops;
    float *frames;
    int64_t next, per_frame;
} sink_user;

static reel_status take_frames(void *user, const reel_tensor *frames, int64_t first_frame, int64_t row0, reel_error *err)
{
    sink_user *u = user;
    assert_int_equal(first_frame, u->next);
    assert_int_equal(row0, 0);
    assert_int_equal(frames->dtype, REEL_DTYPE_F32);
    assert_int_equal(reel_tensor_count(frames), frames->extent[0] * u->per_frame);
    REEL_TRY(reel_ops_download(u->ops, u->frames + first_frame * u->per_frame, frames, err));
    u->next += frames->extent[0];
    return REEL_OK;
}

static void *device_buffer(vae_device *device, const void *host, size_t bytes)
{
    void *out = NULL;
    GOOD(device->vt.buffer_new(device->device, bytes, &out, &fault));
    if (host) GOOD(device->vt.upload(device->stream, out, host, bytes, &fault));
    return out;
}

void vae_decode(vae_bench *bench, const vae_clip *clip, bool is_raw, float *frames, size_t *bytes)
{
    vae_device *d = bench->device;
    int64_t z = bench->config.z_dim, s = bench->config.spatial_factor, area = clip->lat_h * clip->lat_w;
    sink_user user = {.ops = &d->ops, .frames = frames, .per_frame = area * s * s * 3};
    reel_vae_session *session = NULL;
    void *latents = device_buffer(d, clip->latents, (size_t)(z * clip->lat_t * area) * sizeof(float));
    GOOD(reel_vae_decode_begin(bench->vae, clip->lat_h, clip->lat_w, take_frames, &user, &session, &fault));
    reel_tensor all = reel_tensor_dense(latents, REEL_DTYPE_F32, z, clip->lat_t, clip->lat_h, clip->lat_w);
    for (int64_t t = 0; t < clip->lat_t; t++) {
        reel_tensor one = {.data = (float *)all.data + t * area,
                           .dtype = REEL_DTYPE_F32,
                           .n_dim = 3,
                           .extent = {z, clip->lat_h, clip->lat_w},
                           .stride = {all.stride[0], all.stride[2], 1}};
        GOOD(is_raw ? reel_vae_decode_push_raw(session, &one, &fault) : reel_vae_decode_push(session, &one, &fault));
        assert_int_equal(user.next, 1 + t * bench->config.temporal_factor);
    }
    GOOD(reel_ops_sync(&d->ops, &fault));
    if (bytes) *bytes = reel_vae_session_bytes(session);
    reel_vae_session_free(&session);
    d->vt.buffer_free(d->device, latents);
}

void vae_encode(vae_bench *bench, const vae_clip *clip, float *mean, float *logvar)
{
    vae_device *d = bench->device;
    int64_t z = bench->config.z_dim, factor = bench->config.temporal_factor, n_lat = 1 + (clip->n_frame - 1) / factor;
    int64_t h = clip->px_h / bench->config.spatial_factor, w = clip->px_w / bench->config.spatial_factor;
    size_t bytes = (size_t)(z * n_lat * h * w) * sizeof(float);
    reel_vae_session *session = NULL;
    void *pixels = device_buffer(d, clip->pixels, (size_t)(clip->n_frame * clip->px_h * clip->px_w * 3) * sizeof(float));
    void *moment[2] = {device_buffer(d, NULL, bytes), device_buffer(d, NULL, bytes)};
    GOOD(reel_vae_encode_begin(bench->vae, clip->px_h, clip->px_w, &session, &fault));
    reel_tensor all = reel_tensor_dense(pixels, REEL_DTYPE_F32, clip->n_frame, clip->px_h, clip->px_w, 3);
    for (int64_t t = 0; t < n_lat; t++) {
        reel_tensor frames = reel_tensor_slice(all, 0, t == 0 ? 0 : 1 + (t - 1) * factor, 1 + t * factor);
        reel_tensor out[2];
        for (int32_t i = 0; i < 2; i++)
            out[i] = (reel_tensor){.data = (float *)moment[i] + t * h * w,
                                   .dtype = REEL_DTYPE_F32,
                                   .n_dim = 3,
                                   .extent = {z, h, w},
                                   .stride = {n_lat * h * w, w, 1}};
        GOOD(reel_vae_encode_push(session, &frames, &out[0], logvar ? &out[1] : NULL, &fault));
    }
    GOOD(d->vt.download(d->stream, mean, moment[0], bytes, &fault));
    if (logvar) GOOD(d->vt.download(d->stream, logvar, moment[1], bytes, &fault));
    GOOD(reel_ops_sync(&d->ops, &fault));
    assert_int_equal(reel_vae_session_bytes(session),
                     reel_vae_encode_bytes(&bench->config, bench->compute, clip->px_h, clip->px_w, d->ops.props.alignment_bytes));
    reel_vae_session_free(&session);
    d->vt.buffer_free(d->device, pixels);
    d->vt.buffer_free(d->device, moment[0]);
    d->vt.buffer_free(d->device, moment[1]);
}

double vae_error(const float *a, const float *b, int64_t n)
{
    double difference = 0.0, norm = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)a[i] - (double)b[i];
        difference += d * d;
        norm += (double)b[i] * (double)b[i];
    }
    return sqrt(difference / norm);
}

float *vae_load(const reel_store *store, const char *name, int64_t *n)
{
    const reel_stored *t = reel_store_find(store, name);
    assert_non_null(t);
    assert_true(t->dtype == REEL_DTYPE_F32 || t->dtype == REEL_DTYPE_U8);
    size_t each = reel_dtype_bytes(t->dtype);
    *n = (int64_t)(t->bytes / each);
    float *out = malloc((size_t)*n * sizeof *out);
    assert_non_null(out);
    for (int64_t i = 0; i < *n; i++) {
        if (t->dtype == REEL_DTYPE_U8)
            out[i] = (float)t->data[i];
        else
            memcpy(&out[i], t->data + 4 * i, 4);
    }
    return out;
}
