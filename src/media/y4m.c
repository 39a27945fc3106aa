/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw clips (YUV4MPEG2), written without any library, to a file or to stdout as frames come.
 *
 * Pixels are 4:4:4 BT.709 limited range: 4:4:4 takes odd sizes and loses no colour detail. The format's header has no field for the
 * matrix, so a comment field says it (XREEL=BT709), and reel's reader takes it from there. Each frame is one write of one buffer. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "media/inner.h"

static const char frame_line[] = "FRAME\n";
enum { FRAME_LINE_BYTES = 6 };

typedef struct y4m_state {
    int fd;
    bool is_own; /* fd is ours to close; stdout is not */
    size_t bytes;
    uint8_t *buffer; /* frame_line, then three planes */
} y4m_state;

static void y4m_close(reel_writer *w)
{
    y4m_state *s = w->state;
    if (!s) return;
    if (s->is_own && s->fd >= 0) (void)close(s->fd);
    free(s->buffer);
    free(s);
    w->state = NULL;
}

static reel_status y4m_open(reel_writer *w, reel_error *err)
{
    size_t plane = (size_t)w->options.width * (size_t)w->options.height;
    y4m_state *s = calloc(1, sizeof *s);
    if (s) s->buffer = malloc(FRAME_LINE_BYTES + 3 * plane);
    if (!s || !s->buffer) {
        free(s);
        return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a frame of %dx%d\nremedy: close other programs", w->options.width,
                         w->options.height);
    }
    s->bytes = FRAME_LINE_BYTES + 3 * plane;
    memcpy(s->buffer, frame_line, FRAME_LINE_BYTES);
    w->state = s;
    s->is_own = strcmp(w->path, "-") != 0;
    s->fd = s->is_own ? open(w->output.temporary, O_WRONLY | O_TRUNC | O_CLOEXEC) : STDOUT_FILENO;
    if (s->fd < 0) {
        return REEL_FAIL(err, REEL_E_IO, "the output cannot be written\ngiven: %s (%s)\nremedy: check free space and permissions", w->path,
                         strerror(errno));
    }
    char header[160];
    int n = snprintf(header, sizeof header, "YUV4MPEG2 W%d H%d F%d:%d Ip A1:1 C444 XCOLORRANGE=LIMITED XREEL=BT709\n", w->options.width,
                     w->options.height, w->rate.num, w->rate.den);
    assert(n > 0 && (size_t)n < sizeof header);
    return reel_media_write_all(s->fd, header, (size_t)n, w->path, err);
}

static reel_status y4m_frame(reel_writer *w, const uint8_t *rgb, reel_error *err)
{
    y4m_state *s = w->state;
    int64_t width = w->options.width, plane = width * w->options.height;
    uint8_t *p = s->buffer + FRAME_LINE_BYTES;
    reel_yuv yuv = {
        .plane = {p, p + plane, p + 2 * plane}, .stride = {width, width, width}, .width = w->options.width, .height = w->options.height};
    reel_media_bt709(&yuv);
    reel_media_rgb_to_yuv(rgb, &yuv);
    return reel_media_write_all(s->fd, s->buffer, s->bytes, w->path, err);
}

static reel_status y4m_finish(reel_writer *w, reel_error *err)
{
    y4m_state *s = w->state;
    if (!s->is_own) return REEL_OK; /* every byte has been taken by write */
    int fd = s->fd;
    s->fd = -1;
    if (close(fd) != 0) {
        return REEL_FAIL(err, REEL_E_IO, "the output cannot be written\ngiven: %s (%s)\nremedy: check free space", w->path,
                         strerror(errno));
    }
    return reel_output_commit(&w->output, err);
}

const reel_writer_table reel_y4m_writer = {.open = y4m_open, .frame = y4m_frame, .finish = y4m_finish, .close = y4m_close};
