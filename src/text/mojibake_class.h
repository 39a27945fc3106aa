/* SPDX-License-Identifier: Apache-2.0
 *
 * The first half of text/mojibake.h: unlikely neighbours. Inner header of src/text. */
#ifndef REEL_TEXT_MOJIBAKE_CLASS_H
#define REEL_TEXT_MOJIBAKE_CLASS_H

#include "text/unicode.h"

/* True when some sequence of characters hardly occurs but by wrong decoding. */
bool reel_mojibake_is_unlikely(const uint32_t *text, size_t n);

#endif
