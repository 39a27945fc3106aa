/* SPDX-License-Identifier: Apache-2.0
 *
 * Cutting a stretch of text into the pieces with the largest sum of scores.
 *
 * Sums are kept in double and the first of equal ones stays, as in tokenizers. (SentencePiece sums in float, which gives other ids for
 * about one random text in 3,000; it serves models that come without a tokenizer.json.) Inner header of src/text. */
#ifndef REEL_TEXT_UNIGRAM_H
#define REEL_TEXT_UNIGRAM_H

#include "text/vocab.h"

typedef struct reel_unigram {
    reel_vocab vocab;
    int32_t unk; /* -1: the model has none */
    double unk_score;
    bool byte_fallback;
    int32_t byte[256]; /* ids of <0x00> to <0xFF>, or -1 */
} reel_unigram;

/* Sets unk_score and the table of bytes once the vocabulary is indexed. */
void reel_unigram_prepare(reel_unigram *model);
void reel_unigram_deinit(reel_unigram *model);

/* Takes ids in order; the surface is the text that they stand for. */
typedef reel_status reel_ids_fn(void *user, const int32_t *id, size_t n_id, const char *surface, size_t n, reel_error *err);
reel_status reel_unigram_encode(const reel_unigram *model, const char *text, size_t n, reel_ids_fn *each, void *user, reel_error *err);

#endif
