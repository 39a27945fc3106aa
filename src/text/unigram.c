/* SPDX-License-Identifier: Apache-2.0
 *
 * Viterbi over the places between characters (text/unigram.h). Unknown characters that stand together are one piece, which byte fallback
 * then writes as its bytes. */
#include "text/unigram.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/unicode.h"

/* tokenizers' penalty for an unknown character, below the lowest score. */
#define UNKNOWN_PENALTY 10.0

typedef struct place {
    double score; /* of the best way here */
    uint32_t from; /* where its last piece begins; UINT32_MAX: no way known */
    int32_t id;
} place;

void reel_unigram_prepare(reel_unigram *model)
{
    double lowest = INFINITY;
    for (int32_t i = 0; i < model->vocab.n; i++)
        if (model->vocab.piece[i].score < lowest) lowest = model->vocab.piece[i].score;
    model->unk_score = lowest - UNKNOWN_PENALTY;
    for (int i = 0; i < 256; i++) {
        char name[8];
        int n = snprintf(name, sizeof name, "<0x%02X>", i);
        model->byte[i] = reel_vocab_find(&model->vocab, name, (size_t)n);
    }
}

void reel_unigram_deinit(reel_unigram *model)
{
    reel_vocab_deinit(&model->vocab);
}

static void offer(place *to, double score, size_t from, int32_t id)
{
    if (to->from != UINT32_MAX && !(score > to->score)) return;
    *to = (place){.score = score, .from = (uint32_t)from, .id = id};
}

/* Fills places 1 to n; place 0 is given. */
static reel_status search(const reel_unigram *model, const char *text, size_t n, place *best, reel_error *err)
{
    for (size_t from = 0; from < n;) {
        size_t next = from;
        uint32_t c = 0, hash = REEL_HASH_START;
        if (!reel_utf8_next(text, n, &next, &c)) next++;
        bool has_single = false;
        for (size_t end = from; end < n && end - from < model->vocab.longest;) {
            hash = reel_hash_byte(hash, text[end++]);
            if (end < n && ((unsigned char)text[end] & 0xC0) == 0x80) continue; /* within a character */
            int32_t id = reel_vocab_find_hashed(&model->vocab, hash, text + from, end - from);
            if (id < 0) continue;
            offer(&best[end], best[from].score + model->vocab.piece[id].score, from, id);
            has_single = has_single || end == next;
        }
        if (!has_single) {
            if (model->unk < 0) {
                return REEL_FAIL(
                    err, REEL_E_MODEL,
                    "a character has no piece, and the tokenizer no unknown token\ngiven: \"%.*s\"\nremedy: use another character, or "
                    "fetch the tokenizer again",
                    (int)(next - from), text + from);
            }
            offer(&best[next], best[from].score + model->unk_score, from, model->unk);
        }
        from = next;
    }
    return REEL_OK;
}

static reel_status emit(const reel_unigram *model, const char *surface, size_t n, reel_ids_fn *each, void *user, reel_error *err)
{
    int32_t id = reel_vocab_find(&model->vocab, surface, n);
    if (id >= 0) return each(user, &id, 1, surface, n, err);
    bool has_bytes = model->byte_fallback;
    for (size_t i = 0; i < n && has_bytes; i++) has_bytes = model->byte[(unsigned char)surface[i]] >= 0;
    if (!has_bytes) return each(user, &model->unk, 1, surface, n, err);
    for (size_t i = 0; i < n; i++) REEL_TRY(each(user, &model->byte[(unsigned char)surface[i]], 1, surface + i, 1, err));
    return REEL_OK;
}

/* Turns the way around: for the places on the best way, best[i].from becomes the place where the piece that begins at i ends. */
static void turn(place *best, size_t n)
{
    size_t at = n, after = n;
    while (at > 0) {
        size_t from = best[at].from;
        best[at].from = (uint32_t)after;
        after = at;
        at = from;
    }
    best[0].from = (uint32_t)after;
}

reel_status reel_unigram_encode(const reel_unigram *model, const char *text, size_t n, reel_ids_fn *each, void *user, reel_error *err)
{
    if (n == 0) return REEL_OK;
    if (n >= UINT32_MAX / 2)
        return REEL_FAIL(err, REEL_E_ARGUMENT, "a text is too long to be cut into pieces\ngiven: %zu bytes\nremedy: shorten it", n);
    place *best = malloc((n + 1) * sizeof *best);
    if (!best) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a text of %zu bytes\nremedy: close other programs", n);
    for (size_t i = 0; i <= n; i++) best[i] = (place){.from = UINT32_MAX};
    reel_status status = REEL_OK;
    REEL_TRY_GOTO(search(model, text, n, best, err), cleanup);
    turn(best, n);
    for (size_t from = 0, end = best[0].from; from < n;) {
        /* Unknown characters side by side are one. */
        while (model->unk >= 0 && best[end].id == model->unk && end < n && best[best[end].from].id == model->unk) end = best[end].from;
        REEL_TRY_GOTO(emit(model, text + from, end - from, each, user, err), cleanup);
        from = end;
        end = best[from].from;
    }
cleanup:
    free(best);
    return status;
}
