/* SPDX-License-Identifier: Apache-2.0
 *
 * `reel inspect`: what a model folder holds, and everything that is missing or wrong with it. A broken model is described as far as it can be
 * read; its faults are the list "problems". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/check_model.h"
#include "engine/engine_internal.h"

static void add_problem(json_t *problems, const char *text)
{
    (void)json_array_append_new(problems, json_string(text));
}

static void collect_problem(void *user, const char *text)
{
    add_problem(user, text);
}

/* "BF16 112, F32 65": how many tensors of each dtype. */
static json_t *dtypes_json(const reel_store *store)
{
    json_t *o = json_object();
    for (int32_t i = 0; o && i < reel_store_count(store); i++) {
        const char *name = reel_dtype_name(reel_store_at(store, i)->dtype);
        (void)json_object_set_new(o, name, json_integer(json_integer_value(json_object_get(o, name)) + 1));
    }
    return o;
}

static json_t *component_json(const reel_model *model, reel_component component, json_t *problems)
{
    char dir[REEL_PATH_MAX];
    reel_error err = {0};
    reel_store *store = NULL;
    if (reel_path_join(dir, sizeof dir, model->dir, reel_component_folder(component), &err) != REEL_OK ||
        reel_store_open(dir, reel_component_stem(component), &store, &err) != REEL_OK) {
        add_problem(problems, err.text);
        return json_pack("{s:b}", "is_readable", 0);
    }
    int64_t parameters = 0;
    for (int32_t i = 0; i < reel_store_count(store); i++) {
        int64_t n = 1;
        const reel_stored *t = reel_store_at(store, i);
        for (int32_t k = 0; k < t->n_dim; k++) n *= t->extent[k];
        parameters += n;
    }
    reel_check_component_all(model, component, store, collect_problem, problems);
    json_t *o = json_pack("{s:b,s:i,s:I,s:I,s:o}", "is_readable", 1, "tensors", (int)reel_store_count(store), "parameters",
                          (json_int_t)parameters, "bytes", (json_int_t)reel_store_bytes(store), "dtypes", dtypes_json(store));
    reel_store_close(&store);
    return o;
}

static json_t *sizes_json(const reel_model *m)
{
    const reel_dit_config *d = &m->dit[0];
    json_t *o = json_object();
    if (!o) return NULL;
    (void)json_object_set_new(o, "transformer",
                              json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "heads", (int)d->n_head, "head_dim", (int)d->head_dim, "layers",
                                        (int)d->n_layer, "ffn_dim", (int)d->ffn_dim, "in_channels", (int)d->in_channels, "out_channels",
                                        (int)d->out_channels, "text_dim", (int)d->text_dim));
    (void)json_object_set_new(o, "text_encoder",
                              json_pack("{s:i,s:i,s:i,s:i,s:i}", "width", (int)m->text.d_model, "heads", (int)m->text.n_head, "layers",
                                        (int)m->text.n_layer, "ffn_dim", (int)m->text.d_ff, "vocabulary", (int)m->text.vocab));
    (void)json_object_set_new(o, "vae",
                              json_pack("{s:i,s:i,s:i,s:i}", "base_dim", (int)m->vae.base_dim, "latent_channels", (int)m->vae.z_dim,
                                        "spatial_factor", (int)m->vae.spatial_factor, "temporal_factor", (int)m->vae.temporal_factor));
    return o;
}

static json_t *describe(const reel_model *m, json_t *problems)
{
    json_t *components = json_object();
    for (int32_t i = 0; components && i < REEL_COMPONENT_COUNT; i++) {
        if (!m->has_component[i]) continue;
        (void)json_object_set_new(components, reel_component_folder((reel_component)i), component_json(m, (reel_component)i, problems));
    }
    json_t *o = json_pack("{s:s,s:s,s:b,s:o,s:o,s:f,s:s}", "family", m->family, "pipeline", m->pipeline_class, "expand_timesteps",
                          (int)m->expand_timesteps, "sizes", sizes_json(m), "components", components, "flow_shift", m->scheduler.flow_shift,
                          "scheduler", m->scheduler.class_name);
    if (o) (void)json_object_set_new(o, "boundary_ratio", isnan(m->boundary_ratio) ? json_null() : json_real(m->boundary_ratio));
    return o;
}

static void check_tokenizer(const reel_model *m, json_t *problems)
{
    char dir[REEL_PATH_MAX];
    reel_error err = {0};
    reel_tokenizer *tokenizer = NULL;
    reel_status status = reel_path_join(dir, sizeof dir, m->dir, "tokenizer", &err);
    if (status == REEL_OK) status = reel_tokenizer_open(dir, &tokenizer, &err);
    if (status != REEL_OK) {
        add_problem(problems, err.text);
        return;
    }
    if (reel_tokenizer_vocab(tokenizer) > m->text.vocab) {
        char text[256];
        (void)snprintf(text, sizeof text, "tokenizer and text encoder do not belong together: %d token ids, %d rows of the embedding",
                       (int)reel_tokenizer_vocab(tokenizer), (int)m->text.vocab);
        add_problem(problems, text);
    }
    reel_tokenizer_close(&tokenizer);
}

REEL_API reel_status reel_inspect(const char *model, char **json, reel_error *err)
{
    reel_model *m = calloc(1, sizeof *m);
    json_t *problems = json_array(), *o = NULL;
    reel_error fault = {0};
    reel_status status = REEL_OK;
    if (!m || !problems) {
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a description\nremedy: close other programs");
        goto cleanup;
    }
    if (reel_model_open(model, m, &fault) != REEL_OK) {
        add_problem(problems, fault.text);
        o = json_object();
    } else {
        o = describe(m, problems);
        check_tokenizer(m, problems);
        bool can_run = reel_model_check_supported(m, &fault) == REEL_OK;
        (void)json_object_set_new(o, "runs", json_boolean(can_run && json_array_size(problems) == 0));
        if (!can_run) (void)json_object_set_new(o, "unsupported", json_string(fault.text));
    }
    (void)json_object_set_new(o, "path", json_string(model));
    (void)json_object_set(o, "problems", problems);
    REEL_TRY_GOTO(reel_json_text(o, JSON_INDENT(2), json, err), cleanup);
cleanup:
    json_decref(problems);
    json_decref(o);
    free(m);
    return status;
}
