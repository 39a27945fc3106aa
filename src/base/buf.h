/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing byte buffer with a maximum, and printf into it.
 *
 * Always zero-terminated once it holds something. Freed with reel_buf_deinit, safe on a zeroed one. One thread. */
#ifndef REEL_BASE_BUF_H
#define REEL_BASE_BUF_H

#include "base/check.h"

typedef struct reel_buf {
    char *data; /* n bytes and a zero */
    size_t n, capacity;
    size_t max; /* 0: REEL_BUF_MAX_DEFAULT */
} reel_buf;

#define REEL_BUF_MAX_DEFAULT ((size_t)1 << 30)

reel_status reel_buf_append(reel_buf *buf, const void *data, size_t n, reel_error *err);
reel_status reel_buf_text(reel_buf *buf, const char *text, reel_error *err);
reel_status reel_buf_printf(reel_buf *buf, reel_error *err, const char *format, ...) REEL_PRINTF(3, 4);
void reel_buf_clear(reel_buf *buf);
void reel_buf_deinit(reel_buf *buf);

#endif
