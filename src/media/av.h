/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers around FFmpeg's libraries, for the files of this folder that use them. Builds on FFmpeg 5.1 to 7. */
#ifndef REEL_MEDIA_AV_H
#define REEL_MEDIA_AV_H

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include "media/inner.h"

/* FFmpeg prints to stderr through a log level that belongs to the whole process. While we are inside its libraries, the default level (INFO,
 * nobody chose one) is set to QUIET and put back afterwards; any other level is the host program's choice and stays. A concurrent call may
 * see the level put back early, which costs stray lines and nothing else. Codecs are quietened per context, which touches nothing global. */
int reel_av_quiet_begin(void);
void reel_av_quiet_end(int before);

enum { REEL_AV_LOG_OFFSET = 100 }; /* AVCodecContext.log_level_offset: beyond every level that is printed by default */

/* "what\ngiven: path (FFmpeg's reason)\nremedy: …" */
reel_status reel_av_fail(reel_error *err, reel_status code, int av_error, const char *what, const char *path, const char *remedy);

/* A picture in the given format with its buffers. */
reel_status reel_av_frame_new(int pix_fmt, int32_t width, int32_t height, AVFrame **out, reel_error *err);

/* An open container that is written to writer->output.temporary, and the error checks on its way to disk. */
reel_status reel_av_mux_open(const char *muxer, reel_writer *w, AVFormatContext **out, reel_error *err);
/* Trailer, flush and close, each checked; *mux is freed and NULL afterwards in any case. */
reel_status reel_av_mux_finish(reel_writer *w, AVFormatContext **mux, reel_error *err);
void reel_av_mux_free(AVFormatContext **mux);

/* RGB8 pictures of one size to PNG, one after the other. The packet belongs to the encoder and is valid until the next call. */
typedef struct reel_png_encoder {
    AVCodecContext *codec;
    AVFrame *frame;
    AVPacket *packet;
} reel_png_encoder;
reel_status reel_png_encoder_init(reel_png_encoder *png, int32_t width, int32_t height, reel_error *err);
reel_status reel_png_encode(reel_png_encoder *png, const uint8_t *rgb, reel_error *err);
void reel_png_encoder_deinit(reel_png_encoder *png);

/* The decoders that reading may use: what people keep clips in, and no more code than that for files of unknown origin. */
#define REEL_AV_DECODERS "h264,hevc,vp8,vp9,libvpx-vp9,av1,libdav1d,mpeg4,mjpeg,gif"

/* Opens path for reading: local files, known containers, no references to other files. */
reel_status reel_av_demux_open(const char *path, AVFormatContext **out, reel_error *err);

#endif
