/* SPDX-License-Identifier: Apache-2.0
 *
 * SentencePiece's precompiled map of characters: which strings are replaced by which, as a double-array trie.
 *
 * Form: 4 bytes (little endian) size of the trie in bytes, the trie's units of 4 bytes, then zero-terminated replacements. It is checked
 * whole when opened, so that no look-up can leave it, not even SentencePiece's own. Inner header of src/text. */
#ifndef REEL_TEXT_CHARSMAP_H
#define REEL_TEXT_CHARSMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

typedef struct reel_charsmap {
    uint32_t *unit;
    size_t n_unit;
    char *text; /* replacements, the last one terminated */
    size_t n_text;
} reel_charsmap;

/* Copies a map of n bytes. path names the file in messages. */
reel_status reel_charsmap_init(reel_charsmap *map, const uint8_t *bytes, size_t n, const char *path, reel_error *err);
void reel_charsmap_deinit(reel_charsmap *map);
/* The replacement of the shortest key that text begins with, or NULL; *matched is the key's length. */
const char *reel_charsmap_find(const reel_charsmap *map, const char *text, size_t n, size_t *matched);

#endif
