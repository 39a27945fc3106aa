/* SPDX-License-Identifier: Apache-2.0
 *
 * The umT5 encoder against recorded states of the bundled model, in f32 and bf16, and its table of relative positions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/model.h"
#include "stage_bed.h"
#include "text/text.h"

static reel_model model;

static void read_tokens(const reel_store *recording, const char *which, reel_tokens *out)
{
    char name[64];
    int64_t n = 0;
    *out = (reel_tokens){0};
    (void)snprintf(name, sizeof name, "%s_ids", which);
    float *ids = stage_load(recording, name, &n);
    (void)snprintf(name, sizeof name, "%s_mask", which);
    float *mask = stage_load(recording, name, &n);
    for (int64_t i = 0; i < n; i++) {
        out->id[i] = (int32_t)ids[i];
        out->n += mask[i] > 0.5F;
    }
    free(ids);
    free(mask);
}

/* Error of the encoder's states against the recording. */
static double encode_error(stage_bed *bed, reel_dtype compute, bool is_packed, const char *file, const char *which)
{
    reel_store *store = stage_model_store("text_encoder", "model"), *recording = stage_recording(file);
    const reel_weights_options options = {.compute = compute, .is_packed = is_packed};
    reel_weights *weights = NULL;
    reel_umt5 *umt5 = NULL;
    reel_arena arena;
    reel_tensor states;
    reel_tokens tokens;
    char name[64];
    int64_t n = 0;
    read_tokens(recording, which, &tokens);
    GOOD(reel_weights_new(store, &bed->vt, bed->device, bed->stream, &options, &weights, &stage_fault));
    GOOD(reel_umt5_new(&model.text, &bed->ops, weights, compute, &umt5, &stage_fault));
    const size_t a = bed->ops.props.alignment_bytes, scratch = reel_umt5_scratch_bytes(&model.text, compute, tokens.n, a);
    GOOD(reel_arena_init(&arena, &bed->ops, "test", scratch + reel_arena_need(a, compute, (int64_t)tokens.n * model.text.d_model),
                         &stage_fault));
    GOOD(reel_arena_take(&arena, compute, tokens.n, model.text.d_model, 0, 0, &states, &stage_fault));
    GOOD(reel_umt5_encode(umt5, &tokens, &arena, NULL, &states, &stage_fault));
    assert_int_equal(arena.high, arena.bytes); /* the formula is exact */
    (void)snprintf(name, sizeof name, "%s_states", which);
    float *want = stage_load(recording, name, &n), *got = stage_download(bed, &states);
    assert_int_equal(n, reel_tensor_count(&states));
    const double error = stage_error(got, want, n);
    free(want);
    free(got);
    reel_arena_deinit(&arena);
    reel_umt5_free(&umt5);
    reel_weights_free(&weights);
    reel_store_close(&recording);
    reel_store_close(&store);
    return error;
}

/* Relative L2 of transformers' own bf16 run against the recordings, prompt and negative prompt, as tests/reference/stages.py prints it into
 * tests/fixtures/stages/wan-tiny-t2v.bf16.txt. A bf16 run of ours may be off by 1.1 times as much; an f32 one by 1e-5 (design). */
static const double transformers_bf16[3][2] = {{4.370385e-03, 5.564205e-03}, {4.008256e-03, 4.344945e-03}, {4.506241e-03, 5.564205e-03}};

static void check_all(bool with_references, reel_dtype compute, bool is_packed)
{
    static const char *const file[] = {"prompt_0.safetensors", "prompt_1.safetensors", "prompt_2.safetensors"};
    static const char *const which[] = {"prompt", "negative"};
    stage_bed bed;
    stage_bed_open(&bed, with_references);
    for (size_t i = 0; i < REEL_COUNT(file); i++) {
        for (size_t k = 0; k < REEL_COUNT(which); k++) {
            const double error = encode_error(&bed, compute, is_packed, file[i], which[k]);
            print_message("%s %s: %.2e\n", file[i], which[k], error);
            assert_true(error <= (compute == REEL_DTYPE_F32 ? 1e-5 : 1.1 * transformers_bf16[i][k]));
        }
    }
    stage_bed_close(&bed);
}

static void test_f32(void **state)
{
    (void)state;
    check_all(false, REEL_DTYPE_F32, false);
    check_all(false, REEL_DTYPE_F32, true);
}

static void test_references(void **state)
{
    (void)state;
    check_all(true, REEL_DTYPE_F32, false);
}

static void test_bf16(void **state)
{
    (void)state;
    check_all(false, REEL_DTYPE_BF16, false);
}

static void test_buckets(void **state)
{
    (void)state;
    static const int32_t start[8] = {8, 12, 16, 23, 32, 46, 64, 91};
    for (int32_t d = 0; d <= 511; d++) {
        int32_t want = d;
        for (int32_t i = 0; i < 8; i++) want = d >= start[i] ? 8 + i : want;
        assert_int_equal(reel_umt5_bucket(-d, 32, 128), want);
        if (d > 0) assert_int_equal(reel_umt5_bucket(d, 32, 128), want + 16);
    }
}

static void test_wrong_ids(void **state)
{
    (void)state;
    stage_bed bed;
    reel_store *store = stage_model_store("text_encoder", "model");
    const reel_weights_options options = {.compute = REEL_DTYPE_F32};
    reel_weights *weights = NULL;
    reel_umt5 *umt5 = NULL;
    reel_arena arena = {0};
    reel_tensor states = {0};
    const reel_tokens tokens = {.id = {model.text.vocab}, .n = 1};
    stage_bed_open(&bed, false);
    GOOD(reel_weights_new(store, &bed.vt, bed.device, bed.stream, &options, &weights, &stage_fault));
    GOOD(reel_umt5_new(&model.text, &bed.ops, weights, REEL_DTYPE_F32, &umt5, &stage_fault));
    assert_int_equal(reel_umt5_encode(umt5, &tokens, &arena, NULL, &states, &stage_fault), REEL_E_MODEL);
    assert_non_null(strstr(stage_fault.text, "do not belong together"));
    reel_umt5_free(&umt5);
    reel_weights_free(&weights);
    reel_store_close(&store);
    stage_bed_close(&bed);
}

int main(void)
{
    GOOD(reel_model_open(REEL_SOURCE_DIR "/models/wan-tiny-t2v", &model, &stage_fault));
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_buckets), cmocka_unit_test(test_references), cmocka_unit_test(test_f32),
                                       cmocka_unit_test(test_bf16), cmocka_unit_test(test_wrong_ids)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
