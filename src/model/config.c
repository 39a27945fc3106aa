/* SPDX-License-Identifier: Apache-2.0
 *
 * Configs of transformer, text encoder and scheduler, and the small checks that all configs share (model/model_internal.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/model_internal.h"

reel_status reel_config_int(const reel_json *json, const char *key, int32_t min, int32_t max, int32_t *out, reel_error *err)
{
    int64_t n = *out;
    REEL_TRY(reel_json_opt_int(json, key, min, max, &n, err));
    *out = (int32_t)n;
    return REEL_OK;
}

static reel_status unknown_value(const reel_json *json, const char *key, const char *given, const char *allowed, reel_error *err)
{
    return REEL_FAIL(
        err, REEL_E_UNSUPPORTED,
        "a setting of the model that reel does not know\ngiven: \"%s\" in %s is %.80s\nallowed: %s\nremedy: use a Wan model; if it is one, "
        "report this file",
        key, json->path, given, allowed);
}

reel_status reel_config_expect(const reel_json *json, const char *key, const char *only, reel_error *err)
{
    const char *text = only;
    REEL_TRY(reel_json_opt_string(json, key, &text, err));
    return strcmp(text, only) == 0 ? REEL_OK : unknown_value(json, key, text, only, err);
}

reel_status reel_config_expect_bool(const reel_json *json, const char *key, bool only, reel_error *err)
{
    bool value = only;
    REEL_TRY(reel_json_opt_bool(json, key, &value, err));
    return value == only ? REEL_OK : unknown_value(json, key, value ? "true" : "false", only ? "true" : "false", err);
}

reel_status reel_config_expect_empty(const reel_json *json, const char *key, reel_error *err)
{
    const json_t *list = json_object_get(json->root, key);
    if (!reel_json_has(json, key) || (json_is_array(list) && json_array_size(list) == 0)) return REEL_OK;
    return unknown_value(json, key, json_is_array(list) ? "a list with entries" : reel_json_type_name(list), "an empty list", err);
}

/* The class a config says it is for, with or without diffusers' or transformers' way of saying it. */
static reel_status expect_class(const reel_json *json, const char *class_name, reel_error *err)
{
    return reel_config_expect(json, "_class_name", class_name, err);
}

static reel_status read_patch(const reel_json *json, int32_t patch[3], reel_error *err)
{
    double p[3] = {1, 2, 2};
    if (reel_json_has(json, "patch_size")) REEL_TRY(reel_json_doubles(json, "patch_size", 3, p, err));
    for (int32_t i = 0; i < 3; i++) {
        if (p[i] != floor(p[i]) || p[i] < 1 || p[i] > 16 || (i == 0 && p[i] != 1))
            return unknown_value(json, "patch_size", "another patch", "[1, n, n], n from 1 to 16", err);
        patch[i] = (int32_t)p[i];
    }
    return REEL_OK;
}

reel_status reel_config_dit(const reel_json *json, reel_dit_config *out, reel_error *err)
{
    reel_dit_config c = {.n_head = 40,
                         .head_dim = 128,
                         .n_layer = 40,
                         .ffn_dim = 13824,
                         .in_channels = 16,
                         .out_channels = 16,
                         .text_dim = 4096,
                         .freq_dim = 256,
                         .rope_max = 1024,
                         .cross_attn_norm = true,
                         .eps = 1e-6};
    REEL_TRY(expect_class(json, "WanTransformer3DModel", err));
    REEL_TRY(reel_config_int(json, "num_attention_heads", 1, HEADS_MAX, &c.n_head, err));
    REEL_TRY(reel_config_int(json, "attention_head_dim", 6, HEAD_DIM_MAX, &c.head_dim, err));
    REEL_TRY(reel_config_int(json, "num_layers", 1, LAYERS_MAX, &c.n_layer, err));
    REEL_TRY(reel_config_int(json, "ffn_dim", 1, FFN_MAX, &c.ffn_dim, err));
    REEL_TRY(reel_config_int(json, "in_channels", 1, CHANNELS_MAX, &c.in_channels, err));
    if (json_is_null(json_object_get(json->root, "out_channels"))) c.out_channels = c.in_channels; /* as diffusers; absent: 16 */
    REEL_TRY(reel_config_int(json, "out_channels", 1, CHANNELS_MAX, &c.out_channels, err));
    REEL_TRY(reel_config_int(json, "text_dim", 1, WIDTH_MAX, &c.text_dim, err));
    REEL_TRY(reel_config_int(json, "freq_dim", 2, FREQ_MAX, &c.freq_dim, err));
    REEL_TRY(reel_config_int(json, "rope_max_seq_len", 1, 1 << 16, &c.rope_max, err));
    REEL_TRY(reel_config_int(json, "image_dim", 1, WIDTH_MAX, &c.image_dim, err));
    REEL_TRY(reel_config_int(json, "added_kv_proj_dim", 1, WIDTH_MAX, &c.added_kv_dim, err));
    REEL_TRY(reel_config_int(json, "pos_embed_seq_len", 1, WIDTH_MAX, &c.pos_embed_len, err));
    REEL_TRY(reel_json_opt_bool(json, "cross_attn_norm", &c.cross_attn_norm, err));
    REEL_TRY(reel_json_opt_double(json, "eps", 0.0, 1.0, &c.eps, err));
    REEL_TRY(reel_config_expect(json, "qk_norm", "rms_norm_across_heads", err));
    REEL_TRY(read_patch(json, c.patch, err));
    if (c.head_dim % 2 != 0 || c.freq_dim % 2 != 0)
        return unknown_value(json, "attention_head_dim or freq_dim", "an odd number", "even numbers", err);
    *out = c;
    return REEL_OK;
}

reel_status reel_config_umt5(const reel_json *json, reel_umt5_config *out, reel_error *err)
{
    reel_umt5_config c = {.d_model = 512,
                          .d_kv = 64,
                          .n_head = 6,
                          .d_ff = 1024,
                          .n_layer = 8,
                          .vocab = 250112,
                          .n_bucket = 32,
                          .max_distance = 128,
                          .eps = 1e-6};
    REEL_TRY(reel_config_expect(json, "model_type", "umt5", err));
    REEL_TRY(reel_config_int(json, "d_model", 1, WIDTH_MAX, &c.d_model, err));
    REEL_TRY(reel_config_int(json, "d_kv", 1, HEAD_DIM_MAX, &c.d_kv, err));
    REEL_TRY(reel_config_int(json, "num_heads", 1, HEADS_MAX, &c.n_head, err));
    REEL_TRY(reel_config_int(json, "d_ff", 1, FFN_MAX, &c.d_ff, err));
    REEL_TRY(reel_config_int(json, "num_layers", 1, LAYERS_MAX, &c.n_layer, err));
    REEL_TRY(reel_config_int(json, "vocab_size", 1, VOCAB_MAX, &c.vocab, err));
    REEL_TRY(reel_config_int(json, "relative_attention_num_buckets", 4, 4096, &c.n_bucket, err));
    REEL_TRY(reel_config_int(json, "relative_attention_max_distance", 2, 1 << 20, &c.max_distance, err));
    REEL_TRY(reel_json_opt_double(json, "layer_norm_epsilon", 0.0, 1.0, &c.eps, err));
    REEL_TRY(reel_config_expect(json, "feed_forward_proj", "gated-gelu", err));
    REEL_TRY(reel_config_expect(json, "dense_act_fn", "gelu_new", err));
    REEL_TRY(reel_config_expect_bool(json, "is_gated_act", true, err));
    if (c.n_bucket % 4 != 0 || c.max_distance <= c.n_bucket / 4) {
        return unknown_value(json, "relative_attention_num_buckets", "a number of buckets that does not fit the distance",
                             "a multiple of 4, below 4 x the distance", err);
    }
    *out = c;
    return REEL_OK;
}

static reel_status expect_null(const reel_json *json, const char *key, reel_error *err)
{
    return reel_json_has(json, key) ? unknown_value(json, key, reel_json_type_name(json_object_get(json->root, key)), "null", err)
                                    : REEL_OK;
}

static reel_status read_flow(const reel_json *json, reel_scheduler_config *c, reel_error *err)
{
    REEL_TRY(reel_config_expect(json, "prediction_type", "flow_prediction", err));
    REEL_TRY(reel_config_expect_bool(json, "use_flow_sigmas", true, err));
    REEL_TRY(reel_config_expect_bool(json, "thresholding", false, err));
    REEL_TRY(reel_config_expect_bool(json, "lower_order_final", true, err));
    REEL_TRY(reel_config_expect_bool(json, "use_lu_lambdas", false, err));
    REEL_TRY(reel_config_expect_bool(json, "euler_at_final", false, err));
    REEL_TRY(reel_config_expect(json, "final_sigmas_type", "zero", err));
    REEL_TRY(expect_null(json, "solver_p", err));
    REEL_TRY(reel_config_expect_empty(json, "disable_corrector", err));
    REEL_TRY(expect_null(json, "sigma_min", err));
    REEL_TRY(expect_null(json, "sigma_max", err));
    REEL_TRY(reel_config_int(json, "solver_order", 1, 2, &c->solver_order, err));
    return reel_json_opt_double(json, "flow_shift", 0.01, 1000.0, &c->flow_shift, err);
}

/* What bends the noise levels and reel does not do; shared by all three. */
static reel_status read_levels(const reel_json *json, reel_error *err)
{
    REEL_TRY(reel_config_expect_bool(json, "use_dynamic_shifting", false, err));
    REEL_TRY(reel_config_expect_bool(json, "use_karras_sigmas", false, err));
    REEL_TRY(reel_config_expect_bool(json, "use_exponential_sigmas", false, err));
    REEL_TRY(reel_config_expect_bool(json, "use_beta_sigmas", false, err));
    REEL_TRY(reel_config_expect_bool(json, "invert_sigmas", false, err));
    REEL_TRY(reel_config_expect_bool(json, "stochastic_sampling", false, err));
    return expect_null(json, "shift_terminal", err);
}

static bool is_flow_default(const reel_json *json)
{
    return reel_json_has(json, "prediction_type") && reel_json_has(json, "use_flow_sigmas");
}

reel_status reel_config_scheduler(const reel_json *json, reel_scheduler_config *out, reel_error *err)
{
    reel_scheduler_config c = {.flow_shift = 1.0, .n_train_timesteps = 1000, .solver_order = 2};
    const char *name = "";
    REEL_TRY(reel_json_opt_string(json, "_class_name", &name, err));
    REEL_TRY(reel_config_int(json, "num_train_timesteps", 1, 100000, &c.n_train_timesteps, err));
    REEL_TRY(read_levels(json, err));
    const bool is_unipc = strcmp(name, "UniPCMultistepScheduler") == 0, is_dpm = strcmp(name, "DPMSolverMultistepScheduler") == 0;
    if (strcmp(name, "FlowMatchEulerDiscreteScheduler") == 0) {
        REEL_TRY(reel_json_opt_double(json, "shift", 0.01, 1000.0, &c.flow_shift, err));
    } else if (is_unipc || is_dpm) {
        if (!is_flow_default(json))
            return unknown_value(json, "use_flow_sigmas", "absent",
                                 "a scheduler for flow matching: prediction_type and use_flow_sigmas given", err);
        REEL_TRY(read_flow(json, &c, err));
        REEL_TRY(is_unipc ? reel_config_expect(json, "solver_type", "bh2", err)
                          : reel_config_expect(json, "algorithm_type", "dpmsolver++", err));
        if (is_unipc) REEL_TRY(reel_config_expect_bool(json, "predict_x0", true, err));
        if (is_dpm) REEL_TRY(reel_config_expect(json, "solver_type", "midpoint", err));
    } else {
        return unknown_value(json, "_class_name", name,
                             "UniPCMultistepScheduler, FlowMatchEulerDiscreteScheduler, DPMSolverMultistepScheduler", err);
    }
    if (c.n_train_timesteps != 1000) return unknown_value(json, "num_train_timesteps", "another number", "1000", err);
    (void)snprintf(c.class_name, sizeof c.class_name, "%s", name);
    *out = c;
    return REEL_OK;
}
