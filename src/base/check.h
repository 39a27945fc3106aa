/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors, and the few compiler extensions that reel uses.
 *
 * REEL_FAIL writes the text at the leaf; REEL_TRY and REEL_TRY_GOTO pass a failure on and add a frame to its trace. The text is
 * lines: what is wrong, then "given: …", "allowed: …", "remedy: …" (tools/check_src asks for a remedy in every text). */
#ifndef REEL_BASE_CHECK_H
#define REEL_BASE_CHECK_H

#include <assert.h>
#include <stddef.h>

#include "reel/status.h"

#if defined(__GNUC__)
#define REEL_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define REEL_API __attribute__((visibility("default")))
#define REEL_UNUSED __attribute__((unused))
#else
#define REEL_PRINTF(fmt, first)
#define REEL_API
#define REEL_UNUSED
#endif

/* Writes the text (printf style) and the first trace frame into err, which may be NULL. Returns code. */
reel_status reel_fail(reel_error *err, reel_status code, const char *file, int line, const char *format, ...) REEL_PRINTF(5, 6);
/* Adds a frame to the trace. Returns status. */
reel_status reel_trace(reel_error *err, reel_status status, const char *file, int line);
/* "REEL_E_MODEL" for a code. */
const char *reel_status_name(reel_status status);
/* Exit code of the program for a status. */
int reel_status_exit_code(reel_status status);

#define REEL_FAIL(err, code, ...) reel_fail((err), (code), __FILE__, __LINE__, __VA_ARGS__)

#define REEL_TRY(call)                                                                               \
    do {                                                                                             \
        reel_status reel_try_status = (call);                                                        \
        if (reel_try_status != REEL_OK) return reel_trace(err, reel_try_status, __FILE__, __LINE__); \
    } while (0)

/* For functions that hold something: sets `status`, jumps to `label`. */
#define REEL_TRY_GOTO(call, label)                             \
    do {                                                       \
        status = (call);                                       \
        if (status != REEL_OK) {                               \
            (void)reel_trace(err, status, __FILE__, __LINE__); \
            goto label;                                        \
        }                                                      \
    } while (0)

#define REEL_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
