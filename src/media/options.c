/* SPDX-License-Identifier: Apache-2.0
 *
 * What a format allows, and whether a path can be written: all of it said before the work starts. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "media/inner.h"

enum { SIZE_MAX_PX = 16384, CRF_MAX_MP4 = 51, CRF_MAX_WEBM = 63, THREAD_MAX = 64, COMMENT_MAX = 1 << 22 };

static reel_status check_size(reel_media_format format, const reel_media_options *o, reel_error *err)
{
    if (o->width < 1 || o->height < 1 || o->width > SIZE_MAX_PX || o->height > SIZE_MAX_PX) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "a clip's size is out of range\ngiven: %dx%d\nallowed: 1 to %d in each direction\nremedy: choose another "
                         "size",
                         o->width, o->height, SIZE_MAX_PX);
    }
    bool needs_even = format == REEL_MEDIA_MP4 || format == REEL_MEDIA_WEBM;
    if (needs_even && (o->width % 2 != 0 || o->height % 2 != 0)) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "%s needs an even width and height (4:2:0 colour)\ngiven: %dx%d\nallowed: even numbers\nremedy: use %dx%d, "
                         "or write .gif, .png or .y4m, which take odd sizes",
                         reel_media_ending(format), o->width, o->height, o->width + o->width % 2, o->height + o->height % 2);
    }
    return REEL_OK;
}

static reel_status check_crf(reel_media_format format, int32_t crf, reel_error *err)
{
    if (crf == -1) return REEL_OK;
    if (format != REEL_MEDIA_MP4 && format != REEL_MEDIA_WEBM) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "a quality was given for a format that has none\ngiven: crf %d for %s\nallowed: .mp4 and .webm take one\n"
                         "remedy: leave out --crf",
                         crf, reel_media_ending(format));
    }
    int32_t max = format == REEL_MEDIA_MP4 ? CRF_MAX_MP4 : CRF_MAX_WEBM;
    if (crf < 0 || crf > max) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "the quality is out of range\ngiven: crf %d for %s\nallowed: 0 (best) to %d, or -1 for the default\nremedy: "
                         "choose a value in that range",
                         crf, reel_media_ending(format), max);
    }
    return REEL_OK;
}

reel_status reel_media_check_options(reel_media_format format, const reel_media_options *o, reel_error *err)
{
    REEL_TRY(check_size(format, o, err));
    double fps_max = format == REEL_MEDIA_GIF ? 50.0 : 1000.0;
    if (!isfinite(o->fps) || o->fps < 0.01 || o->fps > fps_max) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "the frame rate is out of range\ngiven: %g frames/s for %s\nallowed: 0.01 to %g%s\nremedy: choose a rate in "
                         "that range",
                         o->fps, reel_media_ending(format), fps_max,
                         format == REEL_MEDIA_GIF ? " (GIF counts hundredths of a second, and viewers slow down frames shorter than two)"
                                                  : "");
    }
    REEL_TRY(check_crf(format, o->crf, err));
    if (o->n_thread < 1 || o->n_thread > THREAD_MAX) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "the number of encoder threads is out of range\ngiven: %d\nallowed: 1 to %d\nremedy: choose a number in that "
                         "range",
                         o->n_thread, THREAD_MAX);
    }
    if (o->comment && strlen(o->comment) > COMMENT_MAX) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "the settings to store in the clip are too long\ngiven: %zu bytes\nallowed: %d\nremedy: shorten the prompt",
                         strlen(o->comment), COMMENT_MAX);
    }
    return REEL_OK;
}

/* The folder that a path's file lies in. */
static reel_status parent_of(const char *path, char *out, size_t bytes, reel_error *err)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    while (n > 0 && path[n - 1] != '/') n--;
    while (n > 1 && path[n - 1] == '/') n--;
    int w = n == 0 ? snprintf(out, bytes, ".") : snprintf(out, bytes, "%.*s", (int)n, path);
    if (w >= 0 && (size_t)w < bytes) return REEL_OK;
    return REEL_FAIL(err, REEL_E_IO, "an output path is too long\ngiven: %zu bytes\nallowed: %zu\nremedy: use a shorter path", strlen(path),
                     bytes - 1);
}

static reel_status check_folder(const char *folder, const char *path, reel_error *err)
{
    struct stat st;
    if (stat(folder, &st) == 0 && !S_ISDIR(st.st_mode))
        errno = ENOTDIR;
    else if (access(folder, W_OK | X_OK) == 0)
        return REEL_OK;
    return REEL_FAIL(err, REEL_E_IO,
                     "the output cannot be written\ngiven: %s (folder %s: %s)\nremedy: check that the folder exists and may be written to",
                     path, folder, strerror(errno));
}

static reel_status check_file(const char *path, bool no_clobber, reel_error *err)
{
    struct stat st;
    bool is_there = stat(path, &st) == 0 || (no_clobber && lstat(path, &st) == 0); /* or a link to nothing */
    if (!is_there) return REEL_OK;
    if (S_ISDIR(st.st_mode)) {
        return REEL_FAIL(err, REEL_E_IO, "an output path names a folder\ngiven: %s\nallowed: a file name\nremedy: add a file name", path);
    }
    if (no_clobber) {
        return REEL_FAIL(err, REEL_E_IO,
                         "the output exists and may not be replaced\ngiven: %s with --no-clobber\nremedy: choose another name or leave out "
                         "--no-clobber",
                         path);
    }
    if (S_ISREG(st.st_mode)) return REEL_OK;
    return REEL_FAIL(err, REEL_E_IO,
                     "the output exists and is not a regular file\ngiven: %s\nremedy: choose another name; - writes y4m to stdout", path);
}

reel_status reel_media_check(const char *path, const reel_media_options *options, reel_error *err)
{
    reel_media_format format;
    REEL_TRY(reel_media_format_of(path, &format, err));
    REEL_TRY(reel_media_supported(format, err));
    REEL_TRY(reel_media_check_options(format, options, err));
    if (strcmp(path, "-") == 0) return REEL_OK;
    char folder[REEL_PATH_MAX], file[REEL_PATH_MAX];
    bool is_folder = path[strlen(path) - 1] == '/';
    if (is_folder && reel_path_is_dir(path)) {
        (void)snprintf(folder, sizeof folder, "%s", path);
    } else {
        REEL_TRY(parent_of(path, folder, sizeof folder, err));
    }
    REEL_TRY(check_folder(folder, path, err));
    if (format != REEL_MEDIA_PNG) return check_file(path, options->no_clobber, err);
    if (is_folder) {
        /* "name/" where name is a file is caught here */
        (void)snprintf(file, sizeof file, "%.*s", (int)strlen(path) - 1, path);
        if (file[0] != '\0' && reel_path_is_file(file)) {
            return REEL_FAIL(err, REEL_E_IO, "the output names a folder but a file has that name\ngiven: %s\nremedy: choose another name",
                             path);
        }
    }
    REEL_TRY(reel_media_png_name(path, 0, file, sizeof file, err));
    return check_file(file, options->no_clobber, err);
}
