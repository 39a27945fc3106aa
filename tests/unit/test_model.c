/* SPDX-License-Identifier: Apache-2.0
 *
 * Models described by their configs: the bundled one, the published sizes, each key with values that are wrong, and folders that lack something. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/temp_dir.h"
#include "model/model.h"
#include "weights/weights.h"

static reel_error err;
static reel_model model;

#define GOOD(call)                                                  \
    do {                                                            \
        if ((call) != REEL_OK) fail_msg("%s: %s", #call, err.text); \
    } while (0)

static void expect(reel_status status, reel_status wanted, const char *text)
{
    if (status != wanted || !strstr(err.text, text) || !strstr(err.text, "remedy: "))
        fail_msg("wanted %d \"%s\", got %d: %s", (int)wanted, text, (int)status, err.text);
}

/* ---- folders made of JSON ------------------------------------------------------------------------------------------------------------- */

typedef enum part { INDEX, TEXT, DIT, DIT_2, VAE, SCHEDULER, PARTS } part;
static const char *const files[PARTS] = {"model_index.json",          "text_encoder/config.json", "transformer/config.json",
                                         "transformer_2/config.json", "vae/config.json",          "scheduler/scheduler_config.json"};

typedef struct folder {
    char *dir;
    json_t *json[PARTS];
} folder;

static void put(const folder *f, part p)
{
    char *text = json_dumps(f->json[p], 0);
    assert_non_null(text);
    temp_write(f->dir, files[p], text, strlen(text));
    free(text);
}

/* The configs of the bundled model, to be changed. */
static folder folder_new(void)
{
    folder f = {.dir = temp_dir_new()};
    for (int i = 0; i < PARTS; i++) {
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/models/wan-tiny-t2v/%s", REEL_SOURCE_DIR, files[i]);
        f.json[i] = json_load_file(path, 0, NULL);
        assert_non_null(f.json[i]);
        put(&f, (part)i);
    }
    return f;
}

static void folder_free(folder *f)
{
    for (int i = 0; i < PARTS; i++) json_decref(f->json[i]);
    temp_dir_free(f->dir);
}

/* Sets a key to a JSON text ("" removes it); the old value comes back, to be handed to restore. */
static json_t *set(folder *f, part p, const char *key, const char *text)
{
    json_t *old = json_incref(json_object_get(f->json[p], key));
    if (text[0]) {
        json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (!value) fail_msg("no JSON: %s", text);
        assert_int_equal(json_object_set_new(f->json[p], key, value), 0);
    } else {
        (void)json_object_del(f->json[p], key);
    }
    put(f, p);
    return old;
}

static void restore(folder *f, part p, const char *key, json_t *old)
{
    if (old) {
        assert_int_equal(json_object_set_new(f->json[p], key, old), 0);
    } else {
        (void)json_object_del(f->json[p], key);
    }
    put(f, p);
}

static void set_both(folder *f, const char *key, const char *text)
{
    json_decref(set(f, DIT, key, text));
    json_decref(set(f, DIT_2, key, text));
}

/* ---- counting tensors ------------------------------------------------------------------------------------------------------------------ */

typedef struct count {
    int n;
    int64_t elements;
    const reel_store *store; /* NULL, or must hold each of that shape */
} count;

static reel_status count_one(void *user, const reel_tensor_spec *spec, reel_error *e)
{
    (void)e;
    count *c = user;
    int64_t n = 1;
    assert_in_range(spec->n_dim, 1, 5);
    for (int32_t i = 0; i < spec->n_dim; i++) {
        assert_true(spec->extent[i] > 0);
        n *= spec->extent[i];
    }
    c->n++;
    c->elements += n;
    if (!c->store) return REEL_OK;
    const reel_stored *t = reel_store_find(c->store, spec->name);
    if (!t) fail_msg("%s is not in the file", spec->name);
    assert_int_equal(t->n_dim, spec->n_dim);
    for (int32_t i = 0; i < spec->n_dim; i++) assert_int_equal(t->extent[i], spec->extent[i]);
    return REEL_OK;
}

static count count_all(reel_component component, const reel_store *store)
{
    count c = {.store = store};
    GOOD(reel_model_tensors(&model, component, count_one, &c, &err));
    return c;
}

/* ---- the bundled model ------------------------------------------------------------------------------------------------------------------ */

static void test_bundled(void **state)
{
    (void)state;
    GOOD(reel_model_open(REEL_SOURCE_DIR "/models/wan-tiny-t2v", &model, &err));
    assert_string_equal(model.family, "Wan2.2 T2V-A14B layout, custom size");
    assert_string_equal(model.pipeline_class, "WanPipeline");
    assert_true(model.boundary_ratio == 0.875 && !model.expand_timesteps);
    const reel_dit_config *d = &model.dit[1];
    assert_true(d->n_head == 2 && d->head_dim == 128 && d->n_layer == 6 && d->ffn_dim == 448 && d->in_channels == 16 &&
                d->out_channels == 16 && d->text_dim == 128);
    assert_true(d->freq_dim == 256 && d->patch[0] == 1 && d->patch[1] == 2 && d->patch[2] == 2 && d->rope_max == 1024 &&
                d->cross_attn_norm && d->eps == 1e-6);
    assert_true(d->image_dim == 0 && d->added_kv_dim == 0 && d->pos_embed_len == 0);
    const reel_umt5_config *t = &model.text;
    assert_true(t->d_model == 128 && t->d_kv == 64 && t->n_head == 4 && t->d_ff == 320 && t->n_layer == 3 && t->vocab == 949 &&
                t->n_bucket == 32 && t->max_distance == 128);
    const reel_vae_config *v = &model.vae;
    assert_true(v->base_dim == 16 && v->decoder_base_dim == 16 && v->z_dim == 16 && v->n_stage == 4 && v->dim_mult[3] == 4 &&
                v->n_res_block == 2 && v->patch == 1);
    assert_true(!v->temporal_downsample[0] && v->temporal_downsample[1] && v->temporal_downsample[2] && v->spatial_factor == 8 &&
                v->temporal_factor == 4);
    assert_true(v->latents_mean[0] == -0.07839 && v->latents_std[15] == 2.12291);
    assert_string_equal(model.scheduler.class_name, "UniPCMultistepScheduler");
    assert_true(model.scheduler.flow_shift == 5.0 && model.scheduler.n_train_timesteps == 1000 && model.scheduler.solver_order == 2);
    assert_int_equal(reel_model_size_multiple(&model), 16);
    assert_int_equal(reel_model_latent_frames(&model, 17), 5);
    GOOD(reel_model_check_supported(&model, &err));
    for (int i = 0; i < REEL_COMPONENT_COUNT; i++) {
        char dir[1024];
        reel_store *store = NULL;
        (void)snprintf(dir, sizeof dir, "%s/models/wan-tiny-t2v/%s", REEL_SOURCE_DIR, reel_component_folder((reel_component)i));
        GOOD(reel_store_open(dir, reel_component_stem((reel_component)i), &store, &err));
        assert_int_equal(count_all((reel_component)i, store).n, reel_store_count(store));
        reel_store_close(&store);
    }
}

/* ---- published sizes ------------------------------------------------------------------------------------------------------------------- */

typedef struct size_case {
    const char *family;
    int n_expert;
    const char *heads, *layers, *ffn, *in_channels, *out_channels, *image_dim, *added, *pos;
    int64_t parameters; /* of one expert */
} size_case;

static const size_case sizes[] = {
    {"Wan2.1 T2V-1.3B", 1, "12", "30", "8960", "16", "16", "null", "null", "null", 1418996800},
    {"Wan2.1 T2V-14B", 1, "40", "40", "13824", "16", "null", "null", "null", "null", 14288491584},
    {"Wan2.2 T2V-A14B", 2, "40", "40", "13824", "16", "16", "null", "null", "null", 14288491584},
    {"Wan2.2 I2V-A14B", 2, "40", "40", "13824", "36", "16", "null", "null", "null", 14288901184},
    {"Wan2.1 I2V-14B", 1, "40", "40", "13824", "36", "16", "1280", "5120", "null", 16394878784},
    {"Wan2.1 FLF2V-14B", 1, "40", "40", "13824", "36", "16", "1280", "5120", "514", 16394878784 + 514 * 1280},
    {"Wan2.2 TI2V-5B", 1, "24", "30", "14336", "48", "48", "null", "null", "null", 4999787712},
    {"Wan2.1 T2V layout, custom size", 1, "11", "30", "8960", "16", "16", "null", "null", "null", 0},
};

/* Wan2.2's VAE: 48 latent channels. */
static void use_vae_22(folder *f)
{
    char list[48 * 4 + 8] = "[1.5";
    for (int i = 1; i < 48; i++) strcat(list, ",1.5");
    strcat(list, "]");
    json_decref(set(f, VAE, "z_dim", "48"));
    json_decref(set(f, VAE, "base_dim", "160"));
    json_decref(set(f, VAE, "decoder_base_dim", "256"));
    json_decref(set(f, VAE, "is_residual", "true"));
    json_decref(set(f, VAE, "patch_size", "2"));
    json_decref(set(f, VAE, "in_channels", "12"));
    json_decref(set(f, VAE, "out_channels", "12"));
    json_decref(set(f, VAE, "scale_factor_spatial", "16"));
    json_decref(set(f, VAE, "latents_mean", list));
    json_decref(set(f, VAE, "latents_std", list));
    json_decref(set(f, INDEX, "expand_timesteps", "true"));
}

static void use_umt5_xxl(folder *f)
{
    static const char *const keys[][2] = {
        {"d_model", "4096"}, {"num_heads", "64"}, {"d_ff", "10240"}, {"num_layers", "24"}, {"vocab_size", "256384"}};
    for (size_t i = 0; i < REEL_COUNT(keys); i++) json_decref(set(f, TEXT, keys[i][0], keys[i][1]));
}

static void test_published_sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < REEL_COUNT(sizes); i++) {
        const size_case *s = &sizes[i];
        folder f = folder_new();
        const char *const keys[][2] = {{"num_attention_heads", s->heads}, {"num_layers", s->layers},         {"ffn_dim", s->ffn},
                                       {"in_channels", s->in_channels},   {"out_channels", s->out_channels}, {"image_dim", s->image_dim},
                                       {"added_kv_proj_dim", s->added},   {"pos_embed_seq_len", s->pos},     {"text_dim", "4096"}};
        for (size_t k = 0; k < REEL_COUNT(keys); k++) set_both(&f, keys[k][0], keys[k][1]);
        use_umt5_xxl(&f);
        json_decref(set(&f, VAE, "base_dim", "96"));
        const bool is_5b = strcmp(s->in_channels, "48") == 0, runs = strcmp(s->in_channels, "16") == 0;
        if (is_5b) use_vae_22(&f);
        if (s->n_expert == 1) json_decref(set(&f, INDEX, "transformer_2", i % 2 ? "[null, null]" : ""));
        if (s->n_expert == 1) json_decref(set(&f, INDEX, "boundary_ratio", "null"));
        GOOD(reel_model_open(f.dir, &model, &err));
        assert_string_equal(model.family, s->family);
        assert_int_equal(isnan(model.boundary_ratio), s->n_expert == 1);
        const count c = count_all(REEL_COMPONENT_TRANSFORMER, NULL), t = count_all(REEL_COMPONENT_TEXT_ENCODER, NULL);
        if (s->parameters) assert_int_equal(c.elements, s->parameters);
        if (runs) assert_int_equal(c.n, 27 * model.dit[0].n_layer + 15);
        assert_int_equal(t.n, 242);
        assert_int_equal(t.elements, 5680910336);
        if (is_5b) {
            count none = {0};
            expect(reel_model_tensors(&model, REEL_COMPONENT_VAE, count_one, &none, &err), REEL_E_UNSUPPORTED, "Wan2.2 VAE");
            assert_int_equal(reel_model_size_multiple(&model), 32);
        } else {
            const count v = count_all(REEL_COMPONENT_VAE, NULL);
            assert_int_equal(v.n, 194);
            assert_int_equal(v.elements, 126892531);
        }
        if (runs) GOOD(reel_model_check_supported(&model, &err));
        if (!runs) expect(reel_model_check_supported(&model, &err), REEL_E_UNSUPPORTED, s->family);
        folder_free(&f);
    }
}

/* ---- wrong values ----------------------------------------------------------------------------------------------------------------------- */

typedef struct value_case {
    part in;
    const char *key, *value;
    reel_status status;
    const char *text;
} value_case;

static const value_case wrong[] = {
    {INDEX, "_class_name", "\"FluxPipeline\"", REEL_E_UNSUPPORTED, "FluxPipeline"},
    {INDEX, "_class_name", "", REEL_E_UNSUPPORTED, "_class_name"},
    {INDEX, "_class_name", "3", REEL_E_MODEL, "a string"},
    {INDEX, "transformer", "[\"diffusers\", \"FluxTransformer2DModel\"]", REEL_E_UNSUPPORTED, "FluxTransformer2DModel"},
    {INDEX, "transformer", "\"WanTransformer3DModel\"", REEL_E_MODEL, "\"transformer\""},
    {INDEX, "transformer", "[null, null]", REEL_E_MODEL, "names no transformer"},
    {INDEX, "text_encoder", "", REEL_E_MODEL, "names no text_encoder"},
    {INDEX, "vae", "[\"diffusers\"]", REEL_E_MODEL, "\"vae\""},
    {INDEX, "vae", "[\"diffusers\", 3]", REEL_E_MODEL, "\"vae\""},
    {INDEX, "boundary_ratio", "null", REEL_E_MODEL, "no boundary_ratio"},
    {INDEX, "boundary_ratio", "1.5", REEL_E_MODEL, "boundary_ratio"},
    {INDEX, "boundary_ratio", "\"0.9\"", REEL_E_MODEL, "a number"},
    {INDEX, "expand_timesteps", "1", REEL_E_MODEL, "true or false"},
    {TEXT, "d_model", "0", REEL_E_MODEL, "d_model"},
    {TEXT, "d_model", "96", REEL_E_MODEL, "do not belong together"},
    {TEXT, "d_model", "1000000000000", REEL_E_MODEL, "out of range"},
    {TEXT, "d_kv", "64.0", REEL_E_MODEL, "a whole number"},
    {TEXT, "num_heads", "[4]", REEL_E_MODEL, "an array"},
    {TEXT, "d_ff", "-1", REEL_E_MODEL, "out of range"},
    {TEXT, "num_layers", "9223372036854775807", REEL_E_MODEL, "out of range"},
    {TEXT, "vocab_size", "\"949\"", REEL_E_MODEL, "a string"},
    {TEXT, "relative_attention_num_buckets", "31", REEL_E_UNSUPPORTED, "relative_attention_num_buckets"},
    {TEXT, "relative_attention_max_distance", "8", REEL_E_UNSUPPORTED, "buckets"},
    {TEXT, "layer_norm_epsilon", "-1e-6", REEL_E_MODEL, "layer_norm_epsilon"},
    {TEXT, "feed_forward_proj", "\"relu\"", REEL_E_UNSUPPORTED, "relu"},
    {TEXT, "dense_act_fn", "\"silu\"", REEL_E_UNSUPPORTED, "silu"},
    {TEXT, "is_gated_act", "false", REEL_E_UNSUPPORTED, "is_gated_act"},
    {TEXT, "model_type", "\"t5\"", REEL_E_UNSUPPORTED, "model_type"},
    {DIT, "_class_name", "\"WanVACETransformer3DModel\"", REEL_E_UNSUPPORTED, "WanVACETransformer3DModel"},
    {DIT, "num_attention_heads", "3", REEL_E_MODEL, "two experts"},
    {DIT, "num_attention_heads", "null", REEL_E_MODEL, "two experts"}, /* the default, 40 */
    {DIT_2, "cross_attn_norm", "false", REEL_E_MODEL, "two experts"},
    {DIT, "num_attention_heads", "2048", REEL_E_MODEL, "out of range"},
    {DIT, "attention_head_dim", "127", REEL_E_UNSUPPORTED, "attention_head_dim"},
    {DIT, "attention_head_dim", "true", REEL_E_MODEL, "a whole number"},
    {DIT, "freq_dim", "255", REEL_E_UNSUPPORTED, "freq_dim"},
    {DIT, "qk_norm", "\"rms_norm\"", REEL_E_UNSUPPORTED, "qk_norm"},
    {DIT, "patch_size", "[2, 2, 2]", REEL_E_UNSUPPORTED, "patch_size"},
    {DIT, "patch_size", "[1, 2]", REEL_E_MODEL, "patch_size"},
    {DIT, "patch_size", "[1, 2.5, 2.5]", REEL_E_UNSUPPORTED, "patch_size"},
    {DIT, "patch_size", "[1, 1, 2]", REEL_E_MODEL, "do not belong together"},
    {DIT, "patch_size", "2", REEL_E_MODEL, "an array"},
    {DIT, "out_channels", "48", REEL_E_MODEL, "z_dim of the vae"},
    {DIT, "in_channels", "8", REEL_E_MODEL, "z_dim of the vae"},
    {DIT, "text_dim", "4096", REEL_E_MODEL, "d_model of the text encoder"},
    {DIT, "eps", "null", REEL_OK, NULL},
    {DIT, "out_channels", "null", REEL_OK, NULL}, /* null: as in_channels */
    {DIT, "out_channels", "", REEL_OK, NULL}, /* absent: 16 */
    {DIT, "eps", "\"small\"", REEL_E_MODEL, "eps"},
    {DIT, "cross_attn_norm", "\"yes\"", REEL_E_MODEL, "true or false"},
    {VAE, "_class_name", "\"AutoencoderKL\"", REEL_E_UNSUPPORTED, "AutoencoderKL"},
    {VAE, "z_dim", "8", REEL_E_MODEL, "latents_mean"},
    {VAE, "z_dim", "65", REEL_E_MODEL, "out of range"},
    {VAE, "dim_mult", "[1, 2, 4]", REEL_E_MODEL, "temperal_downsample"},
    {VAE, "dim_mult", "[1]", REEL_E_MODEL, "dim_mult"},
    {VAE, "dim_mult", "[1, 2, 4, 0]", REEL_E_MODEL, "dim_mult"},
    {VAE, "dim_mult", "[1, 2, 4, 4.0]", REEL_E_MODEL, "dim_mult"},
    {VAE, "dim_mult", "[1, 1, 1, 1, 1, 1, 1, 1, 1]", REEL_E_MODEL, "dim_mult"},
    {VAE, "temperal_downsample", "[false, true, 1]", REEL_E_MODEL, "temperal_downsample"},
    {VAE, "temperal_downsample", "[true, true, true]", REEL_E_MODEL, "scale_factor_temporal"},
    {VAE, "scale_factor_spatial", "16", REEL_E_MODEL, "scale_factor_spatial"},
    {VAE, "attn_scales", "[1.0]", REEL_E_UNSUPPORTED, "attn_scales"},
    {VAE, "attn_scales", "1", REEL_E_UNSUPPORTED, "attn_scales"},
    {VAE, "latents_std", "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]", REEL_E_MODEL, "latents_std"},
    {VAE, "latents_mean", "[1]", REEL_E_MODEL, "wrong length"},
    {VAE, "latents_mean", "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, null]", REEL_E_MODEL, "finite numbers"},
    {VAE, "latents_mean", "", REEL_OK, NULL},
    {VAE, "base_dim", "1.5", REEL_E_MODEL, "a whole number"},
    {VAE, "is_residual", "null", REEL_OK, NULL},
    {SCHEDULER, "_class_name", "\"DDIMScheduler\"", REEL_E_UNSUPPORTED, "DDIMScheduler"},
    {SCHEDULER, "_class_name", "", REEL_E_UNSUPPORTED, "_class_name"},
    {SCHEDULER, "prediction_type", "\"epsilon\"", REEL_E_UNSUPPORTED, "epsilon"},
    {SCHEDULER, "prediction_type", "", REEL_E_UNSUPPORTED, "prediction_type"},
    {SCHEDULER, "use_flow_sigmas", "false", REEL_E_UNSUPPORTED, "use_flow_sigmas"},
    {SCHEDULER, "use_flow_sigmas", "", REEL_E_UNSUPPORTED, "use_flow_sigmas"},
    {SCHEDULER, "use_karras_sigmas", "true", REEL_E_UNSUPPORTED, "use_karras_sigmas"},
    {SCHEDULER, "use_beta_sigmas", "true", REEL_E_UNSUPPORTED, "use_beta_sigmas"},
    {SCHEDULER, "use_exponential_sigmas", "true", REEL_E_UNSUPPORTED, "use_exponential_sigmas"},
    {SCHEDULER, "use_dynamic_shifting", "true", REEL_E_UNSUPPORTED, "use_dynamic_shifting"},
    {SCHEDULER, "shift_terminal", "0.1", REEL_E_UNSUPPORTED, "shift_terminal"},
    {SCHEDULER, "sigma_min", "0.1", REEL_E_UNSUPPORTED, "sigma_min"},
    {SCHEDULER, "solver_type", "\"bh1\"", REEL_E_UNSUPPORTED, "bh1"},
    {SCHEDULER, "solver_order", "3", REEL_E_MODEL, "solver_order"},
    {SCHEDULER, "solver_p", "[\"diffusers\", \"X\"]", REEL_E_UNSUPPORTED, "solver_p"},
    {SCHEDULER, "disable_corrector", "[0]", REEL_E_UNSUPPORTED, "disable_corrector"},
    {SCHEDULER, "predict_x0", "false", REEL_E_UNSUPPORTED, "predict_x0"},
    {SCHEDULER, "thresholding", "true", REEL_E_UNSUPPORTED, "thresholding"},
    {SCHEDULER, "lower_order_final", "false", REEL_E_UNSUPPORTED, "lower_order_final"},
    {SCHEDULER, "final_sigmas_type", "\"sigma_min\"", REEL_E_UNSUPPORTED, "final_sigmas_type"},
    {SCHEDULER, "flow_shift", "0", REEL_E_MODEL, "flow_shift"},
    {SCHEDULER, "flow_shift", "\"5\"", REEL_E_MODEL, "a number"},
    {SCHEDULER, "num_train_timesteps", "500", REEL_E_UNSUPPORTED, "num_train_timesteps"},
};

static void test_wrong_values(void **state)
{
    (void)state;
    folder f = folder_new();
    for (size_t i = 0; i < REEL_COUNT(wrong); i++) {
        const value_case *w = &wrong[i];
        json_t *old = set(&f, w->in, w->key, w->value);
        (void)memset(&model, 0x5A, sizeof model);
        const reel_status status = reel_model_open(f.dir, &model, &err);
        if (w->text) {
            if (status != w->status || !strstr(err.text, w->text) || !strstr(err.text, "remedy: ")) {
                fail_msg("%s = %s: wanted %d \"%s\", got %d: %s", w->key, w->value, (int)w->status, w->text, (int)status, err.text);
            }
            assert_int_equal(((const unsigned char *)&model)[0], 0x5A); /* written only on success */
        } else if (status != REEL_OK) {
            fail_msg("%s = %s: %s", w->key, w->value, err.text);
        }
        restore(&f, w->in, w->key, old);
    }
    GOOD(reel_model_open(f.dir, &model, &err));
    folder_free(&f);
}

static void test_schedulers(void **state)
{
    (void)state;
    static const struct {
        const char *config, *name;
        double shift;
        int order;
    } good[] = {
        {"{\"_class_name\": \"FlowMatchEulerDiscreteScheduler\", \"shift\": 3.0, \"num_train_timesteps\": 1000}",
         "FlowMatchEulerDiscreteScheduler", 3.0, 2},
        {"{\"_class_name\": \"FlowMatchEulerDiscreteScheduler\"}", "FlowMatchEulerDiscreteScheduler", 1.0, 2},
        {"{\"_class_name\": \"DPMSolverMultistepScheduler\", \"use_flow_sigmas\": true, \"prediction_type\": \"flow_prediction\", "
         "\"flow_shift\": 8, \"solver_order\": 1}",
         "DPMSolverMultistepScheduler", 8.0, 1},
        {"{\"_class_name\": \"UniPCMultistepScheduler\", \"use_flow_sigmas\": true, \"prediction_type\": \"flow_prediction\"}",
         "UniPCMultistepScheduler", 1.0, 2},
    };
    folder f = folder_new();
    for (size_t i = 0; i < REEL_COUNT(good); i++) {
        temp_write(f.dir, files[SCHEDULER], good[i].config, strlen(good[i].config));
        GOOD(reel_model_open(f.dir, &model, &err));
        assert_string_equal(model.scheduler.class_name, good[i].name);
        assert_true(model.scheduler.flow_shift == good[i].shift && model.scheduler.solver_order == good[i].order);
    }
    static const char dpm[] = "{\"_class_name\": \"DPMSolverMultistepScheduler\", \"use_flow_sigmas\": true, \"prediction_type\": "
                              "\"flow_prediction\", \"%s\": %s}";
    static const char *const bad[][2] = {
        {"algorithm_type", "\"sde-dpmsolver++\""}, {"solver_type", "\"heun\""}, {"use_lu_lambdas", "true"}, {"euler_at_final", "true"}};
    for (size_t i = 0; i < REEL_COUNT(bad); i++) {
        char text[512];
        (void)snprintf(text, sizeof text, dpm, bad[i][0], bad[i][1]);
        temp_write(f.dir, files[SCHEDULER], text, strlen(text));
        expect(reel_model_open(f.dir, &model, &err), REEL_E_UNSUPPORTED, bad[i][0]);
    }
    folder_free(&f);
}

/* Configs of nothing but what must be said: the defaults of diffusers and transformers. */
static void test_defaults(void **state)
{
    (void)state;
    folder f = folder_new();
    temp_write(f.dir, files[DIT], "{}", 2);
    temp_write(f.dir, files[DIT_2], "{}", 2);
    temp_write(f.dir, files[TEXT], "{\"d_model\": 4096}", 17);
    temp_write(f.dir, files[VAE], "{}", 2);
    GOOD(reel_model_open(f.dir, &model, &err));
    assert_string_equal(model.family, "Wan2.2 T2V-A14B");
    assert_true(model.text.d_kv == 64 && model.text.n_head == 6 && model.text.d_ff == 1024 && model.text.n_layer == 8 &&
                model.text.vocab == 250112);
    assert_true(model.vae.base_dim == 96 && model.vae.latents_mean[0] == -0.7571 && model.vae.latents_std[15] == 1.9160);
    folder_free(&f);
}

/* ---- folders that lack something --------------------------------------------------------------------------------------------------------- */

static void test_folders(void **state)
{
    (void)state;
    folder f = folder_new();
    for (int i = 0; i < PARTS; i++) {
        char wanted[64];
        const char *slash = strchr(files[i], '/');
        assert_int_equal(unlink(temp_path(f.dir, files[i])), 0);
        (void)snprintf(wanted, sizeof wanted, "no %s of %.*s", slash ? slash + 1 : files[i], slash ? (int)(slash - files[i]) : 9,
                       slash ? files[i] : "the model");
        expect(reel_model_open(f.dir, &model, &err), REEL_E_MODEL, wanted);
        assert_non_null(strstr(err.text, temp_path(f.dir, files[i])));
        temp_write(f.dir, files[i], "{\"a\": 1, \"a\": 2}", 16);
        expect(reel_model_open(f.dir, &model, &err), REEL_E_MODEL, "duplicate");
        temp_write(f.dir, files[i], "\xFF\xFE", 2);
        expect(reel_model_open(f.dir, &model, &err), REEL_E_MODEL, "not valid JSON");
        temp_write(f.dir, files[i], "", 0);
        expect(reel_model_open(f.dir, &model, &err), REEL_E_MODEL, "not valid JSON");
        put(&f, (part)i);
    }
    temp_write(f.dir, "a.safetensors", "x", 1);
    temp_write(f.dir, "b.pth", "x", 1);
    expect(reel_model_open(temp_path(f.dir, "a.safetensors"), &model, &err), REEL_E_MODEL, "a folder, not a file");
    expect(reel_model_open(temp_path(f.dir, "b.pth"), &model, &err), REEL_E_MODEL, "pickle");
    expect(reel_model_open(temp_path(f.dir, "none"), &model, &err), REEL_E_MODEL, "not there");
    expect(reel_model_open("", &model, &err), REEL_E_MODEL, "not there");
    expect(reel_model_open(temp_path(f.dir, "transformer"), &model, &err), REEL_E_MODEL, "no model_index.json of the model");
    char *long_path = malloc(5001);
    assert_non_null(long_path);
    memset(long_path, 'a', 5000);
    long_path[5000] = '\0';
    expect(reel_model_open(long_path, &model, &err), REEL_E_MODEL, "too long");
    free(long_path);
    folder_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bundled),      cmocka_unit_test(test_published_sizes),
                                       cmocka_unit_test(test_wrong_values), cmocka_unit_test(test_schedulers),
                                       cmocka_unit_test(test_defaults),     cmocka_unit_test(test_folders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
