/* SPDX-License-Identifier: Apache-2.0
 *
 * The character rules of text/unicode.h: UTF-8 by hand, everything else from ICU. */
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

#ifdef REEL_WITH_ICU
#include <unicode/ubrk.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/utext.h>
#endif

reel_status reel_u32_reserve(reel_u32 *text, size_t n, reel_error *err)
{
    if (n <= text->capacity) return REEL_OK;
    size_t want = text->capacity ? text->capacity : 64;
    while (want < n) want *= 2;
    uint32_t *grown = realloc(text->at, want * sizeof *grown);
    if (!grown) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a text of %zu characters\nremedy: close other programs", want);
    text->at = grown;
    text->capacity = want;
    return REEL_OK;
}

reel_status reel_u32_add(reel_u32 *text, uint32_t c, reel_error *err)
{
    if (text->n == text->capacity) REEL_TRY(reel_u32_reserve(text, text->n + 1, err));
    text->at[text->n++] = c;
    return REEL_OK;
}

reel_status reel_u32_append(reel_u32 *text, const uint32_t *from, size_t n, reel_error *err)
{
    REEL_TRY(reel_u32_reserve(text, text->n + n, err));
    if (n > 0) memcpy(text->at + text->n, from, n * sizeof *from);
    text->n += n;
    return REEL_OK;
}

void reel_u32_deinit(reel_u32 *text)
{
    free(text->at);
    *text = (reel_u32){0};
}

bool reel_utf8_next(const char *text, size_t n, size_t *at, uint32_t *c)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)text + *at;
    size_t left = n - *at;
    if (left == 0) return false;
    if (p[0] < 0x80) {
        *c = p[0];
        *at += 1;
        return true;
    }
    size_t length = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || length > left) return false;
    uint32_t value = p[0] & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xC0) != 0x80) return false;
        value = value << 6 | (p[i] & 0x3Fu);
    }
    if (value < smallest[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return false;
    *c = value;
    *at += length;
    return true;
}

size_t reel_utf8_put(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; c >>= 6) out[i] = (char)(0x80u | (c & 0x3Fu));
    out[0] = (char)((0xF00u >> length & 0xF0u) | c);
    return length;
}

reel_status reel_u32_from_utf8(const char *text, size_t n, reel_u32 *out, reel_error *err)
{
    REEL_TRY(reel_u32_reserve(out, out->n + n, err));
    for (size_t at = 0; at < n;) {
        uint32_t c = 0;
        if (!reel_utf8_next(text, n, &at, &c)) {
            return REEL_FAIL(err, REEL_E_ARGUMENT,
                             "the text is not UTF-8\ngiven: byte %zu is 0x%02X, which begins no valid character\nallowed: UTF-8\n"
                             "remedy: save the text as UTF-8",
                             at, (unsigned)(unsigned char)text[at]);
        }
        out->at[out->n++] = c;
    }
    return REEL_OK;
}

reel_status reel_u32_to_utf8(const uint32_t *text, size_t n, reel_buf *out, reel_error *err)
{
    char piece[1024];
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        if (used + 4 > sizeof piece) {
            REEL_TRY(reel_buf_append(out, piece, used, err));
            used = 0;
        }
        used += reel_utf8_put(text[i], piece + used);
    }
    return reel_buf_append(out, piece, used, err);
}

bool reel_char_is_white(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool reel_char_is_space(uint32_t c)
{
    return (c >= 0x1C && c <= 0x1F) || reel_char_is_white(c);
}

static bool ascii_alnum(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

#ifdef REEL_WITH_ICU

bool reel_char_is_digit(uint32_t c)
{
    return c < 0x80 ? c >= '0' && c <= '9' : u_charType((UChar32)c) == U_DECIMAL_DIGIT_NUMBER;
}

bool reel_char_is_alnum(uint32_t c)
{
    return c < 0x80 ? ascii_alnum(c) : (U_GET_GC_MASK((UChar32)c) & (U_GC_L_MASK | U_GC_N_MASK)) != 0;
}

bool reel_char_is_word(uint32_t c)
{
    if (c < 0x80) return ascii_alnum(c);
    return (U_GET_GC_MASK((UChar32)c) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0 ||
           u_hasBinaryProperty((UChar32)c, UCHAR_ALPHABETIC) || u_hasBinaryProperty((UChar32)c, UCHAR_JOIN_CONTROL);
}

static reel_status icu_fault(UErrorCode code, reel_error *err)
{
    return REEL_FAIL(err, REEL_E_INTERNAL, "ICU failed: %s\nremedy: check that ICU and its data are installed whole", u_errorName(code));
}

static const UNormalizer2 *normalizer(reel_form form, UErrorCode *code)
{
    switch (form) {
    case REEL_FORM_NFC: return unorm2_getNFCInstance(code);
    case REEL_FORM_NFD: return unorm2_getNFDInstance(code);
    case REEL_FORM_NFKC: return unorm2_getNFKCInstance(code);
    case REEL_FORM_NFKD: return unorm2_getNFKDInstance(code);
    }
    return NULL;
}

/* UTF-16 of the text, 2 units a character at most, in memory of its own. */
static UChar *to_utf16(const reel_u32 *text, int32_t *n)
{
    UChar *out = malloc((text->n * 2 + 1) * sizeof *out);
    *n = 0;
    for (size_t i = 0; out && i < text->n; i++) U16_APPEND_UNSAFE(out, *n, text->at[i]);
    return out;
}

static reel_status from_utf16(const UChar *text, int32_t n, reel_u32 *out, reel_error *err)
{
    out->n = 0;
    for (int32_t i = 0; i < n;) {
        uint32_t c = text[i++];
        if (U16_IS_LEAD(c) && i < n && U16_IS_TRAIL(text[i])) c = 0x10000u + ((c & 0x3FFu) << 10 | (text[i++] & 0x3FFu));
        REEL_TRY(reel_u32_add(out, c, err));
    }
    return REEL_OK;
}

reel_status reel_u32_normalize(reel_u32 *text, reel_form form, reel_error *err)
{
    uint32_t all = 0;
    for (size_t i = 0; i < text->n; i++) all |= text->at[i];
    if (all < 0x80) return REEL_OK;
    UErrorCode code = U_ZERO_ERROR;
    const UNormalizer2 *rules = normalizer(form, &code);
    if (U_FAILURE(code)) return icu_fault(code, err);
    int32_t n = 0, made = 0;
    UChar *from = to_utf16(text, &n), *to = NULL;
    reel_status status = REEL_OK;
    if (!from) {
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory while normalising a text\nremedy: close other programs");
        goto cleanup;
    }
    if (unorm2_isNormalized(rules, from, n, &code) && U_SUCCESS(code)) goto cleanup;
    code = U_ZERO_ERROR;
    made = unorm2_normalize(rules, from, n, NULL, 0, &code);
    to = malloc(((size_t)made + 1) * sizeof *to);
    if (!to) {
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory while normalising a text\nremedy: close other programs");
        goto cleanup;
    }
    code = U_ZERO_ERROR;
    made = unorm2_normalize(rules, from, n, to, made + 1, &code);
    if (U_FAILURE(code)) {
        status = icu_fault(code, err);
        goto cleanup;
    }
    REEL_TRY_GOTO(from_utf16(to, made, text, err), cleanup);
cleanup:
    free(from);
    free(to);
    return status;
}

reel_status reel_utf8_clusters(const char *text, size_t n, reel_u32 *ends, reel_error *err)
{
    UErrorCode code = U_ZERO_ERROR;
    UText *view = utext_openUTF8(NULL, text, (int64_t)n, &code);
    UBreakIterator *breaks = ubrk_open(UBRK_CHARACTER, "en", NULL, 0, &code);
    ubrk_setUText(breaks, view, &code);
    reel_status status = REEL_OK;
    if (U_FAILURE(code)) {
        status = icu_fault(code, err);
        goto cleanup;
    }
    (void)ubrk_first(breaks);
    for (int32_t end = ubrk_next(breaks); end != UBRK_DONE; end = ubrk_next(breaks))
        REEL_TRY_GOTO(reel_u32_add(ends, (uint32_t)end, err), cleanup);
cleanup:
    ubrk_close(breaks);
    utext_close(view);
    return status;
}

#else /* no ICU: ASCII only */

static reel_status no_icu(reel_error *err)
{
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "this build has no Unicode tables and cannot take this text\nallowed: ASCII\n"
                     "remedy: write the text in ASCII, or build reel with ICU (-DREEL_ICU=ON)");
}

bool reel_char_is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

bool reel_char_is_alnum(uint32_t c)
{
    return ascii_alnum(c);
}

bool reel_char_is_word(uint32_t c)
{
    return ascii_alnum(c);
}

/* Characters that NFC leaves alone whatever stands beside them, so that entities of an ASCII prompt work ("&hellip;"): neither marks nor
 * letters with another normal form among them. */
static bool is_inert(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0x0, 0x2ff},     {0x370, 0x373},   {0x375, 0x37d},   {0x37f, 0x386},     {0x388, 0x482},    {0x2002, 0x2027},
                  {0x202a, 0x205f}, {0x20a0, 0x20cf}, {0x2100, 0x2125}, {0x2127, 0x2129},   {0x212c, 0x2328},  {0x232b, 0x2adb},
                  {0x2add, 0x2cee}, {0x4e00, 0x9fff}, {0xfffc, 0xfffd}, {0x1d400, 0x1d7ff}, {0x1f000, 0x1faff}};
    for (size_t i = 0; i < REEL_COUNT(ranges); i++)
        if (c >= ranges[i].first && c <= ranges[i].last) return true;
    return false;
}

reel_status reel_u32_normalize(reel_u32 *text, reel_form form, reel_error *err)
{
    for (size_t i = 0; i < text->n; i++)
        if (text->at[i] >= 0x80 && (form != REEL_FORM_NFC || !is_inert(text->at[i]))) return no_icu(err);
    return REEL_OK;
}

reel_status reel_utf8_clusters(const char *text, size_t n, reel_u32 *ends, reel_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)text[i] >= 0x80) return no_icu(err);
        if (text[i] != '\r' || i + 1 == n || text[i + 1] != '\n') REEL_TRY(reel_u32_add(ends, (uint32_t)(i + 1), err));
    }
    return REEL_OK;
}

#endif
