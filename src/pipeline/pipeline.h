/* SPDX-License-Identifier: Apache-2.0
 *
 * From prompts to frames: the one place that knows the order of the stages.
 *
 *     prompt ─► clean ─► tokenize ─► umT5 ─► [scheduler × experts × guidance] ─► VAE decode ─► frames
 *
 * A pipeline borrows everything and lives for one job. What a caller wants to know or to do comes in as hooks. Frames leave chunk by chunk, so
 * memory after denoising does not grow with the clip. All memory beyond weights is in arenas of the sizes that the plan states. */
#ifndef REEL_PIPELINE_PIPELINE_H
#define REEL_PIPELINE_PIPELINE_H

#include "pipeline/components.h"
#include "pipeline/dump.h"
#include "plan/plan.h"
#include "reel/job.h"
#include "sample/sample.h"
#include "text/embed_cache.h"

typedef struct reel_hooks {
    void *user;
    void (*progress)(void *user, reel_phase phase, int32_t clip, int32_t done, int32_t total);
    void (*warn)(void *user, const char *text);
    reel_status (*agree)(void *user, reel_error *err); /* REEL_E_CANCELLED stops the job */
    reel_status (*clip_begin)(void *user, int32_t clip, reel_error *err);
    reel_status (*frames)(void *user, int32_t clip, const uint8_t *rgb, int64_t first, int32_t n, reel_error *err);
    reel_status (*clip_end)(void *user, int32_t clip, reel_error *err);
    void (*preview)(void *user, int32_t clip, int32_t step, const uint8_t *rgb, int32_t w, int32_t h); /* NULL: no previews are made */
} reel_hooks;

typedef struct reel_pipeline {
    const reel_plan *plan;
    reel_components *components;
    const reel_tokenizer *tokenizer;
    reel_embed_cache *cache;
    const reel_hooks *hooks;
    const char *dump_dir; /* NULL: none */
} reel_pipeline;

/* prompt: n_prompt texts; negative: NULL is the empty one; seed[clip]: of every clip, prompts outermost. */
typedef struct reel_pipeline_input {
    const char *const *prompt;
    int32_t n_prompt;
    const char *negative;
    const uint64_t *seed;
} reel_pipeline_input;

/* Text states of one prompt in host memory, dtype of the plan's text_compute. */
typedef struct reel_states {
    reel_tokens tokens;
    void *host; /* [tokens.n, d_model]; owned */
} reel_states;

/* Makes all clips. */
reel_status reel_pipeline_run(const reel_pipeline *pipeline, const reel_pipeline_input *input, reel_error *err);

/* Stages, also used one by one by `reel encode` and `reel decode`. */
reel_status reel_stage_text(const reel_pipeline *p, const char *prompt, const char *what, reel_states *out, reel_error *err);
void reel_states_deinit(reel_states *states);
/* Decodes host latents [z, T, h, w] (normalised) into frames through hooks->frames. `dump` may be NULL. */
reel_status reel_stage_decode(const reel_pipeline *p, int32_t clip, const float *latents, reel_dump *dump, reel_error *err);

/* Bytes for the plan. */
size_t reel_denoise_context_bytes(const reel_model *model, const reel_plan *plan, size_t alignment);
size_t reel_denoise_scratch_bytes(const reel_model *model, const reel_plan *plan, size_t alignment);
size_t reel_denoise_latents_bytes(const reel_model *model, const reel_plan *plan, size_t alignment);
size_t reel_stage_text_bytes(const reel_model *model, const reel_plan *plan, size_t alignment);
size_t reel_stage_decode_bytes(const reel_model *model, const reel_plan *plan, size_t alignment);

/* The negative prompt behind a preset name: "@wan", "@none", else the text itself; an unknown @name is an error. */
reel_status reel_negative_preset(const char *text, const char **out, reel_error *err);

#endif
