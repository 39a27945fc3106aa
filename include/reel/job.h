/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests and jobs: what to make, how it goes, what came out.
 *
 * A reel_request is a plain value: strings are borrowed and must live until the call that takes it returns. reel_generate blocks; progress
 * and cancellation go through callbacks, called on the same thread. Cancel is a flag that any thread or signal handler may set. */
#ifndef REEL_JOB_H
#define REEL_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "reel/engine.h"
#include "reel/frames.h"
#include "reel/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct reel_request {
    uint32_t bytes; /* sizeof the struct, set by reel_request_init */
    const char *const *prompt; /* n_prompt texts, UTF-8; "" is allowed: unconditional */
    int32_t n_prompt;
    const char *output; /* file to write, by ending; "-": y4m to stdout; with several clips a pattern such as clip-%03d.mp4; NULL: none */
    const char *dump_dir; /* NULL, or a folder for the tensors of every stage as safetensors */
#define P_INT(field, def, min, max, unit, help) int64_t field;
#define P_U64(field, help) \
    uint64_t field;        \
    bool has_##field;
#define P_REAL(field, def, min, max, unit, help) double field;
#define P_ENUM(field, def, values, help) const char *field;
#define P_TEXT(field, placeholder, help) const char *field;
#define P_FLAG(field, help) bool field;
#include "reel/params.def"
#undef P_INT
#undef P_U64
#undef P_REAL
#undef P_ENUM
#undef P_TEXT
#undef P_FLAG
} reel_request;

/* Defaults everywhere, no prompt. */
void reel_request_init(reel_request *request);
/* Sets a field by its JSON key or flag name from text, with the table's checks; the text is borrowed. Unknown names suggest the nearest. */
reel_status reel_request_set(reel_request *request, const char *name, const char *value, reel_error *err);

typedef enum reel_phase { REEL_PHASE_LOAD = 0, REEL_PHASE_TEXT, REEL_PHASE_DENOISE, REEL_PHASE_DECODE, REEL_PHASE_COUNT } reel_phase;
const char *reel_phase_name(reel_phase phase);

typedef struct reel_progress {
    uint32_t bytes; /* sizeof the struct */
    reel_phase phase;
    int32_t clip, n_clip; /* over all prompts */
    int32_t done, total; /* of the phase: steps, or frames */
    double elapsed_s; /* since the job began */
    double step_s; /* mean of the steps of this clip so far; 0 before the first */
    double left_s; /* estimate for the whole job; < 0: not known yet */
    const char *message; /* warnings and notices of this moment; NULL mostly */
} reel_progress;

typedef struct reel_callbacks {
    uint32_t bytes; /* sizeof the struct */
    void *user;
    void (*progress)(void *user, const reel_progress *progress); /* NULL: none */
    /* Frames as they leave the decoder; NULL: none. A failure ends the job with that status. */
    reel_status (*frames)(void *user, const reel_frames *frames, reel_error *err);
    /* A small picture of the latents after a step; NULL: none. */
    void (*preview)(void *user, const reel_frames *picture, int32_t step);
    const volatile int *cancel; /* non-zero stops after the current operation; NULL: never */
} reel_callbacks;

typedef struct reel_result {
    uint32_t bytes; /* sizeof the struct */
    char *record; /* JSON of the whole job: request, plan, seeds, warnings, times by phase, files; free with reel_text_free */
    int32_t n_clip;
    double total_s, phase_s[REEL_PHASE_COUNT];
} reel_result;
void reel_result_free(reel_result *result);

/* Makes all clips of a request. On any failure no output file is left that was not whole before. */
reel_status reel_generate(reel_engine *engine, const reel_request *request, const reel_callbacks *callbacks, reel_result *result,
                          reel_error *err);

/* The plan as JSON (sizes, dtypes, attention with reasons, memory by phase, time estimate), before anything is loaded. REEL_E_MEMORY with what
 * would fit when it does not. */
reel_status reel_plan_text(reel_engine *engine, const reel_request *request, char **json, reel_error *err);

/* The settings stored in a clip, as a request: fills `request` from the clip's comment; strings live in *keep, freed with reel_text_free. *differences
 * (may come back NULL) says what of build, device or plan is not as it was. */
reel_status reel_request_from_clip(reel_engine *engine, const char *path, reel_request *request, char **keep, char **differences,
                                   reel_error *err);
/* Only the model folder named in a clip's settings, so that an engine can be opened for it. */
reel_status reel_clip_model(const char *path, char **model, reel_error *err);

#ifdef __cplusplus
}
#endif
#endif
