/* SPDX-License-Identifier: Apache-2.0
 *
 * MP4 (H.264 by x264) and WebM (VP9 by libvpx): one encoder, one container, one stream.
 *
 * Time is counted in frames; a packet's duration is the distance to the next frame's time in the container's clock. MP4's clock is a
 * multiple of the frame rate, so its durations are exact; WebM's ticks are milliseconds, so there each time is rounded once, never summed.
 * Everything that could vary from run to run is fixed: encoder threads by option, no row threads, bit-exact flags, no dates. */
#include "media/inner.h"

#ifdef REEL_WITH_MEDIA

#include <libavutil/cpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "media/av.h"

enum { CRF_MP4 = 18, CRF_WEBM = 24, CLOCK_MIN = 10000 };

typedef struct av_state {
    AVFormatContext *mux;
    AVCodecContext *codec;
    AVFrame *frame;
    AVPacket *packet;
} av_state;

static reel_status set_option(AVDictionary **options, const char *name, const char *value, reel_error *err)
{
    if (av_dict_set(options, name, value, 0) >= 0) return REEL_OK;
    return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for the encoder's options\nremedy: close other programs");
}

static reel_status set_number(AVDictionary **options, const char *name, int64_t value, reel_error *err)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    return set_option(options, name, text, err);
}

/* An option that the library does not know would be left over: it must not be silently ignored. */
static reel_status check_used(const AVDictionary *options, const char *path, reel_error *err)
{
    const AVDictionaryEntry *e = av_dict_get(options, "", NULL, AV_DICT_IGNORE_SUFFIX);
    if (!e) return REEL_OK;
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "this build's FFmpeg does not know an encoder option\ngiven: %s=%s for %s\nremedy: build with FFmpeg 5.1 or later",
                     e->key, e->value, path);
}

/* x264 (core 164 was measured) reads memory that it never wrote in its AVX-512 code for macroblock trees: the bytes then depend on what the heap
 * held before, with one thread as with many. Its AVX2 code does not, at a cost of some 15 % of encoding time. */
static reel_status limit_x264(AVDictionary **options, reel_error *err)
{
#if defined(__x86_64__) || defined(__i386__)
    if (av_get_cpu_flags() & AV_CPU_FLAG_AVX2) return set_option(options, "x264-params", "asm=avx2", err);
#endif
    (void)options, (void)err;
    return REEL_OK;
}

static reel_status codec_options(const reel_writer *w, AVDictionary **options, reel_error *err)
{
    int32_t crf = w->options.crf;
    if (w->format == REEL_MEDIA_MP4) {
        REEL_TRY(set_number(options, "crf", crf >= 0 ? crf : CRF_MP4, err));
        REEL_TRY(limit_x264(options, err));
        return set_option(options, "preset", "medium", err);
    }
    REEL_TRY(set_number(options, "crf", crf >= 0 ? crf : CRF_WEBM, err));
    REEL_TRY(set_number(options, "b", 0, err)); /* constant quality */
    REEL_TRY(set_option(options, "deadline", "good", err));
    REEL_TRY(set_number(options, "cpu-used", 3, err));
    REEL_TRY(set_number(options, "row-mt", 0, err));
    return set_number(options, "tile-columns", 1, err);
}

static void set_codec_fields(const reel_writer *w, AVCodecContext *c)
{
    c->width = w->options.width;
    c->height = w->options.height;
    c->pix_fmt = AV_PIX_FMT_YUV420P;
    c->time_base = (AVRational){w->rate.den, w->rate.num};
    c->framerate = (AVRational){w->rate.num, w->rate.den};
    c->sample_aspect_ratio = (AVRational){1, 1};
    c->color_primaries = AVCOL_PRI_BT709;
    c->color_trc = AVCOL_TRC_BT709;
    c->colorspace = AVCOL_SPC_BT709;
    c->color_range = AVCOL_RANGE_MPEG;
    c->chroma_sample_location = AVCHROMA_LOC_LEFT;
    c->thread_count = w->options.n_thread;
    c->log_level_offset = REEL_AV_LOG_OFFSET;
    c->flags |= AV_CODEC_FLAG_BITEXACT;
}

static reel_status open_codec(reel_writer *w, av_state *s, reel_error *err)
{
    const AVCodec *codec = avcodec_find_encoder_by_name(w->format == REEL_MEDIA_MP4 ? "libx264" : "libvpx-vp9");
    assert(codec); /* reel_media_check asked */
    s->codec = avcodec_alloc_context3(codec);
    s->packet = av_packet_alloc();
    if (!s->codec || !s->packet) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a video encoder\nremedy: close other programs");
    set_codec_fields(w, s->codec);
    if (s->mux->oformat->flags & AVFMT_GLOBALHEADER) s->codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    AVDictionary *options = NULL;
    reel_status status;
    REEL_TRY_GOTO(codec_options(w, &options, err), cleanup);
    int r = avcodec_open2(s->codec, codec, &options);
    if (r < 0) {
        status = reel_av_fail(err, REEL_E_UNSUPPORTED, r, "the video encoder refuses the clip's settings", w->path,
                              "choose another size, rate or ending");
        goto cleanup;
    }
    REEL_TRY_GOTO(check_used(options, w->path, err), cleanup);
    REEL_TRY_GOTO(reel_av_frame_new(AV_PIX_FMT_YUV420P, w->options.width, w->options.height, &s->frame, err), cleanup);
    s->frame->color_primaries = AVCOL_PRI_BT709;
    s->frame->color_trc = AVCOL_TRC_BT709;
    s->frame->colorspace = AVCOL_SPC_BT709;
    s->frame->color_range = AVCOL_RANGE_MPEG;
    s->frame->chroma_location = AVCHROMA_LOC_LEFT;
cleanup:
    av_dict_free(&options);
    return status;
}

static reel_status add_stream(const reel_writer *w, av_state *s, AVDictionary **options, reel_error *err)
{
    AVStream *stream = avformat_new_stream(s->mux, NULL);
    if (!stream || avcodec_parameters_from_context(stream->codecpar, s->codec) < 0 ||
        (w->comment && av_dict_set(&s->mux->metadata, "comment", w->comment, 0) < 0)) {
        return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a clip's header\nremedy: close other programs");
    }
    stream->time_base = s->codec->time_base;
    stream->avg_frame_rate = stream->r_frame_rate = s->codec->framerate;
    stream->sample_aspect_ratio = s->codec->sample_aspect_ratio;
    if (w->format == REEL_MEDIA_WEBM) return REEL_OK;
    int64_t clock = w->rate.num;
    while (clock < CLOCK_MIN) clock *= 2;
    REEL_TRY(set_number(options, "video_track_timescale", clock, err));
    REEL_TRY(set_number(options, "movie_timescale", clock, err)); /* else the whole's duration is rounded to a millisecond */
    return set_option(options, "movflags", "+faststart", err);
}

static void av_close(reel_writer *w)
{
    av_state *s = w->state;
    if (!s) return;
    int before = reel_av_quiet_begin();
    avcodec_free_context(&s->codec);
    reel_av_mux_free(&s->mux);
    av_frame_free(&s->frame);
    av_packet_free(&s->packet);
    reel_av_quiet_end(before);
    free(s);
    w->state = NULL;
}

static reel_status open_quietly(reel_writer *w, av_state *s, reel_error *err)
{
    REEL_TRY(reel_av_mux_open(w->format == REEL_MEDIA_MP4 ? "mp4" : "webm", w, &s->mux, err));
    REEL_TRY(open_codec(w, s, err));
    AVDictionary *options = NULL;
    reel_status status;
    REEL_TRY_GOTO(add_stream(w, s, &options, err), cleanup);
    int r = avformat_write_header(s->mux, &options);
    if (r >= 0) r = s->mux->pb->error;
    if (r < 0) {
        status = reel_av_fail(err, REEL_E_IO, r, "the output cannot be written", w->path, "check free space and permissions");
        goto cleanup;
    }
    status = check_used(options, w->path, err);
cleanup:
    av_dict_free(&options);
    return status;
}

static reel_status av_open(reel_writer *w, reel_error *err)
{
    av_state *s = calloc(1, sizeof *s);
    if (!s) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a clip's writer\nremedy: close other programs");
    w->state = s;
    int before = reel_av_quiet_begin();
    reel_status status = open_quietly(w, s, err);
    reel_av_quiet_end(before);
    return status;
}

/* Hands a frame (NULL: the end) to the encoder and writes the packets that are ready. */
static reel_status encode(reel_writer *w, const AVFrame *frame, reel_error *err)
{
    av_state *s = w->state;
    int r = avcodec_send_frame(s->codec, frame);
    AVRational from = s->codec->time_base, to = s->mux->streams[0]->time_base;
    while (r >= 0) {
        r = avcodec_receive_packet(s->codec, s->packet);
        if (r == AVERROR(EAGAIN) || r == AVERROR_EOF) return REEL_OK;
        if (r < 0) break;
        AVPacket *p = s->packet;
        int64_t pts = av_rescale_q(p->pts, from, to);
        p->duration = av_rescale_q(p->pts + 1, from, to) - pts;
        p->pts = pts;
        p->dts = av_rescale_q(p->dts, from, to);
        p->stream_index = 0;
        r = av_write_frame(s->mux, p);
        if (r >= 0) r = s->mux->pb->error;
        av_packet_unref(p);
        if (r < 0) return reel_av_fail(err, REEL_E_IO, r, "the output cannot be written", w->path, "check free space and permissions");
    }
    return reel_av_fail(err, REEL_E_IO, r, "a frame could not be encoded", w->path, "try another ending");
}

static reel_status av_frame(reel_writer *w, const uint8_t *rgb, reel_error *err)
{
    av_state *s = w->state;
    if (av_frame_make_writable(s->frame) < 0)
        return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a frame\nremedy: close other programs");
    reel_yuv yuv = {.width = w->options.width, .height = w->options.height, .is_420 = true};
    for (int i = 0; i < 3; i++) {
        yuv.plane[i] = s->frame->data[i];
        yuv.stride[i] = s->frame->linesize[i];
    }
    reel_media_bt709(&yuv);
    reel_media_rgb_to_yuv(rgb, &yuv);
    s->frame->pts = w->n_frame;
    int before = reel_av_quiet_begin();
    reel_status status = encode(w, s->frame, err);
    reel_av_quiet_end(before);
    return status;
}

static reel_status av_finish(reel_writer *w, reel_error *err)
{
    av_state *s = w->state;
    int before = reel_av_quiet_begin();
    reel_status status = encode(w, NULL, err);
    if (status == REEL_OK) status = reel_av_mux_finish(w, &s->mux, err);
    reel_av_quiet_end(before);
    if (status != REEL_OK) return status;
    return reel_output_commit(&w->output, err);
}

const reel_writer_table reel_av_writer = {.open = av_open, .frame = av_frame, .finish = av_finish, .close = av_close};

#endif
