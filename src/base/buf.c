/* SPDX-License-Identifier: Apache-2.0
 *
 * The growing buffer of base/buf.h: doubles, never beyond its maximum. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

reel_status reel_buf_append(reel_buf *buf, const void *data, size_t n, reel_error *err)
{
    size_t max = buf->max ? buf->max : REEL_BUF_MAX_DEFAULT;
    if (n > max - buf->n || buf->n > max) {
        return REEL_FAIL(err, REEL_E_MEMORY,
                         "a text or list grew past its limit\ngiven: %zu bytes more than %zu\nallowed: %zu bytes\n"
                         "remedy: give a smaller input",
                         n, buf->n, max);
    }
    if (buf->n + n + 1 > buf->capacity) {
        size_t want = buf->capacity ? buf->capacity : 64;
        while (want < buf->n + n + 1) want *= 2;
        char *grown = realloc(buf->data, want);
        if (!grown) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a buffer of %zu bytes\nremedy: close other programs", want);
        buf->data = grown;
        buf->capacity = want;
    }
    if (n > 0) memcpy(buf->data + buf->n, data, n);
    buf->n += n;
    buf->data[buf->n] = '\0';
    return REEL_OK;
}

reel_status reel_buf_text(reel_buf *buf, const char *text, reel_error *err)
{
    return reel_buf_append(buf, text, strlen(text), err);
}

reel_status reel_buf_printf(reel_buf *buf, reel_error *err, const char *format, ...)
{
    va_list ap, again;
    va_start(ap, format);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    if (n < 0) {
        va_end(again);
        return REEL_FAIL(err, REEL_E_INTERNAL, "a text could not be formatted\nremedy: report this as a fault of reel");
    }
    char *text = malloc((size_t)n + 1);
    if (!text) {
        va_end(again);
        return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a text of %d bytes\nremedy: close other programs", n);
    }
    (void)vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    reel_status status = reel_buf_append(buf, text, (size_t)n, err);
    free(text);
    return status;
}

void reel_buf_clear(reel_buf *buf)
{
    buf->n = 0;
    if (buf->data) buf->data[0] = '\0';
}

void reel_buf_deinit(reel_buf *buf)
{
    free(buf->data);
    *buf = (reel_buf){0};
}
