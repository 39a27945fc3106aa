/* SPDX-License-Identifier: Apache-2.0
 *
 * Added tokens (text/added.h): reading them, and cutting a text at their occurrences, the leftmost first and of those the longest. */
#include "text/added.h"

#include <stdlib.h>

static reel_status damaged(const char *path, size_t index, const char *what, reel_error *err)
{
    return REEL_FAIL(err, REEL_E_MODEL,
                     "an added token is wrong\ngiven: entry %zu of \"added_tokens\" in %s, %s\nremedy: fetch the file again", index, path,
                     what);
}

/* tokenizers numbers an added token by the model's piece of the same text, or else goes on after the last id; a file that says
 * otherwise lies about its own vocabulary. */
static int32_t expected_id(const reel_added_lists *lists, const char *text, size_t n)
{
    int32_t id = reel_vocab_find(lists->vocab, text, n);
    return id >= 0 ? id : lists->vocab_end;
}

static reel_status add_token(reel_added *added, const char *text, size_t n, const reel_added_token *token, reel_error *err)
{
    if (n == 0) return REEL_OK;
    reel_added_token *grown = realloc(added->token, (size_t)(added->text.n + 1) * sizeof *grown);
    if (!grown) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for %d added tokens\nremedy: close other programs", added->text.n + 1);
    added->token = grown;
    REEL_TRY(reel_vocab_add(&added->text, text, n, 0, err));
    added->token[added->text.n - 1] = *token;
    return REEL_OK;
}

static reel_status read_token(reel_added_lists *lists, const json_t *value, size_t index, const char *path, reel_error *err)
{
    if (!json_is_object(value)) return damaged(path, index, "it is no object", err);
    const reel_json object = {.root = (json_t *)value, .path = path, .fault = REEL_E_MODEL};
    int64_t id = 0;
    bool is_normalized = true;
    reel_added_token token = {0};
    const json_t *content = json_object_get(value, "content"), *special = json_object_get(value, "special");
    if (!json_is_string(content)) return damaged(path, index, "it has no text", err);
    is_normalized = !json_is_true(special);
    REEL_TRY(reel_json_int(&object, "id", 0, INT32_MAX - 1, &id, err));
    REEL_TRY(reel_json_opt_bool(&object, "single_word", &token.is_single_word, err));
    REEL_TRY(reel_json_opt_bool(&object, "lstrip", &token.strips_left, err));
    REEL_TRY(reel_json_opt_bool(&object, "rstrip", &token.strips_right, err));
    REEL_TRY(reel_json_opt_bool(&object, "normalized", &is_normalized, err));
    const char *text = json_string_value(content);
    size_t n = json_string_length(content);
    if (n == 0) return damaged(path, index, "its text is empty", err);
    if (id != expected_id(lists, text, n)) return damaged(path, index, "its id is not the one that its place in the vocabulary gives", err);
    token.id = (int32_t)id;
    if (token.id >= lists->vocab_end) lists->vocab_end = token.id + 1;
    if (!is_normalized) return add_token(&lists->raw, text, n, &token, err);
    reel_buf plain = {0};
    size_t lead = 0;
    reel_status status = reel_normalize(lists->normalizer, text, n, &plain, &lead, err);
    if (status == REEL_OK) status = add_token(&lists->normalized, plain.data, plain.n, &token, err);
    reel_buf_deinit(&plain);
    return status;
}

reel_status reel_added_read(reel_added_lists *lists, const json_t *value, const char *path, reel_error *err)
{
    if (value && !json_is_null(value) && (!json_is_array(value) || json_array_size(value) > REEL_ADDED_MAX)) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "the added tokens are wrong\ngiven: \"added_tokens\" in %s is %s\nallowed: an array of at most %d\n"
                         "remedy: fetch the file again",
                         path, reel_json_type_name(value), REEL_ADDED_MAX);
    }
    for (size_t i = 0; i < json_array_size(value); i++) REEL_TRY(read_token(lists, json_array_get(value, i), i, path, err));
    REEL_TRY(reel_vocab_index(&lists->raw.text, err));
    return reel_vocab_index(&lists->normalized.text, err);
}

void reel_added_deinit(reel_added *added)
{
    reel_vocab_deinit(&added->text);
    free(added->token);
    *added = (reel_added){0};
}

/* The longest token that text begins with, or -1. */
static int32_t longest_at(const reel_added *added, const char *text, size_t n)
{
    int32_t found = -1;
    uint32_t hash = REEL_HASH_START;
    for (size_t length = 1; length <= n && length <= added->text.longest; length++) {
        hash = reel_hash_byte(hash, text[length - 1]);
        int32_t id = reel_vocab_find_hashed(&added->text, hash, text, length);
        if (id >= 0) found = id;
    }
    return found;
}

/* The character that ends at text[at], which may be its first byte's index on return. */
static uint32_t character_before(const char *text, size_t *at)
{
    size_t from = *at;
    do from--;
    while (from > 0 && ((unsigned char)text[from] & 0xC0) == 0x80);
    size_t end = from;
    uint32_t c = 0;
    (void)reel_utf8_next(text, *at, &end, &c);
    *at = from;
    return c;
}

static bool touches_word(const char *text, size_t n, size_t from, size_t to)
{
    size_t before = from, behind = to;
    uint32_t c = 0;
    if (from > 0 && reel_char_is_word(character_before(text, &before))) return true;
    return to < n && reel_utf8_next(text, n, &behind, &c) && reel_char_is_word(c);
}

static size_t skip_white_back(const char *text, size_t from, size_t limit)
{
    while (from > limit) {
        size_t before = from;
        if (!reel_char_is_white(character_before(text, &before)) || before < limit) break;
        from = before;
    }
    return from;
}

static size_t skip_white(const char *text, size_t n, size_t from)
{
    uint32_t c = 0;
    for (size_t at = from; reel_utf8_next(text, n, &at, &c) && reel_char_is_white(c);) from = at;
    return from;
}

reel_status reel_added_split(const reel_added *added, const char *text, size_t n, reel_section_fn *each, void *user, reel_error *err)
{
    size_t done = 0;
    for (size_t at = 0; at < n;) {
        int32_t found = longest_at(added, text + at, n - at);
        if (found < 0) {
            at++;
            continue;
        }
        size_t from = at, to = at + added->text.piece[found].n;
        const reel_added_token *token = &added->token[found];
        at = to;
        if (token->is_single_word && touches_word(text, n, from, to)) continue;
        if (token->strips_left) from = skip_white_back(text, from, done);
        if (token->strips_right) to = skip_white(text, n, to);
        if (from < done) from = done; /* a token that begins with white space which the one before took */
        if (done < from) REEL_TRY(each(user, text, done, from, -1, err));
        REEL_TRY(each(user, text, from, to, token->id, err));
        done = to;
    }
    return done < n ? each(user, text, done, n, -1, err) : REEL_OK;
}
