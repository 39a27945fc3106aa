/* SPDX-License-Identifier: Apache-2.0
 *
 * First step of planning: what exactly is asked for, after defaults, roundings and checks (plan/plan.h).
 *
 * Rules follow diffusers' WanPipeline: frames are rounded to 4k + 1, guidance is on when the first scale is above 1, a second scale without a
 * second expert is an error. Sizes must fit the model exactly: they are never rounded in silence. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

void reel_plan_note(reel_plan *plan, const char *format, ...)
{
    if (plan->n_note >= REEL_NOTE_MAX) return;
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(plan->note[plan->n_note++], REEL_NOTE_BYTES, format, ap);
    va_end(ap);
}

reel_plan_defaults reel_plan_defaults_of(const reel_model *model)
{
    reel_plan_defaults d = {.px_w = 832, .px_h = 480, .n_frame = 81, .n_step = 50, .guidance = {5.0, 5.0}, .fps = 16.0};
    d.flow_shift = model->scheduler.flow_shift;
    (void)snprintf(d.scheduler, sizeof d.scheduler, "%s", "unipc");
    if (strstr(model->scheduler.class_name, "Euler")) (void)snprintf(d.scheduler, sizeof d.scheduler, "%s", "euler");
    if (strstr(model->scheduler.class_name, "DPMSolver")) (void)snprintf(d.scheduler, sizeof d.scheduler, "%s", "dpm++");
    if (model->has_component[REEL_COMPONENT_TRANSFORMER_2]) { /* as diffusers' documentation runs T2V-A14B */
        d.n_step = 40;
        d.guidance[0] = 4.0;
        d.guidance[1] = 3.0;
    }
    if (model->expand_timesteps) { /* TI2V-5B */
        d.px_w = 1280;
        d.px_h = 704;
        d.n_frame = 121;
        d.fps = 24.0;
    }
    return d;
}

static reel_status parse_size(const char *text, int64_t *w, int64_t *h, reel_error *err)
{
    char *end = NULL;
    long long a = strtoll(text, &end, 10), b = 0;
    bool good = end != text && (*end == 'x' || *end == 'X') && text[0] >= '0' && text[0] <= '9';
    if (good) {
        const char *second = end + 1;
        b = strtoll(second, &end, 10);
        good = second[0] >= '0' && second[0] <= '9' && *end == '\0';
    }
    if (!good || a < 1 || b < 1 || a > 65536 || b > 65536) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "--size is not a size\ngiven: \"%s\"\nallowed: WIDTHxHEIGHT in pixels, each 1 to 65536, such as 832x480\nremedy: "
                         "correct --size",
                         text);
    }
    *w = a;
    *h = b;
    return REEL_OK;
}

static int64_t nearest_multiple(int64_t n, int64_t m)
{
    int64_t r = (n + m / 2) / m * m;
    return r > 0 ? r : m;
}

static reel_status resolve_size(const reel_model *model, const reel_plan_defaults *d, const reel_request *q, reel_plan *p, reel_error *err)
{
    const bool has_resolution = q->resolution && q->resolution[0];
    if (q->size && has_resolution) {
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "--size and --resolution contradict each other\ngiven: --size %s --resolution %s\nallowed: one of them\nremedy: leave one out",
            q->size, q->resolution);
    }
    p->px_w = d->px_w;
    p->px_h = d->px_h;
    if (q->size) REEL_TRY(parse_size(q->size, &p->px_w, &p->px_h, err));
    if (has_resolution) {
        p->px_w = strcmp(q->resolution, "720p") == 0 ? 1280 : 832;
        p->px_h = strcmp(q->resolution, "720p") == 0 ? 720 : 480;
    }
    const int64_t m = reel_model_size_multiple(model);
    if (p->px_w % m != 0 || p->px_h % m != 0) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "the size does not fit the model\ngiven: %lldx%lld\nallowed: width and height that are multiples of %lld\nremedy: "
                         "--size %lldx%lld is the "
                         "nearest",
                         (long long)p->px_w, (long long)p->px_h, (long long)m, (long long)nearest_multiple(p->px_w, m),
                         (long long)nearest_multiple(p->px_h, m));
    }
    p->lat_w = p->px_w / model->vae.spatial_factor;
    p->lat_h = p->px_h / model->vae.spatial_factor;
    return REEL_OK;
}

static reel_status resolve_frames(const reel_model *model, const reel_plan_defaults *d, const reel_request *q, reel_plan *p,
                                  reel_error *err)
{
    const int64_t k = model->vae.temporal_factor;
    p->n_frame = q->frames > 0 ? q->frames : d->n_frame;
    if (p->n_frame % k != 1 % k) {
        int64_t rounded = p->n_frame / k * k + 1;
        reel_plan_note(p, "%lld frames were asked for; the model makes %lldk + 1, so the clip has %lld", (long long)p->n_frame,
                       (long long)k, (long long)rounded);
        p->n_frame = rounded;
    }
    p->lat_t = (p->n_frame - 1) / k + 1;
    const reel_dit_config *c = &model->dit[0];
    p->n_token = p->lat_t * (p->lat_h / c->patch[1]) * (p->lat_w / c->patch[2]);
    if (p->lat_t > c->rope_max || p->lat_h / c->patch[1] > c->rope_max || p->lat_w / c->patch[2] > c->rope_max) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "the clip is larger than the model has positions for\ngiven: %lldx%lld, %lld frames\nallowed: %lld frames and "
                         "%lld pixels a side\nremedy: "
                         "choose a smaller size or fewer frames",
                         (long long)p->px_w, (long long)p->px_h, (long long)p->n_frame, (long long)((c->rope_max - 1) * k + 1),
                         (long long)c->rope_max * c->patch[1] * model->vae.spatial_factor);
    }
    p->fps = isnan(q->fps) ? d->fps : q->fps;
    return REEL_OK;
}

static reel_status resolve_guidance(const reel_model *model, const reel_plan_defaults *d, const reel_request *q, reel_plan *p,
                                    reel_error *err)
{
    const bool has_two = model->has_component[REEL_COMPONENT_TRANSFORMER_2];
    p->boundary_ratio = isnan(q->boundary_ratio) ? model->boundary_ratio : q->boundary_ratio;
    if (!has_two && !isnan(q->boundary_ratio)) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "--boundary-ratio needs a model with two experts\ngiven: --boundary-ratio %g, a model with one "
                         "transformer\nallowed: models with "
                         "transformer and transformer_2\nremedy: leave out --boundary-ratio",
                         q->boundary_ratio);
    }
    if (!has_two) p->boundary_ratio = NAN;
    if (!isnan(q->guidance_scale_2) && isnan(p->boundary_ratio)) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "--guidance-scale-2 needs a model with two experts\ngiven: --guidance-scale-2 %g, no boundary ratio\nallowed: "
                         "models with boundary_ratio\n"
                         "remedy: leave out --guidance-scale-2",
                         q->guidance_scale_2);
    }
    p->guidance[0] = isnan(q->guidance_scale) ? d->guidance[0] : q->guidance_scale;
    p->guidance[1] = !isnan(q->guidance_scale_2) ? q->guidance_scale_2 : isnan(q->guidance_scale) ? d->guidance[1] : q->guidance_scale;
    p->is_guided = p->guidance[0] > 1.0;
    if (!p->is_guided && q->negative_prompt && q->negative_prompt[0] && strcmp(q->negative_prompt, "@none") != 0) {
        reel_plan_note(p, "the negative prompt has no effect: guidance is off at --guidance-scale %g (1 or less)", p->guidance[0]);
    }
    return REEL_OK;
}

static reel_status resolve_solver(const reel_model *model, const reel_plan_defaults *d, const reel_request *q, reel_plan *p,
                                  reel_error *err)
{
    p->n_step = q->steps > 0 ? (int32_t)q->steps : d->n_step;
    p->flow_shift = isnan(q->flow_shift) ? d->flow_shift : q->flow_shift;
    p->solver_order = model->scheduler.solver_order > 0 ? model->scheduler.solver_order : 2;
    const char *name = q->scheduler && q->scheduler[0] ? q->scheduler : d->scheduler;
    if (strlen(name) >= sizeof p->scheduler) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "unknown scheduler\ngiven: a name of %zu bytes\nallowed: unipc, euler, dpm++\nremedy: correct --scheduler",
                         strlen(name));
    }
    (void)snprintf(p->scheduler, sizeof p->scheduler, "%s", name);
    return REEL_OK;
}

static void resolve_dtypes(const reel_device_props *props, const reel_request *q, reel_plan *p)
{
    const char *dtype = q->dtype ? q->dtype : "auto";
    const bool is_auto = strcmp(dtype, "auto") == 0;
    p->dit_compute = strcmp(dtype, "bf16") == 0 || (is_auto && props->has_fast_bf16) ? REEL_DTYPE_BF16 : REEL_DTYPE_F32;
    p->text_compute = p->dit_compute;
    p->vae_compute = q->vae_dtype && strcmp(q->vae_dtype, "bf16") == 0 ? REEL_DTYPE_BF16 : REEL_DTYPE_F32;
    if (is_auto && p->dit_compute == REEL_DTYPE_BF16) {
        reel_plan_note(p, "arithmetic is bf16: %s is fast at it", props->name);
    } else if (is_auto) {
        reel_plan_note(p, "arithmetic is f32 on the weights as stored: %s has no fast bf16", props->name);
    } else if (p->dit_compute == REEL_DTYPE_BF16 && !props->has_fast_bf16) {
        reel_plan_note(p, "bf16 was asked for, but %s has no fast bf16: f32 would be faster and more exact", props->name);
    }
    p->is_packed = q->weights && strcmp(q->weights, "packed") == 0;
}

/* The transformer's feed-forward rows at a time: enough for full speed of the matrix products, few enough that the hidden layer stays small. */
enum { FFN_ROWS = 2048 };

reel_status reel_plan_resolve(const reel_model *model, const reel_plan_defaults *defaults, const reel_device_props *props,
                              const reel_request *request, reel_plan *out, reel_error *err)
{
    reel_plan p = {.version = REEL_PLAN_VERSION, .n_rank = 1};
    REEL_TRY(resolve_size(model, defaults, request, &p, err));
    REEL_TRY(resolve_frames(model, defaults, request, &p, err));
    REEL_TRY(resolve_guidance(model, defaults, request, &p, err));
    REEL_TRY(resolve_solver(model, defaults, request, &p, err));
    resolve_dtypes(props, request, &p);
    p.n_prompt = request->n_prompt;
    p.n_clip = (int32_t)request->clips;
    p.max_token = (int32_t)request->max_tokens;
    p.ffn_rows = FFN_ROWS;
    p.vae_chunk_frames = 1;
    p.encoder_threads = (int32_t)request->encoder_threads;
    p.n_thread = props->n_thread;
    (void)snprintf(p.device, sizeof p.device, "%s", props->kind);
    (void)snprintf(p.isa, sizeof p.isa, "%.*s", (int)sizeof p.isa - 1, props->isa);
    (void)snprintf(p.cache, sizeof p.cache, "none");
    *out = p;
    return REEL_OK;
}
