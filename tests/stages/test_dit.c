/* SPDX-License-Identifier: Apache-2.0
 *
 * The transformer against recorded velocities and inner tensors of the bundled model: both experts, both branches, f32 and bf16, and token ranges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dit/dit.h"
#include "model/model.h"
#include "stage_bed.h"

static reel_model model;

typedef struct dit_bed {
    stage_bed *bed;
    reel_store *store, *recording;
    reel_weights *weights;
    reel_dit *dit;
    reel_dit_options options;
    reel_arena tensors, scratch;
    reel_tensor latents, velocity;
    int32_t n_tap;
} dit_bed;

enum { LAT_T = 5, LAT = 16, PADDED = 512, TOKENS = LAT_T * 8 * 8 };

static void dit_bed_open(dit_bed *d, stage_bed *bed, int32_t expert, reel_dtype compute, bool is_packed, const char *file)
{
    *d = (dit_bed){.bed = bed, .options = {.compute = compute, .ffn_rows = 100}};
    const reel_weights_options options = {.compute = compute, .is_packed = is_packed};
    const size_t a = bed->ops.props.alignment_bytes;
    d->store = stage_model_store(expert ? "transformer_2" : "transformer", "diffusion_pytorch_model");
    d->recording = stage_recording(file);
    GOOD(reel_weights_new(d->store, &bed->vt, bed->device, bed->stream, &options, &d->weights, &stage_fault));
    GOOD(reel_dit_new(&model.dit[expert], &bed->ops, d->weights, &d->options, &d->dit, &stage_fault));
    const int64_t n = 16 * LAT_T * LAT * LAT;
    GOOD(reel_arena_init(&d->tensors, &bed->ops, "tensors",
                         2 * reel_arena_need(a, REEL_DTYPE_F32, n) + reel_arena_need(a, compute, PADDED * 128) +
                             reel_dit_context_bytes(&model.dit[expert], &d->options, PADDED, a),
                         &stage_fault));
    size_t forward = reel_dit_scratch_bytes(&model.dit[expert], &d->options, TOKENS, a);
    size_t context = reel_dit_context_scratch_bytes(&model.dit[expert], &d->options, PADDED, a);
    GOOD(reel_arena_init(&d->scratch, &bed->ops, "scratch", forward > context ? forward : context, &stage_fault));
    GOOD(reel_arena_take(&d->tensors, REEL_DTYPE_F32, 16, LAT_T, LAT, LAT, &d->latents, &stage_fault));
    GOOD(reel_arena_take(&d->tensors, REEL_DTYPE_F32, 16, LAT_T, LAT, LAT, &d->velocity, &stage_fault));
}

static void dit_bed_close(dit_bed *d)
{
    reel_arena_deinit(&d->tensors);
    reel_arena_deinit(&d->scratch);
    reel_dit_free(&d->dit);
    reel_weights_free(&d->weights);
    reel_store_close(&d->store);
    reel_store_close(&d->recording);
}

static reel_dit_context *make_context(dit_bed *d, const char *which, reel_dit_tap tap)
{
    char name[64];
    int64_t n = 0;
    reel_tensor states;
    reel_dit_context *context = NULL;
    (void)snprintf(name, sizeof name, "%s_states", which);
    float *host = stage_load(d->recording, name, &n);
    GOOD(reel_arena_take(&d->tensors, REEL_DTYPE_F32, n / 128, 128, 0, 0, &states, &stage_fault));
    GOOD(reel_ops_upload(&d->bed->ops, &states, host, &stage_fault));
    GOOD(reel_dit_context_new(d->dit, &states, PADDED, &d->tensors, &d->scratch, tap, d, &context, &stage_fault));
    free(host);
    return context;
}

static void upload_latents(dit_bed *d, const char *name, int64_t index)
{
    int64_t n = 0;
    const int64_t one = reel_tensor_count(&d->latents);
    float *host = stage_load(d->recording, name, &n);
    assert_true((index + 1) * one <= n);
    GOOD(reel_ops_upload(&d->bed->ops, &d->latents, host + index * one, &stage_fault));
    free(host);
}

static double compare(const dit_bed *d, const reel_tensor *t, const char *name)
{
    int64_t n = 0;
    float *want = stage_load(d->recording, name, &n), *got = stage_download(d->bed, t);
    assert_int_equal(n, reel_tensor_count(t));
    const double error = stage_error(got, want, n);
    print_message("  %s: %.2e\n", name, error);
    free(want);
    free(got);
    return error;
}

/* Recorded inner tensors, 1e-5 like a whole stage. */
static reel_status tap(void *user, const char *name, const reel_tensor *t, reel_error *err)
{
    (void)err;
    dit_bed *d = user;
    if (!reel_store_find(d->recording, name)) return REEL_OK;
    int64_t n = 0;
    float *want = stage_load(d->recording, name, &n), *got = stage_download(d->bed, t);
    const int64_t width = t->extent[t->n_dim - 1];
    float *arranged = malloc(sizeof *arranged * (size_t)n);
    assert_non_null(arranged);
    const bool is_patch = strcmp(name, "inner_patch_embedding") == 0, is_text = strcmp(name, "inner_text_projection") == 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t row = i / width, column = i % width;
        if (is_patch) row = i % TOKENS, column = i / TOKENS;
        if (is_text && row >= t->extent[0]) row = t->extent[0] - 1;
        arranged[i] = got[row * width + column];
    }
    const double error = stage_error(arranged, want, n);
    print_message("  %s: %.2e\n", name, error);
    assert_true(error <= 1e-5);
    d->n_tap++;
    free(arranged);
    free(want);
    free(got);
    return REEL_OK;
}

static double forward_error(dit_bed *d, const char *branch, float timestep, const char *velocity, reel_dit_tap tap_fn)
{
    const size_t mark = d->tensors.used;
    reel_dit_context *context = make_context(d, branch, tap_fn);
    const reel_dit_input in = {.latents = d->latents,
                               .context = context,
                               .timestep = {timestep},
                               .n_timestep = 1,
                               .t0 = 0,
                               .t1 = TOKENS,
                               .velocity = d->velocity,
                               .tap = tap_fn,
                               .tap_user = d};
    GOOD(reel_dit_forward(d->dit, &in, &d->scratch, &stage_fault));
    const double error = compare(d, &d->velocity, velocity);
    reel_dit_context_free(&context);
    reel_arena_rewind(&d->tensors, mark);
    return error;
}

/* Relative L2 of diffusers' own bf16 forward against the recordings, with prompt and without, as tests/reference/stages.py prints it into
 * tests/fixtures/stages/wan-tiny-t2v.bf16.txt. A bf16 forward of ours may be off by 1.1 times as much; an f32 one by 1e-5 (design). */
static const double diffusers_first[3][2] = {{5.682526e-03, 7.516557e-03}, {5.302161e-03, 7.395537e-03}, {6.668292e-03, 7.516557e-03}};
static const double diffusers_low[2] = {6.506136e-03, 6.695551e-03};

static double allowed(reel_dtype compute, double diffusers)
{
    return compute == REEL_DTYPE_F32 ? 1e-5 : 1.1 * diffusers;
}

static void check_first(bool with_references, reel_dtype compute, bool is_packed, bool with_taps)
{
    static const char *const file[] = {"prompt_0.safetensors", "prompt_1.safetensors", "prompt_2.safetensors"};
    stage_bed bed;
    stage_bed_open(&bed, with_references);
    for (size_t i = 0; i < (with_references ? 1 : REEL_COUNT(file)); i++) {
        dit_bed d;
        dit_bed_open(&d, &bed, 0, compute, is_packed, file[i]);
        upload_latents(&d, "noise", 0);
        const bool taps = with_taps && i == 0;
        assert_true(forward_error(&d, "prompt", 999.0F, "velocity_first_cond", taps ? tap : NULL) <=
                    allowed(compute, diffusers_first[i][0]));
        assert_true(forward_error(&d, "negative", 999.0F, "velocity_first_uncond", NULL) <= allowed(compute, diffusers_first[i][1]));
        if (taps) assert_int_equal(d.n_tap, 8);
        dit_bed_close(&d);
    }
    stage_bed_close(&bed);
}

static void test_f32(void **state)
{
    (void)state;
    check_first(false, REEL_DTYPE_F32, false, true);
    check_first(false, REEL_DTYPE_F32, true, false);
}

static void test_references(void **state)
{
    (void)state;
    check_first(true, REEL_DTYPE_F32, false, true);
}

/* transformer_2 at its first step, on the recorded latents before it. */
static void check_low(reel_dtype compute)
{
    stage_bed bed;
    dit_bed d;
    int64_t n = 0;
    stage_bed_open(&bed, false);
    dit_bed_open(&d, &bed, 1, compute, false, "prompt_0.safetensors");
    float *first = stage_load(d.recording, "first_low_step", &n), *timesteps = stage_load(d.recording, "timesteps", &n);
    upload_latents(&d, "latents", (int64_t)first[0] - 1);
    const float t = timesteps[(int32_t)first[0]];
    assert_true(forward_error(&d, "prompt", t, "velocity_low_cond", NULL) <= allowed(compute, diffusers_low[0]));
    assert_true(forward_error(&d, "negative", t, "velocity_low_uncond", NULL) <= allowed(compute, diffusers_low[1]));
    free(first);
    free(timesteps);
    dit_bed_close(&d);
    stage_bed_close(&bed);
}

static void test_low_expert(void **state)
{
    (void)state;
    check_low(REEL_DTYPE_F32);
    check_low(REEL_DTYPE_BF16);
}

static void test_bf16(void **state)
{
    (void)state;
    check_first(false, REEL_DTYPE_BF16, false, false);
    check_first(false, REEL_DTYPE_BF16, true, false);
}

/* Two distinct timesteps picked per token, all tokens picking the second: the same bits as that timestep alone. */
static void test_token_timesteps(void **state)
{
    (void)state;
    stage_bed bed;
    dit_bed d;
    reel_tensor index;
    reel_arena extra;
    stage_bed_open(&bed, false);
    dit_bed_open(&d, &bed, 0, REEL_DTYPE_F32, false, "prompt_0.safetensors");
    upload_latents(&d, "noise", 0);
    reel_dit_context *context = make_context(&d, "prompt", NULL);
    GOOD(reel_arena_init(&extra, &bed.ops, "extra", reel_arena_need(bed.ops.props.alignment_bytes, REEL_DTYPE_I32, TOKENS), &stage_fault));
    GOOD(reel_arena_take(&extra, REEL_DTYPE_I32, TOKENS, 0, 0, 0, &index, &stage_fault));
    int32_t ones[TOKENS];
    for (int32_t i = 0; i < TOKENS; i++) ones[i] = 1;
    GOOD(reel_ops_upload(&bed.ops, &index, ones, &stage_fault));
    reel_dit_input in = {
        .latents = d.latents, .context = context, .timestep = {999.0F}, .n_timestep = 1, .t1 = TOKENS, .velocity = d.velocity};
    GOOD(reel_dit_forward(d.dit, &in, &d.scratch, &stage_fault));
    float *alone = stage_download(&bed, &d.velocity);
    in.timestep[0] = 0.0F;
    in.timestep[1] = 999.0F;
    in.n_timestep = 2;
    in.token_timestep = index;
    GOOD(reel_dit_forward(d.dit, &in, &d.scratch, &stage_fault));
    float *picked = stage_download(&bed, &d.velocity);
    assert_memory_equal(alone, picked, reel_tensor_bytes(&d.velocity));
    free(alone);
    free(picked);
    reel_dit_context_free(&context);
    reel_arena_deinit(&extra);
    dit_bed_close(&d);
    stage_bed_close(&bed);
}

static void test_wrong_shapes(void **state)
{
    (void)state;
    stage_bed bed;
    dit_bed d;
    stage_bed_open(&bed, false);
    dit_bed_open(&d, &bed, 0, REEL_DTYPE_F32, false, "prompt_0.safetensors");
    reel_dit_input in = {.latents = d.latents, .n_timestep = 1, .t1 = TOKENS, .velocity = d.velocity};
    in.latents.extent[3] = 15;
    assert_int_equal(reel_dit_forward(d.dit, &in, &d.scratch, &stage_fault), REEL_E_ARGUMENT);
    in.latents.extent[3] = 16;
    in.latents.extent[1] = 2000;
    assert_int_equal(reel_dit_forward(d.dit, &in, &d.scratch, &stage_fault), REEL_E_ARGUMENT);
    assert_non_null(strstr(stage_fault.text, "positions"));
    dit_bed_close(&d);
    stage_bed_close(&bed);
}

int main(void)
{
    GOOD(reel_model_open(REEL_SOURCE_DIR "/models/wan-tiny-t2v", &model, &stage_fault));
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_references),      cmocka_unit_test(test_f32),
                                       cmocka_unit_test(test_low_expert),      cmocka_unit_test(test_bf16),
                                       cmocka_unit_test(test_token_timesteps), cmocka_unit_test(test_wrong_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
