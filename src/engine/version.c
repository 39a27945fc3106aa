/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions of reel and of the libraries in it, and texts of statuses. */
#include <stdlib.h>
#include <string.h>

#include "engine/engine_internal.h"

#define STATUS_CASE(name, value, exit_code, meaning) \
    case REEL_##name: return meaning;

REEL_API const char *reel_version(void)
{
    return REEL_VERSION_TEXT;
}

REEL_API void reel_text_free(char *text)
{
    free(text);
}

REEL_API const char *reel_status_text(reel_status status)
{
    switch (status) {
        REEL_STATUS_LIST(STATUS_CASE)
    }
    return "an unknown status";
}

REEL_API reel_status reel_libraries(char **json, reel_error *err)
{
    json_t *o = json_pack("{s:s,s:s,s:s}", "reel", reel_version(), "jansson", jansson_version_str(), "media", reel_media_libraries());
    if (!o) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a list of versions\nremedy: close other programs");
    (void)json_object_set_new(o, "text", json_string(reel_text_libraries()));
    reel_registry *registry = NULL;
    reel_status status = reel_registry_open(NULL, NULL, &registry, err);
    for (int32_t i = 0; status == REEL_OK && i < reel_registry_count(registry); i++) {
        const reel_registry_entry *e = reel_registry_at(registry, i);
        if (e->plugin) (void)json_object_set_new(o, e->name, json_string(e->plugin->version));
    }
    if (registry) reel_registry_close(&registry);
    if (status == REEL_OK) status = reel_json_text(o, JSON_INDENT(2), json, err);
    json_decref(o);
    return status;
}
