/* SPDX-License-Identifier: Apache-2.0
 *
 * The "pre_tokenizer" of a tokenizer.json: marks blanks and cuts the text into the stretches that pieces may not cross.
 *
 * Known kinds: Sequence, Metaspace, WhitespaceSplit. Any other is an error that names it. Inner header of src/text. */
#ifndef REEL_TEXT_PRETOKENIZER_H
#define REEL_TEXT_PRETOKENIZER_H

#include "base/json.h"
#include "text/unicode.h"

typedef enum reel_prepend { REEL_PREPEND_ALWAYS, REEL_PREPEND_FIRST, REEL_PREPEND_NEVER } reel_prepend;

typedef struct reel_pre_step {
    bool is_metaspace; /* or white-space split */
    char mark[5]; /* what a blank becomes; one character */
    reel_prepend prepend;
    bool splits;
} reel_pre_step;

enum { REEL_PRE_STEPS_MAX = 4 };

typedef struct reel_pretokenizer {
    reel_pre_step step[REEL_PRE_STEPS_MAX];
    int32_t n;
} reel_pretokenizer;

reel_status reel_pretokenizer_init(reel_pretokenizer *pre, const json_t *value, const char *path, reel_error *err);

typedef reel_status reel_word_fn(void *user, const char *text, size_t n, reel_error *err);
/* Calls each for every stretch, none of them empty. lead: how many bytes of text come from the first character of the whole prompt; a
 * stretch that begins among them is the first one. */
reel_status reel_pretokenize(const reel_pretokenizer *pre, const char *text, size_t n, size_t lead, reel_word_fn *each, void *user,
                             reel_error *err);

#endif
