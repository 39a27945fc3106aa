/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a tokenizer's two files into the parts that text/tokenizer.c works with. Inner header of src/text. */
#ifndef REEL_TEXT_TOKENIZER_FILE_H
#define REEL_TEXT_TOKENIZER_FILE_H

#include "base/buf.h"
#include "text/added.h"
#include "text/pretokenizer.h"
#include "text/spm.h"
#include "text/text.h"
#include "text/unigram.h"

enum { REEL_TOKENIZER_BYTES_MAX = 64 << 20 };

struct reel_tokenizer {
    bool has_json; /* the parts below up to `unigram` are used; otherwise spm and spm_pieces */
    reel_normalizer normalizer;
    reel_pretokenizer pre;
    reel_added raw, normalized;
    reel_unigram unigram;
    reel_spm *spm;
    reel_vocab spm_pieces; /* in order of ids */
    int32_t eos, vocab_end;
};

/* Reads the bytes of a tokenizer.json; path names it in messages. */
reel_status reel_tokenizer_read_json(reel_tokenizer *tokenizer, const reel_buf *file, const char *path, reel_error *err);
/* Reads the bytes of a spiece.model. With tokenizer.json read before, its pieces must be the same, and are then dropped. */
reel_status reel_tokenizer_read_spm(reel_tokenizer *tokenizer, const reel_buf *file, const char *path, reel_error *err);

#endif
