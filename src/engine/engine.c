/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening and closing an engine: model configs, device, operations, checked files. Weights are loaded by the first job that needs them. */
#include <stdlib.h>
#include <string.h>

#include "engine/engine_internal.h"

/* Text states that are remembered: some 16 prompts of the largest encoder. */
#define EMBED_CACHE_BYTES ((size_t)64 << 20)

REEL_API void reel_engine_options_init(reel_engine_options *options)
{
    *options = (reel_engine_options){.bytes = sizeof *options, .device = "auto"};
}

static void host_log(void *user, int32_t level, const char *text)
{
    const reel_engine *e = user;
    if (e->log.write) e->log.write(e->log.user, (int)level, text);
}

static reel_status open_device(reel_engine *e, const reel_engine_options *options, reel_error *err)
{
    const reel_host host = {.size = sizeof host, .user = e, .log = host_log};
    const reel_device_options device = {.size = sizeof device, .n_thread = options->n_thread, .isa_max = options->isa_max};
    if (options->n_thread < 0 || options->n_thread > 1024) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "a wrong number of threads\ngiven: %d\nallowed: 0 (one per core) to 1024\nremedy: correct --threads",
                         (int)options->n_thread);
    }
    REEL_TRY(reel_registry_open(options->plugin_dir, &e->log, &e->registry, err));
    REEL_TRY(reel_registry_find(e->registry, options->device, &e->plugin, err));
    REEL_TRY(e->plugin->device->open(&host, &device, &e->device, err));
    REEL_TRY(e->plugin->device->stream_new(e->device, &e->stream, err));
    return reel_ops_bind(e->plugin->device, e->device, e->stream, &e->log, &e->ops, err);
}

static reel_status open_engine(reel_engine *e, const reel_engine_options *options, reel_error *err)
{
    if (options->bytes != sizeof *options) {
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "options of another version of reel\ngiven: %u bytes\nallowed: %zu\nremedy: call reel_engine_options_init, and build "
            "against the library's own headers",
            options->bytes, sizeof *options);
    }
    if (!options->model || !options->model[0]) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "no model was named\ngiven: nothing\nallowed: a folder in the diffusers layout\nremedy: give --model");
    }
    e->log = (reel_log){.write = options->log, .user = options->log_user};
    REEL_TRY(reel_model_open(options->model, &e->model, err));
    REEL_TRY(reel_model_check_supported(&e->model, err));
    e->defaults = reel_plan_defaults_of(&e->model);
    REEL_TRY(reel_engine_read_defaults(e, err));
    REEL_TRY(open_device(e, options, err));
    e->components.model = &e->model;
    e->components.ops = &e->ops;
    REEL_TRY(reel_engine_check_files(e, err));
    return reel_embed_cache_new(EMBED_CACHE_BYTES, &e->cache, err);
}

REEL_API reel_status reel_engine_open(const reel_engine_options *options, reel_engine **out, reel_error *err)
{
    reel_engine *e = calloc(1, sizeof *e);
    if (!e) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for an engine\nremedy: close other programs");
    reel_status status = open_engine(e, options, err);
    if (status != REEL_OK) {
        reel_engine_close(&e);
        return status;
    }
    *out = e;
    return REEL_OK;
}

REEL_API void reel_engine_close(reel_engine **engine)
{
    if (!engine || !*engine) return;
    reel_engine *e = *engine;
    reel_components_deinit(&e->components);
    reel_embed_cache_free(&e->cache);
    if (e->tokenizer) reel_tokenizer_close(&e->tokenizer);
    if (e->ops.vt) reel_ops_unbind(&e->ops);
    if (e->stream) e->plugin->device->stream_free(e->stream);
    if (e->device) e->plugin->device->close(e->device);
    if (e->registry) reel_registry_close(&e->registry);
    free(e);
    *engine = NULL;
}

reel_status reel_engine_open_tokenizer(reel_engine *engine, reel_error *err)
{
    char dir[REEL_PATH_MAX];
    if (engine->tokenizer) return REEL_OK;
    REEL_TRY(reel_path_join(dir, sizeof dir, engine->model.dir, "tokenizer", err));
    return reel_tokenizer_open(dir, &engine->tokenizer, err);
}
