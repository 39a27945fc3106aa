/* SPDX-License-Identifier: Apache-2.0
 *
 * The model's components as loaded for a plan: stores (mapped files), weights, and the stage objects on them.
 *
 * Owned by the engine and kept between jobs. `ensure` loads a component with the plan's dtype and options, and reloads it when a former job used
 * others; `drop` frees its weights, the mapping stays. One thread. */
#ifndef REEL_PIPELINE_COMPONENTS_H
#define REEL_PIPELINE_COMPONENTS_H

#include "dit/dit.h"
#include "plan/plan.h"
#include "text/text.h"
#include "vae/vae.h"

/* How a component was loaded. */
typedef struct reel_loaded {
    bool is_loaded;
    reel_dtype compute;
    int32_t is_packed;
    int32_t chunk_frames;
    bool wants_encoder, wants_decoder;
    char attention[2][REEL_NAME_MAX];
} reel_loaded;

typedef struct reel_components {
    const reel_model *model;
    const reel_ops *ops;
    reel_store *store[REEL_COMPONENT_COUNT];
    reel_weights *weights[REEL_COMPONENT_COUNT];
    reel_loaded loaded[REEL_COMPONENT_COUNT];
    reel_umt5 *umt5;
    reel_dit *dit[2];
    reel_vae *vae;
} reel_components;

/* Opens the store of a component that the model has; no-op when open. */
reel_status reel_components_open_store(reel_components *c, reel_component component, reel_error *err);
reel_status reel_components_ensure_text(reel_components *c, const reel_plan *plan, reel_error *err);
reel_status reel_components_ensure_dit(reel_components *c, const reel_plan *plan, int32_t expert, reel_error *err);
reel_status reel_components_ensure_vae(reel_components *c, const reel_plan *plan, bool wants_encoder, bool wants_decoder, reel_error *err);
void reel_components_drop(reel_components *c, reel_component component);
void reel_components_deinit(reel_components *c);
reel_dit_options reel_components_dit_options(const reel_plan *plan);

#endif
