/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenizer.json and spiece.model (text/tokenizer_file.h). What reel does not know is refused by name: an id must never be a guess. */
#include "text/tokenizer_file.h"

#include <stdlib.h>
#include <string.h>

#include "text/json_scores.h"
#include "text/spm_file.h"

#define EOS_TEXT "</s>"

static reel_status damaged(const char *path, const char *what, reel_error *err)
{
    return REEL_FAIL(err, REEL_E_MODEL, "a tokenizer is damaged\ngiven: %s, %s\nremedy: fetch the file again", path, what);
}

static reel_status add_pieces(reel_vocab *vocab, const json_t *list, const double *score, const char *path, reel_error *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *pair = json_array_get(list, i), *text = json_array_get(pair, 0);
        if (json_array_size(pair) != 2 || !json_is_string(text) || !json_is_number(json_array_get(pair, 1))) {
            return REEL_FAIL(err, REEL_E_MODEL,
                             "a tokenizer is damaged\ngiven: entry %zu of \"vocab\" in %s\nallowed: a text and a number\n"
                             "remedy: fetch the file again",
                             i, path);
        }
        REEL_TRY(reel_vocab_add(vocab, json_string_value(text), json_string_length(text), score[i], err));
    }
    return reel_vocab_index(vocab, err);
}

static reel_status read_vocab(reel_vocab *vocab, const json_t *list, const reel_buf *file, const char *path, reel_error *err)
{
    size_t n = json_array_size(list);
    if (n == 0) return damaged(path, "\"vocab\" of \"model\" is no list of pieces", err);
    double *score = calloc(n, sizeof *score);
    if (!score) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for %zu scores\nremedy: close other programs", n);
    bool has_scores = reel_json_scores(file->data, file->n, score, n);
    reel_status status = add_pieces(vocab, list, score, path, err);
    if (status == REEL_OK && !has_scores) status = damaged(path, "its keys are written with escapes", err);
    free(score);
    return status;
}

static reel_status read_model(reel_unigram *unigram, const json_t *value, const reel_buf *file, const char *path, reel_error *err)
{
    if (!json_is_object(value)) return damaged(path, "it has no \"model\"", err);
    const reel_json object = {.root = (json_t *)value, .path = path, .fault = REEL_E_MODEL};
    const char *type = NULL;
    int64_t unk = -1;
    REEL_TRY(reel_json_opt_string(&object, "type", &type, err));
    if (!type || strcmp(type, "Unigram") != 0) {
        return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                         "a tokenizer is of another kind\ngiven: \"%.80s\" in %s\nallowed: \"Unigram\"\n"
                         "remedy: use a tokenizer of a Wan model",
                         type ? type : "", path);
    }
    REEL_TRY(read_vocab(&unigram->vocab, json_object_get(value, "vocab"), file, path, err));
    REEL_TRY(reel_json_opt_int(&object, "unk_id", 0, unigram->vocab.n - 1, &unk, err));
    REEL_TRY(reel_json_opt_bool(&object, "byte_fallback", &unigram->byte_fallback, err));
    unigram->unk = (int32_t)unk;
    reel_unigram_prepare(unigram);
    return REEL_OK;
}

/* "</s>" behind the text and nothing else is what every Wan model wants, whether the file says so or is silent. */
static reel_status check_template(const json_t *value, const char *path, reel_error *err)
{
    if (!value || json_is_null(value)) return REEL_OK;
    const json_t *single = json_object_get(value, "single");
    const char *type = json_string_value(json_object_get(value, "type"));
    const json_t *text = json_object_get(json_array_get(single, 0), "Sequence");
    const char *last = json_string_value(json_object_get(json_object_get(json_array_get(single, 1), "SpecialToken"), "id"));
    if (type && strcmp(type, "TemplateProcessing") == 0 && json_array_size(single) == 2 && text && last && strcmp(last, EOS_TEXT) == 0)
        return REEL_OK;
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "a tokenizer frames text in a way that reel does not know\ngiven: \"post_processor\" of type \"%.80s\" in %s\n"
                     "allowed: TemplateProcessing with the text and \"" EOS_TEXT "\"\nremedy: use a tokenizer of a Wan model",
                     type ? type : "", path);
}

static int32_t find_eos(const reel_tokenizer *tokenizer)
{
    int32_t id = reel_vocab_find(&tokenizer->unigram.vocab, EOS_TEXT, strlen(EOS_TEXT));
    if (id >= 0) return id;
    int32_t added = reel_vocab_find(&tokenizer->raw.text, EOS_TEXT, strlen(EOS_TEXT));
    if (added >= 0) return tokenizer->raw.token[added].id;
    added = reel_vocab_find(&tokenizer->normalized.text, EOS_TEXT, strlen(EOS_TEXT));
    return added >= 0 ? tokenizer->normalized.token[added].id : -1;
}

static reel_status read_parts(reel_tokenizer *tokenizer, const reel_json *json, const reel_buf *file, reel_error *err)
{
    const char *path = json->path;
    REEL_TRY(read_model(&tokenizer->unigram, json_object_get(json->root, "model"), file, path, err));
    REEL_TRY(reel_normalizer_init(&tokenizer->normalizer, json_object_get(json->root, "normalizer"), path, err));
    REEL_TRY(reel_pretokenizer_init(&tokenizer->pre, json_object_get(json->root, "pre_tokenizer"), path, err));
    REEL_TRY(check_template(json_object_get(json->root, "post_processor"), path, err));
    reel_added_lists lists = {
        .vocab = &tokenizer->unigram.vocab, .normalizer = &tokenizer->normalizer, .vocab_end = tokenizer->unigram.vocab.n};
    reel_status status = reel_added_read(&lists, json_object_get(json->root, "added_tokens"), path, err);
    tokenizer->raw = lists.raw;
    tokenizer->normalized = lists.normalized;
    tokenizer->vocab_end = lists.vocab_end;
    REEL_TRY(status);
    tokenizer->eos = find_eos(tokenizer);
    return tokenizer->eos >= 0 ? REEL_OK : damaged(path, "it has no token " EOS_TEXT, err);
}

reel_status reel_tokenizer_read_json(reel_tokenizer *tokenizer, const reel_buf *file, const char *path, reel_error *err)
{
    reel_json json = {0};
    REEL_TRY(reel_json_parse(file->data ? file->data : "", file->n, path, REEL_E_MODEL, &json, err));
    tokenizer->has_json = true;
    reel_status status = read_parts(tokenizer, &json, file, err);
    reel_json_deinit(&json);
    return status == REEL_OK ? REEL_OK : reel_trace(err, status, __FILE__, __LINE__);
}

/* tokenizer.json may hold more pieces (umT5's <extra_id_N>), never fewer or others. */
static reel_status check_same(const reel_vocab *json, const reel_vocab *spm, const char *path, reel_error *err)
{
    for (int32_t i = 0; i < spm->n; i++) {
        const reel_piece *a = &spm->piece[i], *b = i < json->n ? &json->piece[i] : NULL;
        if (b && a->n == b->n && memcmp(spm->bytes.data + a->at, json->bytes.data + b->at, a->n) == 0) continue;
        return REEL_FAIL(
            err, REEL_E_MODEL,
            "a tokenizer's two files do not belong together\ngiven: piece %d is \"%.*s\" in %s and \"%.*s\" in tokenizer.json\n"
            "remedy: fetch both from the same model",
            i, (int)a->n, spm->bytes.data + a->at, path, b ? (int)b->n : 0, b ? json->bytes.data + b->at : "");
    }
    return REEL_OK;
}

reel_status reel_tokenizer_read_spm(reel_tokenizer *tokenizer, const reel_buf *file, const char *path, reel_error *err)
{
    if (file->n == 0) return damaged(path, "it is empty", err);
    REEL_TRY(reel_spm_file_read((const uint8_t *)file->data, file->n, path, &tokenizer->spm_pieces, err));
    if (tokenizer->has_json) {
        REEL_TRY(check_same(&tokenizer->unigram.vocab, &tokenizer->spm_pieces, path, err));
        reel_vocab_deinit(&tokenizer->spm_pieces);
        return REEL_OK;
    }
    char reason[REEL_SPM_REASON_MAX] = "";
    tokenizer->spm = reel_spm_open(file->data, file->n, reason);
    if (!tokenizer->spm) {
        return REEL_FAIL(err, REEL_E_MODEL, "SentencePiece refuses a model\ngiven: %s: %s\nremedy: fetch the file again", path, reason);
    }
    tokenizer->vocab_end = tokenizer->spm_pieces.n;
    tokenizer->eos = reel_spm_id(tokenizer->spm, EOS_TEXT);
    return tokenizer->eos >= 0 ? REEL_OK : damaged(path, "it has no piece " EOS_TEXT, err);
}
