/* SPDX-License-Identifier: Apache-2.0
 *
 * The second half of text/mojibake.h: writing the text back in a single-byte encoding and looking whether the bytes are UTF-8.
 *
 * The steps are those of ftfy's repair, taken only far enough to know whether it would change the text: blanks that were no-break
 * spaces (0xA0) are put back, bytes lost to U+FFFD are allowed for (as byte 0x1A), surrogates written as UTF-8 are taken, and where the whole text
 * does not decode, stretches that look like UTF-8 are tried by themselves. */
#include "text/mojibake.h"

#include <stdlib.h>
#include <string.h>

#include "text/mojibake_class.h"

enum { PAGE_LATIN_1 = 0, PAGE_WINDOWS_FIRST = 1, PAGE_WINDOWS_LAST = 6, PAGE_MAC = 8, LOST = 0x1A };

static bool is_windows(int page)
{
    return page >= PAGE_WINDOWS_FIRST && page <= PAGE_WINDOWS_LAST;
}

uint32_t reel_c1_meaning(uint32_t c)
{
    return c >= 0x80 && c <= 0x9F ? reel_code_pages[PAGE_WINDOWS_FIRST][c - 0x80] : c;
}

/* The byte of a character in a page, or -1. */
static int byte_of(int page, uint32_t c)
{
    if (is_windows(page)) {
        if (c == 0xFFFD) return LOST;
        if (c == LOST) return -1;
    }
    if (c < 0x80) return (int)c;
    for (int i = 0; i < 128; i++)
        if (reel_code_pages[page][i] == c) return i + 128;
    return -1;
}

static bool encode(int page, const uint32_t *text, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        int byte = byte_of(page, text[i]);
        if (byte < 0) return false;
        out[i] = (uint8_t)byte;
    }
    return true;
}

static bool in(uint8_t byte, uint8_t first, uint8_t last)
{
    return byte >= first && byte <= last;
}

/* A continuation byte that a blank does not stand for: neither 0x85 nor 0xA0. */
static bool is_kept(uint8_t byte)
{
    return in(byte, 0x80, 0xBF) && byte != 0x85 && byte != 0xA0;
}

/* Length of a UTF-8 sequence at b in which one blank stands for 0xA0, or 0. */
static size_t blanked_length(const uint8_t *b, size_t n)
{
    if (n >= 2 && b[1] == ' ' && b[0] && strchr("\xC2\xC3\xC5\xCE\xD0\xD9", b[0])) return 2;
    if (n >= 3 && (b[0] == 0xE2 || b[0] == 0xE3) && b[1] == ' ' && is_kept(b[2])) return 3;
    if (n >= 3 && in(b[0], 0xE0, 0xE3) && is_kept(b[1]) && b[2] == ' ') return 3;
    if (n < 4 || b[0] != 0xF0) return 0;
    int blanks = 0, others = 0;
    for (int i = 1; i < 4; i++) {
        blanks += b[i] == ' ';
        others += in(b[i], 0x80, 0xBF);
    }
    return blanks == 1 && others == 2 ? 4 : 0;
}

/* "Ã " as the word "à": the blank stays beside the restored byte, but for some Portuguese words that begin with "à". */
static bool keeps_blank(const uint8_t *b, size_t n)
{
    static const char *const rest[] = {" ", "quele", "quela", "quilo", "s "};
    if (n < 2 || b[0] != 0xC3 || b[1] != ' ') return false;
    for (size_t i = 0; i < REEL_COUNT(rest); i++)
        if (n - 2 >= strlen(rest[i]) && memcmp(b + 2, rest[i], strlen(rest[i])) == 0) return false;
    return true;
}

/* Puts no-break spaces back; out holds 2 n bytes. Returns how many it got. */
static size_t restore_blanks(const uint8_t *b, size_t n, uint8_t *out)
{
    size_t made = 0;
    for (size_t i = 0; i < n;) {
        size_t length = blanked_length(b + i, n - i);
        bool is_word = keeps_blank(b + i, n - i);
        for (size_t j = 0; j < (length ? length : 1); j++) out[made++] = length && b[i + j] == ' ' ? 0xA0 : b[i + j];
        if (is_word) out[made++] = ' ';
        i += length ? length : 1;
    }
    return made;
}

/* Length of a UTF-8 sequence at b that has lost bytes (0x1A, once "?"), or 0. */
static size_t lossy_length(const uint8_t *b, size_t n)
{
    if (n >= 2 && in(b[0], 0xC2, 0xDF) && b[1] == LOST) return 2;
    if (n >= 2 && in(b[0], 0xC2, 0xC3) && b[1] == '?') return 2;
    if (n >= 6 && b[0] == 0xED && in(b[1], 0xA0, 0xAF) && b[3] == 0xED && in(b[4], 0xB0, 0xBF)) {
        bool lost_2 = b[2] == LOST || b[2] == '?', lost_5 = b[5] == LOST || b[5] == '?';
        bool has_2 = lost_2 || in(b[2], 0x80, 0xBF), has_5 = lost_5 || in(b[5], 0x80, 0xBF);
        if (has_2 && has_5 && (lost_2 || lost_5)) return 6;
    }
    size_t length = in(b[0], 0xE0, 0xEF) ? 3 : in(b[0], 0xF0, 0xF4) ? 4 : 0;
    if (length > 0 && n >= length) {
        int marks = 0, lost = 0, others = 0;
        for (size_t i = 1; i < length; i++) {
            marks += b[i] == '?';
            lost += b[i] == LOST;
            others += in(b[i], 0x80, 0xBF);
        }
        if (marks + lost + others == (int)length - 1 && marks <= 1 && marks + lost > 0) return length;
    }
    return b[0] == LOST ? 1 : 0;
}

/* Writes U+FFFD for what was lost; out holds 3 n bytes. */
static size_t mark_lost(const uint8_t *b, size_t n, uint8_t *out)
{
    size_t made = 0;
    for (size_t i = 0; i < n;) {
        size_t length = lossy_length(b + i, n - i);
        if (length > 0) {
            memcpy(out + made, "\xEF\xBF\xBD", 3);
            made += 3;
            i += length;
        } else {
            out[made++] = b[i++];
        }
    }
    return made;
}

/* The next character of UTF-8 that may hold U+0000 as two bytes and surrogate pairs as six. */
static bool next_variant(const uint8_t *b, size_t n, size_t *at, uint32_t *c)
{
    const uint8_t *p = b + *at;
    size_t left = n - *at;
    if (left >= 2 && p[0] == 0xC0 && p[1] == 0x80) {
        *c = 0;
        *at += 2;
        return true;
    }
    if (left >= 6 && p[0] == 0xED && in(p[1], 0xA0, 0xAF) && in(p[2], 0x80, 0xBF) && p[3] == 0xED && in(p[4], 0xB0, 0xBF) &&
        in(p[5], 0x80, 0xBF)) {
        *c = 0x10000u + ((p[1] & 0xFu) << 16 | (p[2] & 0x3Fu) << 10 | (p[4] & 0xFu) << 6 | (p[5] & 0x3Fu));
        *at += 6;
        return true;
    }
    return reel_utf8_next((const char *)b, n, at, c);
}

typedef enum outcome { NOT_UTF8, SAME, OTHER } outcome;

/* Whether the bytes are UTF-8, and then whether they say something else than text. */
static outcome decode(const uint8_t *b, size_t n, bool takes_variants, const uint32_t *text, size_t n_text)
{
    size_t at = 0, i = 0;
    bool is_same = true;
    while (at < n) {
        uint32_t c = 0;
        if (!(takes_variants ? next_variant(b, n, &at, &c) : reel_utf8_next((const char *)b, n, &at, &c))) return NOT_UTF8;
        is_same = is_same && i < n_text && text[i] == c;
        i++;
    }
    return is_same && i == n_text ? SAME : OTHER;
}

/* Tries one page. a and b hold 6 n bytes each. */
static outcome try_page(int page, const uint32_t *text, size_t n, uint8_t *a, uint8_t *b, bool *is_possible)
{
    *is_possible = encode(page, text, n, a);
    if (!*is_possible) return NOT_UTF8;
    bool is_blanked = false;
    for (size_t i = 0; page != PAGE_MAC && i < n && !is_blanked; i++) is_blanked = blanked_length(a + i, n - i) > 0;
    size_t n_byte = n;
    if (is_blanked) {
        n_byte = restore_blanks(a, n, b);
        memcpy(a, b, n_byte);
    }
    if (is_windows(page)) {
        n_byte = mark_lost(a, n_byte, b);
        memcpy(a, b, n_byte);
    }
    bool takes_variants = memchr(a, 0xED, n_byte) || memchr(a, 0xC0, n_byte);
    return decode(a, n_byte, takes_variants, text, n);
}

/* Whether a Latin-like page (not the last three) has c at a byte of first to last. */
static bool has_byte(uint32_t c, int first, int last)
{
    for (int page = PAGE_LATIN_1; page <= PAGE_WINDOWS_LAST; page++)
        for (int byte = first; byte <= last; byte++)
            if (reel_code_pages[page][byte - 128] == c) return true;
    return false;
}

static bool is_continuation(uint32_t c)
{
    return c == ' ' || has_byte(c, 0x80, 0xBF);
}

/* Blanks, dashes, quotation marks, the bullet and the ellipsis stand for themselves beside mojibake. */
static bool is_strict_continuation(uint32_t c)
{
    bool is_punctuation = c == ' ' || (c >= 0x2013 && c <= 0x2015) || (c >= 0x2018 && c <= 0x201A) || (c >= 0x201C && c <= 0x201E) ||
                          c == 0x2022 || c == 0x2026;
    return !is_punctuation && has_byte(c, 0x80, 0xBF);
}

/* Characters of text that look like one UTF-8 sequence read byte by byte, or 0. */
static size_t sequence_length(const uint32_t *text, size_t n)
{
    size_t follow = 0;
    while (follow < 3 && follow + 1 < n && is_continuation(text[follow + 1])) follow++;
    if (follow >= 1 && has_byte(text[0], 0xC2, 0xDF)) return 2;
    if (follow >= 2 && has_byte(text[0], 0xE0, 0xEF)) return 3;
    if (follow >= 3 && (has_byte(text[0], 0xF0, 0xF0) || has_byte(text[0], 0xF3, 0xF3))) return 4;
    return 0;
}

static bool would_repair(const uint32_t *text, size_t n, uint8_t *a, uint8_t *b)
{
    bool is_ascii = true;
    for (size_t i = 0; i < n && is_ascii; i++) is_ascii = text[i] < 0x80;
    if (is_ascii || !reel_mojibake_is_unlikely(text, n)) return false;
    for (int page = 0; page < REEL_CODE_PAGES; page++) {
        bool is_possible = false;
        outcome found = try_page(page, text, n, a, b, &is_possible);
        if (found != NOT_UTF8) return found == OTHER;
    }
    for (size_t i = 0; i < n;) {
        size_t end = i, length = 0;
        if (text[i] >= 0x80 && (i == 0 || !is_strict_continuation(text[i - 1])))
            while (end < n && (length = sequence_length(text + end, n - end)) > 0) end += length;
        /* A shorter stretch only: this ends. */
        if (end > i && end - i < n && would_repair(text + i, end - i, a, b)) return true;
        i = end > i ? end : i + 1;
    }
    return false;
}

reel_status reel_mojibake_check(const uint32_t *text, size_t n, bool *is_suspect, reel_error *err)
{
    bool has_c1 = false, has_more = false;
    for (size_t i = 0; i < n; i++) {
        has_c1 = has_c1 || (text[i] >= 0x80 && text[i] <= 0x9F);
        has_more = has_more || text[i] >= 0x80;
    }
    if (!has_more) return REEL_OK;
    uint8_t *a = malloc(n * 6), *b = malloc(n * 6);
    uint32_t *plain = malloc(n * sizeof *plain);
    reel_status status = REEL_OK;
    if (!a || !b || !plain) {
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory while checking a text of %zu characters\nremedy: close other programs", n);
        goto cleanup;
    }
    bool found = would_repair(text, n, a, b);
    if (!found && has_c1) { /* C1 controls are read as Windows-1252 in any case, and the result is looked at again */
        for (size_t i = 0; i < n; i++) plain[i] = reel_c1_meaning(text[i]);
        found = would_repair(plain, n, a, b);
    }
    if (found) *is_suspect = true;
cleanup:
    free(a);
    free(b);
    free(plain);
    return status;
}
