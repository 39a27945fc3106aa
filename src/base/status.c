/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes error texts and traces (base/check.h). Texts are cut at a character of UTF-8, never inside one. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

static void cut_at_character(char *text, size_t n)
{
    /* n bytes are used and more were wanted: drop a character whose tail was lost. */
    size_t i = n;
    while (i > 0 && ((unsigned char)text[i - 1] & 0xC0U) == 0x80U) i--;
    if (i > 0 && (unsigned char)text[i - 1] >= 0xC0U) {
        unsigned char lead = (unsigned char)text[i - 1];
        size_t want = lead >= 0xF0U ? 4 : lead >= 0xE0U ? 3 : 2;
        if (n - (i - 1) < want) text[i - 1] = '\0';
    }
}

static void add_frame(reel_error *err, const char *file, int line)
{
    const char *base = strrchr(file, '/');
    size_t used = strlen(err->trace);
    int n = snprintf(err->trace + used, sizeof err->trace - used, "%s%s:%d", used > 0 ? " < " : "", base ? base + 1 : file, line);
    if (n < 0 || (size_t)n >= sizeof err->trace - used) err->trace[used] = '\0';
}

reel_status reel_fail(reel_error *err, reel_status code, const char *file, int line, const char *format, ...)
{
    if (!err) return code;
    err->code = code;
    err->trace[0] = '\0';
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(err->text, sizeof err->text, format, ap);
    va_end(ap);
    if (n >= (int)sizeof err->text) cut_at_character(err->text, sizeof err->text - 1);
    if (n < 0) err->text[0] = '\0';
    add_frame(err, file, line);
    return code;
}

reel_status reel_trace(reel_error *err, reel_status status, const char *file, int line)
{
    if (err) add_frame(err, file, line);
    return status;
}

const char *reel_status_name(reel_status status)
{
    switch (status) {
#define X(name, value, exit_code, meaning) \
    case REEL_##name: return "REEL_" #name;
        REEL_STATUS_LIST(X)
#undef X
    }
    return "REEL_E_UNKNOWN";
}

int reel_status_exit_code(reel_status status)
{
    switch (status) {
#define X(name, value, exit_code, meaning) \
    case REEL_##name: return exit_code;
        REEL_STATUS_LIST(X)
#undef X
    }
    return 9;
}
