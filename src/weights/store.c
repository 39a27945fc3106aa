/* SPDX-License-Identifier: Apache-2.0
 *
 * A component's tensors: one safetensors file, or the shards that an index names, merged and sorted by name (weights/weights.h).
 *
 * The index must be honest: every tensor that it names is in the shard that it names, every tensor of a shard is named, none twice, and their bytes
 * are as many as it says. A folder
 * that holds pickles only is refused with the way out: their format can run code when read. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "weights/store_internal.h"

enum { SHARDS_MAX = 1000 };

reel_status reel_store_reserve(reel_store *store, size_t n, reel_error *err)
{
    enum { TENSORS_MAX = 1 << 22 };
    if (n > (size_t)(TENSORS_MAX - store->n)) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "too many tensors\ngiven: more than %d\nallowed: %d\nremedy: check that these are the model's files", TENSORS_MAX,
                         TENSORS_MAX);
    }
    if (store->n + (int32_t)n <= store->capacity) return REEL_OK;
    const size_t want = (size_t)store->n + n;
    reel_stored *grown = realloc(store->tensor, want * sizeof *grown);
    if (!grown) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a list of %zu tensors\nremedy: close other programs", want);
    store->tensor = grown;
    store->capacity = (int32_t)want;
    return REEL_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const reel_stored *)a)->name, ((const reel_stored *)b)->name);
}

static reel_status finish(reel_store *store, reel_error *err)
{
    if (store->n > 0) qsort(store->tensor, (size_t)store->n, sizeof *store->tensor, by_name);
    for (int32_t i = 0; i < store->n; i++) {
        store->bytes += store->tensor[i].bytes;
        if (i > 0 && strcmp(store->tensor[i - 1].name, store->tensor[i].name) == 0) {
            return REEL_FAIL(err, REEL_E_MODEL,
                             "a tensor is there twice\ngiven: \"%.200s\" in %s and %s\nallowed: once\nremedy: fetch the files again",
                             store->tensor[i].name, store->tensor[i - 1].file, store->tensor[i].file);
        }
    }
    return REEL_OK;
}

/* The new file is the last of store->file. */
static reel_status add_file(reel_store *store, const char *path, const uint8_t *borrowed, size_t bytes, reel_error *err)
{
    reel_store_file *f = &store->file[store->n_file];
    f->path = strdup(path);
    if (!f->path) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a path\nremedy: close other programs");
    store->n_file++;
    if (borrowed) {
        f->mapping = (reel_mapping){.data = borrowed, .bytes = bytes};
    } else {
        reel_status status = reel_map_file(path, &f->mapping, err);
        struct stat st;
        if (status == REEL_E_IO && stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0) {
            return REEL_FAIL(err, REEL_E_MODEL,
                             "a safetensors file is empty\ngiven: %s\nallowed: at least 8 bytes\nremedy: fetch the file again", path);
        }
        if (status != REEL_OK) return reel_trace(err, status, __FILE__, __LINE__);
        f->is_mapped = true;
    }
    return reel_store_add(store, f, err);
}

static reel_status new_store(int32_t n_file, reel_store **out, reel_error *err)
{
    reel_store *s = calloc(1, sizeof *s);
    if (s) s->file = calloc((size_t)n_file, sizeof *s->file);
    if (!s || !s->file) {
        free(s);
        return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a list of files\nremedy: close other programs");
    }
    *out = s;
    return REEL_OK;
}

static reel_status open_one(const char *path, const uint8_t *borrowed, size_t bytes, reel_store **out, reel_error *err)
{
    reel_store *s = NULL;
    reel_status status = REEL_OK;
    REEL_TRY(new_store(1, &s, err));
    REEL_TRY_GOTO(add_file(s, path, borrowed, bytes, err), cleanup);
    REEL_TRY_GOTO(finish(s, err), cleanup);
    *out = s;
    return REEL_OK;
cleanup:
    reel_store_close(&s);
    return status;
}

/* ---- shards ---------------------------------------------------------------------------------------------------------------------------- */

/* Distinct shard names of the weight map, borrowed from it. */
static reel_status list_shards(const reel_json *index, const json_t *map, const char **shards, int32_t *n, reel_error *err)
{
    const char *tensor;
    json_t *value;
    *n = 0;
    json_object_foreach((json_t *)(uintptr_t)map, tensor, value)
    {
        const char *shard = json_string_value(value);
        if (!shard || shard[0] == '\0' || strchr(shard, '/') || shard[0] == '.') {
            return REEL_FAIL(err, REEL_E_MODEL,
                             "an index names no file for a tensor\ngiven: \"%.200s\" in %s\nallowed: a file name in the same "
                             "folder\nremedy: fetch the index "
                             "again",
                             tensor, index->path);
        }
        int32_t i = 0;
        while (i < *n && strcmp(shards[i], shard) != 0) i++;
        if (i < *n) continue;
        if (*n == SHARDS_MAX) {
            return REEL_FAIL(err, REEL_E_MODEL,
                             "an index names too many files\ngiven: more than %d in %s\nallowed: %d\nremedy: fetch the index again",
                             SHARDS_MAX, index->path, SHARDS_MAX);
        }
        shards[(*n)++] = shard;
    }
    return REEL_OK;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Every tensor that the index names is in its shard, and every tensor of a shard is named. */
static reel_status check_index(const reel_store *store, const reel_json *index, const json_t *map, reel_error *err)
{
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)map, tensor, value)
    {
        const reel_stored *t = reel_store_find(store, tensor);
        if (!t || strcmp(base_name(t->file), json_string_value(value)) != 0) {
            return REEL_FAIL(err, REEL_E_MODEL,
                             "index and shards do not belong together\ngiven: %s says that %s holds \"%.200s\"; it does not\nremedy: fetch "
                             "index and shards again",
                             index->path, json_string_value(value), tensor);
        }
    }
    for (int32_t i = 0; i < store->n; i++) {
        if (json_object_get(map, store->tensor[i].name)) continue;
        return REEL_FAIL(err, REEL_E_MODEL,
                         "index and shards do not belong together\ngiven: %s holds \"%.200s\", which %s does not name\nremedy: fetch index "
                         "and shards again",
                         store->tensor[i].file, store->tensor[i].name, index->path);
    }
    const json_t *total =
        json_object_get(json_object_get(index->root, "metadata"), "total_size"); /* some writers store it as a real number */
    if (json_is_number(total) && json_number_value(total) != (double)store->bytes) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "index and shards do not belong together\ngiven: %s says total_size %.0f; the shards hold %zu bytes of "
                         "tensors\nallowed: equal numbers\n"
                         "remedy: fetch index and shards again",
                         index->path, json_number_value(total), store->bytes);
    }
    return REEL_OK;
}

static reel_status open_shards(const char *dir, const reel_json *index, reel_store **out, reel_error *err)
{
    const json_t *map = json_object_get(index->root, "weight_map");
    const char **shards = NULL;
    reel_store *s = NULL;
    int32_t n = 0;
    reel_status status = REEL_OK;
    if (!json_is_object(map) || json_object_size(map) == 0) {
        return REEL_FAIL(
            err, REEL_E_MODEL,
            "an index has no weight_map\ngiven: %s\nallowed: an object that maps tensor names to file names\nremedy: fetch the index again",
            index->path);
    }
    shards = calloc(SHARDS_MAX, sizeof *shards);
    if (!shards) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a list of files\nremedy: close other programs");
    REEL_TRY_GOTO(list_shards(index, map, shards, &n, err), cleanup);
    REEL_TRY_GOTO(new_store(n, &s, err), cleanup);
    for (int32_t i = 0; i < n; i++) {
        char path[REEL_PATH_MAX];
        REEL_TRY_GOTO(reel_path_join(path, sizeof path, dir, shards[i], err), cleanup);
        if (!reel_path_is_file(path)) {
            status = REEL_FAIL(err, REEL_E_MODEL,
                               "a shard is missing\ngiven: %s names %s, which is not there\nallowed: all shards in one folder\nremedy: "
                               "fetch the missing file",
                               index->path, shards[i]);
            goto cleanup;
        }
        REEL_TRY_GOTO(add_file(s, path, NULL, 0, err), cleanup);
    }
    REEL_TRY_GOTO(finish(s, err), cleanup);
    REEL_TRY_GOTO(check_index(s, index, map, err), cleanup);
    *out = s;
    s = NULL;
cleanup:
    reel_store_close(&s);
    free(shards);
    return status;
}

/* ---- opening ---------------------------------------------------------------------------------------------------------------------------- */

/* A file of pickles in the folder, by its ending; "" when there is none. */
static void find_pickle(const char *dir, char *name, size_t bytes)
{
    static const char *const endings[] = {".bin", ".pth", ".pt", ".ckpt"};
    name[0] = '\0';
    DIR *d = opendir(dir);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        const char *dot = strrchr(e->d_name, '.');
        for (size_t i = 0; dot && i < REEL_COUNT(endings); i++) {
            if (strcmp(dot, endings[i]) == 0) (void)snprintf(name, bytes, "%s", e->d_name);
        }
    }
    if (d) (void)closedir(d);
}

static reel_status nothing_there(const char *dir, const char *stem, reel_error *err)
{
    char pickle[256];
    find_pickle(dir, pickle, sizeof pickle);
    if (pickle[0]) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "the weights are a pickle, which reel does not read\ngiven: %s/%s\nallowed: safetensors: %s.safetensors, or "
                         "shards with an index\nremedy: "
                         "fetch the safetensors version, or save it anew with save_pretrained(…, safe_serialization=True); reading a "
                         "pickle can run code",
                         dir, pickle, stem);
    }
    return REEL_FAIL(err, REEL_E_MODEL,
                     "the weights are missing\ngiven: %s has neither %s.safetensors nor %s.safetensors.index.json\nallowed: one of "
                     "them\nremedy: fetch the model's "
                     "files into this folder",
                     dir, stem, stem);
}

reel_status reel_store_open(const char *dir, const char *stem, reel_store **out, reel_error *err)
{
    char name[256], path[REEL_PATH_MAX];
    (void)snprintf(name, sizeof name, "%s.safetensors", stem);
    REEL_TRY(reel_path_join(path, sizeof path, dir, name, err));
    if (reel_path_is_file(path)) return open_one(path, NULL, 0, out, err);
    (void)snprintf(name, sizeof name, "%s.safetensors.index.json", stem);
    REEL_TRY(reel_path_join(path, sizeof path, dir, name, err));
    if (!reel_path_is_file(path)) return nothing_there(dir, stem, err);
    reel_json index;
    REEL_TRY(reel_json_load(path, REEL_E_MODEL, &index, err));
    reel_status status = open_shards(dir, &index, out, err);
    reel_json_deinit(&index);
    return status;
}

reel_status reel_store_open_file(const char *path, reel_store **out, reel_error *err)
{
    return open_one(path, NULL, 0, out, err);
}

reel_status reel_store_parse(const uint8_t *data, size_t bytes, const char *name, reel_store **out, reel_error *err)
{
    return open_one(name, data, bytes, out, err);
}

void reel_store_close(reel_store **store)
{
    reel_store *s = *store;
    if (!s) return;
    for (int32_t i = 0; i < s->n; i++) free((char *)(uintptr_t)s->tensor[i].name);
    for (int32_t i = 0; i < s->n_file; i++) {
        if (s->file[i].is_mapped) reel_unmap_file(&s->file[i].mapping);
        free(s->file[i].path);
    }
    json_decref(s->metadata);
    free(s->tensor);
    free(s->file);
    free(s);
    *store = NULL;
}

/* ---- reading ---------------------------------------------------------------------------------------------------------------------------- */

int32_t reel_store_count(const reel_store *store)
{
    return store->n;
}

const reel_stored *reel_store_at(const reel_store *store, int32_t index)
{
    return &store->tensor[index];
}

const reel_stored *reel_store_find(const reel_store *store, const char *name)
{
    const reel_stored key = {.name = name};
    return store->n > 0 ? bsearch(&key, store->tensor, (size_t)store->n, sizeof key, by_name) : NULL;
}

const char *reel_store_metadata(const reel_store *store, const char *key)
{
    return json_string_value(json_object_get(store->metadata, key));
}

size_t reel_store_bytes(const reel_store *store)
{
    return store->bytes;
}

void reel_store_forget(const reel_store *store, const reel_stored *stored)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)stored->data;
    for (int32_t i = 0; i < store->n_file; i++) {
        const reel_mapping *m = &store->file[i].mapping;
        if (!store->file[i].is_mapped || at < (uintptr_t)m->data || at >= (uintptr_t)m->data + m->bytes) continue;
        const uintptr_t begin = (at + page - 1) / page * page, end = (at + stored->bytes) / page * page;
        if (end > begin) (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
        return;
    }
}
