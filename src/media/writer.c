/* SPDX-License-Identifier: Apache-2.0
 *
 * The handle behind all formats: checks first, then the format's table. Nothing is kept of a clip that was not finished. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "media/inner.h"

static const reel_writer_table *table_of(reel_media_format format)
{
    switch (format) {
#ifdef REEL_WITH_MEDIA
    case REEL_MEDIA_MP4:
    case REEL_MEDIA_WEBM: return &reel_av_writer;
    case REEL_MEDIA_GIF: return &reel_gif_writer;
    case REEL_MEDIA_PNG: return &reel_png_writer;
#else
    case REEL_MEDIA_MP4:
    case REEL_MEDIA_WEBM:
    case REEL_MEDIA_GIF:
    case REEL_MEDIA_PNG: return NULL;
#endif
    case REEL_MEDIA_Y4M: return &reel_y4m_writer;
    }
    return NULL;
}

static void writer_free(reel_writer *w)
{
    if (!w) return;
    w->table->close(w);
    reel_output_abandon(&w->output);
    free(w->path);
    free(w->comment);
    free(w);
}

reel_status reel_writer_open(const char *path, const reel_media_options *options, reel_writer **out, reel_error *err)
{
    REEL_TRY(reel_media_check(path, options, err));
    reel_media_format format;
    REEL_TRY(reel_media_format_of(path, &format, err));
    reel_writer *w = calloc(1, sizeof *w);
    char *path_copy = strdup(path), *comment = options->comment ? strdup(options->comment) : NULL;
    if (!w || !path_copy || (options->comment && !comment)) {
        free(w);
        free(path_copy);
        free(comment);
        return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a clip's writer\nremedy: close other programs");
    }
    *w = (reel_writer){.table = table_of(format),
                       .path = path_copy,
                       .comment = comment,
                       .format = format,
                       .options = *options,
                       .rate = reel_media_rate(options->fps)};
    w->options.comment = comment;
    assert(w->table); /* reel_media_check refuses formats without one */
    reel_status status = REEL_OK;
    if (format != REEL_MEDIA_PNG && strcmp(path, "-") != 0) {
        REEL_TRY_GOTO(reel_output_begin(&w->output, path, options->no_clobber, err), fail);
    }
    REEL_TRY_GOTO(w->table->open(w, err), fail);
    *out = w;
    return REEL_OK;
fail:
    writer_free(w);
    return status;
}

reel_status reel_writer_frames(reel_writer *writer, const uint8_t *rgb, int32_t n, reel_error *err)
{
    size_t frame_bytes = (size_t)writer->options.width * (size_t)writer->options.height * 3;
    for (int32_t i = 0; i < n; i++) {
        if (writer->has_failed) {
            return REEL_FAIL(err, REEL_E_IO, "an earlier frame could not be written\ngiven: %s\nremedy: start the clip again",
                             writer->path);
        }
        reel_status status = writer->table->frame(writer, rgb + (size_t)i * frame_bytes, err);
        if (status != REEL_OK) {
            writer->has_failed = true;
            return reel_trace(err, status, __FILE__, __LINE__);
        }
        writer->n_frame++;
    }
    return REEL_OK;
}

reel_status reel_writer_finish(reel_writer **writer, reel_error *err)
{
    reel_writer *w = *writer;
    reel_status status = REEL_OK;
    *writer = NULL;
    if (w->has_failed) {
        status = REEL_FAIL(err, REEL_E_IO, "an earlier frame could not be written\ngiven: %s\nremedy: start the clip again", w->path);
    } else if (w->n_frame == 0) {
        status =
            REEL_FAIL(err, REEL_E_ARGUMENT,
                      "a clip without frames cannot be written\ngiven: %s, 0 frames\nallowed: at least 1\nremedy: hand in frames", w->path);
    } else {
        status = w->table->finish(w, err);
    }
    writer_free(w);
    return status;
}

void reel_writer_abandon(reel_writer **writer)
{
    if (!writer) return;
    writer_free(*writer);
    *writer = NULL;
}

reel_status reel_media_write_all(int fd, const void *data, size_t bytes, const char *path, reel_error *err)
{
    const char *p = data;
    while (bytes > 0) {
        ssize_t n = write(fd, p, bytes);
        if (n > 0) {
            p += n;
            bytes -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            (void)poll(&wait, 1, -1);
        } else if (n == 0 || errno != EINTR) {
            return REEL_FAIL(err, REEL_E_IO, "the output cannot be written\ngiven: %s (%s)\nremedy: check free space and permissions",
                             strcmp(path, "-") == 0 ? "standard output" : path, n == 0 ? "nothing was taken" : strerror(errno));
        }
    }
    return REEL_OK;
}
