/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry (device.h): gathers plug-ins, checks what each says of itself, and finds one by name or by score. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "device/builtin.h"
#include "device/device.h"
#include "device/loader.h"

typedef struct slot {
    reel_registry_entry entry;
    void *handle; /* of a loaded file that is in use */
    char *path;
    char name[64];
    char reason[REEL_LOADER_REASON_MAX];
} slot;

struct reel_registry {
    slot *slots;
    int32_t n, capacity;
    reel_log log;
};

/* A device must have every function but weight_pack and weight_free, which come together. */
static const char *check_vt(const reel_device_vt *vt)
{
    if (!vt) return "it has no table of device functions";
    if (vt->size < sizeof *vt) return "its table of device functions is shorter than this version's";
    bool is_whole = vt->open && vt->close && vt->props && vt->buffer_new && vt->buffer_free && vt->stream_new && vt->stream_free &&
                    vt->stream_sync && vt->event_new && vt->event_record && vt->event_sync && vt->event_free && vt->upload &&
                    vt->download && vt->copy && vt->fill && vt->op && vt->attention;
    if (!is_whole) return "its table of device functions has gaps";
    return !vt->weight_pack == !vt->weight_free ? NULL : "it has one of weight_pack and weight_free only";
}

/* abi and size are read before anything behind them. Returns false with the reason. */
static bool check_plugin(const reel_plugin *p, char *reason, size_t reason_bytes)
{
    const char *why = NULL;
    if (p->abi != REEL_PLUGIN_ABI || p->size < sizeof *p) {
        (void)snprintf(reason, reason_bytes, "it was built for plug-in interface %u with %u bytes; this is %u with %zu", (unsigned)p->abi,
                       (unsigned)p->size, (unsigned)REEL_PLUGIN_ABI, sizeof *p);
        return false;
    }
    if (p->kind != REEL_PLUGIN_DEVICE)
        why = "it is no device";
    else if (!p->name || !*p->name || strlen(p->name) > 15 || strcmp(p->name, "auto") == 0)
        why = "its name is empty, longer than 15 bytes, or \"auto\"";
    else if (!p->score)
        why = "it has no score function";
    else
        why = check_vt(p->device);
    if (why) (void)snprintf(reason, reason_bytes, "%s", why);
    return !why;
}

static reel_status new_slot(reel_registry *r, slot **out, reel_error *err)
{
    if (r->n == r->capacity) {
        int32_t capacity = r->capacity > 0 ? 2 * r->capacity : 4;
        slot *grown = realloc(r->slots, (size_t)capacity * sizeof *grown);
        if (!grown) return REEL_FAIL(err, REEL_E_MEMORY, "no memory for the list of devices\nremedy: free memory");
        r->slots = grown;
        r->capacity = capacity;
    }
    *out = &r->slots[r->n++];
    **out = (slot){.handle = NULL};
    return REEL_OK;
}

static bool has_name(const reel_registry *r, const char *name)
{
    for (int32_t i = 0; i < r->n; i++)
        if (r->slots[i].entry.plugin && strcmp(r->slots[i].entry.plugin->name, name) == 0) return true;
    return false;
}

/* Takes a plug-in into the slot, or leaves the reason there. */
static void judge(const reel_registry *r, slot *s, const reel_plugin *plugin)
{
    if (!check_plugin(plugin, s->reason, sizeof s->reason)) return;
    (void)snprintf(s->name, sizeof s->name, "%s", plugin->name);
    if (has_name(r, plugin->name)) {
        (void)snprintf(s->reason, sizeof s->reason, "a device of the name %s is there already", plugin->name);
        return;
    }
    s->entry.score = plugin->score();
    if (s->entry.score <= 0) {
        (void)snprintf(s->reason, sizeof s->reason, "it says that it cannot run on this machine");
        return;
    }
    s->entry.plugin = plugin;
}

static reel_status add_builtin(reel_registry *r, const reel_plugin *plugin, reel_error *err)
{
    slot *s = NULL;
    REEL_TRY(new_slot(r, &s, err));
    (void)snprintf(s->name, sizeof s->name, "(built in)");
    judge(r, s, plugin);
    return REEL_OK;
}

static reel_status add_file(reel_registry *r, const char *path, reel_error *err)
{
    slot *s = NULL;
    REEL_TRY(new_slot(r, &s, err));
    s->path = strdup(path);
    if (!s->path) return REEL_FAIL(err, REEL_E_MEMORY, "no memory for the list of devices\nremedy: free memory");
    const char *base = strrchr(path, '/');
    (void)snprintf(s->name, sizeof s->name, "%s", base ? base + 1 : path);
    const reel_plugin *plugin = reel_loader_open(path, &s->handle, s->reason, sizeof s->reason);
    if (plugin) judge(r, s, plugin);
    if (!s->entry.plugin) {
        reel_loader_close(s->handle);
        s->handle = NULL;
        reel_log_write(&r->log, REEL_LOG_WARNING, "device plug-in %s is not used: %s", path, s->reason);
    }
    return REEL_OK;
}

static reel_status add_folder(reel_registry *r, const char *dir, reel_error *err)
{
    char **paths = NULL;
    int32_t n = 0;
    REEL_TRY(reel_loader_list(dir, &paths, &n, err));
    reel_status status = REEL_OK;
    for (int32_t i = 0; i < n; i++) {
        if (status == REEL_OK) status = add_file(r, paths[i], err);
        free(paths[i]);
    }
    free(paths);
    return status;
}

reel_status reel_registry_open_with(const reel_plugin *const *builtins, const char *plugin_dir, const reel_log *log, reel_registry **out,
                                    reel_error *err)
{
    reel_registry *r = calloc(1, sizeof *r);
    if (!r) return REEL_FAIL(err, REEL_E_MEMORY, "no memory for the list of devices\nremedy: free memory");
    if (log) r->log = *log;
    reel_status status = REEL_OK;
    for (; *builtins && status == REEL_OK; builtins++) status = add_builtin(r, *builtins, err);
    if (plugin_dir && status == REEL_OK) status = add_folder(r, plugin_dir, err);
    if (status != REEL_OK) {
        reel_registry_close(&r);
        return status;
    }
    for (int32_t i = 0; i < r->n; i++) { /* the slots stand still from here on */
        slot *s = &r->slots[i];
        s->entry.name = s->name;
        s->entry.path = s->path;
        s->entry.reason = s->entry.plugin ? NULL : s->reason;
    }
    *out = r;
    return REEL_OK;
}

reel_status reel_registry_open(const char *plugin_dir, const reel_log *log, reel_registry **out, reel_error *err)
{
    return reel_registry_open_with(reel_builtin_plugins, plugin_dir, log, out, err);
}

void reel_registry_close(reel_registry **registry)
{
    reel_registry *r = *registry;
    if (!r) return;
    for (int32_t i = 0; i < r->n; i++) {
        reel_loader_close(r->slots[i].handle);
        free(r->slots[i].path);
    }
    free(r->slots);
    free(r);
    *registry = NULL;
}

int32_t reel_registry_count(const reel_registry *registry)
{
    return registry->n;
}

const reel_registry_entry *reel_registry_at(const reel_registry *registry, int32_t index)
{
    return index >= 0 && index < registry->n ? &registry->slots[index].entry : NULL;
}

static reel_status not_found(const reel_registry *r, const char *name, reel_error *err)
{
    reel_buf names = {.max = 4096};
    const char *reason = NULL;
    for (int32_t i = 0; i < r->n; i++) {
        const reel_registry_entry *e = &r->slots[i].entry;
        if (e->plugin)
            (void)reel_buf_printf(&names, NULL, "%s%s", names.n > 0 ? ", " : "", e->name);
        else if (strcmp(e->name, name) == 0)
            reason = e->reason;
    }
    reel_status status =
        REEL_FAIL(err, REEL_E_UNSUPPORTED,
                  "device \"%s\" cannot be used: %s\nallowed: auto, %s\nremedy: `reel devices` lists all devices, with reasons", name,
                  reason ? reason : "there is none of that name", names.n > 0 ? names.data : "and no other, because none is usable");
    reel_buf_deinit(&names);
    return status;
}

reel_status reel_registry_find(const reel_registry *registry, const char *name, const reel_plugin **out, reel_error *err)
{
    const reel_registry_entry *best = NULL;
    bool is_auto = !name || strcmp(name, "auto") == 0;
    for (int32_t i = 0; i < registry->n; i++) {
        const reel_registry_entry *e = &registry->slots[i].entry;
        if (!e->plugin || (!is_auto && strcmp(e->plugin->name, name) != 0)) continue;
        if (!best || e->score > best->score) best = e;
    }
    if (!best) return not_found(registry, is_auto ? "auto" : name, err);
    *out = best->plugin;
    return REEL_OK;
}
