/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine: one model on one device. Several engines may live in one process; each is used by one thread at a time.
 *
 * Opening reads configs and checks every stored tensor's shape; weights are loaded by the first job that needs them. The library has no
 * globals, prints nothing, and never exits: messages go to the log callback. */
#ifndef REEL_ENGINE_H
#define REEL_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "reel/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct reel_engine reel_engine;

typedef struct reel_engine_options {
    uint32_t bytes; /* sizeof the struct, set by reel_engine_options_init */
    const char *model; /* folder in the diffusers layout */
    const char *device; /* "cpu", "auto" or a plug-in's name */
    int32_t n_thread; /* 0: one per core that this process may use */
    const char *isa_max; /* CPU: highest instruction set to use; NULL: all */
    const char *plugin_dir; /* where further devices are looked for; NULL: none */
    void (*log)(void *user, int level, const char *text); /* 0 error … 3 detail; NULL: silent */
    void *log_user;
} reel_engine_options;

void reel_engine_options_init(reel_engine_options *options);
reel_status reel_engine_open(const reel_engine_options *options, reel_engine **out, reel_error *err);
void reel_engine_close(reel_engine **engine); /* NULLs *engine; NULL is fine */

/* What a model folder holds, as JSON: family, sizes, parameters, dtypes, what is missing or wrong ("problems": []). Works on broken ones. */
reel_status reel_inspect(const char *model, char **json, reel_error *err);
/* The devices of this build and of plugin_dir as JSON: instruction sets, memory, attention implementations with reasons. */
reel_status reel_devices(const reel_engine_options *options, char **json, reel_error *err);

/* Stages on their own. Files are safetensors whole or not at all.
 * encode_text: prompt_ids, prompt_mask, prompt_states (and the negative_ ones when negative is not NULL).
 * encode_clip: pictures of a clip → mean, logvar, latents (normalised).   decode_latents: `latents` or `latents_final` → a clip by ending. */
reel_status reel_encode_text(reel_engine *engine, const char *prompt, const char *negative, const char *dtype, const char *output,
                             reel_error *err);
reel_status reel_encode_clip(reel_engine *engine, const char *clip, const char *vae_dtype, const char *output, reel_error *err);
reel_status reel_decode_latents(reel_engine *engine, const char *latents, const char *vae_dtype, double fps, const char *output,
                                reel_error *err);

/* Phases timed apart on random weights or the engine's model, all samples, as JSON; `what` is "generate" or "attention". */
reel_status reel_bench(reel_engine *engine, const char *what, int32_t repeats, char **json, reel_error *err);

const char *reel_version(void);
/* "oneDNN 2.6.3, libavcodec 59.37.100, …" as JSON object of names and versions. */
reel_status reel_libraries(char **json, reel_error *err);
void reel_text_free(char *text);
const char *reel_status_text(reel_status status); /* "the model's files are missing, damaged or …" */

#ifdef __cplusplus
}
#endif
#endif
