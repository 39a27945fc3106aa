/* SPDX-License-Identifier: Apache-2.0
 *
 * GIF: one palette of the whole clip, then dithered frames, through FFmpeg's palettegen and paletteuse.
 *
 * The palette needs every frame before the first can be written, so frames go to a nameless spool file in the target's folder (3 bytes a
 * pixel; gone with the process) and are read twice: memory does not grow with the clip. GIF counts hundredths of a second: frame i begins
 * at i · 100 / fps, rounded, so the rate is right on average and the clip's length is off by half a hundredth at most. */
#include "media/inner.h"

#ifdef REEL_WITH_MEDIA

#include <errno.h>
#include <libavfilter/avfilter.h>
#include <libavfilter/buffersink.h>
#include <libavfilter/buffersrc.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "media/av.h"

typedef struct gif_state {
    int spool;
    uint8_t *rgb; /* one frame on its way back */
    AVFormatContext *mux;
    AVCodecContext *codec;
    AVPacket *packet;
    AVFilterGraph *graph;
    AVFilterContext *source[2], *sink;
    AVFrame *palette, *drawn;
} gif_state;

static void gif_close(reel_writer *w)
{
    gif_state *s = w->state;
    if (!s) return;
    int before = reel_av_quiet_begin();
    if (s->spool >= 0) (void)close(s->spool);
    reel_av_mux_free(&s->mux);
    avcodec_free_context(&s->codec);
    av_packet_free(&s->packet);
    avfilter_graph_free(&s->graph);
    av_frame_free(&s->palette);
    av_frame_free(&s->drawn);
    reel_av_quiet_end(before);
    free(s->rgb);
    free(s);
    w->state = NULL;
}

static reel_status gif_open(reel_writer *w, reel_error *err)
{
    gif_state *s = calloc(1, sizeof *s);
    if (s) s->rgb = malloc((size_t)w->options.width * (size_t)w->options.height * 3);
    if (!s || !s->rgb) {
        free(s);
        return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a clip's writer\nremedy: close other programs");
    }
    w->state = s;
    char name[REEL_PATH_MAX + 16];
    (void)snprintf(name, sizeof name, "%s.XXXXXX", w->output.temporary);
    s->spool = mkstemp(name);
    if (s->spool < 0 || unlink(name) != 0) {
        return REEL_FAIL(err, REEL_E_IO, "the output cannot be written\ngiven: %s (%s)\nremedy: check free space and permissions", w->path,
                         strerror(errno));
    }
    return REEL_OK;
}

static reel_status gif_frame(reel_writer *w, const uint8_t *rgb, reel_error *err)
{
    const gif_state *s = w->state;
    return reel_media_write_all(s->spool, rgb, (size_t)w->options.width * (size_t)w->options.height * 3, w->path, err);
}

static int64_t time_of(const reel_writer *w, int64_t frame)
{
    return av_rescale_q(frame, (AVRational){w->rate.den, w->rate.num}, (AVRational){1, 100});
}

/* palettegen keeps every distinct colour of the clip in memory. Six bits a channel bound that to 2^18 colours (a few MiB) and move a palette
 * entry by 3 code values at most; black and white stay exact. */
static uint32_t six_bits(uint32_t rgb)
{
    return (rgb & 0xFFFCFCFCU) | (rgb >> 6 & 0x00030303U);
}

/* Frame i of the spool as 32-bit RGB; coarse: for the palette. */
static reel_status spool_frame(reel_writer *w, int64_t i, bool is_coarse, AVFrame **out, reel_error *err)
{
    gif_state *s = w->state;
    size_t bytes = (size_t)w->options.width * (size_t)w->options.height * 3, done = 0;
    while (done < bytes) {
        ssize_t n = pread(s->spool, s->rgb + done, bytes - done, (off_t)((uint64_t)i * bytes + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            return REEL_FAIL(err, REEL_E_IO, "stored frames cannot be read back\ngiven: %s (%s)\nremedy: check the disk", w->path,
                             n < 0 ? strerror(errno) : "the file is short");
        }
        done += (size_t)n;
    }
    AVFrame *frame = NULL;
    REEL_TRY(reel_av_frame_new(AV_PIX_FMT_RGB32, w->options.width, w->options.height, &frame, err));
    for (int y = 0; y < frame->height; y++) {
        uint32_t *to = (uint32_t *)(void *)(frame->data[0] + (ptrdiff_t)y * frame->linesize[0]);
        const uint8_t *from = s->rgb + (size_t)y * (size_t)frame->width * 3;
        for (int x = 0; x < frame->width; x++) {
            uint32_t rgb = (uint32_t)from[3 * x] << 16 | (uint32_t)from[3 * x + 1] << 8 | from[3 * x + 2];
            to[x] = 0xFF000000U | (is_coarse ? six_bits(rgb) : rgb);
        }
    }
    frame->pts = time_of(w, i);
    *out = frame;
    return REEL_OK;
}

/* A graph of named sources, `filter` and a sink. */
static reel_status make_graph(reel_writer *w, const char *text, int n_source, const int32_t size[2][2], reel_error *err)
{
    gif_state *s = w->state;
    char name[16];
    avfilter_graph_free(&s->graph);
    s->graph = avfilter_graph_alloc();
    int r = s->graph ? 0 : AVERROR(ENOMEM);
    if (r >= 0) s->graph->nb_threads = 1;
    AVFilterInOut *in = NULL, *out = NULL;
    char whole[512];
    int n = 0;
    for (int i = 0; i < n_source; i++) {
        n +=
            snprintf(whole + n, sizeof whole - (size_t)n, "buffer@in%d=video_size=%dx%d:pix_fmt=%s:time_base=1/100:pixel_aspect=1/1[in%d];",
                     i, size[i][0], size[i][1], av_get_pix_fmt_name(AV_PIX_FMT_RGB32), i);
    }
    n += snprintf(whole + n, sizeof whole - (size_t)n, "%s,buffersink@out", text);
    if ((size_t)n >= sizeof whole) r = AVERROR(EINVAL);
    if (r >= 0) r = avfilter_graph_parse2(s->graph, whole, &in, &out);
    avfilter_inout_free(&in);
    avfilter_inout_free(&out);
    if (r >= 0) r = avfilter_graph_config(s->graph, NULL);
    for (int i = 0; r >= 0 && i < n_source; i++) {
        (void)snprintf(name, sizeof name, "buffer@in%d", i);
        s->source[i] = avfilter_graph_get_filter(s->graph, name);
        if (!s->source[i]) r = AVERROR_BUG;
    }
    if (r >= 0) s->sink = avfilter_graph_get_filter(s->graph, "buffersink@out");
    if (r >= 0 && !s->sink) r = AVERROR_BUG;
    if (r < 0)
        return reel_av_fail(err, REEL_E_UNSUPPORTED, r, "this build's FFmpeg cannot make palettes", w->path, "choose another ending");
    return REEL_OK;
}

/* frame NULL: the end of that source. Takes the frame. */
static reel_status push(reel_writer *w, int source, AVFrame **frame, reel_error *err)
{
    gif_state *s = w->state;
    int r = av_buffersrc_add_frame(s->source[source], frame ? *frame : NULL);
    if (frame) av_frame_free(frame);
    return r < 0 ? reel_av_fail(err, REEL_E_IO, r, "a GIF's colours could not be reduced", w->path, "choose another ending") : REEL_OK;
}

static reel_status find_palette(reel_writer *w, reel_error *err)
{
    gif_state *s = w->state;
    const int32_t size[2][2] = {{w->options.width, w->options.height}, {0, 0}};
    REEL_TRY(make_graph(w, "[in0]palettegen=stats_mode=full", 1, size, err));
    for (int64_t i = 0; i < w->n_frame; i++) {
        AVFrame *frame = NULL;
        REEL_TRY(spool_frame(w, i, true, &frame, err));
        REEL_TRY(push(w, 0, &frame, err));
    }
    REEL_TRY(push(w, 0, NULL, err));
    s->palette = av_frame_alloc();
    int r = s->palette ? av_buffersink_get_frame(s->sink, s->palette) : AVERROR(ENOMEM);
    if (r < 0) return reel_av_fail(err, REEL_E_IO, r, "a GIF's palette could not be made", w->path, "choose another ending");
    s->palette->pts = 0;
    return REEL_OK;
}

static reel_status open_file(reel_writer *w, reel_error *err)
{
    gif_state *s = w->state;
    REEL_TRY(reel_av_mux_open("gif", w, &s->mux, err));
    const AVCodec *codec = avcodec_find_encoder_by_name("gif");
    AVStream *stream = avformat_new_stream(s->mux, NULL);
    s->codec = avcodec_alloc_context3(codec);
    s->packet = av_packet_alloc();
    s->drawn = av_frame_alloc();
    if (!stream || !s->codec || !s->packet || !s->drawn)
        return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a GIF\nremedy: close other programs");
    s->codec->width = w->options.width;
    s->codec->height = w->options.height;
    s->codec->pix_fmt = AV_PIX_FMT_PAL8;
    s->codec->time_base = stream->time_base = (AVRational){1, 100};
    s->codec->thread_count = 1;
    s->codec->log_level_offset = REEL_AV_LOG_OFFSET;
    s->codec->flags |= AV_CODEC_FLAG_BITEXACT;
    int r = avcodec_open2(s->codec, codec, NULL);
    if (r >= 0) r = avcodec_parameters_from_context(stream->codecpar, s->codec);
    if (r < 0)
        return reel_av_fail(err, REEL_E_UNSUPPORTED, r, "the GIF encoder refuses the clip's settings", w->path, "choose another size");
    /* The last frame lasts until the time at which the next would begin. */
    r = av_opt_set_int(s->mux->priv_data, "final_delay", time_of(w, w->n_frame) - time_of(w, w->n_frame - 1), 0);
    if (r >= 0) r = av_opt_set_int(s->mux->priv_data, "loop", 0, 0);
    if (r >= 0) r = avformat_write_header(s->mux, NULL);
    if (r < 0) return reel_av_fail(err, REEL_E_IO, r, "the output cannot be written", w->path, "check free space and permissions");
    return REEL_OK;
}

static reel_status encode(reel_writer *w, const AVFrame *frame, reel_error *err)
{
    gif_state *s = w->state;
    int r = avcodec_send_frame(s->codec, frame);
    while (r >= 0) {
        r = avcodec_receive_packet(s->codec, s->packet);
        if (r == AVERROR(EAGAIN) || r == AVERROR_EOF) return REEL_OK;
        if (r < 0) break;
        s->packet->stream_index = 0;
        av_packet_rescale_ts(s->packet, s->codec->time_base, s->mux->streams[0]->time_base);
        r = av_write_frame(s->mux, s->packet);
        if (r >= 0) r = s->mux->pb->error;
        av_packet_unref(s->packet);
    }
    return reel_av_fail(err, REEL_E_IO, r, "the output cannot be written", w->path, "check free space and permissions");
}

/* Encodes what the graph has ready. */
static reel_status drain(reel_writer *w, reel_error *err)
{
    gif_state *s = w->state;
    for (;;) {
        int r = av_buffersink_get_frame(s->sink, s->drawn);
        if (r == AVERROR(EAGAIN) || r == AVERROR_EOF) return REEL_OK;
        if (r < 0) return reel_av_fail(err, REEL_E_IO, r, "a GIF's colours could not be reduced", w->path, "choose another ending");
        reel_status status = encode(w, s->drawn, err);
        av_frame_unref(s->drawn);
        if (status != REEL_OK) return status;
    }
}

static reel_status draw(reel_writer *w, reel_error *err)
{
    gif_state *s = w->state;
    const int32_t size[2][2] = {{w->options.width, w->options.height}, {s->palette->width, s->palette->height}};
    REEL_TRY(make_graph(w, "[in0][in1]paletteuse=dither=sierra2_4a:diff_mode=rectangle", 2, size, err));
    REEL_TRY(push(w, 1, &s->palette, err));
    REEL_TRY(push(w, 1, NULL, err));
    for (int64_t i = 0; i < w->n_frame; i++) {
        AVFrame *frame = NULL;
        REEL_TRY(spool_frame(w, i, false, &frame, err));
        REEL_TRY(push(w, 0, &frame, err));
        REEL_TRY(drain(w, err));
    }
    REEL_TRY(push(w, 0, NULL, err));
    REEL_TRY(drain(w, err));
    return encode(w, NULL, err);
}

static reel_status gif_finish(reel_writer *w, reel_error *err)
{
    gif_state *s = w->state;
    int before = reel_av_quiet_begin();
    reel_status status = find_palette(w, err);
    if (status == REEL_OK) status = open_file(w, err);
    if (status == REEL_OK) status = draw(w, err);
    if (status == REEL_OK) status = reel_av_mux_finish(w, &s->mux, err);
    reel_av_quiet_end(before);
    if (status != REEL_OK) return status;
    return reel_output_commit(&w->output, err);
}

const reel_writer_table reel_gif_writer = {.open = gif_open, .frame = gif_frame, .finish = gif_finish, .close = gif_close};

#endif
