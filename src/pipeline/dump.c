/* SPDX-License-Identifier: Apache-2.0
 *
 * The collector of pipeline/dump.h. */
#include "pipeline/dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "weights/weights.h"

enum { DUMP_MAX = 4096 };

typedef struct item {
    char name[64];
    reel_tensor tensor; /* dense host copy, owned */
} item;

struct reel_dump {
    int32_t n;
    item *items[DUMP_MAX];
};

reel_status reel_dump_new(reel_dump **out, reel_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? REEL_OK : REEL_FAIL(err, REEL_E_MEMORY, "out of memory for --x-dump\nremedy: leave out --x-dump");
}

void reel_dump_free(reel_dump **dump)
{
    if (!*dump) return;
    for (int32_t i = 0; i < (*dump)->n; i++) {
        free((*dump)->items[i]->tensor.data);
        free((*dump)->items[i]);
    }
    free(*dump);
    *dump = NULL;
}

static item *find(const reel_dump *dump, const char *name)
{
    for (int32_t i = 0; i < dump->n; i++) {
        if (strcmp(dump->items[i]->name, name) == 0) return dump->items[i];
    }
    return NULL;
}

static reel_status no_room(const char *name, reel_error *err)
{
    return REEL_FAIL(
        err, REEL_E_MEMORY,
        "--x-dump cannot hold another tensor\ngiven: %s\nallowed: %d tensors that fit into memory\nremedy: use fewer steps or a "
        "smaller clip for a dump",
        name, DUMP_MAX);
}

/* Adds `bytes` of data; extent[0] grows by one when the item exists. */
static reel_status store(reel_dump *dump, const char *name, const reel_tensor *shape, const void *data, reel_error *err)
{
    if (!dump) return REEL_OK;
    const size_t bytes = reel_tensor_bytes(shape);
    item *it = find(dump, name);
    size_t before = it ? reel_tensor_bytes(&it->tensor) : 0;
    if (!it) {
        it = dump->n < DUMP_MAX ? calloc(1, sizeof *it) : NULL;
        if (!it) return no_room(name, err);
        (void)snprintf(it->name, sizeof it->name, "%s", name);
        it->tensor = *shape;
        it->tensor.data = NULL;
        it->tensor.extent[0] = 0;
        dump->items[dump->n++] = it;
    }
    void *grown = realloc(it->tensor.data, before + bytes + 1);
    if (!grown) return no_room(name, err);
    memcpy((char *)grown + before, data, bytes);
    it->tensor.data = grown;
    it->tensor.extent[0] += shape->extent[0];
    return REEL_OK;
}

static reel_tensor shape_of(reel_dtype dtype, const int64_t *extent, int32_t n_dim, bool is_element)
{
    reel_tensor t = {.dtype = dtype, .n_dim = n_dim + (is_element ? 1 : 0)};
    int32_t k = 0;
    if (is_element) t.extent[k++] = 1;
    for (int32_t i = 0; i < n_dim; i++) t.extent[k++] = extent[i];
    int64_t stride = 1;
    for (int32_t i = t.n_dim - 1; i >= 0; i--) {
        t.stride[i] = stride;
        stride *= t.extent[i];
    }
    return t;
}

reel_status reel_dump_host(reel_dump *dump, const char *name, reel_dtype dtype, const int64_t *extent, int32_t n_dim, const void *data,
                           reel_error *err)
{
    reel_tensor t = shape_of(dtype, extent, n_dim, false);
    return store(dump, name, &t, data, err);
}

reel_status reel_dump_append(reel_dump *dump, const char *name, reel_dtype dtype, const int64_t *extent, int32_t n_dim, const void *data,
                             reel_error *err)
{
    reel_tensor t = shape_of(dtype, extent, n_dim, true);
    return store(dump, name, &t, data, err);
}

reel_status reel_download_f32(const reel_ops *ops, const reel_tensor *t, float **out, reel_error *err)
{
    reel_status status = REEL_OK;
    reel_tensor dense = *t;
    void *buffer = NULL;
    float *host = malloc((size_t)reel_tensor_count(t) * sizeof *host + 1);
    if (!host) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a copy of a tensor\nremedy: close other programs");
    int64_t stride = 1;
    for (int32_t i = t->n_dim - 1; i >= 0; i--) {
        dense.stride[i] = stride;
        stride *= t->extent[i];
    }
    dense.dtype = REEL_DTYPE_F32;
    REEL_TRY_GOTO(ops->vt->buffer_new(ops->device, (size_t)reel_tensor_count(t) * sizeof *host, &buffer, err), cleanup);
    dense.data = buffer;
    REEL_TRY_GOTO(REEL_OP(ops, convert, err, .x = *t, .y = dense), cleanup);
    REEL_TRY_GOTO(reel_ops_download(ops, host, &dense, err), cleanup);
    *out = host;
    host = NULL;
cleanup:
    if (buffer) ops->vt->buffer_free(ops->device, buffer);
    free(host);
    return status;
}

reel_status reel_dump_device(reel_dump *dump, const reel_ops *ops, const char *name, const reel_tensor *t, reel_error *err)
{
    if (!dump) return REEL_OK;
    float *host = NULL;
    REEL_TRY(reel_download_f32(ops, t, &host, err));
    reel_status status = reel_dump_host(dump, name, REEL_DTYPE_F32, t->extent, t->n_dim, host, err);
    free(host);
    return status;
}

reel_status reel_dump_write(const reel_dump *dump, const char *dir, int32_t clip, reel_error *err)
{
    if (!dump) return REEL_OK;
    (void)mkdir(dir, 0777); /* an existing folder is fine; anything else fails below with the path */
    char name[64], path[REEL_PATH_MAX];
    (void)snprintf(name, sizeof name, "clip_%03d.safetensors", (int)clip);
    REEL_TRY(reel_path_join(path, sizeof path, dir, name, err));
    reel_stored_out *out = calloc((size_t)dump->n + 1, sizeof *out);
    if (!out) return no_room(path, err);
    for (int32_t i = 0; i < dump->n; i++) out[i] = (reel_stored_out){.name = dump->items[i]->name, .tensor = dump->items[i]->tensor};
    reel_status status = reel_safetensors_write(path, out, dump->n, NULL, false, err);
    free(out);
    return status;
}
