/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes a clip of a container that FFmpeg knows to RGB8 frames, in order of presentation.
 *
 * 8-bit 4:2:0 and 4:4:4 go through our own conversion, with the matrix and range of the file's tags; other layouts are first brought to 8-bit
 * 4:4:4 (same matrix, same range) or RGB by swscale, which then has no matrix to choose. Files are of unknown origin: bounded sizes, damage is
 * an error (never a shorter clip), a size that changes is an error. Rotation and uneven timing are ignored. */
#include "media/inner.h"

#ifdef REEL_WITH_MEDIA

#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
#include <stdlib.h>
#include <string.h>

#include "media/av.h"

typedef struct av_reader {
    const char *path;
    int64_t max_pixels;
    reel_media_frame_fn fn;
    void *user;
    AVFormatContext *demux;
    AVCodecContext *codec;
    AVPacket *packet;
    AVFrame *frame, *plain; /* plain: after swscale */
    struct SwsContext *scale;
    int scale_from;
    uint8_t *rgb;
    int32_t width, height;
    int64_t n_frame, end; /* end: the last frame's end in the stream's clock */
    int stream;
} av_reader;

static reel_status matrix_of(const av_reader *r, reel_yuv *yuv, reel_error *err)
{
    switch (r->frame->colorspace) {
    case AVCOL_SPC_BT709: yuv->kr = 0.2126, yuv->kb = 0.0722; return REEL_OK;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M: yuv->kr = 0.299, yuv->kb = 0.114; return REEL_OK;
    case AVCOL_SPC_FCC: yuv->kr = 0.30, yuv->kb = 0.11; return REEL_OK;
    case AVCOL_SPC_SMPTE240M: yuv->kr = 0.212, yuv->kb = 0.087; return REEL_OK;
    case AVCOL_SPC_BT2020_NCL: yuv->kr = 0.2627, yuv->kb = 0.0593; return REEL_OK;
    case AVCOL_SPC_UNSPECIFIED: reel_media_guess_matrix(yuv); return REEL_OK;
    default: break;
    }
    const char *name = av_color_space_name(r->frame->colorspace);
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "a clip's colour matrix is not read\ngiven: %s, %s\nallowed: bt709, bt470bg, smpte170m, fcc, smpte240m, bt2020nc\n"
                     "remedy: convert the clip, for example to BT.709",
                     r->path, name ? name : "unknown");
}

/* Converts r->frame into r->plain of the given format; the range stays as it is. */
static reel_status to_plain(av_reader *r, enum AVPixelFormat to, int is_full, reel_error *err)
{
    if (!r->scale || r->scale_from != r->frame->format) {
        sws_freeContext(r->scale);
        av_frame_free(&r->plain);
        r->scale_from = r->frame->format;
        r->scale = sws_getContext(r->width, r->height, r->frame->format, r->width, r->height, to,
                                  SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT, NULL, NULL, NULL);
        if (!r->scale) {
            const char *name = av_get_pix_fmt_name(r->frame->format);
            return REEL_FAIL(err, REEL_E_UNSUPPORTED, "a clip's pixel format is not read\ngiven: %s, %s\nremedy: convert it to yuv420p",
                             r->path, name ? name : "unknown");
        }
        const int *k = sws_getCoefficients(SWS_CS_ITU709);
        (void)sws_setColorspaceDetails(r->scale, k, is_full, k, is_full, 0, 1 << 16, 1 << 16);
        REEL_TRY(reel_av_frame_new(to, r->width, r->height, &r->plain, err));
    }
    int n =
        sws_scale(r->scale, (const uint8_t *const *)r->frame->data, r->frame->linesize, 0, r->height, r->plain->data, r->plain->linesize);
    if (n != r->height)
        return REEL_FAIL(err, REEL_E_IO, "a frame could not be converted\ngiven: %s\nremedy: convert the clip to yuv420p", r->path);
    return REEL_OK;
}

static reel_status frame_to_rgb(av_reader *r, reel_error *err)
{
    enum AVPixelFormat format = r->frame->format;
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(format);
    if (d && d->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)) {
        REEL_TRY(to_plain(r, AV_PIX_FMT_RGB24, 1, err));
        for (int32_t y = 0; y < r->height; y++) {
            const uint8_t *from = r->plain->data[0] + (ptrdiff_t)y * r->plain->linesize[0];
            for (int32_t x = 0; x < 3 * r->width; x++) r->rgb[(size_t)y * (size_t)r->width * 3 + (size_t)x] = from[x];
        }
        return REEL_OK;
    }
    reel_yuv yuv = {.width = r->width, .height = r->height};
    bool is_j = format == AV_PIX_FMT_YUVJ420P || format == AV_PIX_FMT_YUVJ444P || format == AV_PIX_FMT_YUVJ422P ||
                format == AV_PIX_FMT_YUVJ440P || format == AV_PIX_FMT_YUVJ411P;
    yuv.is_full = is_j || r->frame->color_range == AVCOL_RANGE_JPEG;
    yuv.is_420 = format == AV_PIX_FMT_YUV420P || format == AV_PIX_FMT_YUVJ420P;
    yuv.is_centre = r->frame->chroma_location == AVCHROMA_LOC_CENTER;
    REEL_TRY(matrix_of(r, &yuv, err));
    const AVFrame *from = r->frame;
    if (!yuv.is_420 && format != AV_PIX_FMT_YUV444P && format != AV_PIX_FMT_YUVJ444P) {
        REEL_TRY(to_plain(r, yuv.is_full ? AV_PIX_FMT_YUVJ444P : AV_PIX_FMT_YUV444P, yuv.is_full, err));
        from = r->plain;
    }
    for (int i = 0; i < 3; i++) {
        yuv.plane[i] = from->data[i];
        yuv.stride[i] = from->linesize[i];
    }
    reel_media_yuv_to_rgb(&yuv, r->rgb);
    return REEL_OK;
}

static reel_status damaged(const av_reader *r, const char *how, reel_error *err)
{
    return REEL_FAIL(err, REEL_E_IO, "a clip is damaged: %s\ngiven: %s, after %lld frames\nremedy: fetch or write it again", how, r->path,
                     (long long)r->n_frame);
}

static reel_status check_pixels(av_reader *r, int64_t width, int64_t height, reel_error *err)
{
    if (width < 1 || height < 1) return damaged(r, "its size is zero", err);
    if (width > r->max_pixels / height) {
        return REEL_FAIL(err, REEL_E_IO,
                         "a clip's pictures are too large\ngiven: %s, %lldx%lld\nallowed: %lld pixels\nremedy: scale the clip down first",
                         r->path, (long long)width, (long long)height, (long long)r->max_pixels);
    }
    return REEL_OK;
}

static reel_status take_frame(av_reader *r, reel_error *err)
{
    const AVFrame *f = r->frame;
    if (f->decode_error_flags != 0 || f->flags & AV_FRAME_FLAG_CORRUPT) return damaged(r, "a frame does not decode", err);
    if (!r->rgb) {
        REEL_TRY(check_pixels(r, f->width, f->height, err));
        r->width = f->width;
        r->height = f->height;
        r->rgb = malloc((size_t)f->width * (size_t)f->height * 3);
        if (!r->rgb)
            return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a frame of %dx%d\nremedy: close other programs", f->width, f->height);
    }
    if (f->width != r->width || f->height != r->height) return damaged(r, "its size changes", err);
    REEL_TRY(frame_to_rgb(r, err));
    REEL_TRY(r->fn(r->user, r->rgb, r->width, r->height, err));
    r->n_frame++;
    return REEL_OK;
}

/* Sends a packet (NULL: the end) and takes the frames that are ready. */
static reel_status decode(av_reader *r, const AVPacket *packet, reel_error *err)
{
    int n = avcodec_send_packet(r->codec, packet);
    while (n >= 0) {
        n = avcodec_receive_frame(r->codec, r->frame);
        if (n == AVERROR(EAGAIN) || n == AVERROR_EOF) return REEL_OK;
        if (n < 0) break;
        reel_status status = take_frame(r, err);
        av_frame_unref(r->frame);
        if (status != REEL_OK) return status;
    }
    return reel_av_fail(err, REEL_E_IO, n, "a clip is damaged: a frame does not decode", r->path, "fetch or write it again");
}

static reel_status open_codec(av_reader *r, reel_error *err)
{
    REEL_TRY(reel_av_demux_open(r->path, &r->demux, err));
    for (unsigned i = 0; i < r->demux->nb_streams; i++) {
        AVCodecParameters *p = r->demux->streams[i]->codecpar;
        if (p->codec_type == AVMEDIA_TYPE_VIDEO && p->width > 0 && p->height > 0) REEL_TRY(check_pixels(r, p->width, p->height, err));
    }
    int n = avformat_find_stream_info(r->demux, NULL);
    const AVCodec *codec = NULL;
    if (n >= 0) n = r->stream = av_find_best_stream(r->demux, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
    if (n < 0)
        return reel_av_fail(err, REEL_E_IO, n, "no pictures were found in a clip", r->path,
                            "check that it is an mp4, webm, gif or y4m file");
    AVCodecParameters *p = r->demux->streams[r->stream]->codecpar;
    REEL_TRY(check_pixels(r, p->width, p->height, err));
    r->codec = avcodec_alloc_context3(codec);
    r->packet = av_packet_alloc();
    r->frame = av_frame_alloc();
    if (!r->codec || !r->packet || !r->frame)
        return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a video decoder\nremedy: close other programs");
    n = avcodec_parameters_to_context(r->codec, p);
    r->codec->thread_count = 1;
    r->codec->log_level_offset = REEL_AV_LOG_OFFSET;
    r->codec->err_recognition = AV_EF_EXPLODE;
    r->codec->max_pixels = r->max_pixels < 1 ? 1 : r->max_pixels;
    AVDictionary *options = NULL;
    if (n >= 0) n = av_dict_set(&options, "codec_whitelist", REEL_AV_DECODERS, 0);
    if (n >= 0) n = avcodec_open2(r->codec, codec, &options);
    av_dict_free(&options);
    if (n < 0) return reel_av_fail(err, REEL_E_UNSUPPORTED, n, "a clip's video cannot be decoded", r->path, "convert it to H.264");
    return REEL_OK;
}

/* GIF does not say how many frames it holds, only where it ends: with this byte. */
static bool lacks_gif_end(const av_reader *r)
{
    if (strcmp(r->demux->iformat->name, "gif") != 0) return false;
    int64_t bytes = avio_size(r->demux->pb);
    return bytes < 1 || avio_seek(r->demux->pb, bytes - 1, SEEK_SET) < 0 || avio_r8(r->demux->pb) != 0x3B;
}

/* A container that promises more than came was cut short. */
static reel_status check_whole(const av_reader *r, reel_error *err)
{
    const AVStream *s = r->demux->streams[r->stream];
    if (r->n_frame == 0) return damaged(r, "it holds no frame", err);
    if (s->nb_frames > r->n_frame || lacks_gif_end(r)) return damaged(r, "it ends early", err);
    int64_t whole = s->duration != AV_NOPTS_VALUE ? av_rescale_q(s->duration, s->time_base, AV_TIME_BASE_Q)
                    : r->demux->nb_streams == 1   ? r->demux->duration
                                                  : AV_NOPTS_VALUE;
    int64_t came = av_rescale_q(r->end, s->time_base, AV_TIME_BASE_Q);
    if (whole != AV_NOPTS_VALUE && came + AV_TIME_BASE / 50 < whole) return damaged(r, "it ends early", err);
    return REEL_OK;
}

static reel_status read_all(av_reader *r, reel_error *err)
{
    REEL_TRY(open_codec(r, err));
    for (;;) {
        int n = av_read_frame(r->demux, r->packet);
        if (n == AVERROR_EOF) break;
        if (n < 0) return reel_av_fail(err, REEL_E_IO, n, "a clip is damaged or cannot be read", r->path, "fetch or write it again");
        reel_status status = REEL_OK;
        if (r->packet->stream_index == r->stream) {
            int64_t end = r->packet->pts == AV_NOPTS_VALUE ? r->end : r->packet->pts + r->packet->duration;
            if (end > r->end) r->end = end;
            status = r->packet->flags & AV_PKT_FLAG_CORRUPT ? damaged(r, "a frame is cut off", err) : decode(r, r->packet, err);
        }
        av_packet_unref(r->packet);
        if (status != REEL_OK) return status;
    }
    if (r->demux->pb && r->demux->pb->error < 0 && r->demux->pb->error != AVERROR_EOF)
        return damaged(r, "it cannot be read to its end", err);
    REEL_TRY(decode(r, NULL, err));
    return check_whole(r, err);
}

reel_status reel_av_read(const char *path, int64_t max_pixels, reel_media_frame_fn fn, void *user, reel_media_info *info, reel_error *err)
{
    av_reader r = {.path = path, .max_pixels = max_pixels, .fn = fn, .user = user};
    int before = reel_av_quiet_begin();
    reel_status status = read_all(&r, err);
    if (status == REEL_OK && info) {
        AVRational rate = r.demux->streams[r.stream]->avg_frame_rate;
        if (rate.num <= 0 || rate.den <= 0) rate = r.demux->streams[r.stream]->r_frame_rate;
        *info = (reel_media_info){.width = r.width, .height = r.height, .n_frame = r.n_frame};
        info->fps = rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0.0;
    }
    sws_freeContext(r.scale);
    av_frame_free(&r.plain);
    av_frame_free(&r.frame);
    av_packet_free(&r.packet);
    avcodec_free_context(&r.codec);
    avformat_close_input(&r.demux);
    free(r.rgb);
    reel_av_quiet_end(before);
    return status;
}

#endif
