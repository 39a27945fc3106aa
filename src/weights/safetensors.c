/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the safetensors format: an 8-byte header length, a JSON header, then raw little-endian data, all of it mapped.
 *
 * Everything the header says is checked against the file before any tensor can be seen: length, JSON, dtypes, shapes without overflow,
 * offsets in range and in step with shape and dtype, no overlap and no hole, no duplicate, UTF-8 names (Jansson refuses others). A file that
 * lies is an error with its name and the tensor's. What the official library (0.8) refuses is refused; beyond that, names that occur twice or
 * hold a zero byte, and more than 6 dimensions. Source: the safetensors format description. */
#include "weights/store_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* As the official library: a header beyond 100 MB is refused. */
enum { HEADER_MAX = 100000000 };

typedef struct dtype_entry {
    const char *name;
    reel_dtype dtype;
    size_t bits;
} dtype_entry;

/* Types of the format that reel does not compute with have dtype NONE: the file opens, using such a tensor is an error. */
static const dtype_entry dtypes[] = {
#define X(name, value, bytes, text) {text, REEL_DTYPE_##name, 8 * (bytes)},
    REEL_DTYPE_LIST(X)
#undef X
        {"BOOL", REEL_DTYPE_NONE, 8},
    {"I8", REEL_DTYPE_NONE, 8},
    {"U16", REEL_DTYPE_NONE, 16},
    {"I16", REEL_DTYPE_NONE, 16},
    {"U32", REEL_DTYPE_NONE, 32},
    {"U64", REEL_DTYPE_NONE, 64},
    {"C64", REEL_DTYPE_NONE, 64},
    {"F8_E8M0", REEL_DTYPE_NONE, 8},
    {"F4", REEL_DTYPE_NONE, 4},
    {"F6_E2M3", REEL_DTYPE_NONE, 6},
    {"F6_E3M2", REEL_DTYPE_NONE, 6},
    {"F8_E4M3FNUZ", REEL_DTYPE_NONE, 8},
    {"F8_E5M2FNUZ", REEL_DTYPE_NONE, 8},
};

static reel_status lies(const char *file, const char *tensor, const char *what, reel_error *err)
{
    return REEL_FAIL(err, REEL_E_MODEL, "a safetensors file is damaged\ngiven: %s, tensor \"%.200s\": %s\nremedy: fetch the file again",
                     file, tensor, what);
}

static const dtype_entry *find_dtype(const char *name)
{
    for (size_t i = 0; i < REEL_COUNT(dtypes); i++) {
        if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
    }
    return NULL;
}

/* Reads dtype and shape into t; *bytes is what they need. */
static reel_status read_shape(const char *file, const char *name, const json_t *entry, reel_stored *t, size_t *bytes, reel_error *err)
{
    const json_t *dtype = json_object_get(entry, "dtype"), *shape = json_object_get(entry, "shape");
    if (!json_is_string(dtype) || !json_is_array(shape)) return lies(file, name, "no dtype or no shape", err);
    const dtype_entry *d = find_dtype(json_string_value(dtype));
    if (!d) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "a tensor has an unknown dtype\ngiven: %s, tensor \"%.200s\" is %.40s\nallowed: F64, F32, F16, BF16, F8_E4M3, "
                         "F8_E5M2, I64, I32, U8 "
                         "and other types of the format\nremedy: convert the file, or fetch it again",
                         file, name, json_string_value(dtype));
    }
    if (json_array_size(shape) > REEL_DIM_MAX) {
        return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                         "a tensor has too many dimensions\ngiven: %s, tensor \"%.200s\" has %zu\nallowed: at most %d\nremedy: check that "
                         "this is a file of "
                         "a Wan model",
                         file, name, json_array_size(shape), (int)REEL_DIM_MAX);
    }
    t->dtype = d->dtype;
    t->dtype_name = d->name;
    t->n_dim = (int32_t)json_array_size(shape);
    size_t total = 1; /* elements; × 64 bits they stay below 2^63 */
    for (int32_t i = 0; i < t->n_dim; i++) {
        const json_t *e = json_array_get(shape, (size_t)i);
        if (!json_is_integer(e) || json_integer_value(e) < 0) return lies(file, name, "a shape that is not made of whole numbers", err);
        t->extent[i] = json_integer_value(e);
        if (t->extent[i] > 0 && total > (size_t)INT64_MAX / 64 / (size_t)t->extent[i])
            return lies(file, name, "a shape that no memory holds", err);
        total *= (size_t)t->extent[i];
    }
    if (total * d->bits % 8 != 0) return lies(file, name, "a shape that ends within a byte", err);
    *bytes = total * d->bits / 8;
    return REEL_OK;
}

static reel_status read_entry(const char *file, const char *name, const json_t *entry, const uint8_t *data, size_t data_bytes,
                              reel_stored *t, reel_error *err)
{
    size_t bytes = 0;
    if (!json_is_object(entry)) return lies(file, name, "its entry is not an object", err);
    REEL_TRY(read_shape(file, name, entry, t, &bytes, err));
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(last)) {
        return lies(file, name, "no data_offsets of two whole numbers", err);
    }
    const int64_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin || (uint64_t)end > data_bytes)
        return lies(file, name, "data_offsets that lie outside the file (is it cut short?)", err);
    if ((size_t)(end - begin) != bytes) return lies(file, name, "data_offsets that do not agree with shape and dtype", err);
    t->data = data + begin;
    t->bytes = bytes;
    return REEL_OK;
}

static int by_place(const void *a, const void *b)
{
    const reel_stored *x = a, *y = b;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Tensors must cover the data exactly: no overlap, no hole, nothing behind. */
static reel_status check_cover(const char *file, reel_stored *list, int32_t n, const uint8_t *data, size_t bytes, reel_error *err)
{
    if (n > 0) qsort(list, (size_t)n, sizeof *list, by_place);
    const uint8_t *at = data;
    for (int32_t i = 0; i < n; i++) {
        if (list[i].data < at) return lies(file, list[i].name, "it overlaps another tensor", err);
        if (list[i].data > at) return lies(file, list[i].name, "there is a hole before it", err);
        at = list[i].data + list[i].bytes;
    }
    if (at != data + bytes) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "a safetensors file is damaged\ngiven: %s has %zu bytes behind its last tensor\nremedy: fetch the file again",
                         file, (size_t)(data + bytes - at));
    }
    return REEL_OK;
}

static reel_status read_metadata(reel_store *store, const char *file, const json_t *metadata, reel_error *err)
{
    const char *key;
    json_t *value;
    if (json_is_null(metadata)) return REEL_OK;
    if (!json_is_object(metadata)) return lies(file, "__metadata__", "it is not an object", err);
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value)
    {
        if (!json_is_string(value)) return lies(file, "__metadata__", "a value that is not a string", err);
    }
    if (!store->metadata) store->metadata = json_incref((json_t *)(uintptr_t)metadata);
    return REEL_OK;
}

static reel_status read_header(reel_store *store, const reel_store_file *file, json_t *header, const uint8_t *data, size_t bytes,
                               reel_error *err)
{
    const int32_t before = store->n;
    const char *name;
    json_t *entry;
    REEL_TRY(reel_store_reserve(store, json_object_size(header), err));
    json_object_foreach(header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) {
            REEL_TRY(read_metadata(store, file->path, entry, err));
            continue;
        }
        reel_stored t = {.file = file->path};
        REEL_TRY(read_entry(file->path, name, entry, data, bytes, &t, err));
        t.name = strdup(name);
        if (!t.name) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for the names in %s\nremedy: close other programs", file->path);
        store->tensor[store->n++] = t;
    }
    return check_cover(file->path, store->n > 0 ? store->tensor + before : NULL, store->n - before, data, bytes, err);
}

/* What a file that is no safetensors file seems to be, for the message. */
static const char *guess(const uint8_t *bytes, size_t n)
{
    static const char lfs[] = "version https://git-lfs";
    if (n >= sizeof lfs - 1 && memcmp(bytes, lfs, sizeof lfs - 1) == 0)
        return " (it is a pointer of git-lfs: run `git lfs pull` in the model's folder)";
    if (n >= 4 && (memcmp(bytes, "PK\3\4", 4) == 0 || (bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5)))
        return " (it is a pickle; reading one can run code)";
    if (n >= 4 && memcmp(bytes, "GGUF", 4) == 0) return " (it is a GGUF file, which this version does not read)";
    return n >= 1 && bytes[0] == '<' ? " (it seems to be a web page)" : "";
}

reel_status reel_store_add(reel_store *store, const reel_store_file *file, reel_error *err)
{
    const uint8_t *bytes = file->mapping.data;
    const size_t n = file->mapping.bytes;
    uint64_t header_bytes = 0;
    if (n < 8)
        return REEL_FAIL(err, REEL_E_MODEL,
                         "not a safetensors file\ngiven: %s has %zu bytes\nallowed: at least 8\nremedy: fetch the file again", file->path,
                         n);
    for (int32_t i = 7; i >= 0; i--) header_bytes = header_bytes << 8 | bytes[i];
    if (header_bytes > HEADER_MAX || header_bytes > n - 8) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "not a safetensors file, or one that is cut short\ngiven: %s says its header has %llu bytes; the file has "
                         "%zu%s\nallowed: a header that "
                         "lies within the file, at most %d bytes\nremedy: fetch the file again",
                         file->path, (unsigned long long)header_bytes, n, guess(bytes, n), HEADER_MAX);
    }
    reel_json json;
    REEL_TRY(reel_json_parse((const char *)bytes + 8, (size_t)header_bytes, file->path, REEL_E_MODEL, &json, err));
    reel_status status = read_header(store, file, json.root, bytes + 8 + header_bytes, n - 8 - (size_t)header_bytes, err);
    reel_json_deinit(&json);
    return status;
}
