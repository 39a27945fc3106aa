/* SPDX-License-Identifier: Apache-2.0
 *
 * The pieces of text/vocab.h: open addressing over FNV-1a, a third full at most. */
#include "text/vocab.h"

#include <stdlib.h>
#include <string.h>

reel_status reel_vocab_add(reel_vocab *vocab, const char *text, size_t n, double score, reel_error *err)
{
    if (n > REEL_PIECE_BYTES_MAX || vocab->n >= REEL_PIECES_MAX) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "a tokenizer's vocabulary is out of bounds\ngiven: piece %d of %zu bytes\nallowed: %d pieces of %d bytes\n"
                         "remedy: fetch the tokenizer again",
                         vocab->n, n, REEL_PIECES_MAX, REEL_PIECE_BYTES_MAX);
    }
    if (vocab->n == vocab->capacity) {
        int32_t want = vocab->capacity ? vocab->capacity * 2 : 1024;
        reel_piece *grown = realloc(vocab->piece, (size_t)want * sizeof *grown);
        if (!grown) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for %d pieces\nremedy: close other programs", want);
        vocab->piece = grown;
        vocab->capacity = want;
    }
    vocab->bytes.max = UINT32_MAX / 2;
    reel_piece piece = {.at = (uint32_t)vocab->bytes.n, .n = (uint32_t)n, .score = score};
    REEL_TRY(reel_buf_append(&vocab->bytes, text, n, err));
    vocab->piece[vocab->n++] = piece;
    if (n > vocab->longest) vocab->longest = n;
    return REEL_OK;
}

static uint32_t hash_of(const char *text, size_t n)
{
    uint32_t hash = REEL_HASH_START;
    for (size_t i = 0; i < n; i++) hash = reel_hash_byte(hash, text[i]);
    return hash;
}

/* FNV's low bits are its weak ones. */
static uint32_t slot_of(const reel_vocab *vocab, uint32_t hash)
{
    return (hash ^ hash >> 15) & (vocab->n_slot - 1);
}

static bool is_equal(const reel_vocab *vocab, int32_t id, const char *text, size_t n)
{
    const reel_piece *piece = &vocab->piece[id];
    return piece->n == n && memcmp(vocab->bytes.data + piece->at, text, n) == 0;
}

reel_status reel_vocab_index(reel_vocab *vocab, reel_error *err)
{
    uint32_t n_slot = 16;
    while (n_slot < (uint32_t)vocab->n * 3u) n_slot *= 2;
    int32_t *slot = malloc(n_slot * sizeof *slot);
    if (!slot) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a table of %u pieces\nremedy: close other programs", n_slot);
    free(vocab->slot);
    vocab->slot = slot;
    vocab->n_slot = n_slot;
    for (uint32_t i = 0; i < n_slot; i++) slot[i] = -1;
    for (int32_t id = 0; id < vocab->n; id++) {
        const reel_piece *piece = &vocab->piece[id];
        const char *text = vocab->bytes.data + piece->at;
        uint32_t i = slot_of(vocab, hash_of(text, piece->n));
        while (slot[i] >= 0 && !is_equal(vocab, slot[i], text, piece->n)) i = (i + 1) & (n_slot - 1);
        slot[i] = id;
    }
    return REEL_OK;
}

int32_t reel_vocab_find_hashed(const reel_vocab *vocab, uint32_t hash, const char *text, size_t n)
{
    if (vocab->n == 0) return -1;
    for (uint32_t i = slot_of(vocab, hash); vocab->slot[i] >= 0; i = (i + 1) & (vocab->n_slot - 1))
        if (is_equal(vocab, vocab->slot[i], text, n)) return vocab->slot[i];
    return -1;
}

int32_t reel_vocab_find(const reel_vocab *vocab, const char *text, size_t n)
{
    return reel_vocab_find_hashed(vocab, hash_of(text, n), text, n);
}

void reel_vocab_deinit(reel_vocab *vocab)
{
    reel_buf_deinit(&vocab->bytes);
    free(vocab->piece);
    free(vocab->slot);
    *vocab = (reel_vocab){0};
}
