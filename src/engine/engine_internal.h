/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of engine/ share: the engine's struct and the helpers between request, plan, record and output. */
#ifndef REEL_ENGINE_INTERNAL_H
#define REEL_ENGINE_INTERNAL_H

#include <jansson.h>

#include "base/log.h"
#include "device/device.h"
#include "media/media.h"
#include "pipeline/pipeline.h"
#include "reel/reel.h"

struct reel_engine {
    reel_log log;
    reel_model model;
    reel_plan_defaults defaults; /* of the family, then of the folder's reel.json */
    reel_registry *registry;
    const reel_plugin *plugin;
    reel_device *device;
    reel_stream *stream;
    reel_ops ops;
    reel_components components;
    reel_tokenizer *tokenizer; /* opened by the first prompt */
    reel_embed_cache *cache;
    uint64_t fingerprint; /* of the model's files: names, shapes, sizes and samples of the data */
};

/* request.c: the option table as data. */
typedef enum reel_field_type {
    REEL_FIELD_INT,
    REEL_FIELD_U64,
    REEL_FIELD_REAL,
    REEL_FIELD_ENUM,
    REEL_FIELD_TEXT,
    REEL_FIELD_FLAG
} reel_field_type;
typedef struct reel_field {
    const char *name; /* JSON key; the flag has dashes for underscores */
    reel_field_type type;
    size_t offset, offset_has;
    double min, max;
    const char *values; /* ENUM: "a|b|c" */
    const char *help;
} reel_field;
const reel_field *reel_request_fields(int32_t *n);
/* Every field that is not at "from the model", as a JSON object. */
reel_status reel_request_to_json(const reel_request *request, json_t **out, reel_error *err);
/* Checks that cannot be made field by field: prompts there, NaN where numbers are. */
reel_status reel_request_check(const reel_request *request, reel_error *err);

/* plan_job.c: the plan of a request on this engine. */
reel_status reel_engine_plan(reel_engine *engine, const reel_request *request, reel_plan *out, reel_error *err);
/* Plan for single stages (encode, decode): sizes of a clip, no prompt. */
reel_status reel_engine_stage_plan(reel_engine *engine, const char *dtype, const char *vae_dtype, reel_plan *out, reel_error *err);

/* record.c */
json_t *reel_plan_json(const reel_plan *plan);
json_t *reel_build_json(const reel_engine *engine);
/* The settings that go into a clip: build, model, device, plan hash, request, prompt, seed. Returns malloc'd compact JSON. */
reel_status reel_clip_settings(const reel_engine *engine, const reel_request *request, const reel_plan *plan, int32_t clip,
                               const char *prompt, uint64_t seed, char **out, reel_error *err);
/* json_dumps with our errors. */
reel_status reel_json_text(const json_t *json, size_t flags, char **out, reel_error *err);

/* model_files.c */
reel_status reel_engine_check_files(reel_engine *engine, reel_error *err);
reel_status reel_engine_read_defaults(reel_engine *engine, reel_error *err);
reel_status reel_engine_open_tokenizer(reel_engine *engine, reel_error *err);
uint64_t reel_components_copied_bytes(const reel_components *components, reel_component component, const reel_plan *plan);

/* output.c: the files of one clip at a time. */
typedef struct reel_clip_output reel_clip_output;
reel_status reel_clip_output_new(const reel_request *request, const reel_plan *plan, reel_clip_output **out, reel_error *err);
void reel_clip_output_free(reel_clip_output **output); /* abandons an open clip */
reel_status reel_clip_output_begin(reel_clip_output *output, int32_t clip, const char *settings, reel_error *err);
reel_status reel_clip_output_frames(reel_clip_output *output, const uint8_t *rgb, int32_t n, reel_error *err);
reel_status reel_clip_output_end(reel_clip_output *output, reel_error *err);
/* Path of a clip, "" when nothing is written. */
const char *reel_clip_output_path(const reel_clip_output *output);
/* path with its %d or %0Nd replaced by index; REEL_E_ARGUMENT for any other use of %. */
reel_status reel_expand_pattern(const char *path, int32_t index, char *out, size_t out_bytes, reel_error *err);
bool reel_has_pattern(const char *path);

#endif
