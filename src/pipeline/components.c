/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading and dropping of components (pipeline/components.h). */
#include "pipeline/components.h"

#include <stdio.h>
#include <string.h>

reel_status reel_components_open_store(reel_components *c, reel_component component, reel_error *err)
{
    if (c->store[component] || !c->model->has_component[component]) return REEL_OK;
    char dir[REEL_PATH_MAX];
    REEL_TRY(reel_path_join(dir, sizeof dir, c->model->dir, reel_component_folder(component), err));
    return reel_store_open(dir, reel_component_stem(component), &c->store[component], err);
}

/* True when the component is loaded just so; else drops what is there and opens store and weights for `want`. */
static reel_status prepare(reel_components *c, reel_component component, const reel_loaded *want, bool *is_ready, reel_error *err)
{
    reel_loaded *have = &c->loaded[component];
    *is_ready = have->is_loaded && have->compute == want->compute && have->is_packed == want->is_packed &&
                have->chunk_frames == want->chunk_frames && have->wants_encoder >= want->wants_encoder &&
                have->wants_decoder >= want->wants_decoder && strcmp(have->attention[0], want->attention[0]) == 0 &&
                strcmp(have->attention[1], want->attention[1]) == 0;
    if (*is_ready) return REEL_OK;
    reel_components_drop(c, component);
    REEL_TRY(reel_components_open_store(c, component, err));
    const reel_weights_options options = {.compute = want->compute, .is_packed = want->is_packed != 0};
    return reel_weights_new(c->store[component], c->ops->vt, c->ops->device, c->ops->stream, &options, &c->weights[component], err);
}

static reel_status finish(reel_components *c, reel_component component, const reel_loaded *want, reel_status status)
{
    if (status != REEL_OK) {
        reel_components_drop(c, component);
        return status;
    }
    c->loaded[component] = *want;
    c->loaded[component].is_loaded = true;
    return REEL_OK;
}

static void set_attention(reel_loaded *want, int32_t i, const reel_plan *plan, reel_attention_use use)
{
    (void)snprintf(want->attention[i], sizeof want->attention[i], "%s", plan->attention[use]);
}

reel_status reel_components_ensure_text(reel_components *c, const reel_plan *plan, reel_error *err)
{
    reel_loaded want = {.compute = plan->text_compute, .is_packed = plan->is_packed};
    bool is_ready = false;
    REEL_TRY(prepare(c, REEL_COMPONENT_TEXT_ENCODER, &want, &is_ready, err));
    if (is_ready) return REEL_OK;
    reel_status status = reel_umt5_new(&c->model->text, c->ops, c->weights[REEL_COMPONENT_TEXT_ENCODER], plan->text_compute, &c->umt5, err);
    return finish(c, REEL_COMPONENT_TEXT_ENCODER, &want, status);
}

reel_dit_options reel_components_dit_options(const reel_plan *plan)
{
    return (reel_dit_options){.compute = plan->dit_compute,
                              .attention_self = plan->attention[REEL_USE_SELF][0] ? plan->attention[REEL_USE_SELF] : NULL,
                              .attention_cross = plan->attention[REEL_USE_CROSS][0] ? plan->attention[REEL_USE_CROSS] : NULL,
                              .ffn_rows = plan->ffn_rows};
}

reel_status reel_components_ensure_dit(reel_components *c, const reel_plan *plan, int32_t expert, reel_error *err)
{
    const reel_component component = expert == 0 ? REEL_COMPONENT_TRANSFORMER : REEL_COMPONENT_TRANSFORMER_2;
    reel_loaded want = {.compute = plan->dit_compute, .is_packed = plan->is_packed};
    set_attention(&want, 0, plan, REEL_USE_SELF);
    set_attention(&want, 1, plan, REEL_USE_CROSS);
    bool is_ready = false;
    REEL_TRY(prepare(c, component, &want, &is_ready, err));
    if (is_ready) return REEL_OK;
    const reel_dit_options options = reel_components_dit_options(plan);
    reel_status status = reel_dit_new(&c->model->dit[expert], c->ops, c->weights[component], &options, &c->dit[expert], err);
    return finish(c, component, &want, status);
}

reel_status reel_components_ensure_vae(reel_components *c, const reel_plan *plan, bool wants_encoder, bool wants_decoder, reel_error *err)
{
    reel_loaded want = {.compute = plan->vae_compute,
                        .is_packed = 1,
                        .chunk_frames = plan->vae_chunk_frames,
                        .wants_encoder = wants_encoder,
                        .wants_decoder = wants_decoder};
    set_attention(&want, 0, plan, REEL_USE_VAE);
    bool is_ready = false;
    REEL_TRY(prepare(c, REEL_COMPONENT_VAE, &want, &is_ready, err));
    if (is_ready) return REEL_OK;
    const reel_vae_options options = {.compute = plan->vae_compute,
                                      .wants_encoder = wants_encoder,
                                      .wants_decoder = wants_decoder,
                                      .chunk_frames = plan->vae_chunk_frames,
                                      .attention = plan->attention[REEL_USE_VAE][0] ? plan->attention[REEL_USE_VAE] : NULL};
    reel_status status = reel_vae_new(&c->model->vae, c->ops, c->weights[REEL_COMPONENT_VAE], &options, &c->vae, err);
    return finish(c, REEL_COMPONENT_VAE, &want, status);
}

void reel_components_drop(reel_components *c, reel_component component)
{
    switch (component) {
    case REEL_COMPONENT_TEXT_ENCODER: reel_umt5_free(&c->umt5); break;
    case REEL_COMPONENT_TRANSFORMER: reel_dit_free(&c->dit[0]); break;
    case REEL_COMPONENT_TRANSFORMER_2: reel_dit_free(&c->dit[1]); break;
    case REEL_COMPONENT_VAE: reel_vae_free(&c->vae); break;
    case REEL_COMPONENT_COUNT: return;
    }
    reel_weights_free(&c->weights[component]);
    c->loaded[component] = (reel_loaded){0};
}

void reel_components_deinit(reel_components *c)
{
    for (int32_t i = 0; i < REEL_COMPONENT_COUNT; i++) {
        reel_components_drop(c, (reel_component)i);
        reel_store_close(&c->store[i]);
    }
}
