/* SPDX-License-Identifier: Apache-2.0
 *
 * From a prompt to token ids, and from ids to umT5 states.
 *
 * Cleaning follows diffusers with ftfy 6.3 (docs/text-cleaning.md lists the rules); ids follow tokenizer.json through the tokenizers library. The
 * encoder computes the real tokens only: rows of padding are zeros by definition and stand as a count. */
#ifndef REEL_TEXT_TEXT_H
#define REEL_TEXT_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/log.h"
#include "model/model.h"
#include "ops/ops.h"
#include "weights/weights.h"

enum { REEL_TOKEN_MAX = 512, REEL_PROMPT_BYTES_MAX = 1 << 20 };

/* Cleans UTF-8 text of n bytes into *out (appended). Not UTF-8: REEL_E_ARGUMENT with the byte's place. *is_suspect is set when the text
 * looks like a wrong encoding (mojibake) that ftfy would have repaired; it is then used as given. */
reel_status reel_prompt_clean(const char *text, size_t n, reel_buf *out, bool *is_suspect, reel_error *err);

typedef struct reel_tokenizer reel_tokenizer;

/* dir holds tokenizer.json and/or spiece.model. */
reel_status reel_tokenizer_open(const char *dir, reel_tokenizer **out, reel_error *err);
void reel_tokenizer_close(reel_tokenizer **tokenizer);
/* Names and versions of the libraries behind text. */
const char *reel_text_libraries(void);
int32_t reel_tokenizer_vocab(const reel_tokenizer *tokenizer); /* ids are below this */

typedef struct reel_tokens {
    int32_t id[REEL_TOKEN_MAX]; /* n real ids, the last is </s>; the rest 0 */
    int32_t n;
    int32_t n_cut; /* ids that did not fit */
    char cut_text[256]; /* beginning of what was cut, UTF-8, "" when nothing was */
} reel_tokens;

/* Ids of cleaned text, </s> added, cut to max_token (≤ 512) with </s> kept. */
reel_status reel_tokenize(const reel_tokenizer *tokenizer, const char *text, size_t n, int32_t max_token, reel_tokens *out,
                          reel_error *err);

typedef struct reel_umt5 reel_umt5;

/* Borrows ops and weights, which must outlive it. */
reel_status reel_umt5_new(const reel_umt5_config *config, const reel_ops *ops, reel_weights *weights, reel_dtype compute, reel_umt5 **out,
                          reel_error *err);
void reel_umt5_free(reel_umt5 **encoder);
/* What `scratch` must hold for n_token tokens; the plan calls it. */
size_t reel_umt5_scratch_bytes(const reel_umt5_config *config, reel_dtype compute, int64_t n_token, size_t alignment);
/* Bucket of a relative position (key − query), bidirectional. */
int32_t reel_umt5_bucket(int32_t distance, int32_t n_bucket, int32_t max_distance);
/* states [n, d_model] of dtype compute, on the device, caller's memory: row i belongs to token i. Asynchronous on ops->stream. */
reel_status reel_umt5_encode(reel_umt5 *encoder, const reel_tokens *tokens, reel_arena *scratch, const char *attention,
                             const reel_tensor *states, reel_error *err);

#endif
