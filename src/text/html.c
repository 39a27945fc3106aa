/* SPDX-License-Identifier: Apache-2.0
 *
 * Character references (text/html.h). Names are found by bisection in the generated table; every name is ASCII and at most 32 bytes. */
#include "text/html.h"

#include <string.h>

enum { NAME_MAX_CHARS = 32, CAREFUL_MAX_CHARS = 24 };

/* What a reference stands for: up to 3 characters, or nothing at all (n = 0). used: characters after "&" that it took. */
typedef struct reference {
    uint32_t to[3];
    size_t n, used;
} reference;

static const reel_html_entity *find_name(const uint32_t *name, size_t n)
{
    char key[NAME_MAX_CHARS + 2];
    if (n > NAME_MAX_CHARS + 1) return NULL;
    for (size_t i = 0; i < n; i++) {
        if (name[i] == 0 || name[i] >= 0x80) return NULL;
        key[i] = (char)name[i];
    }
    key[n] = '\0';
    size_t low = 0, high = reel_html_entity_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(key, reel_html_entities[mid].name);
        if (order == 0) return &reel_html_entities[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

static void take_entity(const reel_html_entity *entity, size_t used, reference *out)
{
    *out = (reference){.used = used};
    while (out->n < 3 && entity->to[out->n]) {
        out->to[out->n] = entity->to[out->n];
        out->n++;
    }
}

/* Bytes 0x80 to 0x9F written as numbers mean the characters of Windows-1252. */
static const uint32_t windows_1252[32] = {0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
                                          0x2039, 0x0152, 0x8D,   0x017D, 0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
                                          0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

/* Characters that a number may not name; they vanish. */
static bool is_forbidden(uint32_t c)
{
    return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || (c >= 0x7F && c <= 0x9F) || (c >= 0xFDD0 && c <= 0xFDEF) ||
           (c & 0xFFFE) == 0xFFFE;
}

static void take_number(uint32_t value, size_t used, reference *out)
{
    *out = (reference){.n = 1, .used = used};
    if (value == 0 || (value >= 0xD800 && value <= 0xDFFF) || value > 0x10FFFF)
        out->to[0] = 0xFFFD;
    else if (value >= 0x80 && value <= 0x9F)
        out->to[0] = windows_1252[value - 0x80];
    else if (is_forbidden(value))
        out->n = 0;
    else
        out->to[0] = value;
}

static int digit_of(uint32_t c, uint32_t base)
{
    if (c >= '0' && c <= '9') return (int)(c - '0');
    if (base == 16 && c >= 'a' && c <= 'f') return (int)(c - 'a') + 10;
    if (base == 16 && c >= 'A' && c <= 'F') return (int)(c - 'A') + 10;
    return -1;
}

/* "#123;" or "#x1F;" at text, the semicolon optional. */
static bool read_number(const uint32_t *text, size_t n, reference *out)
{
    size_t at = 1;
    uint32_t base = 10, value = 0;
    if (n > 1 && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        at = 2;
    }
    size_t first = at;
    for (; at < n && digit_of(text[at], base) >= 0; at++)
        if (value <= 0x10FFFF) value = value * base + (uint32_t)digit_of(text[at], base);
    if (at == first) return false;
    if (at < n && text[at] == ';') at++;
    take_number(value, at, out);
    return true;
}

/* A careful reference at text (behind "&"): whole, with its semicolon. */
static bool read_careful(const uint32_t *text, size_t n, reference *out)
{
    size_t sharp = n > 0 && text[0] == '#' ? 1 : 0, at = sharp;
    while (at < n && at - sharp < CAREFUL_MAX_CHARS &&
           ((text[at] >= '0' && text[at] <= '9') || (text[at] >= 'a' && text[at] <= 'z') || (text[at] >= 'A' && text[at] <= 'Z')))
        at++;
    if (at == sharp || at >= n || text[at] != ';') return false;
    if (!sharp) {
        const reel_html_entity *entity = find_name(text, at + 1);
        if (entity) take_entity(entity, at + 1, out);
        return entity != NULL;
    }
    /* A number that is a semicolon, or that ends before the semicolon, stays as it is. */
    return read_number(text, n, out) && out->used == at + 1 && (out->n == 0 || out->to[0] != ';');
}

/* A reference of the full reading at text (behind "&"). Where no name fits, false: "&" stays. */
static bool read_full(const uint32_t *text, size_t n, reference *out)
{
    if (n > 0 && text[0] == '#') return read_number(text, n, out);
    size_t length = 0;
    while (length < n && length < NAME_MAX_CHARS && !strchr("\t\n\f <&#;", (int)(text[length] < 0x80 && text[length] ? text[length] : 'x')))
        length++;
    if (length == 0) return false;
    size_t whole = length < n && text[length] == ';' ? length + 1 : length;
    for (size_t cut = whole; cut >= 2; cut--) {
        const reel_html_entity *entity = find_name(text, cut);
        if (entity && entity->kind == 0) {
            take_entity(entity, cut, out);
            return true;
        }
    }
    return false;
}

reel_status reel_html_careful(const uint32_t *text, size_t n, reel_u32 *out, reel_error *err)
{
    reference found = {0};
    for (size_t i = 0; i < n;) {
        if (text[i] != '&' || !read_careful(text + i + 1, n - i - 1, &found)) {
            REEL_TRY(reel_u32_add(out, text[i++], err));
            continue;
        }
        /* What became "&" may begin a reference again ("&amp;amp;lt;"). Cleaning repeats until nothing changes, so reading on at once
         * ends the same, and in one pass where an unkind text would take thousands. */
        i += 1 + found.used;
        while (found.n == 1 && found.to[0] == '&' && read_careful(text + i, n - i, &found)) i += found.used;
        REEL_TRY(reel_u32_append(out, found.to, found.n, err));
    }
    return REEL_OK;
}

reel_status reel_html_full(const uint32_t *text, size_t n, reel_u32 *out, reel_error *err)
{
    reference found = {0};
    for (size_t i = 0; i < n;) {
        if (text[i] != '&' || !read_full(text + i + 1, n - i - 1, &found)) {
            REEL_TRY(reel_u32_add(out, text[i++], err));
            continue;
        }
        i += 1 + found.used;
        REEL_TRY(reel_u32_append(out, found.to, found.n, err));
    }
    return REEL_OK;
}
