/* SPDX-License-Identifier: Apache-2.0
 *
 * The double-array trie of text/charsmap.h. A unit holds a label (low 8 bits), a mark that a key ends here (bit 8), the distance to its
 * children (bits 10 to 30, times 256 when bit 9 is set), or, with bit 31 set, the value of a key: a place in the replacements. */
#include "text/charsmap.h"

#include <stdlib.h>
#include <string.h>

#define IS_VALUE 0x80000000u
#define ENDS_KEY 0x100u

static uint32_t children(uint32_t unit)
{
    return (unit >> 10) << ((unit & 0x200u) >> 6);
}

static uint32_t read_u32(const uint8_t *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static reel_status damaged(const char *path, const char *what, reel_error *err)
{
    return REEL_FAIL(err, REEL_E_MODEL, "a tokenizer's map of characters is damaged\ngiven: %s, %s\nremedy: fetch the file again", path,
                     what);
}

/* Children of any unit, whatever the next byte, and all values lie within; then no walk can leave the arrays. */
static bool is_sound(const reel_charsmap *map)
{
    for (size_t i = 0; i < map->n_unit; i++) {
        uint32_t unit = map->unit[i];
        if (unit & IS_VALUE) {
            if ((unit & ~IS_VALUE) >= map->n_text) return false;
        } else if ((((uint32_t)i ^ children(unit)) | 0xFFu) >= map->n_unit) {
            return false;
        }
    }
    return true;
}

reel_status reel_charsmap_init(reel_charsmap *map, const uint8_t *bytes, size_t n, const char *path, reel_error *err)
{
    if (n < 4) return damaged(path, "it is empty", err);
    size_t n_trie = read_u32(bytes);
    if (n_trie % 4 != 0 || n_trie < 1024 || n_trie >= n - 4) return damaged(path, "its size field is wrong", err);
    if (bytes[n - 1] != 0) return damaged(path, "its last replacement has no end", err);
    reel_charsmap made = {.n_unit = n_trie / 4, .n_text = n - 4 - n_trie};
    made.unit = malloc(n_trie);
    made.text = malloc(made.n_text);
    if (!made.unit || !made.text) {
        reel_charsmap_deinit(&made);
        return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a map of %zu bytes\nremedy: close other programs", n);
    }
    for (size_t i = 0; i < made.n_unit; i++) made.unit[i] = read_u32(bytes + 4 + i * 4);
    memcpy(made.text, bytes + 4 + n_trie, made.n_text);
    if (!is_sound(&made)) {
        reel_charsmap_deinit(&made);
        return damaged(path, "it points outside itself", err);
    }
    *map = made;
    return REEL_OK;
}

void reel_charsmap_deinit(reel_charsmap *map)
{
    free(map->unit);
    free(map->text);
    *map = (reel_charsmap){0};
}

const char *reel_charsmap_find(const reel_charsmap *map, const char *text, size_t n, size_t *matched)
{
    uint32_t at = children(map->unit[0]);
    for (size_t i = 0; i < n && text[i] != 0; i++) {
        uint32_t byte = (unsigned char)text[i];
        at ^= byte;
        uint32_t unit = map->unit[at];
        if ((unit & (IS_VALUE | 0xFFu)) != byte) return NULL;
        at ^= children(unit);
        if (unit & ENDS_KEY) {
            *matched = i + 1;
            uint32_t value = map->unit[at];
            return value & IS_VALUE ? map->text + (value & ~IS_VALUE) : NULL;
        }
    }
    return NULL;
}
