/* SPDX-License-Identifier: Apache-2.0
 *
 * Added tokens: texts that stand for one id wherever they occur, before any piece is looked for ("</s>" typed in a prompt is id 1).
 *
 * A token marked "normalized" is looked for in the normalised text, any other in the text as given. Inner header of src/text. */
#ifndef REEL_TEXT_ADDED_H
#define REEL_TEXT_ADDED_H

#include "base/json.h"
#include "text/normalizer.h"
#include "text/vocab.h"

typedef struct reel_added_token {
    int32_t id;
    bool is_single_word, strips_left, strips_right;
} reel_added_token;

/* Tokens of one kind; piece i of `text` belongs to token[i]. */
typedef struct reel_added {
    reel_vocab text;
    reel_added_token *token;
} reel_added;

enum { REEL_ADDED_MAX = 65536 };

/* Where the tokens come from and go to while "added_tokens" is read. */
typedef struct reel_added_lists {
    const reel_vocab *vocab; /* the model's pieces */
    const reel_normalizer *normalizer;
    reel_added raw, normalized;
    int32_t vocab_end; /* one more than the largest id */
} reel_added_lists;

reel_status reel_added_read(reel_added_lists *lists, const json_t *value, const char *path, reel_error *err);
void reel_added_deinit(reel_added *added);

/* Called for each stretch of a text in order: id of an added token, or -1 for the text between. */
typedef reel_status reel_section_fn(void *user, const char *text, size_t from, size_t to, int32_t id, reel_error *err);
reel_status reel_added_split(const reel_added *added, const char *text, size_t n, reel_section_fn *each, void *user, reel_error *err);

#endif
