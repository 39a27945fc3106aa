/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats a message and hands it to the callback (base/log.h). */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void reel_log_write(const reel_log *log, reel_log_level level, const char *format, ...)
{
    if (!log || !log->write) return;
    char text[2048];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    log->write(log->user, (int)level, text);
}
