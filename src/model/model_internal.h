/* SPDX-License-Identifier: Apache-2.0
 *
 * The readers of component configs, one file each. Every key is type- and range-checked; a value that would change the result and that reel does
 * not know is an error by name. Keys that are absent take diffusers' or transformers' defaults. */
#ifndef REEL_MODEL_INTERNAL_H
#define REEL_MODEL_INTERNAL_H

#include "base/json.h"
#include "model/model.h"

/* Bounds beyond which a config is taken for damaged; products of them fit int64. */
enum {
    HEADS_MAX = 1024,
    HEAD_DIM_MAX = 1024,
    LAYERS_MAX = 1024,
    WIDTH_MAX = 65536,
    FFN_MAX = 1 << 20,
    CHANNELS_MAX = 4096,
    VOCAB_MAX = 1 << 24,
    FREQ_MAX = 4096
};

reel_status reel_config_dit(const reel_json *json, reel_dit_config *out, reel_error *err);
reel_status reel_config_umt5(const reel_json *json, reel_umt5_config *out, reel_error *err);
reel_status reel_config_vae(const reel_json *json, reel_vae_config *out, reel_error *err);
reel_status reel_config_scheduler(const reel_json *json, reel_scheduler_config *out, reel_error *err);
/* model_index.json: pipeline class, which components there are, boundary_ratio, expand_timesteps. */
reel_status reel_config_index(const reel_json *json, reel_model *out, reel_error *err);
/* Parts that do not belong together; fills `family`. */
reel_status reel_model_match(reel_model *model, reel_error *err);

/* The key must be absent, null or this very text. */
reel_status reel_config_expect(const reel_json *json, const char *key, const char *only, reel_error *err);
/* A whole number that fits int32; default kept when absent. */
reel_status reel_config_int(const reel_json *json, const char *key, int32_t min, int32_t max, int32_t *out, reel_error *err);
/* The key must be absent or this truth. */
reel_status reel_config_expect_bool(const reel_json *json, const char *key, bool only, reel_error *err);
/* The key must be absent, null or an empty list. */
reel_status reel_config_expect_empty(const reel_json *json, const char *key, reel_error *err);

#endif
