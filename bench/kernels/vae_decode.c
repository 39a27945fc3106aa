/* SPDX-License-Identifier: Apache-2.0
 *
 * One decoder at the true Wan2.1 size, driven through standard input: the half of tools/bench/vae_pair.py that runs reel.
 *
 *     bench_vae_decode DIR f32|bf16 CHUNK LAT_H LAT_W LAT_T [OUT]
 *
 * DIR holds diffusion_pytorch_model.safetensors with Wan2.1's names and sizes, and latents.safetensors with `latents` [16, T, h, w] f32, which
 * are decoded as they are (not denormalised). Every line read makes one decode and prints one JSON line: seconds, and the bytes
 * of the process (resident before, most resident since the last line, session, packed weights). OUT: the frames of the last
 * decode, as raw f32. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/device.h"
#include "vae/vae.h"

typedef struct bench {
    const reel_device_vt *vt;
    reel_device *device;
    reel_stream *stream;
    reel_ops ops;
    reel_store *store, *input;
    reel_weights *weights;
    reel_vae *vae;
    reel_vae_config config;
    int64_t lat_t, lat_h, lat_w;
    void *latents; /* on the device, [16, T, h, w] */
    float *frames;
} bench;

/* A line of /proc/self/status in bytes. */
static long long status_bytes(const char *key)
{
    char line[256];
    long long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0) kib = strtoll(line + strlen(key) + 1, NULL, 10);
    fclose(file);
    return kib * 1024;
}

static void reset_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file) return;
    fputs("5", file);
    fclose(file);
}

static reel_status take_frames(void *user, const reel_tensor *frames, int64_t first_frame, int64_t row0, reel_error *err)
{
    bench *b = user;
    size_t each = reel_tensor_bytes(frames) / (size_t)frames->extent[0];
    (void)row0;
    REEL_TRY(reel_ops_download(&b->ops, (char *)b->frames + (size_t)first_frame * each, frames, err));
    return REEL_OK;
}

static reel_status open_all(bench *b, const char *dir, reel_dtype compute, int32_t chunk, reel_error *err)
{
    char path[4096];
    reel_registry *registry = NULL;
    const reel_plugin *plugin = NULL;
    const reel_host host = {.size = sizeof host};
    const reel_device_options device = {.size = sizeof device, .n_thread = 2};
    REEL_TRY(reel_registry_open(NULL, NULL, &registry, err));
    REEL_TRY(reel_registry_find(registry, "cpu", &plugin, err));
    b->vt = plugin->device;
    reel_registry_close(&registry);
    REEL_TRY(b->vt->open(&host, &device, &b->device, err));
    REEL_TRY(b->vt->stream_new(b->device, &b->stream, err));
    REEL_TRY(reel_ops_bind(b->vt, b->device, b->stream, NULL, &b->ops, err));
    REEL_TRY(reel_store_open(dir, "diffusion_pytorch_model", &b->store, err));
    (void)snprintf(path, sizeof path, "%s/latents.safetensors", dir);
    REEL_TRY(reel_store_open_file(path, &b->input, err));
    const reel_weights_options weights = {.compute = compute};
    REEL_TRY(reel_weights_new(b->store, b->vt, b->device, b->stream, &weights, &b->weights, err));
    b->config = (reel_vae_config){.base_dim = 96,
                                  .decoder_base_dim = 96,
                                  .z_dim = 16,
                                  .n_stage = 4,
                                  .dim_mult = {1, 2, 4, 4},
                                  .n_res_block = 2,
                                  .temporal_downsample = {false, true, true},
                                  .in_channels = 3,
                                  .out_channels = 3,
                                  .patch = 1,
                                  .spatial_factor = 8,
                                  .temporal_factor = 4};
    for (int32_t i = 0; i < 16; i++) b->config.latents_std[i] = 1.0;
    const reel_vae_options options = {.compute = compute, .wants_decoder = true, .chunk_frames = chunk};
    REEL_TRY(reel_vae_new(&b->config, &b->ops, b->weights, &options, &b->vae, err));
    const reel_stored *latents = reel_store_find(b->input, "latents");
    size_t bytes = (size_t)(16 * b->lat_t * b->lat_h * b->lat_w) * sizeof(float);
    if (!latents || latents->bytes != bytes)
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "latents.safetensors does not hold latents of this size\nremedy: write them as [16, T, h, w] f32");
    REEL_TRY(b->vt->buffer_new(b->device, bytes, &b->latents, err));
    REEL_TRY(b->vt->upload(b->stream, b->latents, latents->data, bytes, err));
    b->frames = malloc((size_t)((4 * b->lat_t - 3) * b->lat_h * b->lat_w * 64 * 3) * sizeof(float));
    if (!b->frames) return REEL_FAIL(err, REEL_E_MEMORY, "no memory for the frames\nremedy: take a smaller size");
    return REEL_OK;
}

static reel_status decode(bench *b, size_t *bytes, reel_error *err)
{
    reel_vae_session *session = NULL;
    int64_t area = b->lat_h * b->lat_w;
    reel_status status = REEL_OK;
    REEL_TRY(reel_vae_decode_begin(b->vae, b->lat_h, b->lat_w, take_frames, b, &session, err));
    for (int64_t t = 0; t < b->lat_t; t++) {
        const reel_tensor latent = {.data = (float *)b->latents + t * area,
                                    .dtype = REEL_DTYPE_F32,
                                    .n_dim = 3,
                                    .extent = {16, b->lat_h, b->lat_w},
                                    .stride = {b->lat_t * area, b->lat_w, 1}};
        REEL_TRY_GOTO(reel_vae_decode_push_raw(session, &latent, err), cleanup);
    }
    REEL_TRY_GOTO(reel_ops_sync(&b->ops, err), cleanup);
    *bytes = reel_vae_session_bytes(session);
cleanup:
    reel_vae_session_free(&session);
    return status;
}

static int complain(const reel_error *err)
{
    fprintf(stderr, "%s\n(%s)\n", err->text, err->trace);
    return reel_status_exit_code(err->code);
}

int main(int argc, char **argv)
{
    static bench b;
    static reel_error err;
    char line[64];
    if (argc < 7) {
        fprintf(stderr, "usage: bench_vae_decode DIR f32|bf16 CHUNK LAT_H LAT_W LAT_T [OUT]\n");
        return 2;
    }
    b.lat_h = strtoll(argv[4], NULL, 10);
    b.lat_w = strtoll(argv[5], NULL, 10);
    b.lat_t = strtoll(argv[6], NULL, 10);
    reel_dtype compute = strcmp(argv[2], "bf16") == 0 ? REEL_DTYPE_BF16 : REEL_DTYPE_F32;
    if (open_all(&b, argv[1], compute, (int32_t)strtol(argv[3], NULL, 10), &err) != REEL_OK) return complain(&err);
    while (fgets(line, sizeof line, stdin)) {
        size_t bytes = 0;
        long long before = status_bytes("VmRSS");
        reset_peak();
        double begin = reel_clock_s();
        if (decode(&b, &bytes, &err) != REEL_OK) return complain(&err);
        double seconds = reel_clock_s() - begin;
        printf("{\"seconds\": %.4f, \"resident_before\": %lld, \"resident_peak\": %lld, \"session\": %zu, \"packed_weights\": %zu, "
               "\"device\": \"%s\", "
               "\"isa\": \"%s\", \"library\": \"%s\"}\n",
               seconds, before, status_bytes("VmHWM"), bytes, reel_weights_bytes(b.weights), b.ops.props.name, b.ops.props.isa,
               b.ops.props.library);
        fflush(stdout);
    }
    if (argc > 7) {
        FILE *out = fopen(argv[7], "wb");
        size_t n = (size_t)((4 * b.lat_t - 3) * b.lat_h * b.lat_w * 64 * 3);
        if (!out || fwrite(b.frames, sizeof(float), n, out) != n || fclose(out) != 0) return 6;
    }
    reel_vae_free(&b.vae);
    reel_weights_free(&b.weights);
    reel_store_close(&b.input);
    reel_store_close(&b.store);
    return 0;
}
