/* SPDX-License-Identifier: Apache-2.0
 *
 * The map of a job: text, denoising, decoding, one call per stage; the residency of the plan decides what is freed in between. */
#include "pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/denoise.h"

typedef struct run_state {
    const reel_pipeline *p;
    const reel_pipeline_input *in;
    reel_states *prompt; /* n_prompt */
    reel_states negative;
    reel_dump **dump; /* per clip, entries NULL without --x-dump */
    float *latents; /* host: one clip, or all when they are decoded at the end */
    int64_t latent_count;
    reel_denoiser denoiser;
} run_state;

static void progress(const run_state *s, reel_phase phase, int32_t clip, int32_t done, int32_t total)
{
    if (s->p->hooks->progress) s->p->hooks->progress(s->p->hooks->user, phase, clip, done, total);
}

/* Text of all prompts; the encoder's weights are not needed afterwards. */
static reel_status run_text(run_state *s, reel_error *err)
{
    const bool is_guided = s->p->plan->is_guided;
    const int32_t total = s->in->n_prompt + (is_guided ? 1 : 0);
    for (int32_t i = 0; i < s->in->n_prompt; i++) {
        progress(s, REEL_PHASE_TEXT, 0, i, total);
        REEL_TRY(reel_stage_text(s->p, s->in->prompt[i], "prompt", &s->prompt[i], err));
        if (s->p->hooks->agree) REEL_TRY(s->p->hooks->agree(s->p->hooks->user, err));
    }
    if (is_guided) {
        progress(s, REEL_PHASE_TEXT, 0, s->in->n_prompt, total);
        REEL_TRY(reel_stage_text(s->p, s->in->negative ? s->in->negative : "", "negative prompt", &s->negative, err));
    }
    progress(s, REEL_PHASE_TEXT, 0, total, total);
    reel_components_drop(s->p->components, REEL_COMPONENT_TEXT_ENCODER);
    return REEL_OK;
}

static float *latents_of(const run_state *s, int32_t clip)
{
    const bool all = s->p->plan->residency == REEL_RESIDENCY_SEQUENCE;
    return s->latents + (all ? clip * s->latent_count : 0);
}

static reel_status decode_clip(run_state *s, int32_t clip, reel_error *err)
{
    const reel_hooks *hooks = s->p->hooks;
    if (hooks->clip_begin) REEL_TRY(hooks->clip_begin(hooks->user, clip, err));
    REEL_TRY(reel_stage_decode(s->p, clip, latents_of(s, clip), s->dump[clip], err));
    if (s->dump[clip]) REEL_TRY(reel_dump_write(s->dump[clip], s->p->dump_dir, clip, err));
    reel_dump_free(&s->dump[clip]);
    return hooks->clip_end ? hooks->clip_end(hooks->user, clip, err) : REEL_OK;
}

static reel_status denoise_all(run_state *s, reel_error *err)
{
    const reel_plan *plan = s->p->plan;
    const bool keeps = plan->residency == REEL_RESIDENCY_KEEP;
    REEL_TRY(reel_denoiser_init(&s->denoiser, s->p, err));
    for (int32_t i = 0; i < s->in->n_prompt; i++) {
        reel_denoiser_prompt(&s->denoiser, &s->prompt[i], plan->is_guided ? &s->negative : NULL);
        for (int32_t k = 0; k < plan->n_clip; k++) {
            const int32_t clip = i * plan->n_clip + k;
            if (s->p->dump_dir) REEL_TRY(reel_dump_new(&s->dump[clip], err));
            REEL_TRY(reel_denoiser_run(&s->denoiser, clip, s->in->seed[clip], s->dump[clip], latents_of(s, clip), err));
            if (keeps) REEL_TRY(decode_clip(s, clip, err));
        }
    }
    return REEL_OK;
}

static reel_status run(run_state *s, reel_error *err)
{
    const reel_plan *plan = s->p->plan;
    REEL_TRY(run_text(s, err));
    REEL_TRY(denoise_all(s, err));
    reel_denoiser_deinit(&s->denoiser);
    if (plan->residency == REEL_RESIDENCY_KEEP) return REEL_OK;
    reel_components_drop(s->p->components, REEL_COMPONENT_TRANSFORMER);
    reel_components_drop(s->p->components, REEL_COMPONENT_TRANSFORMER_2);
    for (int32_t clip = 0; clip < s->in->n_prompt * plan->n_clip; clip++) REEL_TRY(decode_clip(s, clip, err));
    return REEL_OK;
}

reel_status reel_pipeline_run(const reel_pipeline *pipeline, const reel_pipeline_input *input, reel_error *err)
{
    const reel_plan *plan = pipeline->plan;
    const int32_t n_total = input->n_prompt * plan->n_clip;
    run_state s = {.p = pipeline, .in = input};
    s.latent_count = (int64_t)pipeline->components->model->vae.z_dim * plan->lat_t * plan->lat_h * plan->lat_w;
    const int64_t held = plan->residency == REEL_RESIDENCY_SEQUENCE ? n_total : 1;
    reel_status status = REEL_OK;
    s.prompt = calloc((size_t)input->n_prompt, sizeof *s.prompt);
    s.dump = calloc((size_t)n_total, sizeof *s.dump);
    s.latents = malloc(sizeof *s.latents * (size_t)(s.latent_count * held));
    if (!s.prompt || !s.dump || !s.latents) {
        status =
            REEL_FAIL(err, REEL_E_MEMORY, "out of memory for the latents of %d clips\nremedy: make fewer clips at a time", (int)n_total);
    } else {
        status = run(&s, err);
    }
    reel_denoiser_deinit(&s.denoiser);
    for (int32_t i = 0; s.prompt && i < input->n_prompt; i++) reel_states_deinit(&s.prompt[i]);
    for (int32_t i = 0; s.dump && i < n_total; i++) reel_dump_free(&s.dump[i]);
    reel_states_deinit(&s.negative);
    free(s.prompt);
    free(s.dump);
    free(s.latents);
    return status;
}
