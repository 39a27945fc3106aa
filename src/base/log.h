/* SPDX-License-Identifier: Apache-2.0
 *
 * Where messages go: a callback that the owner of an engine hands in. The library itself prints nothing.
 *
 * Levels: error, warning, information, detail. A reel_log is a plain value; a zeroed one is silent. Any thread may call it as
 * far as the callback allows. */
#ifndef REEL_BASE_LOG_H
#define REEL_BASE_LOG_H

#include "base/check.h"

typedef enum reel_log_level { REEL_LOG_ERROR = 0, REEL_LOG_WARNING = 1, REEL_LOG_INFO = 2, REEL_LOG_DETAIL = 3 } reel_log_level;

typedef struct reel_log {
    void (*write)(void *user, int level, const char *text);
    void *user;
} reel_log;

void reel_log_write(const reel_log *log, reel_log_level level, const char *format, ...) REEL_PRINTF(3, 4);

#endif
