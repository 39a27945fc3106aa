/* SPDX-License-Identifier: Apache-2.0
 *
 * One job: plan, output checks, pipeline, record. Everything that can be refused is refused before a weight is loaded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "engine/engine_internal.h"

typedef struct job {
    reel_engine *engine;
    const reel_request *request;
    const reel_callbacks *callbacks;
    const reel_plan *plan;
    reel_clip_output *output;
    uint64_t *seed; /* per clip */
    json_t *warnings, *clips;
    char preview_path[REEL_PATH_MAX];
    reel_error preview_error; /* the first preview that could not be stored */
    double start_s, phase_start_s, phase_s[REEL_PHASE_COUNT];
    double clip_start_s, step_s;
    reel_phase phase;
    int32_t clip;
    int32_t steps_done; /* over all clips */
} job;

REEL_API const char *reel_phase_name(reel_phase phase)
{
    static const char *const name[REEL_PHASE_COUNT] = {"load", "text", "denoise", "decode"};
    return (int)phase >= 0 && phase < REEL_PHASE_COUNT ? name[phase] : "unknown";
}

static bool is_cancelled(const job *j)
{
    return j->callbacks && j->callbacks->cancel && *j->callbacks->cancel;
}

/* After every step: a preview that could not be stored stops the job here, long before its clip would be written. */
static reel_status job_agree(void *user, reel_error *err)
{
    const job *j = user;
    if (j->preview_error.code != REEL_OK) {
        if (err) *err = j->preview_error;
        return j->preview_error.code;
    }
    if (!is_cancelled(user)) return REEL_OK;
    return REEL_FAIL(err, REEL_E_CANCELLED, "cancelled\nremedy: start again; `reel plan` estimates the time");
}

/* Seconds left, from the steps so far and the plan's proportions; < 0 before the first step. */
static double left_s(const job *j)
{
    const reel_plan *p = j->plan;
    const int64_t n_step = (int64_t)p->n_prompt * p->n_clip * p->n_step;
    if (j->step_s <= 0.0 || p->n_phase < 3) return -1.0;
    double denoise = (double)(n_step - j->steps_done) * j->step_s;
    double scale = p->phase[1].estimate_s > 0.0 ? j->step_s * (double)n_step / p->phase[1].estimate_s : 1.0;
    double decode = p->phase[2].estimate_s * scale;
    if (j->phase == REEL_PHASE_DECODE && denoise <= 0.0) {
        double spent = reel_clock_s() - j->phase_start_s;
        decode = decode > spent ? decode - spent : 0.0;
    }
    return denoise + decode;
}

static void enter_phase(job *j, reel_phase phase, int32_t clip)
{
    const double now = reel_clock_s();
    if (phase == j->phase && clip == j->clip) return;
    j->phase_s[j->phase] += now - j->phase_start_s;
    j->phase = phase;
    j->clip = clip;
    j->phase_start_s = now;
    if (phase == REEL_PHASE_DENOISE) j->clip_start_s = now;
}

static void tell(job *j, int32_t done, int32_t total, const char *message)
{
    if (!j->callbacks || !j->callbacks->progress) return;
    const reel_progress p = {.bytes = sizeof p,
                             .phase = j->phase,
                             .clip = j->clip,
                             .n_clip = j->plan->n_prompt * j->plan->n_clip,
                             .done = done,
                             .total = total,
                             .elapsed_s = reel_clock_s() - j->start_s,
                             .step_s = j->step_s,
                             .left_s = left_s(j),
                             .message = message};
    j->callbacks->progress(j->callbacks->user, &p);
}

static void job_progress(void *user, reel_phase phase, int32_t clip, int32_t done, int32_t total)
{
    job *j = user;
    enter_phase(j, phase, clip);
    if (phase == REEL_PHASE_DENOISE && done > 0) {
        j->steps_done++;
        j->step_s = (reel_clock_s() - j->clip_start_s) / done;
    }
    tell(j, done, total, NULL);
}

static void job_warn(void *user, const char *text)
{
    job *j = user;
    (void)json_array_append_new(j->warnings, json_string(text));
    reel_log_write(&j->engine->log, REEL_LOG_WARNING, "%s", text);
    tell(j, 0, 0, text);
}

static reel_status job_clip_begin(void *user, int32_t clip, reel_error *err)
{
    job *j = user;
    char *settings = NULL;
    const char *prompt = j->request->prompt[clip / j->plan->n_clip];
    REEL_TRY(reel_clip_settings(j->engine, j->request, j->plan, clip, prompt, j->seed[clip], &settings, err));
    reel_status status = reel_clip_output_begin(j->output, clip, settings, err);
    free(settings);
    return status;
}

static reel_status job_frames(void *user, int32_t clip, const uint8_t *rgb, int64_t first, int32_t n, reel_error *err)
{
    job *j = user;
    REEL_TRY(reel_clip_output_frames(j->output, rgb, n, err));
    if (!j->callbacks || !j->callbacks->frames) return REEL_OK;
    const reel_frames f = {.bytes = sizeof f,
                           .clip = clip,
                           .first_frame = first,
                           .n_frame = n,
                           .width = (int32_t)j->plan->px_w,
                           .height = (int32_t)j->plan->px_h,
                           .rgb = rgb};
    return j->callbacks->frames(j->callbacks->user, &f, err);
}

static reel_status job_clip_end(void *user, int32_t clip, reel_error *err)
{
    job *j = user;
    REEL_TRY(reel_clip_output_end(j->output, err));
    char seed[32];
    (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)j->seed[clip]);
    (void)json_array_append_new(j->clips,
                                json_pack("{s:i,s:s,s:s,s:s}", "clip", (int)clip, "prompt", j->request->prompt[clip / j->plan->n_clip],
                                          "seed", seed, "file", reel_clip_output_path(j->output)));
    return REEL_OK;
}

static void job_preview(void *user, int32_t clip, int32_t step, const uint8_t *rgb, int32_t w, int32_t h)
{
    job *j = user;
    if (j->request->preview && j->preview_error.code == REEL_OK) {
        reel_status status = reel_expand_pattern(j->request->preview, step + 1, j->preview_path, sizeof j->preview_path, &j->preview_error);
        if (status == REEL_OK) (void)reel_media_write_png(j->preview_path, rgb, w, h, false, &j->preview_error);
    }
    if (j->callbacks && j->callbacks->preview) {
        const reel_frames f = {.bytes = sizeof f, .clip = clip, .first_frame = 0, .n_frame = 1, .width = w, .height = h, .rgb = rgb};
        j->callbacks->preview(j->callbacks->user, &f, step);
    }
}

static bool wants_preview(const job *j)
{
    const char *p = j->request->preview;
    return (p && p[0] && strcmp(p, "off") != 0) || (j->callbacks && j->callbacks->preview);
}

/* Seeds of all clips: clip k of every prompt takes seed + k; without a seed a random one. */
static reel_status make_seeds(job *j, reel_error *err)
{
    const int32_t n = j->plan->n_prompt * j->plan->n_clip;
    uint64_t seed = j->request->seed;
    if (!j->request->has_seed && getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        return REEL_FAIL(err, REEL_E_IO, "the system gave no random number for a seed\nremedy: give --seed");
    }
    if (!j->request->has_seed) seed &= 0xFFFFFFFFU; /* the generator reads 32 bits; short numbers are easier to type again */
    j->seed = malloc(sizeof *j->seed * (size_t)n);
    if (!j->seed) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for %d clips\nremedy: make fewer clips at a time", (int)n);
    for (int32_t i = 0; i < n; i++) j->seed[i] = seed + (uint64_t)(i % j->plan->n_clip);
    return REEL_OK;
}

static reel_status run_pipeline(job *j, reel_error *err)
{
    reel_engine *e = j->engine;
    const char *negative = NULL;
    REEL_TRY(reel_negative_preset(j->request->negative_prompt, &negative, err));
    REEL_TRY(reel_engine_open_tokenizer(e, err));
    const reel_hooks hooks = {.user = j,
                              .progress = job_progress,
                              .warn = job_warn,
                              .agree = job_agree,
                              .clip_begin = job_clip_begin,
                              .frames = job_frames,
                              .clip_end = job_clip_end,
                              .preview = wants_preview(j) ? job_preview : NULL};
    const reel_pipeline pipeline = {.plan = j->plan,
                                    .components = &e->components,
                                    .tokenizer = e->tokenizer,
                                    .cache = e->cache,
                                    .hooks = &hooks,
                                    .dump_dir = j->request->dump_dir};
    const reel_pipeline_input input = {
        .prompt = j->request->prompt, .n_prompt = j->request->n_prompt, .negative = negative, .seed = j->seed};
    return reel_pipeline_run(&pipeline, &input, err);
}

static reel_status make_record(job *j, char **out, reel_error *err)
{
    json_t *settings = NULL, *times = json_object(), *o = NULL;
    REEL_TRY(reel_request_to_json(j->request, &settings, err));
    for (int32_t i = 0; times && i < REEL_PHASE_COUNT; i++)
        (void)json_object_set_new(times, reel_phase_name((reel_phase)i), json_real(j->phase_s[i]));
    if (times) (void)json_object_set_new(times, "total", json_real(reel_clock_s() - j->start_s));
    o = json_pack("{s:o,s:o,s:o,s:O,s:O,s:o,s:s}", "build", reel_build_json(j->engine), "plan", reel_plan_json(j->plan), "settings",
                  settings, "clips", j->clips, "warnings", j->warnings, "times_s", times, "model", j->engine->model.dir);
    reel_status status = reel_json_text(o, JSON_INDENT(2), out, err);
    json_decref(o);
    return status;
}

static reel_status run(job *j, reel_error *err)
{
    for (int32_t i = 0; i < j->plan->n_note; i++) reel_log_write(&j->engine->log, REEL_LOG_INFO, "%s", j->plan->note[i]);
    REEL_TRY(reel_clip_output_new(j->request, j->plan, &j->output, err));
    REEL_TRY(make_seeds(j, err));
    reel_log_write(&j->engine->log, REEL_LOG_INFO, "seed %llu%s", (unsigned long long)j->seed[0],
                   j->request->has_seed ? "" : " (random; give --seed to repeat)");
    REEL_TRY(job_agree(j, err));
    return run_pipeline(j, err);
}

REEL_API reel_status reel_generate(reel_engine *engine, const reel_request *request, const reel_callbacks *callbacks, reel_result *result,
                                   reel_error *err)
{
    reel_plan *plan = calloc(1, sizeof *plan);
    job j = {.engine = engine, .request = request, .callbacks = callbacks, .plan = plan, .start_s = reel_clock_s()};
    reel_status status = REEL_OK;
    char *record = NULL;
    j.phase_start_s = j.start_s;
    j.warnings = json_array();
    j.clips = json_array();
    if (!plan || !j.warnings || !j.clips) {
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a job\nremedy: close other programs");
        goto cleanup;
    }
    REEL_TRY_GOTO(reel_engine_plan(engine, request, plan, err), cleanup);
    REEL_TRY_GOTO(run(&j, err), cleanup);
    j.phase_s[j.phase] += reel_clock_s() - j.phase_start_s;
    if (result) {
        REEL_TRY_GOTO(make_record(&j, &record, err), cleanup);
        *result = (reel_result){
            .bytes = sizeof *result, .record = record, .n_clip = plan->n_prompt * plan->n_clip, .total_s = reel_clock_s() - j.start_s};
        memcpy(result->phase_s, j.phase_s, sizeof result->phase_s);
    }
cleanup:
    reel_clip_output_free(&j.output);
    json_decref(j.warnings);
    json_decref(j.clips);
    free(j.seed);
    free(plan);
    return status;
}

REEL_API void reel_result_free(reel_result *result)
{
    reel_text_free(result->record);
    *result = (reel_result){0};
}

REEL_API reel_status reel_plan_text(reel_engine *engine, const reel_request *request, char **json, reel_error *err)
{
    reel_plan *plan = calloc(1, sizeof *plan);
    json_t *o = NULL;
    reel_status status = REEL_OK;
    if (!plan) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a plan\nremedy: close other programs");
    REEL_TRY_GOTO(reel_engine_plan(engine, request, plan, err), cleanup);
    o = reel_plan_json(plan);
    REEL_TRY_GOTO(reel_json_text(o, JSON_INDENT(2), json, err), cleanup);
cleanup:
    json_decref(o);
    free(plan);
    return status;
}
