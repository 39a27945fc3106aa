/* SPDX-License-Identifier: Apache-2.0
 *
 * From cleaned text to ids: added tokens, normaliser, pre-tokenizer and pieces in the order of the tokenizers library, or, without a
 * tokenizer.json, SentencePiece alone. Only the ids that fit are kept; of the rest the count and the beginning of the text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "text/tokenizer_file.h"

typedef reel_status read_fn(reel_tokenizer *tokenizer, const reel_buf *file, const char *path, reel_error *err);

static reel_status read_file(reel_tokenizer *tokenizer, read_fn *read, const char *path, reel_error *err)
{
    reel_buf file = {0};
    reel_status status = reel_read_file(path, REEL_TOKENIZER_BYTES_MAX, &file, err);
    if (status == REEL_OK) status = read(tokenizer, &file, path, err);
    reel_buf_deinit(&file);
    return status;
}

reel_status reel_tokenizer_open(const char *dir, reel_tokenizer **out, reel_error *err)
{
    char json[REEL_PATH_MAX], spm[REEL_PATH_MAX];
    REEL_TRY(reel_path_join(json, sizeof json, dir, "tokenizer.json", err));
    REEL_TRY(reel_path_join(spm, sizeof spm, dir, "spiece.model", err));
    bool has_json = reel_path_is_file(json), has_spm = reel_path_is_file(spm);
    if (!has_json && !has_spm) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "the tokenizer is missing\ngiven: %s\nallowed: a folder with tokenizer.json, or spiece.model, or both\n"
                         "remedy: fetch the model's folder \"tokenizer\"",
                         dir);
    }
    reel_tokenizer *made = calloc(1, sizeof *made);
    if (!made) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a tokenizer\nremedy: close other programs");
    reel_status status = has_json ? read_file(made, reel_tokenizer_read_json, json, err) : REEL_OK;
    if (status == REEL_OK && has_spm) status = read_file(made, reel_tokenizer_read_spm, spm, err);
    if (status != REEL_OK) {
        reel_tokenizer_close(&made);
        return reel_trace(err, status, __FILE__, __LINE__);
    }
    *out = made;
    return REEL_OK;
}

void reel_tokenizer_close(reel_tokenizer **tokenizer)
{
    reel_tokenizer *t = *tokenizer;
    if (!t) return;
    reel_normalizer_deinit(&t->normalizer);
    reel_added_deinit(&t->raw);
    reel_added_deinit(&t->normalized);
    reel_unigram_deinit(&t->unigram);
    reel_vocab_deinit(&t->spm_pieces);
    reel_spm_close(t->spm);
    free(t);
    *tokenizer = NULL;
}

int32_t reel_tokenizer_vocab(const reel_tokenizer *tokenizer)
{
    return tokenizer->vocab_end;
}

/* ---- collecting ids ------------------------------------------------------------------------------------------------------ */

typedef struct collector {
    const reel_tokenizer *tokenizer;
    int32_t room; /* ids that fit before </s> */
    int64_t n; /* ids seen */
    reel_tokens tokens;
    size_t n_cut_text;
} collector;

/* The blank's mark of both files, written as a blank again. */
#define MARK "\xE2\x96\x81"

/* Adds to the text that was cut, as far as it has room. A cut may come within a character's bytes: those left over are dropped. */
static void add_cut_text(collector *c, const char *surface, size_t n)
{
    char *text = c->tokens.cut_text;
    for (size_t i = 0; i < n && c->n_cut_text + 4 < sizeof c->tokens.cut_text;) {
        bool is_mark = n - i >= 3 && memcmp(surface + i, MARK, 3) == 0;
        char byte = is_mark ? ' ' : surface[i];
        i += is_mark ? 3 : 1;
        bool is_rest = c->n_cut_text == 0 && (byte == ' ' || ((unsigned char)byte & 0xC0) == 0x80);
        if (!is_rest) text[c->n_cut_text++] = byte;
    }
}

static reel_status take_ids(void *user, const int32_t *id, size_t n_id, const char *surface, size_t n, reel_error *err)
{
    (void)err;
    collector *c = user;
    for (size_t i = 0; i < n_id; i++, c->n++)
        if (c->n < c->room) c->tokens.id[c->n] = id[i];
    if (c->n > c->room) add_cut_text(c, surface, n);
    return REEL_OK;
}

/* A character whose last bytes found no room leaves the text. */
static void end_cut_text(collector *c)
{
    char *text = c->tokens.cut_text;
    size_t at = 0;
    uint32_t unused = 0;
    while (reel_utf8_next(text, c->n_cut_text, &at, &unused)) continue;
    text[at] = '\0';
}

/* ---- tokenizer.json ---------------------------------------------------------------------------------------------------- */

static reel_status take_word(void *user, const char *text, size_t n, reel_error *err)
{
    collector *c = user;
    return reel_unigram_encode(&c->tokenizer->unigram, text, n, take_ids, c, err);
}

typedef struct normal_section {
    collector *c;
    size_t lead; /* bytes that come from the prompt's first character */
} normal_section;

static reel_status take_normal_section(void *user, const char *text, size_t from, size_t to, int32_t id, reel_error *err)
{
    const normal_section *section = user;
    if (id >= 0) return take_ids(section->c, &id, 1, text + from, to - from, err);
    size_t lead = section->lead > from ? section->lead - from : 0;
    return reel_pretokenize(&section->c->tokenizer->pre, text + from, to - from, lead, take_word, section->c, err);
}

static reel_status take_section(void *user, const char *text, size_t from, size_t to, int32_t id, reel_error *err)
{
    collector *c = user;
    if (id >= 0) return take_ids(c, &id, 1, text + from, to - from, err);
    reel_buf normal = {0};
    normal_section section = {.c = c};
    reel_status status = reel_normalize(&c->tokenizer->normalizer, text + from, to - from, &normal, &section.lead, err);
    if (from > 0) section.lead = 0;
    if (status == REEL_OK && normal.n > 0)
        status = reel_added_split(&c->tokenizer->normalized, normal.data, normal.n, take_normal_section, &section, err);
    reel_buf_deinit(&normal);
    return status;
}

/* ---- SentencePiece alone ----------------------------------------------------------------------------------------------- */

static int take_spm_id(void *user, int32_t id)
{
    collector *c = user;
    const reel_vocab *pieces = &c->tokenizer->spm_pieces;
    if (id < 0 || id >= pieces->n) return 1;
    const reel_piece *piece = &pieces->piece[id];
    const char *text = pieces->bytes.data + piece->at;
    unsigned byte = 0;
    char raw = 0;
    /* A byte's piece stands for that byte. */
    bool is_byte = piece->n == 6 && sscanf(text, "<0x%2X>", &byte) == 1;
    raw = (char)byte;
    return take_ids(c, &id, 1, is_byte ? &raw : text, is_byte ? 1 : piece->n, NULL) == REEL_OK ? 0 : 1;
}

static reel_status encode_spm(collector *c, const char *text, size_t n, reel_error *err)
{
    char reason[REEL_SPM_REASON_MAX] = "an id outside its vocabulary";
    if (reel_spm_encode(c->tokenizer->spm, text, n, take_spm_id, c, reason) == 0) return REEL_OK;
    return REEL_FAIL(err, REEL_E_MODEL, "SentencePiece could not cut a text into pieces\ngiven: %s\nremedy: fetch spiece.model again",
                     reason);
}

/* ---- the call ---------------------------------------------------------------------------------------------------------- */

static reel_status check_text(const char *text, size_t n, int32_t max_token, reel_error *err)
{
    if (max_token < 1 || max_token > REEL_TOKEN_MAX) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "a number of tokens is out of range\ngiven: %d\nallowed: 1 to %d\nremedy: give a number in this range", max_token,
                         REEL_TOKEN_MAX);
    }
    if (n > REEL_PROMPT_BYTES_MAX * (size_t)4) {
        return REEL_FAIL(err, REEL_E_ARGUMENT, "a text is too long\ngiven: %zu bytes\nallowed: %d bytes\nremedy: shorten it", n,
                         REEL_PROMPT_BYTES_MAX * 4);
    }
    for (size_t at = 0; at < n;) {
        uint32_t c = 0;
        if (!reel_utf8_next(text, n, &at, &c)) {
            return REEL_FAIL(err, REEL_E_ARGUMENT,
                             "the text is not UTF-8\ngiven: byte %zu is 0x%02X, which begins no valid character\nallowed: UTF-8\n"
                             "remedy: save the text as UTF-8",
                             at, (unsigned)(unsigned char)text[at]);
        }
    }
    return REEL_OK;
}

reel_status reel_tokenize(const reel_tokenizer *tokenizer, const char *text, size_t n, int32_t max_token, reel_tokens *out, reel_error *err)
{
    REEL_TRY(check_text(text, n, max_token, err));
    collector c = {.tokenizer = tokenizer, .room = max_token - 1};
    REEL_TRY(tokenizer->has_json ? reel_added_split(&tokenizer->raw, text, n, take_section, &c, err) : encode_spm(&c, text, n, err));
    int32_t kept = c.n < c.room ? (int32_t)c.n : c.room;
    c.tokens.id[kept] = tokenizer->eos;
    c.tokens.n = kept + 1;
    c.tokens.n_cut = c.n - kept < INT32_MAX ? (int32_t)(c.n - kept) : INT32_MAX;
    end_cut_text(&c);
    *out = c.tokens;
    return REEL_OK;
}
