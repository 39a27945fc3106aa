/* SPDX-License-Identifier: Apache-2.0
 *
 * The "normalizer" of a tokenizer.json: a list of steps over UTF-8 text. Inner header of src/text.
 *
 * Known kinds: Sequence, Precompiled, Strip, Replace (a text, or the pattern " {2,}"), Prepend, NFC, NFD, NFKC, NFKD. Any other is an
 * error that names it. */
#ifndef REEL_TEXT_NORMALIZER_H
#define REEL_TEXT_NORMALIZER_H

#include "base/json.h"
#include "text/charsmap.h"
#include "text/unicode.h"

typedef enum reel_normal_kind {
    REEL_NORMAL_MAP,
    REEL_NORMAL_STRIP,
    REEL_NORMAL_REPLACE,
    REEL_NORMAL_BLANKS,
    REEL_NORMAL_PREPEND,
    REEL_NORMAL_FORM
} reel_normal_kind;

typedef struct reel_normal_step {
    reel_normal_kind kind;
    reel_charsmap map; /* MAP */
    bool left, right; /* STRIP */
    reel_buf pattern; /* REPLACE */
    reel_buf content; /* REPLACE, BLANKS (runs of two or more), PREPEND */
    reel_form form; /* FORM */
} reel_normal_step;

enum { REEL_NORMAL_STEPS_MAX = 16 };

typedef struct reel_normalizer {
    reel_normal_step step[REEL_NORMAL_STEPS_MAX];
    int32_t n;
} reel_normalizer;

/* value: the object of the file, or NULL or null for none. */
reel_status reel_normalizer_init(reel_normalizer *normalizer, const json_t *value, const char *path, reel_error *err);
void reel_normalizer_deinit(reel_normalizer *normalizer);
/* Replaces *out by the normalised text. *lead: how many of its bytes come from the first character given (0 when that vanished). */
reel_status reel_normalize(const reel_normalizer *normalizer, const char *text, size_t n, reel_buf *out, size_t *lead, reel_error *err);

#endif
