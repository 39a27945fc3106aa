/* SPDX-License-Identifier: Apache-2.0
 *
 * The umT5 encoder against transformers with random weights of odd sizes: 1 to 5 heads of 40, 64 and 128 channels, 1 to 3 layers, weights
 * stored in all three dtypes, every length from 1 to 20 and up to 512, other tables of positions. With REEL_TEST_DATA also the true width. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/hashed.h"
#include "made_store.h"
#include "stage_bed.h"
#include "text/text.h"

typedef struct run_options {
    stage_bed *bed;
    reel_dtype compute;
    bool is_packed;
} run_options;

static reel_umt5_config read_config(const reel_store *f)
{
    return (reel_umt5_config){
        .d_model = made_integer(f, "d_model", 0),
        .d_kv = made_integer(f, "d_kv", 0),
        .n_head = made_integer(f, "heads", 0),
        .d_ff = made_integer(f, "ffn", 0),
        .n_layer = made_integer(f, "layers", 0),
        .vocab = made_integer(f, "vocab", 0),
        .n_bucket = made_integer(f, "buckets", 0),
        .max_distance = made_integer(f, "far", 0),
        .eps = 1e-6,
    };
}

/* n − 1 hashed ids and </s>, as tests/reference/stages.py makes them. */
static reel_tokens make_tokens(int32_t n, int32_t vocab)
{
    reel_tokens tokens = {.n = n};
    float v[REEL_TOKEN_MAX];
    assert_true(n >= 1 && n <= REEL_TOKEN_MAX);
    hashed_values("ids", v, n);
    for (int32_t i = 0; i < n; i++) tokens.id[i] = (int32_t)(((double)v[i] + 1.0) * 0.5 * vocab);
    tokens.id[n - 1] = 1;
    return tokens;
}

/* States of n tokens, in host memory (free it). */
static float *encode(const run_options *run, const reel_umt5_config *config, reel_umt5 *umt5, int32_t n)
{
    const reel_tokens tokens = make_tokens(n, config->vocab);
    const reel_ops *ops = &run->bed->ops;
    const size_t a = ops->props.alignment_bytes, scratch = reel_umt5_scratch_bytes(config, run->compute, n, a);
    reel_arena arena;
    reel_tensor states;
    GOOD(reel_arena_init(&arena, ops, "test", scratch + reel_arena_need(a, run->compute, (int64_t)n * config->d_model), &stage_fault));
    GOOD(reel_arena_take(&arena, run->compute, n, config->d_model, 0, 0, &states, &stage_fault));
    GOOD(reel_umt5_encode(umt5, &tokens, &arena, NULL, &states, &stage_fault));
    float *out = stage_download(run->bed, &states);
    reel_arena_deinit(&arena);
    return out;
}

/* All lengths of a fixture as one error: in f32 at most 1e-5 (docs/architecture.md), in bf16 at most 1.1 times that of transformers. */
static void compare(void *user, const reel_store *fixture, const char *name)
{
    const run_options *run = user;
    const reel_umt5_config config = read_config(fixture);
    const reel_weights_options options = {.compute = run->compute, .is_packed = run->is_packed};
    int64_t n_want = 0, used = 0;
    uint8_t *bytes = NULL;
    reel_weights *weights = NULL;
    reel_umt5 *umt5 = NULL;
    float *want = stage_load(fixture, "out", &n_want), *got = malloc(sizeof *got * (size_t)n_want);
    assert_non_null(got);
    reel_store *store = made_store(fixture, &bytes);
    GOOD(reel_weights_new(store, &run->bed->vt, run->bed->device, run->bed->stream, &options, &weights, &stage_fault));
    GOOD(reel_umt5_new(&config, &run->bed->ops, weights, run->compute, &umt5, &stage_fault));
    for (int32_t i = 0; i < made_integer(fixture, "n_length", 0); i++) {
        const int32_t n = made_integer(fixture, "lengths", i);
        float *states = encode(run, &config, umt5, n);
        assert_true(used + (int64_t)n * config.d_model <= n_want);
        memcpy(got + used, states, sizeof *states * (size_t)n * (size_t)config.d_model);
        used += (int64_t)n * config.d_model;
        free(states);
    }
    assert_int_equal(used, n_want);
    const double error = stage_error(got, want, n_want), theirs = made_bf16_error(fixture);
    const double bound = run->compute == REEL_DTYPE_F32 ? 1e-5 : 1.1 * theirs;
    print_message("  %s %s: %.3e (at most %.3e)\n", name, reel_dtype_name(run->compute), error, bound);
    if (!(error <= bound)) fail_msg("%s: error %g, at most %g", name, error, bound);
    free(want);
    free(got);
    reel_umt5_free(&umt5);
    reel_weights_free(&weights);
    reel_store_close(&store);
    free(bytes);
}

static void compare_all(bool with_references, reel_dtype compute, bool is_packed)
{
    stage_bed bed;
    stage_bed_open(&bed, with_references);
    run_options run = {.bed = &bed, .compute = compute, .is_packed = is_packed};
    assert_true(made_for_each(REEL_SOURCE_DIR "/tests/fixtures/stages/umt5_*.safetensors", compare, &run) >= 5);
    stage_bed_close(&bed);
}

static void test_references(void **state)
{
    (void)state;
    compare_all(true, REEL_DTYPE_F32, false);
}

static void test_f32(void **state)
{
    (void)state;
    compare_all(false, REEL_DTYPE_F32, false);
    compare_all(false, REEL_DTYPE_F32, true);
}

static void test_bf16(void **state)
{
    (void)state;
    compare_all(false, REEL_DTYPE_BF16, false);
    compare_all(false, REEL_DTYPE_BF16, true);
}

static void test_true_sizes(void **state)
{
    (void)state;
    static const reel_dtype dtype[] = {REEL_DTYPE_F32, REEL_DTYPE_BF16};
    char pattern[4096];
    made_true_sizes("umt5_", pattern, sizeof pattern);
    for (size_t i = 0; i < REEL_COUNT(dtype); i++) {
        stage_bed bed;
        stage_bed_open(&bed, false);
        run_options run = {.bed = &bed, .compute = dtype[i]};
        assert_true(made_for_each(pattern, compare, &run) > 0);
        stage_bed_close(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_references), cmocka_unit_test(test_f32), cmocka_unit_test(test_bf16),
                                       cmocka_unit_test(test_true_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
