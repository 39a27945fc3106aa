/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a prompt: cleaned or refused. What comes out is UTF-8 without double or outer blanks. */
#include <stdlib.h>
#include <string.h>

#include "text/text.h"
#include "text/unicode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    reel_buf out = {0};
    bool is_suspect = false;
    if (reel_prompt_clean((const char *)data, size, &out, &is_suspect, NULL) == REEL_OK) {
        uint32_t c = 0, before = ' ';
        for (size_t at = 0; at < out.n; before = c) {
            if (!reel_utf8_next(out.data, out.n, &at, &c)) abort();
            if (reel_char_is_space(c) && (c != ' ' || before == ' ' || at == out.n)) abort();
        }
    }
    reel_buf_deinit(&out);
    return 0;
}
