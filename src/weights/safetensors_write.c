/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a safetensors file, whole or not at all: header padded to 8 bytes with spaces, tensors in the order given. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "reel-plugin/tensor_util.h"
#include "weights/weights.h"

static json_t *entry_json(const reel_tensor *t, size_t begin)
{
    json_t *shape = json_array();
    for (int32_t i = 0; shape && i < t->n_dim; i++) (void)json_array_append_new(shape, json_integer(t->extent[i]));
    return json_pack("{s:s,s:o,s:[I,I]}", "dtype", reel_dtype_name(t->dtype), "shape", shape, "data_offsets", (json_int_t)begin,
                     (json_int_t)(begin + reel_tensor_bytes(t)));
}

static json_t *header_json(const reel_stored_out *tensors, int32_t n, const char *const *metadata)
{
    json_t *root = json_object();
    if (root && metadata && metadata[0]) {
        json_t *m = json_object();
        for (int32_t i = 0; m && metadata[i]; i += 2) (void)json_object_set_new(m, metadata[i], json_string(metadata[i + 1]));
        (void)json_object_set_new(root, "__metadata__", m);
    }
    size_t at = 0;
    for (int32_t i = 0; root && i < n; i++) {
        if (json_object_set_new(root, tensors[i].name, entry_json(&tensors[i].tensor, at)) != 0) {
            json_decref(root);
            return NULL;
        }
        at += reel_tensor_bytes(&tensors[i].tensor);
    }
    return root;
}

static bool write_all(FILE *f, const char *header, size_t header_bytes, const reel_stored_out *tensors, int32_t n)
{
    const size_t padded = (header_bytes + 7) / 8 * 8;
    uint8_t length[8];
    for (int32_t i = 0; i < 8; i++) length[i] = (uint8_t)(padded >> (8 * i));
    bool good = fwrite(length, 1, 8, f) == 8 && fwrite(header, 1, header_bytes, f) == header_bytes;
    for (size_t i = header_bytes; good && i < padded; i++) good = fputc(' ', f) != EOF;
    for (int32_t i = 0; good && i < n; i++) {
        const size_t bytes = reel_tensor_bytes(&tensors[i].tensor);
        good = bytes == 0 || fwrite(tensors[i].tensor.data, 1, bytes, f) == bytes;
    }
    return good;
}

reel_status reel_safetensors_write(const char *path, const reel_stored_out *tensors, int32_t n, const char *const *metadata, bool no_clobber, reel_error *err)
{
    reel_output out = {0};
    json_t *root = header_json(tensors, n, metadata);
    char *header = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (!header) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a file's header, or a name that is not UTF-8\ngiven: %s\nremedy: close other programs", path);
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
            status = REEL_FAIL(err, REEL_E_IO, "a file cannot be written\ngiven: %s (%s)\nremedy: check free space and permissions", path, strerror(reason));
            reel_output_abandon(&out);
        }
    }
    free(header);
    return status;
}
