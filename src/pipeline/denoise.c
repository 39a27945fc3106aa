/* SPDX-License-Identifier: Apache-2.0
 *
 * The denoising loop (pipeline/denoise.h). Source of the order: diffusers WanPipeline.__call__. */
#include "pipeline/denoise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const reel_ops *ops_of(const reel_denoiser *d)
{
    return d->p->components->ops;
}

/* ---- sizes, for the plan and for the arenas ---------------------------------------------------------------------------------------- */

size_t reel_denoise_context_bytes(const reel_model *model, const reel_plan *plan, size_t alignment)
{
    const reel_dit_options o = reel_components_dit_options(plan);
    const size_t one = reel_dit_context_bytes(&model->dit[0], &o, plan->max_token, alignment);
    const size_t states = reel_arena_need(alignment, plan->text_compute, (int64_t)plan->max_token * model->text.d_model);
    const size_t experts = model->has_component[REEL_COMPONENT_TRANSFORMER_2] ? 2 : 1, branches = plan->is_guided ? 2 : 1;
    return experts * branches * (one + states);
}

size_t reel_denoise_scratch_bytes(const reel_model *model, const reel_plan *plan, size_t alignment)
{
    const reel_dit_options o = reel_components_dit_options(plan);
    size_t forward = reel_dit_scratch_bytes(&model->dit[0], &o, plan->n_token, alignment);
    size_t context = reel_dit_context_scratch_bytes(&model->dit[0], &o, plan->max_token, alignment);
    return forward > context ? forward : context;
}

static int64_t latent_count(const reel_model *model, const reel_plan *plan)
{
    return (int64_t)model->vae.z_dim * plan->lat_t * plan->lat_h * plan->lat_w;
}

size_t reel_denoise_latents_bytes(const reel_model *model, const reel_plan *plan, size_t alignment)
{
    size_t one = reel_arena_need(alignment, REEL_DTYPE_F32, latent_count(model, plan));
    return (REEL_SLOT_COUNT + REEL_BRANCH_MAX) * one + reel_arena_need(alignment, REEL_DTYPE_I32, 1);
}

/* ---- life ------------------------------------------------------------------------------------------------------------------------- */

static reel_status take_latents(reel_denoiser *d, reel_error *err)
{
    const reel_model *m = d->p->components->model;
    const reel_plan *plan = d->p->plan;
    for (int32_t i = 0; i < REEL_SLOT_COUNT; i++) {
        REEL_TRY(reel_arena_take(&d->latents, REEL_DTYPE_F32, m->vae.z_dim, plan->lat_t, plan->lat_h, plan->lat_w, &d->slot[i], err));
    }
    for (int32_t i = 0; i < REEL_BRANCH_MAX; i++) {
        REEL_TRY(reel_arena_take(&d->latents, REEL_DTYPE_F32, m->vae.z_dim, plan->lat_t, plan->lat_h, plan->lat_w, &d->prediction[i], err));
    }
    return reel_arena_take(&d->latents, REEL_DTYPE_I32, 1, 0, 0, 0, &d->count, err);
}

reel_status reel_denoiser_init(reel_denoiser *d, const reel_pipeline *p, reel_error *err)
{
    *d = (reel_denoiser){.p = p};
    const reel_ops *ops = p->components->ops;
    const reel_model *m = p->components->model;
    const size_t a = ops->props.alignment_bytes;
    reel_scheduler scheduler;
    reel_status status = REEL_OK;
    REEL_TRY_GOTO(reel_scheduler_from_name(p->plan->scheduler, &scheduler, err), cleanup);
    REEL_TRY_GOTO(reel_schedule_init(&d->schedule, scheduler, p->plan->n_step, p->plan->flow_shift, p->plan->solver_order, err), cleanup);
    REEL_TRY_GOTO(reel_arena_init(&d->contexts, ops, "text conditioning", reel_denoise_context_bytes(m, p->plan, a), err), cleanup);
    REEL_TRY_GOTO(reel_arena_init(&d->scratch, ops, "transformer", reel_denoise_scratch_bytes(m, p->plan, a), err), cleanup);
    REEL_TRY_GOTO(reel_arena_init(&d->latents, ops, "latents", reel_denoise_latents_bytes(m, p->plan, a), err), cleanup);
    REEL_TRY_GOTO(take_latents(d, err), cleanup);
    return REEL_OK;
cleanup:
    reel_denoiser_deinit(d);
    return status;
}

static void drop_contexts(reel_denoiser *d)
{
    for (int32_t e = 0; e < 2; e++) {
        for (int32_t b = 0; b < REEL_BRANCH_MAX; b++) reel_dit_context_free(&d->context[e][b]);
    }
    if (d->contexts.base) reel_arena_rewind(&d->contexts, 0);
}

void reel_denoiser_deinit(reel_denoiser *d)
{
    drop_contexts(d);
    reel_schedule_deinit(&d->schedule);
    reel_arena_deinit(&d->contexts);
    reel_arena_deinit(&d->scratch);
    reel_arena_deinit(&d->latents);
    free(d->preview_factors);
    *d = (reel_denoiser){0};
}

void reel_denoiser_prompt(reel_denoiser *d, const reel_states *prompt, const reel_states *negative)
{
    drop_contexts(d);
    d->branch[0] = prompt;
    d->branch[1] = negative;
    d->n_branch = negative ? 2 : 1;
}

/* ---- text conditioning of an expert ------------------------------------------------------------------------------------------------ */

typedef struct tap_scope {
    const reel_denoiser *d;
    reel_dump *dump;
    int32_t n_padded; /* for inner_text_projection */
} tap_scope;

enum { TEXT_ROWS_IN_DUMP = 40 };

/* The reference's padding rows are all equal to our one row: writes the first 40 of them as the recordings have them. */
static reel_status dump_text_projection(const tap_scope *s, const reel_tensor *t, reel_error *err)
{
    float *host = NULL;
    REEL_TRY(reel_download_f32(ops_of(s->d), t, &host, err));
    const int64_t width = t->extent[1], rows = s->n_padded < TEXT_ROWS_IN_DUMP ? s->n_padded : TEXT_ROWS_IN_DUMP;
    float *out = malloc(sizeof *out * (size_t)(rows * width));
    reel_status status = REEL_OK;
    if (!out) status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory for --x-dump\nremedy: leave out --x-dump");
    for (int64_t r = 0; out && r < rows; r++) {
        int64_t from = r < t->extent[0] ? r : t->extent[0] - 1;
        memcpy(out + r * width, host + from * width, sizeof *out * (size_t)width);
    }
    if (out) status = reel_dump_host(s->dump, "inner_text_projection", REEL_DTYPE_F32, (int64_t[]){rows, width}, 2, out, err);
    free(out);
    free(host);
    return status;
}

static reel_status context_tap(void *user, const char *name, const reel_tensor *t, reel_error *err)
{
    (void)name;
    return dump_text_projection(user, t, err);
}

static reel_status make_context(reel_denoiser *d, int32_t expert, int32_t branch, reel_dump *dump, reel_error *err)
{
    reel_components *c = d->p->components;
    const reel_states *s = d->branch[branch];
    reel_tensor states;
    REEL_TRY(reel_arena_take(&d->contexts, d->p->plan->text_compute, s->tokens.n, c->model->text.d_model, 0, 0, &states, err));
    REEL_TRY(reel_ops_upload(c->ops, &states, s->host, err));
    tap_scope scope = {.d = d, .dump = dump, .n_padded = d->p->plan->max_token};
    const bool wants = dump && expert == 0 && branch == 0;
    return reel_dit_context_new(c->dit[expert], &states, d->p->plan->max_token, &d->contexts, &d->scratch, wants ? context_tap : NULL,
                                &scope, &d->context[expert][branch], err);
}

static reel_status ensure_expert(reel_denoiser *d, int32_t expert, reel_dump *dump, reel_error *err)
{
    REEL_TRY(reel_components_ensure_dit(d->p->components, d->p->plan, expert, err));
    for (int32_t b = 0; b < d->n_branch; b++) {
        if (!d->context[expert][b]) REEL_TRY(make_context(d, expert, b, dump, err));
    }
    return REEL_OK;
}

/* ---- one step ---------------------------------------------------------------------------------------------------------------------- */

/* Token tensors of step 0, prompt branch, in the shapes of the recordings. */
static reel_status forward_tap(void *user, const char *name, const reel_tensor *t, reel_error *err)
{
    const tap_scope *s = user;
    reel_tensor view = *t;
    if (strcmp(name, "inner_patch_embedding") == 0) { /* [T·h·w, width] → [width, T, h, w] */
        const reel_plan *plan = s->d->p->plan;
        const int32_t *patch = s->d->p->components->model->dit[0].patch;
        const int64_t h = plan->lat_h / patch[1], w = plan->lat_w / patch[2], row = t->stride[0];
        view.n_dim = 4;
        const int64_t extent[4] = {t->extent[1], plan->lat_t, h, w}, stride[4] = {1, h * w * row, w * row, row};
        memcpy(view.extent, extent, sizeof extent);
        memcpy(view.stride, stride, sizeof stride);
    } else if (strncmp(name, "inner_time", 10) == 0) { /* [1, n] → [n] */
        view = reel_tensor_dense(t->data, t->dtype, t->extent[1], 0, 0, 0);
    }
    return reel_dump_device(s->dump, ops_of(s->d), name, &view, err);
}

static reel_status dump_velocity(const reel_denoiser *d, reel_dump *dump, int32_t step, int32_t branch, bool is_first_low, reel_error *err)
{
    if (!dump) return REEL_OK;
    const char *which = branch == 0 ? "cond" : "uncond";
    char name[64];
    (void)snprintf(name, sizeof name, "velocity_%03d_%s", (int)step, which);
    REEL_TRY(reel_dump_device(dump, ops_of(d), name, &d->prediction[branch], err));
    if (step == 0) {
        (void)snprintf(name, sizeof name, "velocity_first_%s", which);
        REEL_TRY(reel_dump_device(dump, ops_of(d), name, &d->prediction[branch], err));
    }
    if (is_first_low) {
        (void)snprintf(name, sizeof name, "velocity_low_%s", which);
        REEL_TRY(reel_dump_device(dump, ops_of(d), name, &d->prediction[branch], err));
    }
    return REEL_OK;
}

static reel_status predict(reel_denoiser *d, int32_t step, int32_t expert, reel_dump *dump, bool is_first_low, reel_error *err)
{
    const reel_pipeline *p = d->p;
    tap_scope scope = {.d = d, .dump = dump};
    for (int32_t b = 0; b < d->n_branch; b++) {
        const reel_dit_input in = {.latents = d->slot[REEL_SLOT_X],
                                   .context = d->context[expert][b],
                                   .timestep = {d->schedule.step[step].timestep},
                                   .n_timestep = 1,
                                   .t0 = 0,
                                   .t1 = p->plan->n_token,
                                   .velocity = d->prediction[b],
                                   .expert = expert,
                                   .branch = b,
                                   .step = step,
                                   .tap = dump && step == 0 && b == 0 ? forward_tap : NULL,
                                   .tap_user = &scope,
                                   .agree = p->hooks->agree,
                                   .agree_user = p->hooks->user};
        REEL_TRY(reel_dit_forward(p->components->dit[expert], &in, &d->scratch, err));
        REEL_TRY(dump_velocity(d, dump, step, b, is_first_low, err));
    }
    return REEL_OK;
}

/* V = u + g·(c − u) as one combination of the branches' predictions. */
static reel_status guide(reel_denoiser *d, int32_t expert, reel_error *err)
{
    const float g = (float)d->p->plan->guidance[expert];
    if (d->n_branch == 1) {
        return REEL_OP(ops_of(d), combine, err, .n = 1, .x = {d->prediction[0]}, .coef = {1.0F}, .y = d->slot[REEL_SLOT_V]);
    }
    return REEL_OP(ops_of(d), combine, err, .n = 2, .x = {d->prediction[1], d->prediction[0]}, .coef = {1.0F - g, g},
                   .y = d->slot[REEL_SLOT_V]);
}

static reel_status solve(reel_denoiser *d, const reel_solver_step *step, reel_error *err)
{
    for (int32_t i = 0; i < step->n_op; i++) {
        const reel_solver_op *o = &step->op[i];
        reel_op_combine args = {.size = sizeof args, .n = o->n_term, .y = d->slot[o->dst]};
        for (int32_t k = 0; k < o->n_term; k++) {
            args.x[k] = d->slot[o->slot[k]];
            args.coef[k] = o->coef[k];
        }
        REEL_TRY(reel_ops_combine(ops_of(d), &args, err));
    }
    return REEL_OK;
}

static reel_status check_finite(reel_denoiser *d, int32_t step, int32_t expert, reel_error *err)
{
    int32_t n = 0;
    REEL_TRY(REEL_OP(ops_of(d), count_nonfinite, err, .x = d->slot[REEL_SLOT_X], .count = d->count));
    REEL_TRY(reel_ops_download(ops_of(d), &n, &d->count, err));
    if (n == 0) return REEL_OK;
    return REEL_FAIL(err, REEL_E_NUMERIC,
                     "the latents are not finite after step %d of %d\ngiven: %d of %lld values are NaN or infinite, computed by "
                     "%s\nallowed: finite values\nremedy: "
                     "try --dtype f32 or a smaller --guidance-scale; check the model's files with `reel inspect`",
                     (int)step + 1, (int)d->schedule.n_step, (int)n, (long long)reel_tensor_count(&d->slot[REEL_SLOT_X]),
                     expert == 0 ? "transformer" : "transformer_2");
}

/* Picture of the clean latents that this step's velocity points at: x0 = x − σ·v, into a prediction's memory (free by now). */
static reel_status preview(reel_denoiser *d, int32_t clip, int32_t step, reel_error *err)
{
    const reel_pipeline *p = d->p;
    const int32_t z = p->components->model->vae.z_dim;
    if (!d->preview_factors) REEL_TRY(reel_preview_factors(p, &d->preview_factors, err));
    float *host = NULL;
    REEL_TRY(REEL_OP(ops_of(d), combine, err, .n = 2, .x = {d->slot[REEL_SLOT_X], d->slot[REEL_SLOT_V]},
                     .coef = {1.0F, -d->schedule.step[step].sigma}, .y = d->prediction[0]));
    REEL_TRY(reel_download_f32(ops_of(d), &d->prediction[0], &host, err));
    uint8_t *rgb = malloc((size_t)(p->plan->lat_h * p->plan->lat_w * 3));
    reel_status status = REEL_OK;
    if (!rgb) {
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a preview\nremedy: leave out --preview");
    } else {
        reel_preview_picture(p->plan, z, d->preview_factors, host, rgb);
        p->hooks->preview(p->hooks->user, clip, step, rgb, (int32_t)p->plan->lat_w, (int32_t)p->plan->lat_h);
    }
    free(rgb);
    free(host);
    return status;
}

static reel_status run_step(reel_denoiser *d, int32_t clip, int32_t i, reel_dump *dump, int32_t *first_low, reel_error *err)
{
    const reel_pipeline *p = d->p;
    const reel_solver_step *step = &d->schedule.step[i];
    const int32_t expert = reel_expert_of(p->plan->boundary_ratio, step->timestep, p->components->model->scheduler.n_train_timesteps);
    const bool is_first_low = expert == 1 && *first_low < 0;
    if (is_first_low) *first_low = i;
    REEL_TRY(ensure_expert(d, expert, dump, err));
    REEL_TRY(predict(d, i, expert, dump, is_first_low, err));
    REEL_TRY(guide(d, expert, err));
    if (p->hooks->preview) REEL_TRY(preview(d, clip, i, err));
    REEL_TRY(solve(d, step, err));
    REEL_TRY(check_finite(d, i, expert, err));
    if (p->hooks->agree) REEL_TRY(p->hooks->agree(p->hooks->user, err));
    if (p->hooks->progress) p->hooks->progress(p->hooks->user, REEL_PHASE_DENOISE, clip, i + 1, d->schedule.n_step);
    return REEL_OK;
}

/* ---- one clip ----------------------------------------------------------------------------------------------------------------------- */

static reel_status dump_text(const reel_denoiser *d, reel_dump *dump, reel_error *err)
{
    static const char *const prefix[REEL_BRANCH_MAX] = {"prompt", "negative"};
    const int64_t width = d->p->components->model->text.d_model;
    for (int32_t b = 0; b < d->n_branch; b++) {
        const reel_states *s = d->branch[b];
        char name[64];
        int32_t mask[REEL_TOKEN_MAX] = {0};
        for (int32_t i = 0; i < s->tokens.n; i++) mask[i] = 1;
        (void)snprintf(name, sizeof name, "%s_ids", prefix[b]);
        REEL_TRY(reel_dump_host(dump, name, REEL_DTYPE_I32, (int64_t[]){REEL_TOKEN_MAX}, 1, s->tokens.id, err));
        (void)snprintf(name, sizeof name, "%s_mask", prefix[b]);
        REEL_TRY(reel_dump_host(dump, name, REEL_DTYPE_I32, (int64_t[]){REEL_TOKEN_MAX}, 1, mask, err));
        (void)snprintf(name, sizeof name, "%s_states", prefix[b]);
        REEL_TRY(reel_dump_host(dump, name, d->p->plan->text_compute, (int64_t[]){s->tokens.n, width}, 2, s->host, err));
    }
    return REEL_OK;
}

static reel_status dump_schedule(const reel_denoiser *d, reel_dump *dump, reel_error *err)
{
    const int32_t n = d->schedule.n_step;
    int32_t whole[REEL_STEP_MAX];
    float timestep[REEL_STEP_MAX], sigma[REEL_STEP_MAX + 1];
    bool is_whole = true;
    for (int32_t i = 0; i < n; i++) {
        timestep[i] = d->schedule.step[i].timestep;
        whole[i] = (int32_t)timestep[i];
        is_whole = is_whole && (float)whole[i] == timestep[i];
        sigma[i] = d->schedule.step[i].sigma;
    }
    sigma[n] = d->schedule.sigma_last;
    const void *data = is_whole ? (const void *)whole : timestep;
    REEL_TRY(reel_dump_host(dump, "timesteps", is_whole ? REEL_DTYPE_I32 : REEL_DTYPE_F32, (int64_t[]){n}, 1, data, err));
    return reel_dump_host(dump, "sigmas", REEL_DTYPE_F32, (int64_t[]){n + 1}, 1, sigma, err);
}

static reel_status run_steps(reel_denoiser *d, int32_t clip, reel_dump *dump, float *latents, reel_error *err)
{
    const reel_tensor *x = &d->slot[REEL_SLOT_X];
    int32_t first_low = -1;
    for (int32_t i = 0; i < d->schedule.n_step; i++) {
        REEL_TRY(run_step(d, clip, i, dump, &first_low, err));
        if (!dump) continue;
        REEL_TRY(reel_ops_download(ops_of(d), latents, x, err));
        REEL_TRY(reel_dump_append(dump, "latents", REEL_DTYPE_F32, x->extent, 4, latents, err));
    }
    REEL_TRY(reel_ops_download(ops_of(d), latents, x, err));
    if (!dump) return REEL_OK;
    if (first_low >= 0) REEL_TRY(reel_dump_host(dump, "first_low_step", REEL_DTYPE_I32, (int64_t[]){1}, 1, &first_low, err));
    return reel_dump_host(dump, "latents_final", REEL_DTYPE_F32, x->extent, 4, latents, err);
}

reel_status reel_denoiser_run(reel_denoiser *d, int32_t clip, uint64_t seed, reel_dump *dump, float *latents, reel_error *err)
{
    const reel_tensor *x = &d->slot[REEL_SLOT_X];
    reel_noise_fill(seed, latents, reel_tensor_count(x));
    REEL_TRY(reel_ops_upload(ops_of(d), x, latents, err));
    if (dump) {
        REEL_TRY(dump_text(d, dump, err));
        REEL_TRY(dump_schedule(d, dump, err));
        REEL_TRY(reel_dump_host(dump, "noise", REEL_DTYPE_F32, x->extent, 4, latents, err));
    }
    if (d->p->hooks->progress) d->p->hooks->progress(d->p->hooks->user, REEL_PHASE_DENOISE, clip, 0, d->schedule.n_step);
    return run_steps(d, clip, dump, latents, err);
}
