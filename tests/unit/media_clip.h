/* SPDX-License-Identifier: Apache-2.0
 *
 * Clips and scratch folders for the tests of src/media: pictures with known content, files written and read back whole. */
#ifndef REEL_TESTS_MEDIA_CLIP_H
#define REEL_TESTS_MEDIA_CLIP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "media/media.h"

typedef struct media_clip {
    int32_t n, width, height, capacity;
    uint8_t *rgb; /* [n, height, width, 3] */
    double fps;
    int64_t n_reported;
} media_clip;

/* Fails the test with the error's text unless status is REEL_OK. */
void media_good(reel_status status, const reel_error *err);
/* Smooth waves of random phase that drift from frame to frame, over the whole range of values. */
media_clip media_waves(int32_t n, int32_t width, int32_t height, uint32_t seed);
/* Eight bars of equal width: white, yellow, cyan, green, magenta, red, blue, black, at 3/4 and full strength in halves. */
media_clip media_bars(int32_t n, int32_t width, int32_t height);
void media_clip_free(media_clip *clip);
double media_psnr(const media_clip *a, const media_clip *b);

reel_media_options media_options(const media_clip *clip, double fps);
/* Writes the clip in pieces of 1, then up to 4 frames. */
reel_status media_write(const char *path, const media_clip *clip, const reel_media_options *options, reel_error *err);
reel_status media_read(const char *path, media_clip *out, reel_error *err);

/* A new empty folder; removed, with what is in it, by media_folder_remove. */
void media_folder_new(char *out, size_t bytes);
void media_folder_remove(const char *folder);
int media_folder_count(const char *folder); /* entries, hidden ones included */
/* "folder/name" in a buffer of the caller's. */
const char *media_path(char *out, size_t bytes, const char *folder, const char *name);
/* Whole file; *n its bytes. */
uint8_t *media_bytes(const char *path, size_t *n);
void media_same_files(const char *a, const char *b);

#endif
