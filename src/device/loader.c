/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds libreel-device-*.so in a folder and opens them with dlopen. What a plug-in says of itself is checked by registry.c. */
#include "device/loader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static const char prefix[] = "libreel-device-", suffix[] = ".so";

static bool is_plugin_name(const char *name)
{
    size_t n = strlen(name);
    return n > sizeof prefix + sizeof suffix - 2 && strncmp(name, prefix, sizeof prefix - 1) == 0 &&
           strcmp(name + n - (sizeof suffix - 1), suffix) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static reel_status add_path(char ***list, int32_t *n, const char *dir, const char *name, reel_error *err)
{
    char path[REEL_PATH_MAX];
    REEL_TRY(reel_path_join(path, sizeof path, dir, name, err));
    if (!reel_path_is_file(path)) return REEL_OK;
    char **grown = realloc(*list, (size_t)(*n + 1) * sizeof *grown);
    if (grown) *list = grown;
    char *copy = grown ? strdup(path) : NULL;
    if (!copy) return REEL_FAIL(err, REEL_E_MEMORY, "no memory for the list of plug-ins\nremedy: free memory");
    grown[(*n)++] = copy;
    return REEL_OK;
}

reel_status reel_loader_list(const char *dir, char ***out, int32_t *n, reel_error *err)
{
    DIR *d = opendir(dir);
    if (!d)
        return REEL_FAIL(err, REEL_E_IO,
                         "the folder of device plug-ins cannot be read: %s\ngiven: %s\nremedy: name an existing folder, or none",
                         strerror(errno), dir);
    char **list = NULL;
    int32_t count = 0;
    reel_status status = REEL_OK;
    for (const struct dirent *e = readdir(d); e && status == REEL_OK; e = readdir(d))
        if (is_plugin_name(e->d_name)) status = add_path(&list, &count, dir, e->d_name, err);
    (void)closedir(d);
    if (status != REEL_OK) {
        for (int32_t i = 0; i < count; i++) free(list[i]);
        free(list);
        return status;
    }
    if (count > 1) qsort(list, (size_t)count, sizeof *list, by_name);
    *out = list;
    *n = count;
    return REEL_OK;
}

const reel_plugin *reel_loader_open(const char *path, void **handle, char *reason, size_t reason_bytes)
{
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!h) {
        const char *text = dlerror();
        (void)snprintf(reason, reason_bytes, "the system cannot load it: %s", text ? text : "no reason given");
        return NULL;
    }
    const reel_plugin *plugin = dlsym(h, "reel_plugin_entry");
    if (!plugin) {
        (void)snprintf(reason, reason_bytes, "it exports no reel_plugin_entry");
        (void)dlclose(h);
        return NULL;
    }
    *handle = h;
    return plugin;
}

void reel_loader_close(void *handle)
{
    if (handle) (void)dlclose(handle);
}
