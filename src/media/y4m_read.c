/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw clips back to RGB: 8-bit 4:2:0 and 4:4:4, by our own reader, since a build without FFmpeg reads them too.
 *
 * The matrix is BT.709 in files of reel's own (XREEL=BT709), else guessed by size as players do. Every byte of the file is input of unknown
 * origin: lines have a maximum, sizes are bounded before memory is taken, and a short frame is an error. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "media/inner.h"

enum { LINE_MAX_BYTES = 1024 };

typedef struct y4m_header {
    reel_yuv yuv; /* without planes */
    int64_t rate_num, rate_den;
} y4m_header;

static reel_status bad(const char *path, const char *what, const char *given, reel_error *err)
{
    return REEL_FAIL(err, REEL_E_IO, "a y4m file is damaged: %s\ngiven: %s%s%s\nremedy: write it again", what, path, given[0] ? ": " : "",
                     given);
}

/* A line without its end into `line`; false at the end of the file, when it is too long, or when it holds a zero. *n: its bytes. */
static bool read_line(FILE *f, char *line, size_t *n)
{
    size_t used = 0;
    int c;
    while ((c = fgetc(f)) != EOF && c != '\n') {
        if (used + 1 >= LINE_MAX_BYTES || c == '\0') return false;
        line[used++] = (char)c;
    }
    line[used] = '\0';
    *n = used;
    return c == '\n';
}

static bool whole_number(const char *text, int64_t max, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || errno != 0 || v > max || (*end != '\0' && *end != ':')) return false;
    *out = v;
    return true;
}

static bool colour_space(const char *name, reel_yuv *yuv)
{
    static const struct {
        const char *name;
        bool is_420, is_centre;
    } spaces[] = {
        {"444", false, false}, {"420jpeg", true, true}, {"420", true, true}, {"420mpeg2", true, false}, {"420paldv", true, false}};
    for (size_t i = 0; i < REEL_COUNT(spaces); i++) {
        if (strcmp(name, spaces[i].name) != 0) continue;
        yuv->is_420 = spaces[i].is_420;
        yuv->is_centre = spaces[i].is_centre;
        return true;
    }
    return false;
}

static reel_status take_field(const char *path, const char *field, y4m_header *h, bool *is_709, reel_error *err)
{
    int64_t v;
    const char *value = field + 1;
    switch (field[0]) {
    case 'W':
    case 'H':
        if (!whole_number(value, INT32_MAX, &v) || v < 1) return bad(path, "its size is not a whole number above zero", field, err);
        if (field[0] == 'W')
            h->yuv.width = (int32_t)v;
        else
            h->yuv.height = (int32_t)v;
        return REEL_OK;
    case 'F': {
        const char *colon = strchr(value, ':');
        if (!colon || !whole_number(value, INT32_MAX, &h->rate_num) || !whole_number(colon + 1, INT32_MAX, &h->rate_den) ||
            h->rate_num < 1 || h->rate_den < 1) {
            return bad(path, "its frame rate is not a fraction above zero", field, err);
        }
        return REEL_OK;
    }
    case 'C':
        if (colour_space(value, &h->yuv)) return REEL_OK;
        return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                         "a y4m file's colour format is not read\ngiven: %s: %s\nallowed: C444, C420, C420jpeg, C420mpeg2, "
                         "C420paldv\nremedy: convert it, for example with ffmpeg -pix_fmt yuv444p",
                         path, field);
    case 'X':
        if (strcmp(value, "COLORRANGE=FULL") == 0) h->yuv.is_full = true;
        if (strcmp(value, "REEL=BT709") == 0) *is_709 = true;
        return REEL_OK;
    default: return REEL_OK; /* interlacing, aspect and others do not change pixels */
    }
}

static reel_status read_header(FILE *f, const char *path, int64_t max_pixels, y4m_header *h, reel_error *err)
{
    char line[LINE_MAX_BYTES];
    size_t n;
    bool is_709 = false;
    *h = (y4m_header){.rate_num = 0, .rate_den = 1, .yuv = {.is_420 = true, .is_centre = true}};
    if (!read_line(f, line, &n) || strncmp(line, "YUV4MPEG2", 9) != 0) return bad(path, "its first line is not a header", "", err);
    char *keep = NULL;
    for (char *field = strtok_r(line + 9, " ", &keep); field; field = strtok_r(NULL, " ", &keep)) {
        REEL_TRY(take_field(path, field, h, &is_709, err));
    }
    if (h->yuv.width == 0 || h->yuv.height == 0 || h->rate_num == 0)
        return bad(path, "its header lacks the size or the frame rate", "", err);
    if ((int64_t)h->yuv.width > max_pixels / h->yuv.height) {
        return REEL_FAIL(err, REEL_E_IO,
                         "a clip's pictures are too large\ngiven: %s, %dx%d\nallowed: %lld pixels\nremedy: scale the clip down first", path,
                         h->yuv.width, h->yuv.height, (long long)max_pixels);
    }
    if (is_709) {
        h->yuv.kr = 0.2126;
        h->yuv.kb = 0.0722;
    } else {
        reel_media_guess_matrix(&h->yuv);
    }
    return REEL_OK;
}

static reel_status read_frames(FILE *f, const char *path, reel_yuv *yuv, reel_media_frame_fn fn, void *user, int64_t *n_frame,
                               reel_error *err)
{
    int64_t w = yuv->width, h = yuv->height, cw = yuv->is_420 ? (w + 1) / 2 : w, ch = yuv->is_420 ? (h + 1) / 2 : h;
    size_t bytes = (size_t)(w * h + 2 * cw * ch), n;
    reel_status status = REEL_OK;
    uint8_t *planes = malloc(bytes), *rgb = malloc((size_t)(w * h * 3));
    char line[LINE_MAX_BYTES];
    if (!planes || !rgb) {
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a frame of %dx%d\nremedy: close other programs", yuv->width, yuv->height);
        goto cleanup;
    }
    yuv->plane[0] = planes, yuv->plane[1] = planes + w * h, yuv->plane[2] = planes + w * h + cw * ch;
    yuv->stride[0] = w, yuv->stride[1] = cw, yuv->stride[2] = cw;
    for (*n_frame = 0;; (*n_frame)++) {
        int c = fgetc(f);
        if (c == EOF && !ferror(f)) break;
        (void)ungetc(c, f);
        if (!read_line(f, line, &n) || strncmp(line, "FRAME", 5) != 0 || (line[5] != '\0' && line[5] != ' ')) {
            status = bad(path, "a frame does not begin where it should", "", err);
            goto cleanup;
        }
        if (fread(planes, 1, bytes, f) != bytes) {
            status = bad(path, "it ends in the middle of a frame", "", err);
            goto cleanup;
        }
        reel_media_yuv_to_rgb(yuv, rgb);
        REEL_TRY_GOTO(fn(user, rgb, yuv->width, yuv->height, err), cleanup);
    }
    if (*n_frame == 0) status = bad(path, "it holds no frame", "", err);
cleanup:
    free(planes);
    free(rgb);
    return status;
}

reel_status reel_y4m_read(const char *path, int64_t max_pixels, reel_media_frame_fn fn, void *user, reel_media_info *info, reel_error *err)
{
    FILE *f = fopen(path, "rbe");
    if (!f) {
        return REEL_FAIL(err, REEL_E_IO, "a clip cannot be opened\ngiven: %s (%s)\nremedy: check the path and its permissions", path,
                         strerror(errno));
    }
    y4m_header h;
    int64_t n_frame = 0;
    reel_status status = read_header(f, path, max_pixels, &h, err);
    if (status == REEL_OK) status = read_frames(f, path, &h.yuv, fn, user, &n_frame, err);
    (void)fclose(f);
    if (status == REEL_OK && info) {
        *info = (reel_media_info){
            .width = h.yuv.width, .height = h.yuv.height, .fps = (double)h.rate_num / (double)h.rate_den, .n_frame = n_frame};
    }
    return status;
}
