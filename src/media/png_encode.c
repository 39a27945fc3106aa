/* SPDX-License-Identifier: Apache-2.0
 *
 * One RGB8 picture to PNG (lossless, tagged sRGB), and a single picture to a file. */
#include "media/inner.h"

#ifdef REEL_WITH_MEDIA

#include <string.h>

#include "media/av.h"

void reel_png_encoder_deinit(reel_png_encoder *png)
{
    avcodec_free_context(&png->codec);
    av_frame_free(&png->frame);
    av_packet_free(&png->packet);
}

reel_status reel_png_encoder_init(reel_png_encoder *png, int32_t width, int32_t height, reel_error *err)
{
    *png = (reel_png_encoder){0};
    REEL_TRY(reel_media_supported(REEL_MEDIA_PNG, err));
    const AVCodec *codec = avcodec_find_encoder_by_name("png");
    reel_status status = REEL_OK;
    int r = 0;
    png->codec = avcodec_alloc_context3(codec);
    png->packet = av_packet_alloc();
    if (!png->codec || !png->packet) {
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a PNG encoder\nremedy: close other programs");
        goto fail;
    }
    AVCodecContext *c = png->codec;
    c->width = width;
    c->height = height;
    c->pix_fmt = AV_PIX_FMT_RGB24;
    c->time_base = (AVRational){1, 1};
    c->thread_count = 1;
    c->log_level_offset = REEL_AV_LOG_OFFSET;
    c->flags |= AV_CODEC_FLAG_BITEXACT;
    r = avcodec_open2(c, codec, NULL);
    if (r < 0) {
        status = reel_av_fail(err, REEL_E_UNSUPPORTED, r, "the PNG encoder refuses a picture's size", "PNG", "choose a smaller size");
        goto fail;
    }
    REEL_TRY_GOTO(reel_av_frame_new(AV_PIX_FMT_RGB24, width, height, &png->frame, err), fail);
    png->frame->color_primaries = AVCOL_PRI_BT709;
    png->frame->color_trc = AVCOL_TRC_IEC61966_2_1;
    png->frame->color_range = AVCOL_RANGE_JPEG;
    return REEL_OK;
fail:
    reel_png_encoder_deinit(png);
    return status;
}

reel_status reel_png_encode(reel_png_encoder *png, const uint8_t *rgb, reel_error *err)
{
    AVFrame *frame = png->frame;
    int r = av_frame_make_writable(frame);
    for (int y = 0; r >= 0 && y < frame->height; y++) {
        size_t bytes = (size_t)frame->width * 3;
        memcpy(frame->data[0] + (ptrdiff_t)y * frame->linesize[0], rgb + (size_t)y * bytes, bytes);
    }
    av_packet_unref(png->packet);
    if (r >= 0) r = avcodec_send_frame(png->codec, frame);
    if (r >= 0) r = avcodec_receive_packet(png->codec, png->packet);
    frame->pts = frame->pts == AV_NOPTS_VALUE ? 1 : frame->pts + 1;
    if (r < 0) return reel_av_fail(err, REEL_E_IO, r, "a picture could not be encoded", "PNG", "choose a smaller size");
    return REEL_OK;
}

reel_status reel_media_write_png(const char *path, const uint8_t *rgb, int32_t width, int32_t height, bool no_clobber, reel_error *err)
{
    reel_media_options limits = {.width = width, .height = height, .fps = 1.0, .crf = -1, .n_thread = 1};
    REEL_TRY(reel_media_check_options(REEL_MEDIA_PNG, &limits, err));
    reel_png_encoder png;
    int before = reel_av_quiet_begin();
    reel_status status = reel_png_encoder_init(&png, width, height, err);
    if (status == REEL_OK) status = reel_png_encode(&png, rgb, err);
    reel_av_quiet_end(before);
    if (status == REEL_OK) status = reel_write_file(path, png.packet->data, (size_t)png.packet->size, no_clobber, err);
    reel_png_encoder_deinit(&png);
    return status;
}

#endif
