/* SPDX-License-Identifier: Apache-2.0
 *
 * Clips to files and back: MP4, WebM, GIF, PNG frames and y4m by the file's ending, and the settings stored inside.
 *
 * A reel_writer takes RGB frames in order and writes under a temporary name; reel_writer_finish makes the file appear whole, anything else
 * leaves nothing. The same frames and settings give the same bytes (fixed encoder threads, bitexact flags, no dates). Pixels are
 * converted to BT.709 limited range and tagged so. Built on FFmpeg's libraries; with REEL_MEDIA=off only y4m and PNG (none) remain. */
#ifndef REEL_MEDIA_MEDIA_H
#define REEL_MEDIA_MEDIA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/log.h"

typedef enum reel_media_format { REEL_MEDIA_MP4 = 0, REEL_MEDIA_WEBM, REEL_MEDIA_GIF, REEL_MEDIA_PNG, REEL_MEDIA_Y4M } reel_media_format;

/* By ending, case-insensitive; "-" is y4m to stdout; PNG needs a %d pattern or names a folder ending in '/'. Unknown: REEL_E_ARGUMENT listing
 * the endings that this build can write. */
reel_status reel_media_format_of(const char *path, reel_media_format *out, reel_error *err);

typedef struct reel_media_options {
    int32_t width, height; /* of the frames handed in. MP4 and WebM need even sizes: odd ones are an error said before any work */
    double fps;
    int32_t crf; /* MP4 and WebM; −1: the format's default (MP4 18, WebM 24) */
    int32_t n_thread; /* encoder threads, part of the plan; ≥ 1 */
    bool no_clobber;
    const char *comment; /* JSON of all settings; stored in mp4 and webm */
} reel_media_options;

typedef struct reel_writer reel_writer;

/* Checks that the path can be written and the size is allowed, without writing: for use before the work starts. */
reel_status reel_media_check(const char *path, const reel_media_options *options, reel_error *err);
reel_status reel_writer_open(const char *path, const reel_media_options *options, reel_writer **out, reel_error *err);
/* n frames [n, height, width, 3] u8, host. */
reel_status reel_writer_frames(reel_writer *writer, const uint8_t *rgb, int32_t n, reel_error *err);
reel_status reel_writer_finish(reel_writer **writer, reel_error *err); /* NULLs *writer, also on error */
void reel_writer_abandon(reel_writer **writer); /* leaves nothing behind */

/* The comment stored in a clip (malloc'd, zero-terminated). REEL_E_IO when the file has none. */
reel_status reel_media_read_comment(const char *path, char **out, reel_error *err);

/* Decodes a clip's frames to RGB8 in order through fn. max_pixels bounds width·height. For `reel encode`. */
typedef reel_status (*reel_media_frame_fn)(void *user, const uint8_t *rgb, int32_t width, int32_t height, reel_error *err);
typedef struct reel_media_info {
    int32_t width, height;
    double fps;
    int64_t n_frame;
} reel_media_info;
reel_status reel_media_read_frames(const char *path, int64_t max_pixels, reel_media_frame_fn fn, void *user, reel_media_info *info,
                                   reel_error *err);

/* One RGB8 picture as PNG, whole or not at all (previews). */
reel_status reel_media_write_png(const char *path, const uint8_t *rgb, int32_t width, int32_t height, bool no_clobber, reel_error *err);
/* Names and versions of the libraries, "libavcodec 59.37.100, …". */
const char *reel_media_libraries(void);

#endif
