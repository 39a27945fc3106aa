/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a safetensors file, whole or not at all: header padded to 8 bytes with spaces, tensors with wide elements first, otherwise in the order given. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "reel-plugin/tensor_util.h"
#include "weights/weights.h"

enum { PASSES = 4 }; /* 8-, 4-, 2-, 1-byte elements */

static json_t *entry_json(const reel_tensor *t, size_t begin)
{
    json_t *shape = json_array();
    for (int32_t i = 0; shape && i < t->n_dim; i++) (void)json_array_append_new(shape, json_integer(t->extent[i]));
    const size_t end = begin + reel_tensor_bytes(t);
    return json_pack("{s:s,s:o,s:[I,I]}", "dtype", reel_dtype_name(t->dtype), "shape", shape, "data_offsets", (json_int_t)begin,
                     (json_int_t)end);
}

static reel_status refuse(const char *path, const char *name, const char *what, reel_error *err)
{
    return REEL_FAIL(err, REEL_E_ARGUMENT,
                     "a safetensors file cannot be written\ngiven: %s, \"%.200s\": %s\nallowed: distinct names in UTF-8, dense "
                     "tensors\nremedy: report this as a "
                     "fault of the caller",
                     path, name, what);
}

static reel_status add_metadata(json_t *root, const char *path, const char *const *metadata, reel_error *err)
{
    json_t *m = json_object();
    reel_status status = REEL_OK;
    for (int32_t i = 0; m && status == REEL_OK && metadata[i]; i += 2) {
        assert(metadata[i + 1]);
        if (json_object_get(m, metadata[i]))
            status = refuse(path, metadata[i], "a key of the metadata that is there twice", err);
        else if (json_object_set_new(m, metadata[i], json_string(metadata[i + 1])) != 0)
            status = refuse(path, metadata[i], "metadata that is not UTF-8", err);
    }
    if (json_object_set_new(root, "__metadata__", m) != 0 && status == REEL_OK) status = refuse(path, "__metadata__", "no memory", err);
    return status;
}

static reel_status add_entry(json_t *root, const char *path, const reel_stored_out *t, size_t *at, reel_error *err)
{
    const size_t bytes = reel_tensor_bytes(&t->tensor);
    if (json_object_get(root, t->name) || strcmp(t->name, "__metadata__") == 0)
        return refuse(path, t->name, "a name that is there twice, or reserved", err);
    if (!reel_tensor_is_dense(&t->tensor) || t->tensor.dtype == REEL_DTYPE_NONE || (bytes > 0 && !t->tensor.data))
        return refuse(path, t->name, "not a dense tensor", err);
    if (json_object_set_new(root, t->name, entry_json(&t->tensor, *at)) != 0) return refuse(path, t->name, "a name that is not UTF-8", err);
    *at += bytes;
    return REEL_OK;
}

/* Which tensors come in which pass: all whose elements have 8 >> pass bytes. */
static bool is_in_pass(const reel_stored_out *t, int32_t pass)
{
    return reel_dtype_bytes(t->tensor.dtype) == (size_t)(8 >> pass) || (pass == PASSES - 1 && t->tensor.dtype == REEL_DTYPE_NONE);
}

static reel_status header_text(const char *path, const reel_stored_out *tensors, int32_t n, const char *const *metadata, char **out,
                               reel_error *err)
{
    json_t *root = json_object();
    reel_status status = REEL_OK;
    size_t at = 0;
    if (!root) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a file's header\ngiven: %s\nremedy: close other programs", path);
    if (metadata && metadata[0]) status = add_metadata(root, path, metadata, err);
    for (int32_t pass = 0; pass < PASSES; pass++) {
        for (int32_t i = 0; status == REEL_OK && i < n; i++) {
            if (is_in_pass(&tensors[i], pass)) status = add_entry(root, path, &tensors[i], &at, err);
        }
    }
    *out = status == REEL_OK ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (status == REEL_OK && !*out)
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a file's header\ngiven: %s\nremedy: close other programs", path);
    return status;
}

static bool write_all(FILE *f, const char *header, size_t header_bytes, const reel_stored_out *tensors, int32_t n)
{
    const size_t padded = (header_bytes + 7) / 8 * 8;
    uint8_t length[8];
    for (int32_t i = 0; i < 8; i++) length[i] = (uint8_t)(padded >> (8 * i));
    bool good = fwrite(length, 1, 8, f) == 8 && fwrite(header, 1, header_bytes, f) == header_bytes;
    for (size_t i = header_bytes; good && i < padded; i++) good = fputc(' ', f) != EOF;
    for (int32_t pass = 0; pass < PASSES; pass++) {
        for (int32_t i = 0; good && i < n; i++) {
            const size_t bytes = reel_tensor_bytes(&tensors[i].tensor);
            if (bytes > 0 && is_in_pass(&tensors[i], pass)) good = fwrite(tensors[i].tensor.data, 1, bytes, f) == bytes;
        }
    }
    return good;
}

reel_status reel_safetensors_write(const char *path, const reel_stored_out *tensors, int32_t n, const char *const *metadata,
                                   bool no_clobber, reel_error *err)
{
    reel_output out = {0};
    char *header = NULL;
    REEL_TRY(header_text(path, tensors, n, metadata, &header, err));
    reel_status status = reel_output_begin(&out, path, no_clobber, err);
    if (status == REEL_OK) {
        FILE *f = fopen(out.temporary, "wbe");
        bool good = f && write_all(f, header, strlen(header), tensors, n);
        int reason = errno;
        if (f && fclose(f) != 0 && good) {
            good = false;
            reason = errno;
        }
        if (good) {
            status = reel_output_commit(&out, err);
        } else {
            status = REEL_FAIL(err, REEL_E_IO, "a file cannot be written\ngiven: %s (%s)\nremedy: check free space and permissions", path,
                               strerror(reason));
            reel_output_abandon(&out);
        }
    }
    free(header);
    return status;
}
