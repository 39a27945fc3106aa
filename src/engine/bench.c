/* SPDX-License-Identifier: Apache-2.0
 *
 * `reel bench`: the phases of a short generation timed apart, or every attention implementation over a range of lengths. All samples are
 * given, medians are for quick reading. Nothing is written but the report. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/engine_internal.h"

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static json_t *samples_json(const double *s, int32_t n)
{
    double sorted[1000];
    json_t *list = json_array();
    for (int32_t i = 0; i < n; i++) {
        sorted[i] = s[i];
        (void)json_array_append_new(list, json_real(s[i]));
    }
    qsort(sorted, (size_t)n, sizeof *sorted, compare_doubles);
    const double median = n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
    return json_pack("{s:f,s:f,s:f,s:o}", "median_s", median, "min_s", sorted[0], "max_s", sorted[n - 1], "samples_s", list);
}

static reel_status bench_generate(reel_engine *e, int32_t repeats, json_t *out, reel_error *err)
{
    const char *prompt = "A red circle moves from left to right on a white background.";
    double phase[REEL_PHASE_COUNT + 1][1000];
    reel_request q;
    reel_request_init(&q);
    q.prompt = &prompt;
    q.n_prompt = 1;
    q.has_seed = true;
    q.seed = 1;
    for (int32_t i = 0; i < repeats; i++) {
        reel_result r;
        reel_embed_cache_free(&e->cache); /* text is a phase too: no remembered states */
        REEL_TRY(reel_embed_cache_new((size_t)64 << 20, &e->cache, err));
        REEL_TRY(reel_generate(e, &q, NULL, &r, err));
        for (int32_t k = 0; k < REEL_PHASE_COUNT; k++) phase[k][i] = r.phase_s[k];
        phase[REEL_PHASE_COUNT][i] = r.total_s;
        reel_result_free(&r);
    }
    json_t *o = json_object();
    for (int32_t k = 0; k < REEL_PHASE_COUNT; k++)
        (void)json_object_set_new(o, reel_phase_name((reel_phase)k), samples_json(phase[k], repeats));
    (void)json_object_set_new(o, "total", samples_json(phase[REEL_PHASE_COUNT], repeats));
    return json_object_set_new(out, "generate", o) == 0
               ? REEL_OK
               : REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a report\nremedy: fewer --repeats");
}

typedef struct attention_case {
    int64_t n_token;
    int32_t n_head, head_dim;
    reel_dtype dtype;
} attention_case;

static reel_status fill_random(const reel_ops *ops, const reel_tensor *t, uint64_t seed, reel_arena *scratch, reel_error *err)
{
    const size_t mark = scratch->used;
    reel_tensor f32;
    float *host = malloc(sizeof *host * (size_t)reel_tensor_count(t));
    if (!host) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a benchmark\nremedy: close other programs");
    reel_noise_fill(seed, host, reel_tensor_count(t));
    reel_status status = REEL_OK;
    REEL_TRY_GOTO(reel_arena_take(scratch, REEL_DTYPE_F32, t->extent[0], t->extent[1], t->extent[2], t->extent[3], &f32, err), cleanup);
    REEL_TRY_GOTO(reel_ops_upload(ops, &f32, host, err), cleanup);
    REEL_TRY_GOTO(REEL_OP(ops, convert, err, .x = f32, .y = *t), cleanup);
    REEL_TRY_GOTO(reel_ops_sync(ops, err), cleanup);
cleanup:
    reel_arena_rewind(scratch, mark);
    free(host);
    return status;
}

static reel_status time_attention(const reel_ops *ops, const reel_attn_impl *impl, const reel_op_attention *args, int32_t repeats,
                                  double *samples, reel_error *err)
{
    for (int32_t i = -1; i < repeats; i++) { /* one run to warm up */
        const double start = reel_clock_s();
        REEL_TRY(impl->run(ops->stream, args, err));
        REEL_TRY(reel_ops_sync(ops, err));
        if (i >= 0) samples[i] = reel_clock_s() - start;
    }
    return REEL_OK;
}

static reel_status bench_case(reel_engine *e, const attention_case *c, int32_t repeats, json_t *list, reel_error *err)
{
    const reel_ops *ops = &e->ops;
    const int64_t n = c->n_token * c->n_head * c->head_dim;
    const size_t bytes =
        4 * reel_arena_need(ops->props.alignment_bytes, c->dtype, n) + reel_arena_need(ops->props.alignment_bytes, REEL_DTYPE_F32, n);
    reel_arena arena = {0};
    reel_tensor t[4];
    double samples[1000];
    reel_status status = REEL_OK;
    REEL_TRY(reel_arena_init(&arena, ops, "benchmark", bytes, err));
    for (uint64_t i = 0; i < 4; i++) {
        REEL_TRY_GOTO(reel_arena_take(&arena, c->dtype, 1, c->n_token, c->n_head, c->head_dim, &t[i], err), cleanup);
    }
    for (uint64_t i = 0; i < 3; i++) REEL_TRY_GOTO(fill_random(ops, &t[i], i, &arena, err), cleanup);
    const reel_op_attention args = {
        .size = sizeof args, .q = t[0], .k = t[1], .v = t[2], .out = t[3], .scale = 1.0F / sqrtf((float)c->head_dim)};
    const reel_attn_shape shape = {.size = sizeof shape, .dtype = c->dtype, .head_dim = c->head_dim, .n_head = c->n_head};
    const double flop = 4.0 * (double)c->n_token * (double)c->n_token * c->n_head * c->head_dim;
    const reel_attn_impl *const *impl = ops->vt->attention(ops->device);
    for (int32_t i = 0; impl[i]; i++) {
        char reason[REEL_REASON_MAX] = "";
        json_t *o = json_pack("{s:s,s:I,s:i,s:i,s:s}", "name", impl[i]->name, "tokens", (json_int_t)c->n_token, "heads", (int)c->n_head,
                              "head_dim", (int)c->head_dim, "dtype", reel_dtype_name(c->dtype));
        (void)json_array_append_new(list, o);
        if (!impl[i]->supports(ops->device, &shape, reason, sizeof reason)) {
            (void)json_object_set_new(o, "refused", json_string(reason));
            continue;
        }
        const bool is_slow = strcmp(impl[i]->name, "reference") == 0 && c->n_token > 1024;
        if (is_slow) {
            (void)json_object_set_new(o, "refused", json_string("left out: the reference is not timed beyond 1024 tokens"));
            continue;
        }
        REEL_TRY_GOTO(time_attention(ops, impl[i], &args, repeats, samples, err), cleanup);
        json_t *s = samples_json(samples, repeats);
        (void)json_object_set_new(o, "gflop_per_s", json_real(flop / json_real_value(json_object_get(s, "median_s")) / 1e9));
        (void)json_object_set_new(o, "times", s);
    }
cleanup:
    reel_arena_deinit(&arena);
    return status;
}

static reel_status bench_attention(reel_engine *e, int32_t repeats, json_t *out, reel_error *err)
{
    static const attention_case cases[] = {
        {512, 12, 128, REEL_DTYPE_F32},   {512, 12, 128, REEL_DTYPE_BF16}, {2048, 12, 128, REEL_DTYPE_F32},
        {2048, 12, 128, REEL_DTYPE_BF16}, {7800, 12, 128, REEL_DTYPE_F32}, {7800, 12, 128, REEL_DTYPE_BF16},
        {512, 64, 64, REEL_DTYPE_F32},    {512, 64, 64, REEL_DTYPE_BF16},  {1560, 1, 384, REEL_DTYPE_F32},
    };
    json_t *list = json_array();
    for (size_t i = 0; i < REEL_COUNT(cases); i++) REEL_TRY(bench_case(e, &cases[i], repeats, list, err));
    return json_object_set_new(out, "attention", list) == 0
               ? REEL_OK
               : REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a report\nremedy: fewer --repeats");
}

REEL_API reel_status reel_bench(reel_engine *engine, const char *what, int32_t repeats, char **json, reel_error *err)
{
    if (repeats < 1 || repeats > 1000) {
        return REEL_FAIL(err, REEL_E_ARGUMENT, "a wrong number of repeats\ngiven: %d\nallowed: 1 to 1000\nremedy: correct --repeats",
                         (int)repeats);
    }
    const bool is_generate = strcmp(what, "generate") == 0;
    if (!is_generate && strcmp(what, "attention") != 0) {
        return REEL_FAIL(err, REEL_E_ARGUMENT, "unknown benchmark\ngiven: %.60s\nallowed: generate, attention\nremedy: correct the name",
                         what);
    }
    json_t *o = json_pack("{s:o,s:s,s:i}", "build", reel_build_json(engine), "device", engine->ops.props.name, "repeats", (int)repeats);
    if (!o) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a report\nremedy: fewer --repeats");
    reel_status status = is_generate ? bench_generate(engine, repeats, o, err) : bench_attention(engine, repeats, o, err);
    if (status == REEL_OK) status = reel_json_text(o, JSON_INDENT(2), json, err);
    json_decref(o);
    return status;
}
