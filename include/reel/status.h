/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes and error texts: the one way in which every fallible function of reel reports.
 *
 * A fallible function returns reel_status (0 good, negative bad) and takes a reel_error * last (NULL: the caller does not want
 * the text). The leaf that finds the fault writes the text once, in the user's words, as lines: first what is wrong, then
 * "given: …", "allowed: …" and "remedy: …" where they apply. Callers add a frame to `trace`, never to `text`.
 * Out-parameters are written only on success. Enum, name and meaning come from one list. */
#ifndef REEL_STATUS_H
#define REEL_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, value, exit code of the program, meaning) */
#define REEL_STATUS_LIST(X)                                                                          \
    X(OK, 0, 0, "success")                                                                           \
    X(E_ARGUMENT, -1, 2, "an option or argument is wrong, unknown, repeated or contradicts another") \
    X(E_MODEL, -2, 3, "the model's files are missing, damaged or do not belong together")            \
    X(E_UNSUPPORTED, -3, 4, "this build, device or model cannot do what was asked")                  \
    X(E_MEMORY, -4, 5, "not enough memory")                                                          \
    X(E_IO, -5, 6, "a file could not be read or written")                                            \
    X(E_DEVICE, -6, 7, "a device or one of its libraries failed")                                    \
    X(E_NUMERIC, -7, 8, "a computation gave values that are not finite")                             \
    X(E_INTERNAL, -8, 9, "a fault of reel itself")                                                   \
    X(E_CANCELLED, -9, 130, "cancelled by the caller or by a signal")

typedef enum reel_status {
#define X(name, value, exit_code, meaning) REEL_##name = (value),
    REEL_STATUS_LIST(X)
#undef X
} reel_status;

enum { REEL_ERROR_TEXT_MAX = 2048, REEL_ERROR_TRACE_MAX = 512 };

typedef struct reel_error {
    reel_status code;
    char text[REEL_ERROR_TEXT_MAX]; /* lines, see above; UTF-8; cut at a character, never in the middle of one */
    char trace[REEL_ERROR_TRACE_MAX]; /* "file:line < file:line < …", for a bug report */
} reel_error;

#ifdef __cplusplus
}
#endif
#endif
