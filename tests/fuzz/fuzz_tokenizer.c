/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as tokenizer.json, as spiece.model, or as both (first byte: 0, 1, 2; for both, 4 bytes say how long the first is), then a text
 * through what could be opened. Ids lie below the vocabulary's end. */
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] =
    "A red <tok> circle </s> moves\xE2\x96\x81right \xC2\xBD\xCC\x80 \xF0\x9F\x99\x82 <0x41> \xE7\xBA\xA2 e\xCC\x81 x  y\r\n";

static reel_status open_parts(reel_tokenizer *t, const uint8_t *data, size_t size)
{
    int kind = data[0] % 3;
    size_t first = size - 1;
    if (kind == 2) {
        uint32_t n = 0;
        if (size < 5) return REEL_E_MODEL;
        memcpy(&n, data + 1, sizeof n);
        first = n % (size - 4);
        data += 4;
        size -= 4;
    }
    reel_buf a = {.data = (char *)(data + 1), .n = first}, b = {.data = (char *)(data + 1 + first), .n = size - 1 - first};
    if (kind == 1) return reel_tokenizer_read_spm(t, &a, "fuzz", NULL);
    reel_status status = reel_tokenizer_read_json(t, &a, "fuzz", NULL);
    return status == REEL_OK && kind == 2 ? reel_tokenizer_read_spm(t, &b, "fuzz", NULL) : status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    reel_tokenizer *t = calloc(1, sizeof *t);
    if (!t) return 0;
    reel_tokens tokens;
    if (open_parts(t, data, size) == REEL_OK && reel_tokenize(t, text, sizeof text - 1, 40, &tokens, NULL) == REEL_OK) {
        if (tokens.n < 1 || tokens.n > 40) abort();
        for (int32_t i = 0; i < tokens.n; i++)
            if (tokens.id[i] < 0 || tokens.id[i] >= reel_tokenizer_vocab(t)) abort();
    }
    reel_tokenizer_close(&t);
    return 0;
}
