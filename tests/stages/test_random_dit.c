/* SPDX-License-Identifier: Apache-2.0
 *
 * The transformer against diffusers with random weights of odd sizes: 1 to 5 heads of 40, 64 and 128 channels, 1 to 3 layers, one token and
 * many, cross attention with and without norm, weights stored in all three dtypes, every text length from 1 to 20, full and short padding.
 * With REEL_TEST_DATA also the true sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/hashed.h"
#include "dit/dit.h"
#include "made_store.h"
#include "stage_bed.h"

/* One fixture and the expert that it describes. */
typedef struct random_dit {
    stage_bed *bed;
    const reel_store *fixture;
    reel_dit_config config;
    reel_dit_options options;
    reel_store *store;
    uint8_t *bytes;
    reel_weights *weights;
    reel_dit *dit;
    int64_t size[3]; /* T, h, w of the latents */
    int32_t n_padded;
    float timestep;
} random_dit;

typedef struct run_options {
    stage_bed *bed;
    reel_dtype compute;
    bool is_packed;
} run_options;

static void read_config(random_dit *d)
{
    const reel_store *f = d->fixture;
    d->config = (reel_dit_config){
        .n_head = made_integer(f, "heads", 0),
        .head_dim = made_integer(f, "head_dim", 0),
        .n_layer = made_integer(f, "layers", 0),
        .ffn_dim = made_integer(f, "ffn", 0),
        .in_channels = made_integer(f, "in", 0),
        .out_channels = made_integer(f, "out", 0),
        .text_dim = made_integer(f, "text", 0),
        .freq_dim = made_integer(f, "freq", 0),
        .patch = {1, 2, 2},
        .rope_max = 1024,
        .cross_attn_norm = made_integer(f, "cross_norm", 0) != 0,
        .eps = 1e-6,
    };
    for (int32_t i = 0; i < 3; i++) d->size[i] = made_integer(f, "size", i);
    d->n_padded = made_integer(f, "padded", 0);
    d->timestep = (float)made_number(f, "timestep", 0);
}

static void random_dit_open(random_dit *d, const run_options *run, const reel_store *fixture)
{
    *d = (random_dit){.bed = run->bed, .fixture = fixture, .options = {.compute = run->compute, .ffn_rows = 7}};
    const reel_weights_options options = {.compute = run->compute, .is_packed = run->is_packed};
    read_config(d);
    if (d->config.ffn_dim > 1000) d->options.ffn_rows = 0; /* true sizes in one piece */
    d->store = made_store(fixture, &d->bytes);
    GOOD(reel_weights_new(d->store, &run->bed->vt, run->bed->device, run->bed->stream, &options, &d->weights, &stage_fault));
    GOOD(reel_dit_new(&d->config, &run->bed->ops, d->weights, &d->options, &d->dit, &stage_fault));
}

static void random_dit_close(random_dit *d)
{
    reel_dit_free(&d->dit);
    reel_weights_free(&d->weights);
    reel_store_close(&d->store);
    free(d->bytes);
}

static reel_tensor upload_hashed(random_dit *d, reel_arena *arena, const char *name, float scale, const int64_t extent[4])
{
    reel_tensor t;
    GOOD(reel_arena_take(arena, REEL_DTYPE_F32, extent[0], extent[1], extent[2], extent[3], &t, &stage_fault));
    const int64_t n = reel_tensor_count(&t);
    float *host = malloc(sizeof *host * (size_t)n);
    assert_non_null(host);
    hashed_values(name, host, n);
    for (int64_t i = 0; i < n; i++) host[i] *= scale;
    GOOD(reel_ops_upload(&d->bed->ops, &t, host, &stage_fault));
    free(host);
    return t;
}

/* Velocity with n_text real rows of text; in host memory (free it). */
static float *velocity(random_dit *d, int32_t n_text)
{
    const size_t a = d->bed->ops.props.alignment_bytes;
    const int64_t area = d->size[0] * d->size[1] * d->size[2], n_token = area / 4;
    reel_arena tensors, scratch;
    reel_dit_context *context = NULL;
    reel_dit_input in = {.timestep = {d->timestep}, .n_timestep = 1, .t1 = n_token};
    const size_t forward = reel_dit_scratch_bytes(&d->config, &d->options, n_token, a);
    const size_t text = reel_dit_context_scratch_bytes(&d->config, &d->options, d->n_padded, a);
    GOOD(reel_arena_init(&scratch, &d->bed->ops, "scratch", forward > text ? forward : text, &stage_fault));
    GOOD(reel_arena_init(&tensors, &d->bed->ops, "tensors",
                         reel_arena_need(a, REEL_DTYPE_F32, d->config.in_channels * area) +
                             reel_arena_need(a, REEL_DTYPE_F32, d->config.out_channels * area) +
                             reel_arena_need(a, REEL_DTYPE_F32, (int64_t)n_text * d->config.text_dim) +
                             reel_dit_context_bytes(&d->config, &d->options, d->n_padded, a),
                         &stage_fault));
    in.latents = upload_hashed(d, &tensors, "latents", 2.0F, (int64_t[4]){d->config.in_channels, d->size[0], d->size[1], d->size[2]});
    GOOD(reel_arena_take(&tensors, REEL_DTYPE_F32, d->config.out_channels, d->size[0], d->size[1], d->size[2], &in.velocity, &stage_fault));
    reel_tensor states = upload_hashed(d, &tensors, "states", 1.0F, (int64_t[4]){n_text, d->config.text_dim, 0, 0});
    GOOD(reel_dit_context_new(d->dit, &states, d->n_padded, &tensors, &scratch, NULL, NULL, &context, &stage_fault));
    in.context = context;
    GOOD(reel_dit_forward(d->dit, &in, &scratch, &stage_fault));
    float *out = stage_download(d->bed, &in.velocity);
    reel_dit_context_free(&context);
    reel_arena_deinit(&tensors);
    reel_arena_deinit(&scratch);
    return out;
}

/* All text lengths of a fixture as one error: in f32 at most 1e-5 (docs/architecture.md), in bf16 at most 1.1 times diffusers' own. */
static void compare(void *user, const reel_store *fixture, const char *name)
{
    const run_options *run = user;
    random_dit d;
    int64_t n_want = 0;
    float *want = stage_load(fixture, "out", &n_want), *got = malloc(sizeof *got * (size_t)n_want);
    assert_non_null(got);
    random_dit_open(&d, run, fixture);
    const int64_t one = d.config.out_channels * d.size[0] * d.size[1] * d.size[2];
    const int32_t n_length = made_integer(fixture, "n_length", 0);
    assert_int_equal(n_want, n_length * one);
    for (int32_t i = 0; i < n_length; i++) {
        float *v = velocity(&d, made_integer(fixture, "lengths", i));
        memcpy(got + i * one, v, sizeof *v * (size_t)one);
        free(v);
    }
    const double error = stage_error(got, want, n_want), theirs = made_bf16_error(fixture);
    const double bound = run->compute == REEL_DTYPE_F32 ? 1e-5 : 1.1 * theirs;
    print_message("  %s %s: %.3e (at most %.3e)\n", name, reel_dtype_name(run->compute), error, bound);
    if (!(error <= bound)) fail_msg("%s: error %g, at most %g", name, error, bound);
    free(want);
    free(got);
    random_dit_close(&d);
}

static void compare_all(bool with_references, reel_dtype compute, bool is_packed)
{
    stage_bed bed;
    stage_bed_open(&bed, with_references);
    run_options run = {.bed = &bed, .compute = compute, .is_packed = is_packed};
    assert_true(made_for_each(REEL_SOURCE_DIR "/tests/fixtures/stages/dit_*.safetensors", compare, &run) >= 8);
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
    made_true_sizes("dit_", pattern, sizeof pattern);
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
