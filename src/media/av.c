/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers around FFmpeg's libraries (av.h): quiet, errors, and containers whose every write error is seen.
 *
 * FFmpeg's file writes are buffered and their errors sticky in AVIOContext.error, so it is asked after the trailer and once more by close. */
#include "media/inner.h"

#ifdef REEL_WITH_MEDIA

#include <errno.h>
#include <libavutil/opt.h>
#include <stdio.h>

#include "media/av.h"

int reel_av_quiet_begin(void)
{
    int before = av_log_get_level();
    if (before == AV_LOG_INFO) av_log_set_level(AV_LOG_QUIET);
    return before;
}

void reel_av_quiet_end(int before)
{
    if (before == AV_LOG_INFO && av_log_get_level() == AV_LOG_QUIET) av_log_set_level(AV_LOG_INFO);
}

reel_status reel_av_fail(reel_error *err, reel_status code, int av_error, const char *what, const char *path, const char *remedy)
{
    char reason[AV_ERROR_MAX_STRING_SIZE] = "";
    (void)av_strerror(av_error, reason, sizeof reason);
    if (av_error == AVERROR(ENOMEM)) code = REEL_E_MEMORY;
    return REEL_FAIL(err, code, "%s\ngiven: %s (%s)\nremedy: %s", what, path, reason, remedy);
}

reel_status reel_av_frame_new(int pix_fmt, int32_t width, int32_t height, AVFrame **out, reel_error *err)
{
    AVFrame *frame = av_frame_alloc();
    if (frame) {
        frame->format = pix_fmt;
        frame->width = width;
        frame->height = height;
    }
    if (!frame || av_frame_get_buffer(frame, 0) < 0) {
        av_frame_free(&frame);
        return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a frame of %dx%d\nremedy: close other programs", width, height);
    }
    *out = frame;
    return REEL_OK;
}

/* "file:" in front, so that a name with a colon is not taken for a protocol. */
static bool file_url(const char *path, char *out, size_t bytes)
{
    int n = snprintf(out, bytes, "file:%s", path);
    return n >= 0 && (size_t)n < bytes;
}

reel_status reel_av_mux_open(const char *muxer, reel_writer *w, AVFormatContext **out, reel_error *err)
{
    char url[REEL_PATH_MAX + 8];
    AVFormatContext *mux = NULL;
    bool is_short = file_url(w->output.temporary, url, sizeof url);
    assert(is_short);
    (void)is_short;
    int r = avformat_alloc_output_context2(&mux, NULL, muxer, url);
    if (r < 0)
        return reel_av_fail(err, REEL_E_UNSUPPORTED, r, "this build's FFmpeg cannot write the container", muxer, "choose another ending");
    mux->flags |= AVFMT_FLAG_BITEXACT; /* no dates, no versions, constant identifiers */
    r = avio_open(&mux->pb, url, AVIO_FLAG_WRITE);
    if (r < 0) {
        reel_av_mux_free(&mux);
        return reel_av_fail(err, REEL_E_IO, r, "the output cannot be written", w->path, "check free space and permissions");
    }
    *out = mux;
    return REEL_OK;
}

reel_status reel_av_mux_finish(reel_writer *w, AVFormatContext **mux, reel_error *err)
{
    AVFormatContext *m = *mux;
    int r = av_write_trailer(m);
    avio_flush(m->pb);
    if (r >= 0) r = m->pb->error;
    int closed = avio_closep(&m->pb);
    if (r >= 0) r = closed;
    reel_av_mux_free(mux);
    if (r < 0) return reel_av_fail(err, REEL_E_IO, r, "the output cannot be written", w->path, "check free space and permissions");
    return REEL_OK;
}

void reel_av_mux_free(AVFormatContext **mux)
{
    if (!*mux) return;
    if ((*mux)->pb) (void)avio_closep(&(*mux)->pb);
    avformat_free_context(*mux);
    *mux = NULL;
}

reel_status reel_av_demux_open(const char *path, AVFormatContext **out, reel_error *err)
{
    char url[REEL_PATH_MAX + 8];
    if (!file_url(path, url, sizeof url)) {
        return REEL_FAIL(err, REEL_E_IO, "a path is too long\ngiven: %s\nallowed: %d bytes\nremedy: use a shorter path", path,
                         REEL_PATH_MAX);
    }
    AVFormatContext *demux = avformat_alloc_context();
    AVDictionary *options = NULL;
    int r = demux ? 0 : AVERROR(ENOMEM);
    /* Containers that can name other files or hosts (playlists, concat) are not in the list; nor may known ones open anything but a file. */
    if (r >= 0) r = av_dict_set(&options, "format_whitelist", "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,gif", 0);
    if (r >= 0) r = av_dict_set(&options, "protocol_whitelist", "file", 0);
    if (r >= 0) r = av_dict_set(&options, "codec_whitelist", REEL_AV_DECODERS, 0);
    if (r >= 0)
        r = avformat_open_input(&demux, url, NULL, &options); /* frees demux on failure */
    else
        avformat_free_context(demux);
    av_dict_free(&options);
    if (r < 0) {
        return reel_av_fail(err, REEL_E_IO, r, "a clip cannot be opened", path,
                            "check that it exists and is an mp4, webm, gif or y4m file that is whole");
    }
    *out = demux;
    return REEL_OK;
}

#endif
