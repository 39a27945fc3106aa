/* SPDX-License-Identifier: Apache-2.0
 *
 * A reader for the few fields of SentencePiece's model file that matter (text/spm_file.h).
 *
 * ModelProto: 1 pieces (1 text, 2 score, 3 type), 2 trainer (3 kind of model: 1 is unigram), 3 normaliser (2 map of characters). */
#include "text/spm_file.h"

#include <math.h>
#include <string.h>

#include "text/charsmap.h"
#include "text/unicode.h"

typedef struct wire {
    const uint8_t *at, *end;
} wire;

typedef struct field {
    uint32_t number, kind; /* kind 0: number; 1, 5: fixed 8, 4 bytes; 2: bytes */
    uint64_t value; /* kinds 0 and 5 */
    const uint8_t *bytes; /* kind 2 */
    size_t n;
} field;

static bool read_varint(wire *w, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        uint8_t byte = *w->at++;
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

/* The next field; false when the bytes are none. */
static bool read_field(wire *w, field *out)
{
    uint64_t key = 0, n = 0;
    if (!read_varint(w, &key) || key > UINT32_MAX || key < 8) return false;
    *out = (field){.number = (uint32_t)(key >> 3), .kind = (uint32_t)(key & 7)};
    size_t left = (size_t)(w->end - w->at);
    switch (out->kind) {
    case 0: return read_varint(w, &out->value);
    case 1:
        if (left < 8) return false;
        w->at += 8;
        return true;
    case 2:
        if (!read_varint(w, &n) || n > (uint64_t)(w->end - w->at)) return false;
        out->bytes = w->at;
        out->n = (size_t)n;
        w->at += n;
        return true;
    case 5:
        if (left < 4) return false;
        out->value = (uint64_t)w->at[0] | (uint64_t)w->at[1] << 8 | (uint64_t)w->at[2] << 16 | (uint64_t)w->at[3] << 24;
        w->at += 4;
        return true;
    default: return false;
    }
}

static reel_status damaged(const char *path, const char *what, reel_error *err)
{
    return REEL_FAIL(err, REEL_E_MODEL, "a SentencePiece model is damaged\ngiven: %s, %s\nremedy: fetch the file again", path, what);
}

static bool is_text(const uint8_t *bytes, size_t n)
{
    uint32_t c = 0;
    for (size_t at = 0; at < n;)
        if (!reel_utf8_next((const char *)bytes, n, &at, &c) || c == 0) return false;
    return n > 0;
}

static reel_status read_piece(const field *from, const char *path, reel_vocab *vocab, reel_error *err)
{
    wire w = {.at = from->bytes, .end = from->bytes + from->n};
    const uint8_t *text = NULL;
    size_t n = 0;
    float score = 0;
    while (w.at < w.end) {
        field f;
        if (!read_field(&w, &f)) return damaged(path, "a piece is cut short", err);
        if (f.number == 1 && f.kind == 2) {
            text = f.bytes;
            n = f.n;
        } else if (f.number == 2 && f.kind == 5) {
            uint32_t bits = (uint32_t)f.value;
            memcpy(&score, &bits, sizeof score);
        }
    }
    if (!is_text(text, n)) return damaged(path, "a piece is empty or not UTF-8", err);
    if (!isfinite(score)) return damaged(path, "a score is not finite", err);
    return reel_vocab_add(vocab, (const char *)text, n, (double)score, err);
}

static reel_status read_trainer(const field *from, const char *path, reel_error *err)
{
    wire w = {.at = from->bytes, .end = from->bytes + from->n};
    while (w.at < w.end) {
        field f;
        if (!read_field(&w, &f)) return damaged(path, "its settings are cut short", err);
        if (f.number == 3 && f.kind == 0 && f.value != 1) {
            return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                             "a SentencePiece model is of another kind\ngiven: %s, kind %llu\nallowed: 1 (unigram)\n"
                             "remedy: use a tokenizer of a Wan model",
                             path, (unsigned long long)f.value);
        }
    }
    return REEL_OK;
}

static reel_status read_normalizer(const field *from, const char *path, reel_error *err)
{
    wire w = {.at = from->bytes, .end = from->bytes + from->n};
    while (w.at < w.end) {
        field f;
        if (!read_field(&w, &f)) return damaged(path, "its normaliser is cut short", err);
        if (f.number != 2 || f.kind != 2 || f.n == 0) continue;
        reel_charsmap map = {0};
        REEL_TRY(reel_charsmap_init(&map, f.bytes, f.n, path, err));
        reel_charsmap_deinit(&map);
    }
    return REEL_OK;
}

reel_status reel_spm_file_read(const uint8_t *bytes, size_t n, const char *path, reel_vocab *vocab, reel_error *err)
{
    wire w = {.at = bytes, .end = bytes + n};
    while (w.at < w.end) {
        field f;
        if (!read_field(&w, &f)) return damaged(path, "it is cut short or no SentencePiece model at all", err);
        if (f.kind != 2) continue;
        /* 5 is the denormaliser, a map as well. */
        if (f.number == 1) REEL_TRY(read_piece(&f, path, vocab, err));
        if (f.number == 2) REEL_TRY(read_trainer(&f, path, err));
        if (f.number == 3 || f.number == 5) REEL_TRY(read_normalizer(&f, path, err));
    }
    return vocab->n > 0 ? REEL_OK : damaged(path, "it has no pieces", err);
}
