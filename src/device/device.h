/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry of devices: those that this build holds, and those that shared objects of a folder add.
 *
 * A plug-in is a file libreel-device-<name>.so that exports `reel_plugin_entry` (reel-plugin/device.h). One that cannot be used
 * stays in the list with its reason, which `reel devices` prints; it never stops the others. A registry is an object of its
 * owner: no globals, one thread at a time; devices must be closed before it. */
#ifndef REEL_DEVICE_DEVICE_H
#define REEL_DEVICE_DEVICE_H

#include "base/check.h"
#include "base/log.h"
#include "reel-plugin/device.h"

typedef struct reel_registry reel_registry;

typedef struct reel_registry_entry {
    const reel_plugin *plugin; /* NULL when it cannot be used */
    const char *name; /* the plug-in's own; that of the file when it told none */
    const char *path; /* NULL for a built-in */
    const char *reason; /* why it cannot be used; NULL when it can */
    int32_t score;
} reel_registry_entry;

/* plugin_dir NULL: built-ins only. A folder that cannot be read is REEL_E_IO; one without plug-ins is fine. */
reel_status reel_registry_open(const char *plugin_dir, const reel_log *log, reel_registry **out, reel_error *err);
/* The same with another table (NULL at its end) in the place of the built-ins. */
reel_status reel_registry_open_with(const reel_plugin *const *builtins, const char *plugin_dir, const reel_log *log, reel_registry **out,
                                    reel_error *err);
void reel_registry_close(reel_registry **registry);

int32_t reel_registry_count(const reel_registry *registry);
/* Built-ins first, then files by name. Valid until close. */
const reel_registry_entry *reel_registry_at(const reel_registry *registry, int32_t index);
/* The usable device of that name; NULL or "auto": the highest score, the earlier on a tie. */
reel_status reel_registry_find(const reel_registry *registry, const char *name, const reel_plugin **out, reel_error *err);

#endif
