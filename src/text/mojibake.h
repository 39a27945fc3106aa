/* SPDX-License-Identifier: Apache-2.0
 *
 * Does a text look as if UTF-8 had been read in a wrong encoding, so that ftfy would repair it?
 *
 * Two things have to come together: neighbouring characters that ordinary text does not have, and bytes that are UTF-8 once the text is
 * written back in one of ten single-byte encodings. Nothing is repaired here. Inner header of src/text. */
#ifndef REEL_TEXT_MOJIBAKE_H
#define REEL_TEXT_MOJIBAKE_H

#include "text/unicode.h"

enum { REEL_CODE_PAGES = 10 };
extern const uint16_t reel_code_pages[REEL_CODE_PAGES][128];

/* The character that a C1 control (0x80 to 0x9F) stands for in Windows-1252; the five open places stay. */
uint32_t reel_c1_meaning(uint32_t c);

/* Sets *is_suspect when the text would be repaired, and leaves it alone otherwise. */
reel_status reel_mojibake_check(const uint32_t *text, size_t n, bool *is_suspect, reel_error *err);

#endif
