/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this folder share: the frame rate as a fraction, the table of a format's writer, colour conversion, and the few helpers
 * around FFmpeg's libraries. Nothing outside src/media includes it (tests may). */
#ifndef REEL_MEDIA_INNER_H
#define REEL_MEDIA_INNER_H

#include "base/file.h"
#include "media/media.h"

/* ---- frame rate ---- */
typedef struct reel_rate {
    int32_t num, den;
} reel_rate;
/* 24 → 24/1, 23.976 → 24000/1001, else the nearest fraction with a denominator up to 10000. fps in [0.01, 1000]. */
reel_rate reel_media_rate(double fps);

/* ---- formats ---- */
const char *reel_media_ending(reel_media_format format); /* ".mp4" */
/* REEL_OK when this build can write the format, else REEL_E_UNSUPPORTED with the reason. */
reel_status reel_media_supported(reel_media_format format, reel_error *err);
/* Size, rate, quality, threads and comment against the format's limits. */
reel_status reel_media_check_options(reel_media_format format, const reel_media_options *options, reel_error *err);
/* The name of frame `index` of a PNG path: a pattern with one %d, or a folder ending in '/' (then frame-%05d.png in it). */
reel_status reel_media_png_name(const char *path, int64_t index, char *out, size_t out_bytes, reel_error *err);

/* ---- writers: one table per format ---- */
typedef struct reel_writer_table {
    reel_status (*open)(reel_writer *writer, reel_error *err);
    reel_status (*frame)(reel_writer *writer, const uint8_t *rgb, reel_error *err);
    reel_status (*finish)(reel_writer *writer, reel_error *err); /* all is on disk under its name afterwards, or an error */
    void (*close)(reel_writer *writer); /* frees; removes whatever finish did not put in place. After any outcome */
} reel_writer_table;

struct reel_writer {
    const reel_writer_table *table;
    char *path, *comment; /* own copies */
    reel_media_format format;
    reel_media_options options; /* .comment is `comment` */
    reel_rate rate;
    int64_t n_frame; /* handed in so far */
    reel_output output;
    void *state; /* the format's own */
    bool has_failed; /* a frame could not be written: finish is an error */
};

extern const reel_writer_table reel_y4m_writer;
#ifdef REEL_WITH_MEDIA
extern const reel_writer_table reel_av_writer;
extern const reel_writer_table reel_gif_writer;
extern const reel_writer_table reel_png_writer;
#endif

/* ---- colour ---- */
typedef struct reel_yuv {
    uint8_t *plane[3];
    int64_t stride[3];
    int32_t width, height;
    bool is_420; /* else 4:4:4 */
    bool is_centre; /* 4:2:0 chroma lies between two columns (JPEG), else on the left one (MPEG-2, H.264, VP9) */
    bool is_full; /* 0…255, else 16…235 and 16…240 */
    double kr, kb; /* weights of red and blue in luma */
} reel_yuv;
/* RGB8 [height, width, 3] to the planes. 4:2:0 averages (1 2 1)/4 over columns around the left one and two rows; sizes must be even. */
void reel_media_rgb_to_yuv(const uint8_t *rgb, const reel_yuv *out);
/* And back; 4:2:0 chroma is interpolated linearly; any size. */
void reel_media_yuv_to_rgb(const reel_yuv *in, uint8_t *rgb);
void reel_media_bt709(reel_yuv *yuv); /* kr, kb, limited range, left chroma */
/* kr and kb when a file does not say: BT.709 from 1280 columns or 577 rows on, else BT.601, as players do. */
void reel_media_guess_matrix(reel_yuv *yuv);

/* ---- bytes to a descriptor: all of them, or an error with the system's reason ---- */
reel_status reel_media_write_all(int fd, const void *data, size_t bytes, const char *path, reel_error *err);

/* ---- reading ---- */
reel_status reel_y4m_read(const char *path, int64_t max_pixels, reel_media_frame_fn fn, void *user, reel_media_info *info, reel_error *err);
#ifdef REEL_WITH_MEDIA
reel_status reel_av_read(const char *path, int64_t max_pixels, reel_media_frame_fn fn, void *user, reel_media_info *info, reel_error *err);
#endif

#endif
