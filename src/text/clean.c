/* SPDX-License-Identifier: Apache-2.0
 *
 * Prompt cleaning as diffusers' Wan pipelines do it: ftfy's repairs line by line until nothing changes, HTML unescaped twice, white
 * space collapsed. docs/text-cleaning.md lists the rules. Encodings are not repaired: what looks wrong is only reported. */
#include <string.h>

#include "text/html.h"
#include "text/mojibake.h"
#include "text/text.h"
#include "text/unicode.h"

/* Rounds until nothing changes: two or three for any ordinary text. More means entities nested within entities, an attack. */
enum { ROUNDS_MAX = 64, SEGMENT_MAX = 1000000 };

/* Ligatures of Latin letters and the digraphs of Serbo-Croatian. "ŉ" becomes U+02BC and n, which the quotes step makes "'n". */
static const struct {
    uint32_t from, to[3];
} ligatures[] = {
    {0x132, {'I', 'J'}},    {0x133, {'i', 'j'}},   {0x149, {0x2BC, 'n'}}, {0x1F1, {'D', 'Z'}},       {0x1F2, {'D', 'z'}},
    {0x1F3, {'d', 'z'}},    {0x1C4, {'D', 0x17D}}, {0x1C5, {'D', 0x17E}}, {0x1C6, {'d', 0x17E}},     {0x1C7, {'L', 'J'}},
    {0x1C8, {'L', 'j'}},    {0x1C9, {'l', 'j'}},   {0x1CA, {'N', 'J'}},   {0x1CB, {'N', 'j'}},       {0x1CC, {'n', 'j'}},
    {0xFB00, {'f', 'f'}},   {0xFB01, {'f', 'i'}},  {0xFB02, {'f', 'l'}},  {0xFB03, {'f', 'f', 'i'}}, {0xFB04, {'f', 'f', 'l'}},
    {0xFB05, {0x17F, 't'}}, {0xFB06, {'s', 't'}},
};

static reel_status add_ligature(uint32_t c, reel_u32 *out, reel_error *err)
{
    for (size_t i = 0; c >= 0x132 && i < REEL_COUNT(ligatures); i++) {
        if (ligatures[i].from != c) continue;
        for (size_t j = 0; j < 3 && ligatures[i].to[j]; j++) REEL_TRY(reel_u32_add(out, ligatures[i].to[j], err));
        return REEL_OK;
    }
    return reel_u32_add(out, c, err);
}

/* Half- and full-width forms become what NFKC makes of each by itself, the ideographic space a blank. */
static reel_status add_width(uint32_t c, reel_u32 *out, reel_error *err)
{
    if (c == 0x3000) return reel_u32_add(out, ' ', err);
    if (c < 0xFF01 || c > 0xFFEF) return add_ligature(c, out, err);
    reel_u32 one = {0};
    reel_status status = reel_u32_add(&one, c, err);
    if (status == REEL_OK) status = reel_u32_normalize(&one, REEL_FORM_NFKC, err);
    if (status == REEL_OK) status = reel_u32_append(out, one.at, one.n, err);
    reel_u32_deinit(&one);
    return status;
}

static uint32_t uncurl(uint32_t c)
{
    if (c == 0x2BC || (c >= 0x2018 && c <= 0x201B)) return '\'';
    return c >= 0x201C && c <= 0x201F ? '"' : c;
}

/* One character each: C1 controls, ligatures, width, quotes. No result of an earlier step meets a rule of an earlier step. */
static reel_status fix_characters(const reel_u32 *text, reel_u32 *out, reel_error *err)
{
    for (size_t i = 0; i < text->n; i++) {
        size_t from = out->n;
        REEL_TRY(add_width(reel_c1_meaning(text->at[i]), out, err));
        for (size_t j = from; j < out->n; j++) out->at[j] = uncurl(out->at[j]);
    }
    return REEL_OK;
}

static reel_status fix_line_breaks(const reel_u32 *text, reel_u32 *out, reel_error *err)
{
    for (size_t i = 0; i < text->n; i++) {
        uint32_t c = text->at[i];
        if (c == '\r' && i + 1 < text->n && text->at[i + 1] == '\n') continue;
        REEL_TRY(reel_u32_add(out, c == '\r' || c == 0x2028 || c == 0x2029 || c == 0x85 ? '\n' : c, err));
    }
    return REEL_OK;
}

/* Characters of a terminal's control sequence at text: escape, "[", digits and semicolons, a letter; or 0. */
static size_t escape_length(const uint32_t *text, size_t n)
{
    if (n < 3 || text[0] != 0x1B || text[1] != '[') return 0;
    size_t at = 2;
    while (at < n && (text[at] == ';' || reel_char_is_digit(text[at]))) at++;
    bool is_letter = at < n && ((text[at] >= 'a' && text[at] <= 'z') || (text[at] >= 'A' && text[at] <= 'Z'));
    return is_letter ? at + 1 : 0;
}

static bool is_control(uint32_t c)
{
    return c <= 8 || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || (c >= 0x206A && c <= 0x206F) || c == 0xFEFF ||
           (c >= 0xFFF9 && c <= 0xFFFC);
}

static reel_status remove_controls(const reel_u32 *text, reel_u32 *out, reel_error *err)
{
    for (size_t i = 0; i < text->n;) {
        size_t length = escape_length(text->at + i, text->n - i);
        if (length == 0 && !is_control(text->at[i])) REEL_TRY(reel_u32_add(out, text->at[i], err));
        i += length ? length : 1;
    }
    return REEL_OK;
}

typedef reel_status step(const reel_u32 *text, reel_u32 *out, reel_error *err);

/* Runs a step from *text into *spare and swaps them. */
static reel_status run_step(step *run, reel_u32 *text, reel_u32 *spare, reel_error *err)
{
    spare->n = 0;
    REEL_TRY(run(text, spare, err));
    reel_u32 swap = *text;
    *text = *spare;
    *spare = swap;
    return REEL_OK;
}

static reel_status unescape_careful(const reel_u32 *text, reel_u32 *out, reel_error *err)
{
    return reel_html_careful(text->at, text->n, out, err);
}

static reel_status unescape_full(const reel_u32 *text, reel_u32 *out, reel_error *err)
{
    return reel_html_full(text->at, text->n, out, err);
}

/* One line, in *text, until nothing changes. spare and before are scratch. */
static reel_status fix_segment(reel_u32 *text, bool unescape, reel_u32 scratch[2], bool *is_suspect, reel_error *err)
{
    reel_u32 *spare = &scratch[0], *before = &scratch[1];
    for (int round = 0; round < ROUNDS_MAX; round++) {
        before->n = 0;
        REEL_TRY(reel_u32_append(before, text->at, text->n, err));
        if (unescape) REEL_TRY(run_step(unescape_careful, text, spare, err));
        if (!*is_suspect) REEL_TRY(reel_mojibake_check(text->at, text->n, is_suspect, err));
        REEL_TRY(run_step(fix_characters, text, spare, err));
        REEL_TRY(run_step(fix_line_breaks, text, spare, err));
        REEL_TRY(run_step(remove_controls, text, spare, err));
        REEL_TRY(reel_u32_normalize(text, REEL_FORM_NFC, err));
        if (text->n == before->n && (text->n == 0 || memcmp(text->at, before->at, text->n * sizeof *text->at) == 0)) return REEL_OK;
    }
    return REEL_FAIL(err, REEL_E_ARGUMENT,
                     "the prompt does not come to rest when it is cleaned\ngiven: character references nested more than %d deep\n"
                     "remedy: write the characters themselves",
                     ROUNDS_MAX);
}

/* Line by line. From the first line with "<" on, references are left alone: such a text is HTML and means them. */
static reel_status fix_lines(const reel_u32 *text, reel_u32 *out, bool *is_suspect, reel_error *err)
{
    reel_u32 line = {0}, scratch[2] = {{0}, {0}};
    reel_status status = REEL_OK;
    bool unescape = true;
    for (size_t from = 0, to = 0; from < text->n; from = to) {
        line.n = 0;
        for (to = from; to < text->n && to - from < SEGMENT_MAX;) {
            if (text->at[to] == '<') unescape = false;
            if (text->at[to++] == '\n') break;
        }
        REEL_TRY_GOTO(reel_u32_append(&line, text->at + from, to - from, err), cleanup);
        REEL_TRY_GOTO(fix_segment(&line, unescape, scratch, is_suspect, err), cleanup);
        REEL_TRY_GOTO(reel_u32_append(out, line.at, line.n, err), cleanup);
    }
cleanup:
    reel_u32_deinit(&line);
    reel_u32_deinit(&scratch[0]);
    reel_u32_deinit(&scratch[1]);
    return status;
}

/* Runs of white space become one blank; none at either end. */
static reel_status collapse_space(const reel_u32 *text, reel_u32 *out, reel_error *err)
{
    for (size_t i = 0; i < text->n; i++) {
        if (reel_char_is_space(text->at[i])) continue;
        if (i > 0 && out->n > 0 && reel_char_is_space(text->at[i - 1])) REEL_TRY(reel_u32_add(out, ' ', err));
        REEL_TRY(reel_u32_add(out, text->at[i], err));
    }
    return REEL_OK;
}

static reel_status check_input(const char *text, size_t n, reel_error *err)
{
    if (n > REEL_PROMPT_BYTES_MAX) {
        return REEL_FAIL(err, REEL_E_ARGUMENT, "the prompt is too long\ngiven: %zu bytes\nallowed: %d bytes\nremedy: shorten it", n,
                         REEL_PROMPT_BYTES_MAX);
    }
#ifndef REEL_WITH_ICU
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)text[i] < 0x80) continue;
        return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                         "this build has no Unicode tables and takes only ASCII prompts\ngiven: byte %zu is 0x%02X\n"
                         "allowed: ASCII\nremedy: write the prompt in ASCII, or build reel with ICU (-DREEL_ICU=ON)",
                         i, (unsigned)(unsigned char)text[i]);
    }
#else
    (void)text;
#endif
    return REEL_OK;
}

reel_status reel_prompt_clean(const char *text, size_t n, reel_buf *out, bool *is_suspect, reel_error *err)
{
    reel_u32 now = {0}, spare = {0};
    bool suspect = false;
    REEL_TRY(check_input(text, n, err));
    reel_status status = REEL_OK;
    REEL_TRY_GOTO(reel_u32_from_utf8(text, n, &spare, err), cleanup);
    REEL_TRY_GOTO(fix_lines(&spare, &now, &suspect, err), cleanup);
    REEL_TRY_GOTO(run_step(unescape_full, &now, &spare, err), cleanup);
    REEL_TRY_GOTO(run_step(unescape_full, &now, &spare, err), cleanup);
    REEL_TRY_GOTO(run_step(collapse_space, &now, &spare, err), cleanup);
    REEL_TRY_GOTO(reel_u32_to_utf8(now.at, now.n, out, err), cleanup);
    *is_suspect = suspect;
cleanup:
    reel_u32_deinit(&now);
    reel_u32_deinit(&spare);
    return status;
}
