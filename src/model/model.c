/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a model folder: model_index.json, then every component's config, then whether the parts belong together. */
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_internal.h"

const char *reel_component_folder(reel_component component)
{
    static const char *const name[REEL_COMPONENT_COUNT] = {"text_encoder", "transformer", "transformer_2", "vae"};
    return (int)component >= 0 && component < REEL_COMPONENT_COUNT ? name[component] : "unknown";
}

const char *reel_component_stem(reel_component component)
{
    return component == REEL_COMPONENT_TEXT_ENCODER ? "model" : "diffusion_pytorch_model";
}

int64_t reel_model_latent_frames(const reel_model *model, int64_t n_frame)
{
    return (n_frame - 1) / model->vae.temporal_factor + 1;
}

int32_t reel_model_size_multiple(const reel_model *model)
{
    return model->vae.spatial_factor * model->dit[0].patch[2];
}

/* ---- model_index.json ------------------------------------------------------------------------------------------------------------------ */

/* ["library", "Class"], [null, null] or absent. *is_there only when the class is `class_name`; another class is an error. */
static reel_status read_pair(const reel_json *json, const char *key, const char *class_name, bool *is_there, reel_error *err)
{
    const json_t *pair = json_object_get(json->root, key), *name = json_array_get(pair, 1);
    *is_there = false;
    if (!pair || json_is_null(pair) || (json_is_array(pair) && json_array_size(pair) == 2 && json_is_null(name))) return REEL_OK;
    if (!json_is_array(pair) || json_array_size(pair) != 2 || !json_is_string(name)) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "a component is named wrongly\ngiven: \"%s\" in %s\nallowed: [\"library\", \"Class\"] or [null, null]\nremedy: "
                         "fetch the file again",
                         key, json->path);
    }
    if (strcmp(json_string_value(name), class_name) != 0) {
        return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                         "a component of another kind\ngiven: \"%s\" in %s is %.80s\nallowed: %s\nremedy: use a Wan model", key, json->path,
                         json_string_value(name), class_name);
    }
    *is_there = true;
    return REEL_OK;
}

static reel_status read_class(const reel_json *json, reel_model *out, reel_error *err)
{
    static const char *const known[] = {"WanPipeline", "WanImageToVideoPipeline", "WanVideoToVideoPipeline"};
    const char *name = "";
    REEL_TRY(reel_json_opt_string(json, "_class_name", &name, err));
    for (size_t i = 0; i < REEL_COUNT(known); i++) {
        if (strcmp(known[i], name) != 0) continue;
        (void)snprintf(out->pipeline_class, sizeof out->pipeline_class, "%s", name);
        return REEL_OK;
    }
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "a model of another kind\ngiven: \"_class_name\" in %s is \"%.80s\"\nallowed: WanPipeline, WanImageToVideoPipeline, "
                     "WanVideoToVideoPipeline\nremedy: use a Wan model in the diffusers layout",
                     json->path, name);
}

reel_status reel_config_index(const reel_json *json, reel_model *out, reel_error *err)
{
    static const char *const class_of[REEL_COMPONENT_COUNT] = {"UMT5EncoderModel", "WanTransformer3DModel", "WanTransformer3DModel",
                                                               "AutoencoderKLWan"};
    REEL_TRY(read_class(json, out, err));
    for (int32_t i = 0; i < REEL_COMPONENT_COUNT; i++) {
        REEL_TRY(read_pair(json, reel_component_folder((reel_component)i), class_of[i], &out->has_component[i], err));
        if (out->has_component[i] || i == REEL_COMPONENT_TRANSFORMER_2) continue;
        return REEL_FAIL(err, REEL_E_MODEL,
                         "a component is missing\ngiven: %s names no %s\nallowed: text_encoder, transformer and vae must be there\nremedy: "
                         "fetch the whole model",
                         json->path, reel_component_folder((reel_component)i));
    }
    out->boundary_ratio = NAN;
    REEL_TRY(reel_json_opt_double(json, "boundary_ratio", 0.0, 1.0, &out->boundary_ratio, err));
    REEL_TRY(reel_json_opt_bool(json, "expand_timesteps", &out->expand_timesteps, err));
    if (out->has_component[REEL_COMPONENT_TRANSFORMER_2] && isnan(out->boundary_ratio)) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "two experts without a boundary\ngiven: %s names transformer_2 but no boundary_ratio\nallowed: 0 to 1\nremedy: "
                         "fetch the file again",
                         json->path);
    }
    if (!out->has_component[REEL_COMPONENT_TRANSFORMER_2]) out->boundary_ratio = NAN;
    return REEL_OK;
}

/* ---- parts that belong together ---------------------------------------------------------------------------------------------------------- */

static reel_status mismatch(const char *a, int32_t x, const char *b, int32_t y, reel_error *err)
{
    return REEL_FAIL(err, REEL_E_MODEL,
                     "parts of the model do not belong together\ngiven: %s is %d, %s is %d\nallowed: equal numbers\nremedy: take all "
                     "folders from one model",
                     a, (int)x, b, (int)y);
}

static void name_family(reel_model *m)
{
    const reel_dit_config *d = &m->dit[0];
    const bool has_two = m->has_component[REEL_COMPONENT_TRANSFORMER_2],
               is_14b = d->n_head == 40 && d->n_layer == 40 && d->ffn_dim == 13824;
    const char *name = NULL;
    const bool is_text = d->in_channels == d->out_channels && !d->image_dim, is_image = d->in_channels == 36 && d->out_channels == 16;
    if (d->n_head == 12 && d->n_layer == 30 && d->ffn_dim == 8960 && is_text && !has_two) name = "Wan2.1 T2V-1.3B";
    if (d->n_head == 24 && d->n_layer == 30 && d->ffn_dim == 14336 && is_text && d->in_channels == 48 && !has_two) name = "Wan2.2 TI2V-5B";
    if (is_14b && is_text) name = has_two ? "Wan2.2 T2V-A14B" : "Wan2.1 T2V-14B";
    if (is_14b && is_image && has_two && !d->image_dim) name = "Wan2.2 I2V-A14B";
    if (is_14b && is_image && !has_two && d->image_dim) name = d->pos_embed_len ? "Wan2.1 FLF2V-14B" : "Wan2.1 I2V-14B";
    if (d->head_dim != 128) name = NULL;
    if (!name) {
        name = m->expand_timesteps                ? "Wan2.2 TI2V layout, custom size"
               : d->in_channels > d->out_channels ? "Wan I2V layout, custom size"
               : has_two                          ? "Wan2.2 T2V-A14B layout, custom size"
                                                  : "Wan2.1 T2V layout, custom size";
    }
    (void)snprintf(m->family, sizeof m->family, "%s", name);
}

static bool same_dit(const reel_dit_config *a, const reel_dit_config *b)
{
    return a->n_head == b->n_head && a->head_dim == b->head_dim && a->n_layer == b->n_layer && a->ffn_dim == b->ffn_dim &&
           a->in_channels == b->in_channels && a->out_channels == b->out_channels && a->text_dim == b->text_dim &&
           a->freq_dim == b->freq_dim && a->patch[1] == b->patch[1] && a->patch[2] == b->patch[2] &&
           a->cross_attn_norm == b->cross_attn_norm && a->eps == b->eps && a->rope_max == b->rope_max && a->image_dim == b->image_dim &&
           a->added_kv_dim == b->added_kv_dim && a->pos_embed_len == b->pos_embed_len;
}

reel_status reel_model_match(reel_model *m, reel_error *err)
{
    const reel_dit_config *d = &m->dit[0];
    if (d->text_dim != m->text.d_model)
        return mismatch("text_dim of the transformer", d->text_dim, "d_model of the text encoder", m->text.d_model, err);
    if (d->out_channels != m->vae.z_dim)
        return mismatch("out_channels of the transformer", d->out_channels, "z_dim of the vae", m->vae.z_dim, err);
    if (d->in_channels < m->vae.z_dim)
        return mismatch("in_channels of the transformer", d->in_channels, "z_dim of the vae", m->vae.z_dim, err);
    if (d->patch[1] != d->patch[2]) return mismatch("height of patch_size", d->patch[1], "its width", d->patch[2], err);
    if (m->has_component[REEL_COMPONENT_TRANSFORMER_2] && !same_dit(d, &m->dit[1])) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "the two experts do not belong together\ngiven: configs of transformer and transformer_2 that differ\nallowed: "
                         "equal sizes\nremedy: take both "
                         "from one model");
    }
    name_family(m);
    return REEL_OK;
}

reel_status reel_model_check_supported(const reel_model *m, reel_error *err)
{
    const reel_dit_config *d = &m->dit[0];
    const char *reason = NULL;
    if (m->expand_timesteps) reason = "it uses a timestep per token (TI2V)";
    if (d->in_channels != d->out_channels) reason = "its transformer takes conditioning channels (image to video)";
    if (d->image_dim || d->added_kv_dim || d->pos_embed_len) reason = "its transformer has an image branch";
    if (m->vae.is_residual || m->vae.patch != 1) reason = "it has the Wan2.2 VAE";
    if (m->vae.in_channels != 3 || m->vae.out_channels != 3) reason = "its VAE does not make RGB pictures";
    if (!reason) return REEL_OK;
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "this version cannot run this model\ngiven: %s: %s\nallowed: text to video with the Wan2.1 VAE (Wan2.1 T2V, Wan2.2 "
                     "T2V-A14B)\nremedy: use such "
                     "a model",
                     m->family, reason);
}

/* ---- the folder --------------------------------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static reel_status check_folder(const char *dir, reel_error *err)
{
    if (ends_with(dir, ".pth") || ends_with(dir, ".pt") || ends_with(dir, ".bin") || ends_with(dir, ".ckpt")) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "a pickle is no model that reel reads\ngiven: %s\nallowed: a folder in the diffusers layout with "
                         "safetensors\nremedy: fetch the model's "
                         "\"-Diffusers\" version; reading a pickle can run code",
                         dir);
    }
    if (reel_path_is_file(dir)) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "a model is a folder, not a file\ngiven: %s\nallowed: a folder with model_index.json\nremedy: name the folder",
                         dir);
    }
    if (!reel_path_is_dir(dir)) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "the model's folder is not there\ngiven: %s\nallowed: a folder with model_index.json\nremedy: check the path",
                         dir);
    }
    return REEL_OK;
}

/* Loads dir/folder/file as JSON; a missing one is named with its component. folder "": the model's own folder. */
static reel_status load(const char *dir, const char *folder, const char *file, char *path, reel_json *out, reel_error *err)
{
    char sub[REEL_PATH_MAX];
    REEL_TRY(reel_path_join(sub, sizeof sub, dir, folder, err));
    REEL_TRY(reel_path_join(path, REEL_PATH_MAX, folder[0] ? sub : dir, file, err));
    if (!reel_path_is_file(path)) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "a file of the model is missing\ngiven: no %s of %s; looked for %s\nallowed: the diffusers layout: "
                         "model_index.json and a folder with a "
                         "config for each component\nremedy: fetch the whole model, in its \"-Diffusers\" version",
                         file, folder[0] ? folder : "the model", path);
    }
    return reel_json_load(path, REEL_E_MODEL, out, err);
}

static reel_status read_component(const char *dir, reel_component component, reel_model *m, reel_error *err)
{
    char path[REEL_PATH_MAX];
    reel_json json;
    REEL_TRY(load(dir, reel_component_folder(component), "config.json", path, &json, err));
    reel_status status = REEL_OK;
    switch (component) {
    case REEL_COMPONENT_TEXT_ENCODER: status = reel_config_umt5(&json, &m->text, err); break;
    case REEL_COMPONENT_TRANSFORMER: status = reel_config_dit(&json, &m->dit[0], err); break;
    case REEL_COMPONENT_TRANSFORMER_2: status = reel_config_dit(&json, &m->dit[1], err); break;
    case REEL_COMPONENT_VAE: status = reel_config_vae(&json, &m->vae, err); break;
    case REEL_COMPONENT_COUNT: break;
    }
    reel_json_deinit(&json);
    return status;
}

static reel_status read_all(const char *dir, reel_model *m, reel_error *err)
{
    char path[REEL_PATH_MAX];
    reel_json json;
    REEL_TRY(load(dir, "", "model_index.json", path, &json, err));
    reel_status status = reel_config_index(&json, m, err);
    reel_json_deinit(&json);
    if (status != REEL_OK) return reel_trace(err, status, __FILE__, __LINE__);
    for (int32_t i = 0; i < REEL_COMPONENT_COUNT; i++) {
        if (m->has_component[i]) REEL_TRY(read_component(dir, (reel_component)i, m, err));
    }
    REEL_TRY(load(dir, "scheduler", "scheduler_config.json", path, &json, err));
    status = reel_config_scheduler(&json, &m->scheduler, err);
    reel_json_deinit(&json);
    if (status != REEL_OK) return reel_trace(err, status, __FILE__, __LINE__);
    return reel_model_match(m, err);
}

reel_status reel_model_open(const char *dir, reel_model *out, reel_error *err)
{
    if (strlen(dir) >= sizeof out->dir)
        return REEL_FAIL(err, REEL_E_MODEL, "a path is too long\ngiven: %zu bytes\nallowed: %d\nremedy: use a shorter path", strlen(dir),
                         REEL_PATH_MAX - 1);
    REEL_TRY(check_folder(dir, err));
    reel_model *m = calloc(1, sizeof *m);
    if (!m) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a model's description\nremedy: close other programs");
    (void)snprintf(m->dir, sizeof m->dir, "%s", dir);
    reel_status status = read_all(dir, m, err);
    if (status == REEL_OK) *out = *m;
    free(m);
    return status;
}
