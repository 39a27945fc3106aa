/* SPDX-License-Identifier: Apache-2.0
 *
 * Speed of the CPU device's operations at the shapes of Wan: products in GFLOP/s, convolutions in GFLOP/s, row kernels in GB/s.
 *
 *     cmake --build build/cpu --target bench_cpu_ops && build/cpu/bench_cpu_ops [isa|all] [threads] [repeats] [filter]
 *
 * One line a case: minimum, median and maximum of the repeats in milliseconds, and the rate of the median. Work counts what the
 * operation is asked for (an upsampled convolution counts nine taps a pixel, however it is computed). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/device/cpu/plugin.h"
#include "base/clock.h"
#include "reel-plugin/tensor_util.h"

typedef struct bench {
    const reel_device_vt *vt;
    reel_device *device;
    reel_stream *stream;
    int repeats;
    const char *filter;
} bench;

static void must(reel_status status, const reel_error *err)
{
    if (status == REEL_OK) return;
    (void)fprintf(stderr, "%s\n", err->text);
    exit(1);
}

/* Values between −1 and 1 from a linear congruence; the rate does not depend on them as long as they are ordinary. */
static void *random_data(const bench *b, reel_dtype dtype, int64_t n)
{
    reel_error err;
    void *data = NULL;
    uint32_t state = 12345;
    must(b->vt->buffer_new(b->device, (size_t)n * reel_dtype_bytes(dtype), &data, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525U + 1013904223U;
        float f = (float)(int32_t)state * 0x1p-31F;
        if (dtype == REEL_DTYPE_F32) {
            ((float *)data)[i] = f;
        } else if (dtype == REEL_DTYPE_BF16) {
            ((uint16_t *)data)[i] = reel_bf16_from_f32(f);
        } else {
            ((uint16_t *)data)[i] = reel_f16_from_f32(f);
        }
    }
    return data;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void time_op(const bench *b, const char *op, const void *args, double work, const char *unit, const char *label)
{
    enum { REPEATS_MAX = 100 };
    double ms[REPEATS_MAX];
    reel_error err;
    reel_op_fn fn = b->vt->op(b->device, op, 1);
    if (!fn) {
        (void)printf("%-64s absent\n", label);
        return;
    }
    must(fn(b->stream, args, &err), &err);
    int n = b->repeats < REPEATS_MAX ? b->repeats : REPEATS_MAX;
    for (int i = 0; i < n; i++) {
        double start = reel_clock_s();
        must(fn(b->stream, args, &err), &err);
        ms[i] = (reel_clock_s() - start) * 1e3;
    }
    qsort(ms, (size_t)n, sizeof ms[0], by_value);
    (void)printf("%-64s %9.2f %9.2f %9.2f ms %8.1f %s\n", label, ms[0], ms[n / 2], ms[n - 1], work / ms[n / 2] * 1e-6, unit);
    (void)fflush(stdout);
}

static reel_weight weight_of(void *data, reel_dtype dtype, int64_t n_row, int64_t n_col)
{
    int32_t bytes = (int32_t)reel_dtype_bytes(dtype);
    return (reel_weight){.size = sizeof(reel_weight),
                         .dtype = dtype,
                         .block_elements = 1,
                         .block_bytes = bytes,
                         .n_row = n_row,
                         .n_col = n_col,
                         .row_stride_bytes = n_col * bytes,
                         .row_end = n_row,
                         .data = data};
}

typedef struct linear_case {
    int64_t m, n, k;
    reel_dtype x, w, y;
    reel_activation act;
    int is_packed;
} linear_case;

static void bench_linear(const bench *b, const linear_case *c)
{
    char label[96];
    (void)snprintf(label, sizeof label, "linear %lldx%lldx%lld x %s w %s y %s%s%s", (long long)c->m, (long long)c->n, (long long)c->k,
                   reel_dtype_name(c->x), reel_dtype_name(c->w), reel_dtype_name(c->y), c->act ? " gelu" : "",
                   c->is_packed ? " packed" : "");
    if (b->filter && !strstr(label, b->filter)) return;
    reel_error err;
    void *x = random_data(b, c->x, c->m * c->k), *w = random_data(b, c->w, c->n * c->k), *y = random_data(b, c->y, c->m * c->n);
    void *bias = random_data(b, REEL_DTYPE_F32, c->n);
    reel_op_linear op = {.size = sizeof op,
                         .x = reel_tensor_dense(x, c->x, c->m, c->k, 0, 0),
                         .w = weight_of(w, c->w, c->n, c->k),
                         .bias = reel_tensor_dense(bias, REEL_DTYPE_F32, c->n, 0, 0, 0),
                         .act = c->act,
                         .y = reel_tensor_dense(y, c->y, c->m, c->n, 0, 0)};
    reel_packed *packed = NULL;
    size_t bytes;
    if (c->is_packed) must(b->vt->weight_pack(b->device, &op.w, c->x, &packed, &bytes, &err), &err);
    op.w.packed = packed;
    time_op(b, "linear", &op, 2.0 * (double)c->m * (double)c->n * (double)c->k, "GFLOP/s", label);
    b->vt->weight_free(b->device, packed);
    void *all[] = {x, w, y, bias};
    for (int i = 0; i < 4; i++) b->vt->buffer_free(b->device, all[i]);
}

typedef struct conv_case {
    int64_t n_in, n_out, frames, height, width; /* of y; with up, x is half as high and wide */
    int32_t kernel[3];
    int32_t up, adds;
} conv_case;

static void bench_conv(const bench *b, const conv_case *c, reel_dtype dtype)
{
    char label[96];
    (void)snprintf(label, sizeof label, "conv %lld->%lld %dx%dx%d %lld frames %lldx%lld %s%s%s", (long long)c->n_in, (long long)c->n_out,
                   c->kernel[0], c->kernel[1], c->kernel[2], (long long)c->frames, (long long)c->height, (long long)c->width,
                   reel_dtype_name(dtype), c->up ? " up" : "", c->adds ? " residual" : "");
    if (b->filter && !strstr(label, b->filter)) return;
    reel_error err;
    int64_t n_x = c->frames + c->kernel[0] - 1, h = c->up ? c->height / 2 : c->height, w = c->up ? c->width / 2 : c->width;
    int64_t n_col = c->n_in * c->kernel[0] * c->kernel[1] * c->kernel[2], n_y = c->frames * c->height * c->width * c->n_out;
    void *x = random_data(b, dtype, n_x * h * w * c->n_in), *kernel = random_data(b, REEL_DTYPE_F32, c->n_out * n_col);
    void *y = random_data(b, dtype, n_y), *bias = random_data(b, REEL_DTYPE_F32, c->n_out), *residual = random_data(b, dtype, n_y);
    reel_op_conv3d op = {.size = sizeof op,
                         .x = reel_tensor_dense(x, dtype, n_x, h, w, c->n_in),
                         .w = weight_of(kernel, REEL_DTYPE_F32, c->n_out, n_col),
                         .bias = reel_tensor_dense(bias, REEL_DTYPE_F32, c->n_out, 0, 0, 0),
                         .y = reel_tensor_dense(y, dtype, c->frames, c->height, c->width, c->n_out),
                         .n_history = c->kernel[0] - 1,
                         .stride = {1, 1, 1},
                         .upsample2 = c->up};
    for (int i = 0; i < 4; i++) op.pad[i] = c->kernel[1 + i / 2] / 2;
    memcpy(op.w.kernel, c->kernel, sizeof c->kernel);
    if (c->adds) op.residual = reel_tensor_dense(residual, dtype, c->frames, c->height, c->width, c->n_out);
    reel_packed *packed = NULL;
    size_t bytes;
    must(b->vt->weight_pack(b->device, &op.w, dtype, &packed, &bytes, &err), &err);
    op.w.packed = packed;
    time_op(b, "conv3d", &op, 2.0 * (double)n_y * (double)n_col, "GFLOP/s", label);
    b->vt->weight_free(b->device, packed);
    void *all[] = {x, kernel, y, bias, residual};
    for (int i = 0; i < 5; i++) b->vt->buffer_free(b->device, all[i]);
}

static void bench_rows(const bench *b, reel_dtype dtype)
{
    enum { S = 7800, D = 1536, HEAD = 128, PIXELS = 240 * 416, C = 96 };
    int64_t bytes = (int64_t)reel_dtype_bytes(dtype);
    char label[96];
    void *x = random_data(b, dtype, (int64_t)PIXELS * C * 2), *y = random_data(b, dtype, (int64_t)PIXELS * C * 2);
    void *vector = random_data(b, REEL_DTYPE_F32, 1024 * HEAD);
    reel_tensor rows = reel_tensor_dense(x, dtype, S, D, 0, 0), out = reel_tensor_dense(y, dtype, S, D, 0, 0);
    reel_tensor table = reel_tensor_dense(vector, REEL_DTYPE_F32, 1, D, 0, 0);
    reel_op_layer_norm ln = {.size = sizeof ln, .x = rows, .y = out, .scale = table, .shift = table, .one_plus = 1, .eps = 1e-6F};
    reel_op_gate_residual gate = {.size = sizeof gate, .x = out, .a = rows, .gate = table, .y = out};
    reel_op_rms_norm_rope rope = {.size = sizeof rope,
                                  .x = reel_tensor_dense(x, dtype, S, D / HEAD, HEAD, 0),
                                  .weight = reel_tensor_dense(vector, REEL_DTYPE_F32, D, 0, 0, 0),
                                  .y = reel_tensor_dense(y, dtype, S, D / HEAD, HEAD, 0),
                                  .eps = 1e-6F,
                                  .rope = {.table = reel_tensor_dense(vector, REEL_DTYPE_F32, 1024, HEAD / 2, 2, 0),
                                           .grid_h = 30,
                                           .grid_w = 52,
                                           .pair_t = 22,
                                           .pair_h = 21}};
    reel_op_gated_gelu gelu = {.size = sizeof gelu, .gate = rows, .up = out, .y = out};
    reel_op_channel_norm norm = {.size = sizeof norm,
                                 .x = reel_tensor_dense(x, dtype, PIXELS, C, 0, 0),
                                 .gamma = reel_tensor_dense(vector, REEL_DTYPE_F32, C, 0, 0, 0),
                                 .y = reel_tensor_dense(y, dtype, PIXELS, C, 0, 0),
                                 .act = REEL_ACTIVATION_SILU};
    const struct {
        const char *name;
        const void *op;
        double bytes;
    } cases[] = {{"layer_norm", &ln, 2.0 * S * D},
                 {"gate_residual", &gate, 3.0 * S * D},
                 {"rms_norm_rope", &rope, 2.0 * S * D},
                 {"gated_gelu", &gelu, 3.0 * S * D},
                 {"channel_norm", &norm, 2.0 * PIXELS * C}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(label, sizeof label, "%s %s", cases[i].name, reel_dtype_name(dtype));
        if (b->filter && !strstr(label, b->filter)) continue;
        time_op(b, cases[i].name, cases[i].op, cases[i].bytes * (double)bytes, "GB/s", label);
    }
    b->vt->buffer_free(b->device, x);
    b->vt->buffer_free(b->device, y);
    b->vt->buffer_free(b->device, vector);
}

static void bench_all(const bench *b)
{
    const reel_dtype f32 = REEL_DTYPE_F32, bf16 = REEL_DTYPE_BF16;
    static const int64_t shapes[][3] = {{7800, 1536, 1536}, {7800, 8960, 1536}, {7800, 1536, 8960}, {512, 4096, 4096}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const reel_dtype kinds[][3] = {{bf16, bf16, bf16}, {f32, f32, f32}, {f32, bf16, f32}};
        for (int k = 0; k < 6; k++) {
            linear_case c = {.m = shapes[i][0],
                             .n = shapes[i][1],
                             .k = shapes[i][2],
                             .x = kinds[k / 2][0],
                             .w = kinds[k / 2][1],
                             .y = kinds[k / 2][2],
                             .act = i == 1 ? REEL_ACTIVATION_GELU_TANH : REEL_ACTIVATION_NONE,
                             .is_packed = k % 2};
            bench_linear(b, &c);
        }
    }
    static const conv_case convs[] = {
        {96, 96, 4, 240, 416, {3, 3, 3}, 0, 0},   {96, 96, 4, 240, 416, {3, 3, 3}, 0, 1},  {192, 192, 4, 120, 208, {3, 3, 3}, 0, 0},
        {384, 384, 2, 60, 104, {3, 3, 3}, 0, 0},  {384, 384, 1, 30, 52, {3, 3, 3}, 0, 0},  {192, 96, 4, 240, 416, {1, 3, 3}, 1, 0},
        {384, 192, 2, 120, 208, {1, 3, 3}, 1, 0}, {96, 3, 4, 240, 416, {3, 3, 3}, 0, 0},   {16, 384, 1, 30, 52, {3, 3, 3}, 0, 0},
        {192, 384, 2, 60, 104, {1, 1, 1}, 0, 0},  {384, 768, 2, 60, 104, {3, 1, 1}, 0, 0}, {16, 16, 4, 240, 416, {3, 3, 3}, 0, 0},
        {16, 3, 4, 240, 416, {3, 3, 3}, 0, 0},
    };
    for (size_t i = 0; i < sizeof convs / sizeof convs[0]; i++) {
        bench_conv(b, &convs[i], f32);
        bench_conv(b, &convs[i], bf16);
    }
    bench_rows(b, f32);
    bench_rows(b, bf16);
}

int main(int argc, char **argv)
{
    reel_error err;
    bench b = {.vt = reel_plugin_cpu.device, .repeats = argc > 3 ? atoi(argv[3]) : 5, .filter = argc > 4 ? argv[4] : NULL};
    reel_device_options options = {.size = sizeof options, .n_thread = argc > 2 ? atoi(argv[2]) : 0};
    if (argc > 1 && strcmp(argv[1], "all") != 0) options.isa_max = argv[1];
    must(b.vt->open(NULL, &options, &b.device, &err), &err);
    must(b.vt->stream_new(b.device, &b.stream, &err), &err);
    reel_device_props props;
    must(b.vt->props(b.device, &props, &err), &err);
    (void)printf("%s; %s; %s\n%-64s %9s %9s %9s\n", props.name, props.isa, props.library, "case", "min", "median", "max");
    bench_all(&b);
    b.vt->stream_free(b.stream);
    b.vt->close(b.device);
    return 0;
}
