/* SPDX-License-Identifier: Apache-2.0
 *
 * Repeating a clip from the settings that it carries (`reel generate --from clip.mp4`).
 *
 * The request is rebuilt from the clip's comment. Whatever is not as it was (version, compiler, device, instruction sets, library, model files,
 * plan) is listed: on the same build, device and plan the clip comes out byte for byte, otherwise the list says why it may not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engine/engine_internal.h"

/* The comment of a clip, or the JSON side file itself. */
static reel_status read_settings(const char *path, reel_json *out, char **text, reel_error *err)
{
    const size_t n = strlen(path);
    reel_buf buf = {0};
    if (n > 5 && strcmp(path + n - 5, ".json") == 0) {
        REEL_TRY(reel_read_file(path, (size_t)16 << 20, &buf, err));
        *text = buf.data;
    } else {
        REEL_TRY(reel_media_read_comment(path, text, err));
    }
    reel_status status = reel_json_parse(*text, strlen(*text), path, REEL_E_ARGUMENT, out, err);
    if (status == REEL_OK && !json_is_object(json_object_get(out->root, "settings"))) {
        reel_json_deinit(out);
        status = REEL_FAIL(err, REEL_E_ARGUMENT,
                           "the clip carries no settings of reel\ngiven: %s\nallowed: mp4 and webm clips made by reel, or their .json side "
                           "file\nremedy: name such a clip",
                           path);
    }
    if (status != REEL_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}

REEL_API reel_status reel_clip_model(const char *path, char **model, reel_error *err)
{
    reel_json json;
    char *text = NULL;
    const char *dir = NULL;
    REEL_TRY(read_settings(path, &json, &text, err));
    reel_status status = reel_json_opt_string(&json, "model", &dir, err);
    if (status == REEL_OK) *model = strdup(dir ? dir : "");
    if (status == REEL_OK && !*model) status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a path\nremedy: close other programs");
    reel_json_deinit(&json);
    free(text);
    return status;
}

/* Copies text into the block that the caller frees; the block is a chain of strings after one pointer. */
typedef struct keep {
    char *block; /* first a const char * (the prompt), then texts */
    size_t used, bytes;
} keep;

static const char *keep_text(keep *k, const char *text)
{
    const size_t n = strlen(text) + 1;
    assert(k->used + n <= k->bytes);
    char *at = k->block + k->used;
    memcpy(at, text, n);
    k->used += n;
    return at;
}

static reel_status apply(reel_request *q, const json_t *settings, keep *k, reel_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)settings, key, value)
    {
        char number[64];
        const char *text = NULL;
        if (json_is_string(value)) text = keep_text(k, json_string_value(value));
        if (json_is_boolean(value)) text = json_is_true(value) ? "true" : "false";
        if (json_is_integer(value)) {
            (void)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
            text = number;
        }
        if (json_is_real(value)) {
            (void)snprintf(number, sizeof number, "%.17g", json_real_value(value));
            text = number;
        }
        if (!text) {
            return REEL_FAIL(
                err, REEL_E_ARGUMENT,
                "a stored setting has a wrong type\ngiven: \"%.60s\" is %s\nremedy: the clip's settings are damaged; give them as options",
                key, reel_json_type_name(value));
        }
        const int64_t frames = q->frames, steps = q->steps;
        reel_status status = reel_request_set(q, key, text, err);
        /* 0 stands for "the model's own" in stored settings, but is no value that a user may type. */
        const bool is_own = (strcmp(key, "frames") == 0 || strcmp(key, "steps") == 0) && strcmp(text, "0") == 0;
        if (status != REEL_OK && !is_own) return status;
        if (is_own) {
            q->frames = frames;
            q->steps = steps;
        }
    }
    return REEL_OK;
}

static reel_status compare(reel_engine *e, const reel_request *q, const reel_json *json, reel_buf *out, reel_error *err)
{
    const json_t *was = json_object_get(json->root, "build");
    json_t *now = reel_build_json(e);
    const char *key;
    json_t *value;
    reel_status status = now ? REEL_OK : REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a comparison\nremedy: close other programs");
    json_object_foreach(now, key, value)
    {
        const char *before = json_string_value(json_object_get(was, key)), *after = json_string_value(value);
        if (status == REEL_OK && (!before || strcmp(before, after) != 0)) {
            status = reel_buf_printf(out, err, "%s%s was \"%s\", is \"%s\"", out->n ? "; " : "", key, before ? before : "unknown", after);
        }
    }
    json_decref(now);
    if (status != REEL_OK) return status;
    reel_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a comparison\nremedy: close other programs");
    status = reel_engine_plan(e, q, plan, err);
    char hash[32];
    (void)snprintf(hash, sizeof hash, "%016llx", (unsigned long long)plan->hash);
    const char *before = json_string_value(json_object_get(json->root, "plan"));
    if (status == REEL_OK && (!before || strcmp(before, hash) != 0)) {
        status = reel_buf_printf(out, err, "%splan was %s, is %s", out->n ? "; " : "", before ? before : "unknown", hash);
    }
    free(plan);
    return status;
}

static reel_status rebuild(reel_engine *e, const reel_json *json, size_t text_bytes, reel_request *request, keep *k, reel_buf *differences,
                           reel_error *err)
{
    const char *prompt = NULL;
    REEL_TRY(reel_json_opt_string(json, "prompt", &prompt, err));
    k->bytes = text_bytes + sizeof(const char *) + 1024;
    k->block = calloc(1, k->bytes);
    if (!k->block) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for settings\nremedy: close other programs");
    k->used = sizeof(const char *);
    reel_request_init(request);
    REEL_TRY(apply(request, json_object_get(json->root, "settings"), k, err));
    const char *kept = keep_text(k, prompt ? prompt : "");
    memcpy(k->block, &kept, sizeof kept);
    request->prompt = (const char *const *)(const void *)k->block;
    request->n_prompt = 1;
    return compare(e, request, json, differences, err);
}

REEL_API reel_status reel_request_from_clip(reel_engine *engine, const char *path, reel_request *request, char **keep_out,
                                            char **differences, reel_error *err)
{
    reel_json json;
    char *text = NULL;
    reel_request q;
    keep k = {0};
    reel_buf diff = {0};
    REEL_TRY(read_settings(path, &json, &text, err));
    reel_status status = rebuild(engine, &json, 2 * strlen(text), &q, &k, &diff, err);
    reel_json_deinit(&json);
    free(text);
    if (status != REEL_OK) {
        free(k.block);
        reel_buf_deinit(&diff);
        return status;
    }
    *request = q;
    *keep_out = k.block;
    *differences = diff.data; /* NULL when nothing differs */
    return REEL_OK;
}
