/* SPDX-License-Identifier: Apache-2.0
 *
 * From an engine and a request to the plan: device facts in, stage formulas asked, the fit checked. Nothing is loaded here. */
#include <stdio.h>
#include <string.h>

#include "engine/engine_internal.h"

/* What the process needs before any model: code, libraries, stacks, mapped headers. Measured: 60 MiB with FFmpeg, ICU and oneDNN loaded. */
#define PROCESS_BYTES ((uint64_t)64 << 20)
/* The encoder keeps some 60 pictures (look-ahead, references) in 4:2:0. */
enum { ENCODER_PICTURES = 60 };

static reel_attn_shape shape_of(const reel_model *m, const reel_plan *p, reel_attention_use use)
{
    reel_attn_shape s = {.size = sizeof s};
    switch (use) {
    case REEL_USE_TEXT:
        s.dtype = p->text_compute;
        s.head_dim = m->text.d_kv;
        s.n_head = m->text.n_head;
        s.has_relative_bias = 1;
        break;
    case REEL_USE_SELF:
    case REEL_USE_CROSS:
        s.dtype = p->dit_compute;
        s.head_dim = m->dit[0].head_dim;
        s.n_head = m->dit[0].n_head;
        s.has_key_bias = use == REEL_USE_CROSS;
        break;
    case REEL_USE_VAE:
    case REEL_USE_COUNT:
        s.dtype = p->vae_compute;
        s.head_dim = m->vae.decoder_base_dim * m->vae.dim_mult[m->vae.n_stage - 1];
        s.n_head = 1;
        break;
    }
    return s;
}

static void ask_device(const reel_engine *e, const reel_plan *plan, reel_plan_offers *offers)
{
    const reel_attn_impl *const *list = e->ops.vt->attention(e->ops.device);
    for (int32_t i = 0; list[i] && i < REEL_OFFER_MAX; i++) {
        offers->n_offer = i + 1;
        for (int32_t use = 0; use < REEL_USE_COUNT; use++) {
            const reel_attn_shape s = shape_of(&e->model, plan, (reel_attention_use)use);
            reel_attention_offer *o = &offers->offer[use][i];
            (void)snprintf(o->name, sizeof o->name, "%s", list[i]->name);
            o->accepts = list[i]->supports(e->ops.device, &s, o->reason, sizeof o->reason);
        }
    }
}

static reel_status count_bytes(reel_engine *e, const reel_plan *p, reel_plan_bytes *b, reel_error *err)
{
    const size_t a = e->ops.props.alignment_bytes;
    for (int32_t i = 0; i < REEL_COMPONENT_COUNT; i++) {
        if (!e->model.has_component[i]) continue;
        REEL_TRY(reel_components_open_store(&e->components, (reel_component)i, err));
        b->stored[i] = reel_store_bytes(e->components.store[i]);
        b->copied[i] = reel_components_copied_bytes(&e->components, (reel_component)i, p);
    }
    b->text_arena = reel_stage_text_bytes(&e->model, p, a);
    b->context_arena = reel_denoise_context_bytes(&e->model, p, a);
    b->dit_arena = reel_denoise_scratch_bytes(&e->model, p, a);
    b->latents_arena = reel_denoise_latents_bytes(&e->model, p, a);
    b->decode_arena = reel_stage_decode_bytes(&e->model, p, a);
    b->device_scratch = e->ops.props.scratch_bytes;
    b->encoder = (uint64_t)(p->px_w * p->px_h) * 3 / 2 * ENCODER_PICTURES;
    b->process = PROCESS_BYTES;
    return REEL_OK;
}

reel_status reel_engine_plan(reel_engine *engine, const reel_request *request, reel_plan *out, reel_error *err)
{
    reel_plan plan;
    reel_plan_offers offers = {0};
    reel_plan_bytes bytes = {0};
    reel_device_props props = {.size = sizeof props};
    reel_scheduler scheduler;
    REEL_TRY(reel_request_check(request, err));
    REEL_TRY(reel_plan_resolve(&engine->model, &engine->defaults, &engine->ops.props, request, &plan, err));
    REEL_TRY(reel_scheduler_from_name(plan.scheduler, &scheduler, err));
    (void)snprintf(plan.scheduler, sizeof plan.scheduler, "%s", reel_scheduler_name(scheduler));
    ask_device(engine, &plan, &offers);
    REEL_TRY(reel_plan_attention(&plan, &offers, request->attention, err));
    REEL_TRY(count_bytes(engine, &plan, &bytes, err));
    REEL_TRY(engine->ops.vt->props(engine->ops.device, &props, err));
    REEL_TRY(reel_plan_fit(&plan, &engine->model, &bytes, props.memory_free_bytes, err));
    *out = plan;
    return REEL_OK;
}

reel_status reel_engine_stage_plan(reel_engine *engine, const char *dtype, const char *vae_dtype, reel_plan *out, reel_error *err)
{
    static const char *const nothing = "";
    reel_request request;
    reel_plan_offers offers = {0};
    reel_request_init(&request);
    request.prompt = &nothing;
    request.n_prompt = 1;
    request.weights = "mapped";
    if (dtype) REEL_TRY(reel_request_set(&request, "dtype", dtype, err));
    if (vae_dtype) REEL_TRY(reel_request_set(&request, "vae_dtype", vae_dtype, err));
    REEL_TRY(reel_plan_resolve(&engine->model, &engine->defaults, &engine->ops.props, &request, out, err));
    ask_device(engine, out, &offers);
    return reel_plan_attention(out, &offers, NULL, err);
}
