/* SPDX-License-Identifier: Apache-2.0
 *
 * The C references against recordings of PyTorch, diffusers and transformers (tests/fixtures/ops), so that references and devices cannot be
 * wrong together. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/fixture.h"
#include "ops/ops.h"

/* References round f64 sums once; recordings were made in f64 and rounded once. */
static const double bound_f64 = 2e-7;
/* These modules of the reference compute in f32 inside. */
static const double bound_f32 = 2e-6;

static fixture fx;

static int open_fixture(void **state)
{
    (void)state;
    fx = fixture_open("tests/fixtures/ops/ops.safetensors");
    return 0;
}

static int close_fixture(void **state)
{
    (void)state;
    fixture_close(&fx);
    return 0;
}

/* A recorded tensor of these extents (0 ends the list; 5 or 6 dimensions are given flat). */
static reel_tensor recorded(const char *name, int64_t e0, int64_t e1, int64_t e2, int64_t e3)
{
    size_t n = 0;
    const float *data = fixture_get(&fx, name, "F32", &n);
    reel_tensor t = reel_tensor_dense((void *)(uintptr_t)data, REEL_DTYPE_F32, e0, e1, e2, e3);
    assert_int_equal(n, reel_tensor_count(&t));
    return t;
}

static reel_tensor recorded_i32(const char *name, int64_t n)
{
    size_t count = 0;
    const int32_t *data = fixture_get(&fx, name, "I32", &count);
    assert_int_equal(count, n);
    return reel_tensor_dense((void *)(uintptr_t)data, REEL_DTYPE_I32, n, 0, 0, 0);
}

static reel_weight recorded_weight(const char *name, int64_t n_row, int64_t n_col, int32_t kt, int32_t kh, int32_t kw)
{
    size_t n = 0;
    const float *data = fixture_get(&fx, name, "F32", &n);
    assert_int_equal(n, n_row * n_col);
    return (reel_weight){.size = sizeof(reel_weight),
                         .dtype = REEL_DTYPE_F32,
                         .block_elements = 1,
                         .block_bytes = 4,
                         .n_row = n_row,
                         .n_col = n_col,
                         .row_stride_bytes = 4 * n_col,
                         .row_end = n_row,
                         .kernel = {kt, kh, kw},
                         .data = data};
}

/* NaN-filled memory like a tensor; freed by compare. */
static reel_tensor output_like(reel_tensor t)
{
    size_t n = (size_t)reel_tensor_count(&t) * sizeof(float);
    t.data = malloc(n);
    assert_non_null(t.data);
    memset(t.data, 0xFF, n);
    return t;
}

static void compare(const char *name, reel_tensor got, reel_tensor want, double bound)
{
    double difference = 0.0, square = 0.0;
    const float *a = got.data, *b = want.data;
    for (int64_t i = 0; i < reel_tensor_count(&want); i++) {
        double d = (double)a[i] - (double)b[i];
        difference += d * d;
        square += (double)b[i] * (double)b[i];
    }
    double l2 = sqrt(difference / square);
    free(got.data);
    print_message("  %s: relative L2 %.2g\n", name, l2);
    if (!(l2 <= bound)) fail_msg("%s: relative L2 %g, allowed %g", name, l2, bound);
}

#define RUN(op, ...) assert_int_equal(reel_ref_op(#op)(NULL, &(reel_op_##op){.size = sizeof(reel_op_##op), __VA_ARGS__}, NULL), REEL_OK)

static void conv3d_is_causal_with_history(void **state)
{
    (void)state;
    reel_weight w = recorded_weight("conv_w", 7, 5 * 27, 3, 3, 3);
    reel_tensor bias = recorded("conv_b", 7, 0, 0, 0), x = recorded("conv_x", 4, 6, 5, 5);
    reel_tensor whole = recorded("conv_y", 4, 6, 5, 7), after2 = recorded("conv_y_history2", 2, 6, 5, 7),
                after1 = recorded("conv_y_history1", 3, 6, 5, 7);
    reel_tensor y = output_like(whole);
    RUN(conv3d, .x = x, .w = w, .bias = bias, .y = y, .pad_front = 2, .pad = {1, 1, 1, 1}, .stride = {1, 1, 1});
    compare("whole", y, whole, bound_f64);
    y = output_like(after2);
    RUN(conv3d, .x = x, .w = w, .bias = bias, .y = y, .n_history = 2, .pad = {1, 1, 1, 1}, .stride = {1, 1, 1});
    compare("two frames of history", y, after2, bound_f64);
    y = output_like(after1);
    RUN(conv3d, .x = x, .w = w, .bias = bias, .y = y, .n_history = 1, .pad_front = 1, .pad = {1, 1, 1, 1}, .stride = {1, 1, 1});
    compare("one frame of history", y, after1, bound_f64);
}

static void conv3d_resamples(void **state)
{
    (void)state;
    reel_tensor up = recorded("up_y", 2, 8, 6, 3), y = output_like(up);
    RUN(conv3d, .x = recorded("up_x", 2, 4, 3, 6), .w = recorded_weight("up_w", 3, 6 * 9, 1, 3, 3), .bias = recorded("up_b", 3, 0, 0, 0),
        .y = y, .pad = {1, 1, 1, 1}, .stride = {1, 1, 1}, .upsample2 = 1);
    compare("up", y, up, bound_f64);
    reel_tensor x = recorded("down_x", 5, 6, 8, 4), first = recorded("down_y_first", 1, 3, 4, 4),
                rest = recorded("down_y_rest", 2, 3, 4, 4);
    reel_tensor half = output_like(reel_tensor_dense(NULL, REEL_DTYPE_F32, 5, 3, 4, 4));
    RUN(conv3d, .x = x, .w = recorded_weight("down_w", 4, 4 * 9, 1, 3, 3), .bias = recorded("down_b", 4, 0, 0, 0), .y = half,
        .pad = {0, 1, 0, 1}, .stride = {1, 2, 2});
    y = output_like(first);
    memcpy(y.data, half.data, reel_tensor_bytes(&first));
    compare("down, first frame", y, first, bound_f64);
    y = output_like(rest);
    RUN(conv3d, .x = half, .w = recorded_weight("down_time_w", 4, 4 * 3, 3, 1, 1), .bias = recorded("down_time_b", 4, 0, 0, 0), .y = y,
        .n_history = 1, .stride = {2, 1, 1});
    free(half.data);
    compare("down, in time", y, rest, bound_f32); /* one rounding to f32 between the two convolutions */
}

static reel_tensor attention_tensor(const char *kind, const char *part, int64_t e0, int64_t e1, int64_t e2, int64_t e3)
{
    char name[64];
    (void)snprintf(name, sizeof name, "attention_%s_%s", kind, part);
    return recorded(name, e0, e1, e2, e3);
}

static void attend(const char *kind, int64_t h, int64_t d, int64_t n_query, int64_t n_key)
{
    reel_tensor q = attention_tensor(kind, "q", 2, n_query, h, d), k = attention_tensor(kind, "k", 2, n_key, h, d),
                v = attention_tensor(kind, "v", 2, n_key, h, d);
    reel_tensor want = attention_tensor(kind, "out", 2, n_query, h, d), want_lse = attention_tensor(kind, "lse", 2, h, n_query, 0);
    reel_tensor out = output_like(want), lse = output_like(want_lse);
    RUN(attention, .q = q, .k = k, .v = v, .out = out, .key_bias = attention_tensor(kind, "key_bias", n_key, 0, 0, 0),
        .relative_bias = attention_tensor(kind, "relative_bias", h, n_query + n_key - 1, 0, 0), .lse = lse, .scale = 0.25F);
    compare("biased", out, want, bound_f64);
    compare("log-sum-exp", lse, want_lse, bound_f64);
    want = attention_tensor(kind, "plain", 2, n_query, h, d);
    out = output_like(want);
    RUN(attention, .q = q, .k = k, .v = v, .out = out, .scale = 0.25F);
    compare("plain", out, want, bound_f64);
}

static void attention_has_biases_and_lse(void **state)
{
    (void)state;
    attend("self", 2, 40, 19, 19);
    attend("cross", 2, 64, 7, 21);
}

static void norms_over_rows(void **state)
{
    (void)state;
    reel_tensor x = recorded("norm_x", 9, 31, 0, 0), want = recorded("norm_modulated", 9, 31, 0, 0), y = output_like(want);
    RUN(layer_norm, .x = x, .y = y, .scale = recorded("norm_scale", 2, 31, 0, 0), .shift = recorded("norm_shift", 2, 31, 0, 0),
        .row_index = recorded_i32("norm_index", 9), .one_plus = 1, .eps = 1e-6F);
    compare("modulated", y, want, bound_f32);
    want = recorded("norm_affine", 9, 31, 0, 0);
    y = output_like(want);
    RUN(layer_norm, .x = x, .y = y, .scale = recorded("norm_w", 1, 31, 0, 0), .shift = recorded("norm_b", 1, 31, 0, 0), .eps = 1e-6F);
    compare("affine", y, want, bound_f64);
    want = recorded("t5_y", 9, 31, 0, 0);
    y = output_like(want);
    RUN(rms_norm, .x = x, .y = y, .weight = recorded("t5_w", 31, 0, 0, 0), .eps = 1e-6F);
    compare("t5", y, want, bound_f32);
    x = recorded("channel_x", 3, 4, 5, 12), want = recorded("channel_y", 3, 4, 5, 12);
    y = output_like(want);
    RUN(channel_norm, .x = x, .y = y, .gamma = recorded("channel_gamma", 12, 0, 0, 0));
    compare("channels", y, want, bound_f64);
    want = recorded("channel_silu", 3, 4, 5, 12);
    y = output_like(want);
    RUN(channel_norm, .x = x, .y = y, .gamma = recorded("channel_gamma", 12, 0, 0, 0), .act = REEL_ACTIVATION_SILU);
    compare("channels, SiLU", y, want, bound_f64);
}

/* Whole, and as sum and apply: the halves that ranks use. */
static void rotation_follows_the_norm(void **state)
{
    (void)state;
    const int32_t *grid = recorded_i32("rope_grid", 5).data;
    reel_rope rope = {
        .table = recorded("rope_table", 16, 16, 2, 0), .grid_h = grid[1], .grid_w = grid[2], .pair_t = grid[3], .pair_h = grid[4]};
    static const char *const weights[] = {"rope_wq", "rope_wk"}, *const results[] = {"rope_q", "rope_k"};
    for (int32_t i = 0; i < 2; i++) {
        reel_tensor x = recorded("rope_x", 24, 96, 0, 0), heads = reel_tensor_dense(x.data, REEL_DTYPE_F32, 24, 3, 32, 0),
                    want = recorded(results[i], 24, 3, 32, 0);
        reel_tensor weight = recorded(weights[i], 96, 0, 0, 0), y = output_like(want);
        RUN(rms_norm_rope, .x = heads, .weight = weight, .y = y, .eps = 1e-6F, .rope = rope);
        compare("norm and rotation", y, want, bound_f32); /* diffusers' norm takes its mean of squares in f32 */
        float sums[24];
        reel_tensor sum = reel_tensor_dense(sums, REEL_DTYPE_F32, 24, 0, 0, 0);
        y = output_like(want);
        RUN(rms_sum, .x = x, .sum = sum);
        RUN(rms_apply_rope, .x = heads, .sum = sum, .weight = weight, .y = y, .n = 96, .eps = 1e-6F, .rope = rope);
        compare("in halves", y, want, bound_f32);
    }
}

static void patches_lie_as_the_transformer_lays_them(void **state)
{
    (void)state;
    reel_tensor want = recorded("patch_tokens", 18, 16, 0, 0), y = output_like(want),
                tokens = output_like(reel_tensor_dense(NULL, REEL_DTYPE_F32, 18, 20, 0, 0));
    RUN(patchify, .x = recorded("patch_x", 5, 3, 4, 6), .y = tokens, .patch_h = 2, .patch_w = 2);
    RUN(linear, .x = tokens, .w = recorded_weight("patch_w", 16, 20, 0, 0, 0), .bias = recorded("patch_b", 16, 0, 0, 0), .y = y);
    free(tokens.data);
    compare("patch embedding", y, want, bound_f32);
    want = recorded("unpatch_y", 3, 3, 4, 6);
    y = output_like(want);
    RUN(unpatchify, .x = recorded("unpatch_rows", 18, 12, 0, 0), .y = y, .patch_h = 2, .patch_w = 2);
    compare("unpatchify", y, want, 0.0);
}

static void linears_and_activations(void **state)
{
    (void)state;
    reel_tensor x = recorded("act_x", 11, 13, 0, 0), bias = recorded("linear_b", 9, 0, 0, 0);
    reel_weight w = recorded_weight("linear_w", 9, 13, 0, 0, 0);
    static const char *const names[] = {
        [REEL_ACTIVATION_NONE] = "linear_y", [REEL_ACTIVATION_GELU_TANH] = "linear_gelu", [REEL_ACTIVATION_SILU] = "linear_silu"};
    for (int32_t act = REEL_ACTIVATION_NONE; act <= REEL_ACTIVATION_SILU; act++) {
        reel_tensor want = recorded(names[act], 11, 9, 0, 0), y = output_like(want);
        RUN(linear, .x = x, .w = w, .bias = bias, .act = (reel_activation)act, .y = y);
        compare(names[act], y, want, bound_f64);
    }
    reel_low_rank low = {.a = recorded("lora_a", 4, 13, 0, 0).data,
                         .b = recorded("lora_b", 9, 4, 0, 0).data,
                         .dtype = REEL_DTYPE_F32,
                         .rank = 4,
                         .scale = 0.5F};
    w.low_rank = &low, w.n_low_rank = 1;
    reel_tensor want = recorded("lora_y", 11, 9, 0, 0), y = output_like(want);
    RUN(linear, .x = x, .w = w, .bias = bias, .y = y);
    compare("low rank", y, want, bound_f64);
    want = recorded("act_silu", 11, 13, 0, 0), y = output_like(want);
    RUN(silu, .x = x, .y = y);
    compare("silu", y, want, bound_f64);
    want = recorded("act_gated", 11, 13, 0, 0), y = output_like(want);
    RUN(gated_gelu, .gate = x, .up = recorded("act_up", 11, 13, 0, 0), .y = y);
    compare("gated gelu", y, want, bound_f64);
}

static void frames_round_half_to_even(void **state)
{
    (void)state;
    size_t n = 0;
    const uint8_t *want = fixture_get(&fx, "frames_u8", "U8", &n);
    uint8_t *got = malloc(n);
    assert_non_null(got);
    reel_tensor x = recorded("frames_x", 1, 1, (int64_t)n / 3, 3), y = x;
    y.data = got, y.dtype = REEL_DTYPE_U8;
    RUN(frames_to_u8, .x = x, .y = y);
    for (size_t i = 0; i < n; i++)
        if (got[i] != want[i]) fail_msg("element %zu: %g became %u, not %u", i, (double)((const float *)x.data)[i], got[i], want[i]);
    free(got);
}

/* Conversions through the operation; NaN by being NaN, all else by its bits. */
static void convert_one(reel_dtype to, const char *name)
{
    size_t n = 0;
    const float *from = fixture_get(&fx, "convert_f32", "F32", &n);
    const int32_t *want = recorded_i32(name, (int64_t)n).data;
    uint16_t *got = malloc(n * sizeof *got);
    assert_non_null(got);
    reel_tensor x = reel_tensor_dense((void *)(uintptr_t)from, REEL_DTYPE_F32, (int64_t)n, 0, 0, 0), y = x;
    y.data = got, y.dtype = to;
    RUN(convert, .x = x, .y = y);
    for (size_t i = 0; i < n; i++) {
        float back = to == REEL_DTYPE_BF16 ? reel_f32_from_bf16(got[i]) : reel_f32_from_f16(got[i]);
        if (isnan(from[i]) ? !isnan(back) : got[i] != (uint16_t)want[i])
            fail_msg("%s: %a became %04x, not %04x", name, (double)from[i], got[i], (uint16_t)want[i]);
    }
    free(got);
}

static void widen_one(const char *name, const void *bits, reel_dtype from, int64_t n)
{
    const float *want = recorded(name, n, 0, 0, 0).data;
    reel_tensor x = reel_tensor_dense((void *)(uintptr_t)bits, from, n, 0, 0, 0),
                y = reel_tensor_dense(malloc((size_t)n * sizeof(float)), REEL_DTYPE_F32, n, 0, 0, 0);
    assert_non_null(y.data);
    RUN(convert, .x = x, .y = y);
    for (int64_t i = 0; i < n; i++) {
        float got = ((const float *)y.data)[i];
        if (isnan(want[i]) ? !isnan(got) : memcmp(&got, &want[i], sizeof got) != 0)
            fail_msg("%s: element %d is %a, not %a", name, (int)i, (double)got, (double)want[i]);
    }
    free(y.data);
}

static void conversions_are_exact(void **state)
{
    (void)state;
    convert_one(REEL_DTYPE_BF16, "convert_bf16");
    convert_one(REEL_DTYPE_F16, "convert_f16");
    uint8_t every[256];
    for (int32_t i = 0; i < 256; i++) every[i] = (uint8_t)i;
    widen_one("convert_e4m3", every, REEL_DTYPE_F8_E4M3, 256);
    widen_one("convert_e5m2", every, REEL_DTYPE_F8_E5M2, 256);
    enum { N_HALF = 1772 };
    const int32_t *bits = recorded_i32("convert_bits", N_HALF).data;
    uint16_t half[N_HALF];
    for (int32_t i = 0; i < N_HALF; i++) half[i] = (uint16_t)bits[i];
    widen_one("convert_from_f16", half, REEL_DTYPE_F16, N_HALF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv3d_is_causal_with_history), cmocka_unit_test(conv3d_resamples),
        cmocka_unit_test(attention_has_biases_and_lse),  cmocka_unit_test(norms_over_rows),
        cmocka_unit_test(rotation_follows_the_norm),     cmocka_unit_test(patches_lie_as_the_transformer_lays_them),
        cmocka_unit_test(linears_and_activations),       cmocka_unit_test(frames_round_half_to_even),
        cmocka_unit_test(conversions_are_exact),
    };
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
