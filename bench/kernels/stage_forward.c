/* SPDX-License-Identifier: Apache-2.0
 *
 * One transformer forward or one text encoding at a given shape, driven through standard input: the half of tools/bench/stage_pair.py that runs reel.
 *
 *     bench_stage_forward dit  DIR f32|bf16 mapped|packed LAT_T LAT_H LAT_W [OUT]
 *     bench_stage_forward umt5 DIR f32|bf16 mapped|packed TOKENS [OUT]
 *
 * DIR holds config.json and the component's safetensors in the diffusers layout. Inputs are made by reel_noise_fill: latents of seed 1, 512 text rows
 * of seed 2 (dit); ids 1, 2, 3 … modulo the vocabulary (umt5). Every line read makes one run and prints one JSON line: seconds, and the bytes of
 * the process. OUT: the result of the last run, raw f32. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "device/device.h"
#include "dit/dit.h"
#include "model/model_internal.h"
#include "sample/sample.h"
#include "text/text.h"

enum { TEXT_ROWS = 512 };

typedef struct bench {
    const reel_device_vt *vt;
    reel_device *device;
    reel_stream *stream;
    reel_ops ops;
    reel_store *store;
    reel_weights *weights;
    reel_dtype compute;
    reel_arena tensors, scratch;
    /* dit */
    reel_dit_config dit_config;
    reel_dit *dit;
    reel_dit_context *context;
    reel_tensor latents;
    int64_t n_token;
    /* umt5 */
    reel_umt5_config umt5_config;
    reel_umt5 *umt5;
    reel_tokens tokens;
    reel_tensor result;
} bench;

static long long status_bytes(const char *key)
{
    char line[256];
    long long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) == 0) kib = strtoll(line + strlen(key) + 1, NULL, 10);
    }
    fclose(file);
    return kib * 1024;
}

static reel_status upload_noise(bench *b, const reel_tensor *t, uint64_t seed, reel_error *err)
{
    float *host = malloc(reel_tensor_bytes(t));
    if (!host) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory\nremedy: use a smaller shape");
    reel_noise_fill(seed, host, reel_tensor_count(t));
    reel_status status = reel_ops_upload(&b->ops, t, host, err);
    free(host);
    return status;
}

static reel_status open_all(bench *b, const char *dir, const char *stem, bool is_packed, reel_json *json, reel_error *err)
{
    reel_registry *registry = NULL;
    const reel_plugin *plugin = NULL;
    const reel_host host = {.size = sizeof host};
    const reel_device_options options = {.size = sizeof options, .n_thread = 2};
    const reel_weights_options weights = {.compute = b->compute, .is_packed = is_packed};
    static char path[REEL_PATH_MAX];
    REEL_TRY(reel_registry_open(NULL, NULL, &registry, err));
    REEL_TRY(reel_registry_find(registry, "cpu", &plugin, err));
    b->vt = plugin->device;
    reel_registry_close(&registry);
    REEL_TRY(b->vt->open(&host, &options, &b->device, err));
    REEL_TRY(b->vt->stream_new(b->device, &b->stream, err));
    REEL_TRY(reel_ops_bind(b->vt, b->device, b->stream, NULL, &b->ops, err));
    REEL_TRY(reel_path_join(path, sizeof path, dir, "config.json", err));
    REEL_TRY(reel_json_load(path, REEL_E_MODEL, json, err));
    REEL_TRY(reel_store_open(dir, stem, &b->store, err));
    return reel_weights_new(b->store, b->vt, b->device, b->stream, &weights, &b->weights, err);
}

static reel_status open_dit(bench *b, char **argv, reel_error *err)
{
    reel_json json;
    const int64_t t = atoll(argv[5]), h = atoll(argv[6]), w = atoll(argv[7]);
    const reel_dit_options options = {.compute = b->compute, .ffn_rows = 2048};
    REEL_TRY(open_all(b, argv[2], "diffusion_pytorch_model", strcmp(argv[4], "packed") == 0, &json, err));
    REEL_TRY(reel_config_dit(&json, &b->dit_config, err));
    reel_json_deinit(&json);
    const reel_dit_config *c = &b->dit_config;
    REEL_TRY(reel_dit_new(c, &b->ops, b->weights, &options, &b->dit, err));
    const size_t a = b->ops.props.alignment_bytes;
    b->n_token = t * (h / c->patch[1]) * (w / c->patch[2]);
    const size_t latent = reel_arena_need(a, REEL_DTYPE_F32, (int64_t)c->in_channels * t * h * w);
    const size_t states = reel_arena_need(a, REEL_DTYPE_F32, (int64_t)TEXT_ROWS * c->text_dim);
    REEL_TRY(
        reel_arena_init(&b->tensors, &b->ops, "tensors", 2 * latent + states + reel_dit_context_bytes(c, &options, TEXT_ROWS, a), err));
    size_t forward = reel_dit_scratch_bytes(c, &options, b->n_token, a),
           context = reel_dit_context_scratch_bytes(c, &options, TEXT_ROWS, a);
    REEL_TRY(reel_arena_init(&b->scratch, &b->ops, "scratch", forward > context ? forward : context, err));
    reel_tensor text;
    REEL_TRY(reel_arena_take(&b->tensors, REEL_DTYPE_F32, c->in_channels, t, h, w, &b->latents, err));
    REEL_TRY(reel_arena_take(&b->tensors, REEL_DTYPE_F32, c->out_channels, t, h, w, &b->result, err));
    REEL_TRY(reel_arena_take(&b->tensors, REEL_DTYPE_F32, TEXT_ROWS, c->text_dim, 0, 0, &text, err));
    REEL_TRY(upload_noise(b, &b->latents, 1, err));
    REEL_TRY(upload_noise(b, &text, 2, err));
    return reel_dit_context_new(b->dit, &text, TEXT_ROWS, &b->tensors, &b->scratch, NULL, NULL, &b->context, err);
}

static reel_status open_umt5(bench *b, char **argv, reel_error *err)
{
    reel_json json;
    REEL_TRY(open_all(b, argv[2], "model", strcmp(argv[4], "packed") == 0, &json, err));
    REEL_TRY(reel_config_umt5(&json, &b->umt5_config, err));
    reel_json_deinit(&json);
    const reel_umt5_config *c = &b->umt5_config;
    REEL_TRY(reel_umt5_new(c, &b->ops, b->weights, b->compute, &b->umt5, err));
    b->tokens.n = (int32_t)atoi(argv[5]);
    for (int32_t i = 0; i < b->tokens.n; i++) b->tokens.id[i] = (i + 1) % c->vocab;
    const size_t a = b->ops.props.alignment_bytes;
    REEL_TRY(reel_arena_init(&b->scratch, &b->ops, "scratch", reel_umt5_scratch_bytes(c, b->compute, b->tokens.n, a), err));
    REEL_TRY(reel_arena_init(&b->tensors, &b->ops, "tensors", reel_arena_need(a, REEL_DTYPE_F32, (int64_t)b->tokens.n * c->d_model), err));
    return reel_arena_take(&b->tensors, REEL_DTYPE_F32, b->tokens.n, c->d_model, 0, 0, &b->result, err);
}

static reel_status run(bench *b, reel_error *err)
{
    if (b->umt5) return reel_umt5_encode(b->umt5, &b->tokens, &b->scratch, NULL, &b->result, err);
    const reel_dit_input in = {
        .latents = b->latents, .context = b->context, .timestep = {500.0F}, .n_timestep = 1, .t1 = b->n_token, .velocity = b->result};
    REEL_TRY(reel_dit_forward(b->dit, &in, &b->scratch, err));
    return reel_ops_sync(&b->ops, err);
}

static reel_status write_result(bench *b, const char *path, reel_error *err)
{
    const size_t bytes = reel_tensor_bytes(&b->result);
    float *host = malloc(bytes);
    if (!host) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory\nremedy: use a smaller shape");
    REEL_TRY(reel_ops_download(&b->ops, host, &b->result, err));
    reel_status status = reel_write_file(path, host, bytes, false, err);
    free(host);
    return status;
}

int main(int argc, char **argv)
{
    static bench b;
    reel_error err = {0};
    const bool is_dit = argc >= 8 && strcmp(argv[1], "dit") == 0, is_umt5 = argc >= 6 && strcmp(argv[1], "umt5") == 0;
    if (!is_dit && !is_umt5) {
        fprintf(stderr, "usage: see the head of bench/kernels/stage_forward.c\n");
        return 2;
    }
    b.compute = strcmp(argv[3], "bf16") == 0 ? REEL_DTYPE_BF16 : REEL_DTYPE_F32;
    reel_status status = is_dit ? open_dit(&b, argv, &err) : open_umt5(&b, argv, &err);
    char line[64];
    while (status == REEL_OK && fgets(line, sizeof line, stdin)) {
        const double begin = reel_clock_s();
        status = run(&b, &err);
        printf("{\"seconds\": %.6f, \"resident_peak\": %lld, \"device\": \"%s\", \"isa\": \"%s\", \"library\": \"%s\"}\n",
               reel_clock_s() - begin, status_bytes("VmHWM"), b.ops.props.name, b.ops.props.isa, b.ops.props.library);
        fflush(stdout);
    }
    const char *out = is_dit && argc > 8 ? argv[8] : is_umt5 && argc > 6 ? argv[6] : NULL;
    if (status == REEL_OK && out) status = write_result(&b, out, &err);
    if (status != REEL_OK) fprintf(stderr, "%s\n", err.text);
    return status == REEL_OK ? 0 : 1;
}
