/* SPDX-License-Identifier: Apache-2.0
 *
 * Denoising of one prompt's clips: the solver's loop over the experts with guidance.
 *
 * A reel_denoiser holds the arenas and the text conditioning of one prompt (made per expert when its first step comes) and runs clip after clip.
 * Guidance branches are a list: prompt first, then the negative prompt; their predictions are combined by one operation. The state that lives
 * across steps is the solver's slots, nothing else. */
#ifndef REEL_PIPELINE_DENOISE_H
#define REEL_PIPELINE_DENOISE_H

#include "pipeline/pipeline.h"

enum { REEL_BRANCH_MAX = 2 };

typedef struct reel_denoiser {
    const reel_pipeline *p;
    const reel_states *branch[REEL_BRANCH_MAX];
    int32_t n_branch;
    reel_schedule schedule;
    reel_arena contexts, scratch, latents;
    size_t contexts_mark; /* arena use before the current prompt */
    reel_dit_context *context[2][REEL_BRANCH_MAX];
    reel_tensor slot[REEL_SLOT_COUNT];
    reel_tensor prediction[REEL_BRANCH_MAX];
    reel_tensor count; /* [1] i32 */
    float *preview_factors; /* [z + 1][3]: latent → RGB, made from the VAE; NULL until wanted */
} reel_denoiser;

reel_status reel_denoiser_init(reel_denoiser *d, const reel_pipeline *p, reel_error *err);
void reel_denoiser_deinit(reel_denoiser *d);
/* Sets the branches of the next prompt; negative NULL: no guidance. Contexts of the former prompt are dropped. */
void reel_denoiser_prompt(reel_denoiser *d, const reel_states *prompt, const reel_states *negative);
/* One clip: host latents [z, T, h, w] f32 (caller's memory) are written. */
reel_status reel_denoiser_run(reel_denoiser *d, int32_t clip, uint64_t seed, reel_dump *dump, float *latents, reel_error *err);

/* preview.c: factors from the VAE by finite differences, and a picture of the middle frame of `x0` (host, [z, T, h, w]). */
reel_status reel_preview_factors(const reel_pipeline *p, float **out, reel_error *err);
void reel_preview_picture(const reel_plan *plan, int32_t z, const float *factors, const float *x0, uint8_t *rgb);

#endif
