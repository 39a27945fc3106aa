/* SPDX-License-Identifier: Apache-2.0
 *
 * The scores of a tokenizer.json's pieces to the last bit of the tokenizers library.
 *
 * That library reads numbers with one rounding too many: digits to a double, then divided by a power of ten. One score in seven is off by
 * a bit, and where two ways to cut a text have the same sum, that bit decides. So the digits are read again here. Inner header of src/text. */
#ifndef REEL_TEXT_JSON_SCORES_H
#define REEL_TEXT_JSON_SCORES_H

#include <stdbool.h>
#include <stddef.h>

/* Reads the numbers of model.vocab in order from the text of a document that is known to be valid JSON. False when they are not found,
 * or not n_score of them (keys written with escapes, say). */
bool reel_json_scores(const char *text, size_t n, double *score, size_t n_score);

#endif
