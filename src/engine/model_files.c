/* SPDX-License-Identifier: Apache-2.0
 *
 * The model's folder beyond its configs: every stored tensor against what the configs demand, the optional defaults in reel.json, what a
 * component takes when loaded, and a fingerprint that tells two models apart. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "engine/check_model.h"
#include "engine/engine_internal.h"

static uint64_t mix(uint64_t h, const void *data, size_t n)
{
    const unsigned char *c = data;
    for (size_t i = 0; i < n; i++) h = (h ^ c[i]) * 1099511628211ULL; /* FNV-1a */
    return h;
}

/* Names, shapes, and the first bytes of every tensor: cheap for the largest model, different for any retrained one. */
static uint64_t fingerprint(const reel_store *store, uint64_t h)
{
    enum { SAMPLE = 256 };
    for (int32_t i = 0; i < reel_store_count(store); i++) {
        const reel_stored *t = reel_store_at(store, i);
        const int64_t head[3] = {(int64_t)t->dtype, t->n_dim, (int64_t)t->bytes};
        h = mix(mix(h, t->name, strlen(t->name)), head, sizeof head);
        h = mix(h, t->extent, sizeof t->extent[0] * (size_t)t->n_dim);
        h = mix(h, t->data, t->bytes < SAMPLE ? t->bytes : SAMPLE);
    }
    return h;
}

reel_status reel_engine_check_files(reel_engine *engine, reel_error *err)
{
    engine->fingerprint = 14695981039346656037ULL;
    for (int32_t i = 0; i < REEL_COMPONENT_COUNT; i++) {
        const reel_component component = (reel_component)i;
        if (!engine->model.has_component[i]) continue;
        REEL_TRY(reel_components_open_store(&engine->components, component, err));
        REEL_TRY(reel_check_component(&engine->model, component, engine->components.store[i], err));
        engine->fingerprint = fingerprint(engine->components.store[i], engine->fingerprint);
    }
    return REEL_OK;
}

/* reel.json, if there: {"size": "128x128", "frames": 17, "steps": 25, "guidance_scale": 4, "guidance_scale_2": 4, "fps": 16, "flow_shift": 5,
 * "scheduler": "unipc"}. Other keys are errors. */
static reel_status read_defaults(reel_engine *e, const reel_json *json, reel_error *err)
{
    static const char *const known[] = {"size", "frames", "steps", "guidance_scale", "guidance_scale_2", "fps", "flow_shift", "scheduler"};
    const char *key, *size = NULL, *scheduler = NULL;
    json_t *value;
    json_object_foreach(json->root, key, value)
    {
        bool found = false;
        for (size_t i = 0; i < REEL_COUNT(known); i++) found = found || strcmp(known[i], key) == 0;
        if (!found) {
            return REEL_FAIL(err, REEL_E_MODEL,
                             "an unknown default\ngiven: \"%.60s\" in %s\nallowed: size, frames, steps, guidance_scale, guidance_scale_2, "
                             "fps, flow_shift, "
                             "scheduler\nremedy: correct the file or remove it",
                             key, json->path);
        }
    }
    reel_plan_defaults *d = &e->defaults;
    int64_t steps = d->n_step;
    REEL_TRY(reel_json_opt_int(json, "frames", 1, 4097, &d->n_frame, err));
    REEL_TRY(reel_json_opt_int(json, "steps", 1, REEL_STEP_MAX, &steps, err));
    REEL_TRY(reel_json_opt_double(json, "guidance_scale", 0.0, 1000.0, &d->guidance[0], err));
    d->guidance[1] = reel_json_has(json, "guidance_scale") ? d->guidance[0] : d->guidance[1];
    REEL_TRY(reel_json_opt_double(json, "guidance_scale_2", 0.0, 1000.0, &d->guidance[1], err));
    REEL_TRY(reel_json_opt_double(json, "fps", 1.0, 240.0, &d->fps, err));
    REEL_TRY(reel_json_opt_double(json, "flow_shift", 0.01, 1000.0, &d->flow_shift, err));
    REEL_TRY(reel_json_opt_string(json, "size", &size, err));
    REEL_TRY(reel_json_opt_string(json, "scheduler", &scheduler, err));
    d->n_step = (int32_t)steps;
    if (scheduler) (void)snprintf(d->scheduler, sizeof d->scheduler, "%s", scheduler);
    long long w = 0, h = 0;
    char rest;
    if (size && (sscanf(size, "%5lldx%5lld%c", &w, &h, &rest) != 2 || w < 1 || h < 1)) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "a default size is not a size\ngiven: \"%.40s\" in %s\nallowed: WIDTHxHEIGHT\nremedy: correct the file", size,
                         json->path);
    }
    if (size) {
        d->px_w = w;
        d->px_h = h;
    }
    return REEL_OK;
}

reel_status reel_engine_read_defaults(reel_engine *engine, reel_error *err)
{
    char path[REEL_PATH_MAX];
    reel_json json;
    REEL_TRY(reel_path_join(path, sizeof path, engine->model.dir, "reel.json", err));
    if (!reel_path_is_file(path)) return REEL_OK;
    REEL_TRY(reel_json_load(path, REEL_E_MODEL, &json, err));
    reel_status status = read_defaults(engine, &json, err);
    reel_json_deinit(&json);
    return status;
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n >= m && strcmp(name + n - m, suffix) == 0;
}

/* Bytes of one tensor when loaded: vectors as f32; convolutions in the compute dtype, those behind an upsampling also as four 2×2 kernels; matrices in
 * the compute dtype when packed, as stored otherwise; what the device does not take as stored is converted first; embedding rows stay in the file. */
static uint64_t copied_bytes(const reel_stored *t, reel_component component, reel_dtype compute, bool is_packed, uint32_t weight_dtypes)
{
    uint64_t n = 1;
    for (int32_t i = 0; i < t->n_dim; i++) n *= (uint64_t)t->extent[i];
    const bool is_weight = has_suffix(t->name, ".weight");
    if (component == REEL_COMPONENT_VAE && (strncmp(t->name, "encoder.", 8) == 0 || strncmp(t->name, "quant_conv.", 11) == 0)) return 0;
    if (component == REEL_COMPONENT_TEXT_ENCODER && (strcmp(t->name, "shared.weight") == 0 || strstr(t->name, "relative_attention_bias")))
        return 0;
    if (!is_weight || t->n_dim < 2) return 4 * n;
    const bool is_f8 = t->dtype == REEL_DTYPE_F8_E4M3 || t->dtype == REEL_DTYPE_F8_E5M2,
               takes_bf16 = (weight_dtypes >> REEL_DTYPE_BF16) & 1U;
    const uint64_t converted = (weight_dtypes >> t->dtype) & 1U ? 0 : n * (is_f8 && takes_bf16 ? 2 : 4); /* stays beside a packed copy */
    if (component == REEL_COMPONENT_VAE) {
        const uint64_t one = n * reel_dtype_bytes(compute);
        return converted + (strstr(t->name, ".resample.") ? one * 16 / 9 : one);
    }
    const bool is_f32 = strstr(t->name, "time_embedder") || strstr(t->name, "time_proj");
    return converted + (is_packed ? n * reel_dtype_bytes(is_f32 ? REEL_DTYPE_F32 : compute) : 0);
}

uint64_t reel_components_copied_bytes(const reel_components *components, reel_component component, const reel_plan *plan)
{
    const reel_store *store = components->store[component];
    const reel_dtype compute = component == REEL_COMPONENT_VAE            ? plan->vae_compute
                               : component == REEL_COMPONENT_TEXT_ENCODER ? plan->text_compute
                                                                          : plan->dit_compute;
    uint64_t bytes = 0;
    for (int32_t i = 0; i < reel_store_count(store); i++) {
        bytes += copied_bytes(reel_store_at(store, i), component, compute, plan->is_packed != 0, components->ops->props.weight_dtypes);
    }
    return bytes;
}
