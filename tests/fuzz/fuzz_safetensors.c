/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a safetensors file. What is taken keeps its promises: every tensor lies within the bytes and is found by its name, names are distinct,
 * and the sizes add up to no more than the file. What is refused says what to do. */
#include <stdlib.h>
#include <string.h>

#include "weights/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    reel_store *store = NULL;
    reel_error err;
    if (reel_store_parse(data, size, "fuzz", &store, &err) != REEL_OK) {
        if (store || !strstr(err.text, "remedy: ")) abort();
        return 0;
    }
    size_t total = 0;
    volatile uint8_t sum = 0;
    for (int32_t i = 0; i < reel_store_count(store); i++) {
        const reel_stored *t = reel_store_at(store, i);
        if (t->n_dim < 0 || t->n_dim > REEL_DIM_MAX || t->data < data || t->bytes > size || t->data + t->bytes > data + size) abort();
        if (reel_store_find(store, t->name) != t || !t->dtype_name || !t->file) abort();
        if (i > 0 && strcmp(reel_store_at(store, i - 1)->name, t->name) >= 0) abort();
        for (size_t k = 0; k < t->bytes; k++) sum = (uint8_t)(sum + t->data[k]);
        total += t->bytes;
    }
    if (total != reel_store_bytes(store) || total > size) abort();
    (void)reel_store_metadata(store, "format");
    reel_store_close(&store);
    return 0;
}
