/* SPDX-License-Identifier: Apache-2.0
 *
 * The pieces of a tokenizer: bytes, score and id, found by their bytes through a hash table.
 *
 * A hash is made byte by byte, so that all prefixes of a text are looked up in one pass. Inner header of src/text. */
#ifndef REEL_TEXT_VOCAB_H
#define REEL_TEXT_VOCAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum { REEL_PIECE_BYTES_MAX = 1024, REEL_PIECES_MAX = 1 << 23 };

typedef struct reel_piece {
    uint32_t at, n; /* place in the vocabulary's bytes */
    double score;
} reel_piece;

typedef struct reel_vocab {
    reel_buf bytes;
    reel_piece *piece; /* by id */
    int32_t n, capacity;
    int32_t *slot; /* hash table: id or -1; a power of two */
    uint32_t n_slot;
    size_t longest; /* bytes of the longest piece */
} reel_vocab;

#define REEL_HASH_START 2166136261u
static inline uint32_t reel_hash_byte(uint32_t hash, char byte)
{
    return (hash ^ (unsigned char)byte) * 16777619u;
}

/* Adds a piece with the next id; the bytes are copied. */
reel_status reel_vocab_add(reel_vocab *vocab, const char *text, size_t n, double score, reel_error *err);
/* Builds the table over all pieces added so far. Of equal pieces the last one counts. */
reel_status reel_vocab_index(reel_vocab *vocab, reel_error *err);
/* The id of a piece, or -1. hash: of its n bytes. */
int32_t reel_vocab_find_hashed(const reel_vocab *vocab, uint32_t hash, const char *text, size_t n);
int32_t reel_vocab_find(const reel_vocab *vocab, const char *text, size_t n);
void reel_vocab_deinit(reel_vocab *vocab);

#endif
