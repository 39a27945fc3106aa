/* SPDX-License-Identifier: Apache-2.0
 *
 * Characters: arrays of code points, UTF-8, and the few Unicode rules that cleaning and tokenizing need.
 *
 * The rules come from ICU. In a build without it everything about ASCII works, and what would need a table of other characters is
 * REEL_E_UNSUPPORTED. Inner header of src/text. */
#ifndef REEL_TEXT_UNICODE_H
#define REEL_TEXT_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* A growing array of code points. Zeroed is empty; freed with reel_u32_deinit. */
typedef struct reel_u32 {
    uint32_t *at;
    size_t n, capacity;
} reel_u32;

reel_status reel_u32_reserve(reel_u32 *text, size_t n, reel_error *err);
reel_status reel_u32_add(reel_u32 *text, uint32_t c, reel_error *err);
reel_status reel_u32_append(reel_u32 *text, const uint32_t *from, size_t n, reel_error *err);
void reel_u32_deinit(reel_u32 *text);

/* Decodes the character at text[*at] and moves *at behind it; false, and *at unmoved, when the bytes there are not UTF-8. */
bool reel_utf8_next(const char *text, size_t n, size_t *at, uint32_t *c);
/* Writes 1 to 4 bytes, returns how many. */
size_t reel_utf8_put(uint32_t c, char out[4]);
/* Appends text; not UTF-8: REEL_E_ARGUMENT naming the byte. */
reel_status reel_u32_from_utf8(const char *text, size_t n, reel_u32 *out, reel_error *err);
reel_status reel_u32_to_utf8(const uint32_t *text, size_t n, reel_buf *out, reel_error *err);

typedef enum reel_form { REEL_FORM_NFC, REEL_FORM_NFD, REEL_FORM_NFKC, REEL_FORM_NFKD } reel_form;
/* Replaces the text by its normal form. */
reel_status reel_u32_normalize(reel_u32 *text, reel_form form, reel_error *err);

bool reel_char_is_space(uint32_t c); /* white space as Python counts it: with U+001C to U+001F */
bool reel_char_is_white(uint32_t c); /* the White_Space property */
bool reel_char_is_digit(uint32_t c); /* a decimal digit of any script */
bool reel_char_is_alnum(uint32_t c); /* letter or number of any script, or "_" */
bool reel_char_is_word(uint32_t c); /* \w of Unicode regular expressions: alphabetic, mark, digit, connector, joiner */

/* Ends of the user-perceived characters (grapheme clusters) of UTF-8 text: appends byte offsets as code points to *ends. */
reel_status reel_utf8_clusters(const char *text, size_t n, reel_u32 *ends, reel_error *err);

#endif
