/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of a store: its mapped files and its list of tensors, sorted by name once all files are read. */
#ifndef REEL_WEIGHTS_STORE_INTERNAL_H
#define REEL_WEIGHTS_STORE_INTERNAL_H

#include <jansson.h>

#include "base/file.h"
#include "weights/weights.h"

typedef struct reel_store_file {
    char *path; /* for messages and reel_stored.file */
    reel_mapping mapping;
    bool is_mapped; /* false: borrowed memory */
} reel_store_file;

struct reel_store {
    reel_store_file *file;
    int32_t n_file;
    reel_stored *tensor;
    int32_t n, capacity;
    json_t *metadata; /* of the first file that has any */
    size_t bytes;
};

/* Room for n more tensors. */
reel_status reel_store_reserve(reel_store *store, size_t n, reel_error *err);
/* safetensors.c: reads one file's header and adds its tensors. */
reel_status reel_store_add(reel_store *store, const reel_store_file *file, reel_error *err);
/* Gives the whole pages of a tensor's mapping back to the system; they are read again if ever needed. Nothing for borrowed memory. */
void reel_store_forget(const reel_store *store, const reel_stored *stored);

#endif
