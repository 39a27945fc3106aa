/* SPDX-License-Identifier: Apache-2.0
 *
 * `reel devices`: every device of the build and of the plug-in folder, with its facts, and each attention implementation with its reasons. */
#include <string.h>

#include "engine/engine_internal.h"

static json_t *attention_of(const reel_device_vt *vt, reel_device *device)
{
    static const reel_dtype dtypes[] = {REEL_DTYPE_F32, REEL_DTYPE_BF16};
    json_t *list = json_array();
    const reel_attn_impl *const *impl = vt->attention(device);
    for (int32_t i = 0; list && impl[i]; i++) {
        json_t *o = json_pack("{s:s,s:s}", "name", impl[i]->name, "summary", impl[i]->summary);
        for (size_t d = 0; o && d < REEL_COUNT(dtypes); d++) {
            char reason[REEL_REASON_MAX] = "";
            const reel_attn_shape shape = {.size = sizeof shape, .dtype = dtypes[d], .head_dim = 128, .n_head = 12};
            const bool takes = impl[i]->supports(device, &shape, reason, sizeof reason);
            (void)json_object_set_new(o, reel_dtype_name(dtypes[d]), takes ? json_string("yes") : json_string(reason));
        }
        (void)json_array_append_new(list, o);
    }
    return list;
}

static json_t *describe(const reel_device_vt *vt, reel_device *device, const reel_device_props *p)
{
    json_t *o =
        json_pack("{s:s,s:s,s:s,s:s,s:i,s:b,s:b}", "kind", p->kind, "name", p->name, "isa", p->isa, "library", p->library, "threads",
                  (int)p->n_thread, "is_deterministic", (int)p->is_deterministic, "has_fast_bf16", (int)p->has_fast_bf16);
    if (!o) return NULL;
    (void)json_object_set_new(o, "memory_bytes", json_integer((json_int_t)p->memory_bytes));
    (void)json_object_set_new(o, "memory_free_bytes", json_integer((json_int_t)p->memory_free_bytes));
    (void)json_object_set_new(o, "attention", attention_of(vt, device));
    return o;
}

static json_t *probe(const reel_registry_entry *e, const reel_engine_options *options)
{
    reel_error err = {0};
    reel_device *device = NULL;
    const reel_host host = {.size = sizeof host};
    const reel_device_options device_options = {.size = sizeof device_options, .n_thread = options->n_thread, .isa_max = options->isa_max};
    reel_device_props props = {.size = sizeof props};
    json_t *o = NULL;
    reel_status status = e->plugin->device->open(&host, &device_options, &device, &err);
    if (status == REEL_OK) status = e->plugin->device->props(device, &props, &err);
    o = status == REEL_OK ? describe(e->plugin->device, device, &props) : json_pack("{s:s}", "problem", err.text);
    if (device) e->plugin->device->close(device);
    return o;
}

REEL_API reel_status reel_devices(const reel_engine_options *options, char **json, reel_error *err)
{
    const reel_log log = {.write = options->log, .user = options->log_user};
    reel_registry *registry = NULL;
    REEL_TRY(reel_registry_open(options->plugin_dir, &log, &registry, err));
    json_t *list = json_array();
    for (int32_t i = 0; list && i < reel_registry_count(registry); i++) {
        const reel_registry_entry *e = reel_registry_at(registry, i);
        json_t *o = e->plugin ? probe(e, options) : json_pack("{s:s}", "problem", e->reason ? e->reason : "");
        if (!o) continue;
        (void)json_object_set_new(o, "plugin", json_string(e->name));
        (void)json_object_set_new(o, "path", e->path ? json_string(e->path) : json_string("built in"));
        (void)json_object_set_new(o, "score", json_integer(e->score));
        (void)json_array_append_new(list, o);
    }
    reel_registry_close(&registry);
    json_t *root = json_pack("{s:o}", "devices", list);
    reel_status status = reel_json_text(root, JSON_INDENT(2), json, err);
    json_decref(root);
    return status;
}
