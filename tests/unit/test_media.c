/* SPDX-License-Identifier: Apache-2.0
 *
 * Clips written and read back in every format that this build has: frames, rates, durations, tags, colours, the comment, equal bytes. */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "media/inner.h"
#include "media_clip.h"

#ifdef REEL_WITH_MEDIA
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#endif

static const struct {
    double fps;
    int num, den;
} rates[] = {{16, 16, 1}, {24, 24, 1}, {23.976, 24000, 1001}, {30000.0 / 1001.0, 30000, 1001}};
static const int32_t lengths[] = {1, 2, 17};

static int make_folder(void **state)
{
    static char folder[512]; /* cmocka hands state to the tests of one program, one after the other */
    media_folder_new(folder, sizeof folder);
    *state = folder;
    return 0;
}

static int remove_folder(void **state)
{
    media_folder_remove(*state);
    return 0;
}

/* Pictures come back equal to one code value a channel: 8-bit 4:4:4 in limited range has coarser steps than RGB (219 and 224 for 255), whose
 * roundings add up to at most 0.5 · (255/219 + 2.112 …) < 2.5. */
static void y4m_round_trip(void **state)
{
    char path[600];
    reel_error err;
    media_path(path, sizeof path, *state, "clip.y4m");
    for (size_t r = 0; r < REEL_COUNT(rates); r++) {
        for (size_t l = 0; l < REEL_COUNT(lengths); l++) {
            media_clip clip = media_waves(lengths[l], 33, 21, (uint32_t)time(NULL)), back;
            reel_media_options o = media_options(&clip, rates[r].fps);
            media_good(media_write(path, &clip, &o, &err), &err);
            media_good(media_read(path, &back, &err), &err);
            assert_int_equal(back.n, clip.n);
            assert_true(fabs(back.fps - (double)rates[r].num / rates[r].den) < 1e-12);
            for (int32_t i = 0; i < clip.n * 33 * 21 * 3; i++) assert_true(abs(back.rgb[i] - clip.rgb[i]) <= 2);
            char header[120];
            size_t n;
            uint8_t *bytes = media_bytes(path, &n);
            (void)snprintf(header, sizeof header, "YUV4MPEG2 W33 H21 F%d:%d Ip A1:1 C444 XCOLORRANGE=LIMITED XREEL=BT709\nFRAME\n",
                           rates[r].num, rates[r].den);
            assert_memory_equal(bytes, header, strlen(header));
            assert_int_equal(n, strlen(header) - 6 + (size_t)clip.n * (6 + 3 * 33 * 21));
            free(bytes);
            media_clip_free(&clip);
            media_clip_free(&back);
        }
    }
    assert_int_equal(media_folder_count(*state), 1);
}

static void y4m_damage(void **state)
{
    char path[600];
    reel_error err;
    media_path(path, sizeof path, *state, "bad.y4m");
    static const struct {
        const char *head;
        reel_status status;
    } cases[] = {
        {"YUV4MPEG2 W4 H2 F24:1 C444\nFRAME\n12345678123456781234567", REEL_E_IO}, /* one byte short */
        {"YUV4MPEG2 W4 H2 F24:1 C444\n", REEL_E_IO},
        {"YUV4MPEG2 W4 H2 F24:1 C444\nFRAMES\n123456781234567812345678", REEL_E_IO},
        {"YUV4MPEG2 W4 F24:1 C444\nFRAME\n", REEL_E_IO},
        {"YUV4MPEG2 W4 H2 C444\nFRAME\n", REEL_E_IO},
        {"YUV4MPEG2 W4 H2 F0:1 C444\nFRAME\n", REEL_E_IO},
        {"YUV4MPEG2 W4 H2 F24 C444\nFRAME\n", REEL_E_IO},
        {"YUV4MPEG2 W-4 H2 F24:1 C444\nFRAME\n", REEL_E_IO},
        {"YUV4MPEG2 W99999999999999999999 H2 F24:1 C444\nFRAME\n", REEL_E_IO},
        {"YUV4MPEG2 W2147483647 H2147483647 F24:1 C444\nFRAME\n", REEL_E_IO},
        {"YUV4MPEG2 W4 H2 F24:1 C422\nFRAME\n", REEL_E_UNSUPPORTED},
        {"YUV4MPEG2 W4 H2 F24:1 C444", REEL_E_IO},
    };
    for (size_t i = 0; i < REEL_COUNT(cases); i++) {
        media_good(reel_write_file(path, cases[i].head, strlen(cases[i].head), false, &err), &err);
        media_clip back;
        reel_status status = media_read(path, &back, &err);
        if (status != cases[i].status) fail_msg("case %zu: status %d", i, status);
        assert_non_null(strstr(err.text, "remedy: "));
    }
    char good[] = "YUV4MPEG2 W3 H1 F25:2 Ip C420mpeg2 XCOLORRANGE=FULL\nFRAME I\n\x10\x80\xff\x80\x80\x80\x80";
    media_clip back;
    media_good(reel_write_file(path, good, sizeof good - 1, false, &err), &err);
    media_good(media_read(path, &back, &err), &err);
    static const uint8_t want[9] = {16, 16, 16, 128, 128, 128, 255, 255, 255};
    assert_memory_equal(back.rgb, want, 9);
    assert_true(back.fps == 12.5);
    media_clip_free(&back);
}

#ifdef REEL_WITH_MEDIA

static const char *const video[] = {"clip.mp4", "clip.webm"};

/* What a player is told, asked through the demuxer as any player would. */
static void check_stream(const char *path, const media_clip *clip, int num, int den)
{
    AVFormatContext *f = NULL;
    bool is_mp4 = strstr(path, ".mp4") != NULL;
    assert_int_equal(avformat_open_input(&f, path, NULL, NULL), 0);
    assert_true(avformat_find_stream_info(f, NULL) >= 0);
    assert_int_equal(f->nb_streams, 1);
    const AVStream *s = f->streams[0];
    const AVCodecParameters *p = s->codecpar;
    assert_int_equal(p->width, clip->width);
    assert_int_equal(p->height, clip->height);
    assert_int_equal(p->format, AV_PIX_FMT_YUV420P);
    assert_int_equal(p->codec_id, is_mp4 ? AV_CODEC_ID_H264 : AV_CODEC_ID_VP9);
    assert_int_equal(p->color_primaries, AVCOL_PRI_BT709);
    assert_int_equal(p->color_trc, AVCOL_TRC_BT709);
    assert_int_equal(p->color_space, AVCOL_SPC_BT709);
    assert_int_equal(p->color_range, AVCOL_RANGE_MPEG);
    if ((int64_t)s->avg_frame_rate.num * den != (int64_t)s->avg_frame_rate.den * num) {
        fail_msg("%s, %d frames: avg_frame_rate %d/%d", path, clip->n, s->avg_frame_rate.num, s->avg_frame_rate.den);
    }
    double want = (double)clip->n * den / num, given = (double)f->duration / AV_TIME_BASE;
    /* WebM counts milliseconds; FFmpeg reports a container's duration in microseconds. */
    double slack = is_mp4 ? 1.01e-6 : 0.51e-3;
    if (fabs(given - want) > slack) fail_msg("%s, %d frames at %d/%d: duration %.7f, wanted %.7f", path, clip->n, num, den, given, want);
    if (is_mp4) {
        assert_int_equal(s->nb_frames, clip->n);
        assert_int_equal(av_compare_ts(s->duration, s->time_base, (int64_t)clip->n * den, (AVRational){1, num}), 0);
    }
    assert_true(f->start_time == 0);
    avformat_close_input(&f);
}

static void video_round_trip(void **state)
{
    char path[600];
    reel_error err;
    for (size_t v = 0; v < REEL_COUNT(video); v++) {
        media_path(path, sizeof path, *state, video[v]);
        for (size_t r = 0; r < REEL_COUNT(rates); r++) {
            for (size_t l = 0; l < REEL_COUNT(lengths); l++) {
                media_clip clip = media_waves(lengths[l], 98, 62, (uint32_t)time(NULL) + (uint32_t)r), back;
                reel_media_options o = media_options(&clip, rates[r].fps);
                o.crf = 10;
                media_good(media_write(path, &clip, &o, &err), &err);
                check_stream(path, &clip, rates[r].num, rates[r].den);
                media_good(media_read(path, &back, &err), &err);
                assert_int_equal(back.n, clip.n);
                assert_true(fabs(back.fps - (double)rates[r].num / rates[r].den) < (v == 0 ? 1e-9 : 1e-5));
                /* At least 33.5 dB seen; waves in the wrong matrix come to 28, in the wrong range to 26.7. */
                double psnr = media_psnr(&clip, &back);
                if (psnr < 31) fail_msg("%s, %d frames: PSNR %.2f", path, clip.n, psnr);
                media_clip_free(&clip);
                media_clip_free(&back);
            }
        }
    }
    assert_int_equal(media_folder_count(*state), 2);
}

static void faststart(void **state)
{
    char path[600];
    reel_error err;
    media_path(path, sizeof path, *state, "fast.mp4");
    media_clip clip = media_bars(3, 64, 32);
    reel_media_options o = media_options(&clip, 24);
    media_good(media_write(path, &clip, &o, &err), &err);
    size_t n, moov = 0, mdat = 0;
    uint8_t *bytes = media_bytes(path, &n);
    for (size_t at = 0; at + 8 <= n;) {
        size_t size = (size_t)bytes[at] << 24 | (size_t)bytes[at + 1] << 16 | (size_t)bytes[at + 2] << 8 | bytes[at + 3];
        if (memcmp(bytes + at + 4, "moov", 4) == 0) moov = at;
        if (memcmp(bytes + at + 4, "mdat", 4) == 0) mdat = at;
        assert_true(size >= 8);
        at += size;
    }
    assert_true(moov > 0 && mdat > moov);
    free(bytes);
    media_clip_free(&clip);
}

/* Flat colours, read far from the bars' edges. GIF has them all in its palette. */
static void colour_bars(void **state)
{
    static const struct {
        const char *name;
        int32_t crf;
        int slack; /* code values */
    } cases[] = {{"bars.mp4", 4, 3}, {"bars.webm", 4, 3}, {"bars.gif", -1, 1}, {"bars.y4m", -1, 2}};
    char path[600];
    reel_error err;
    for (size_t i = 0; i < REEL_COUNT(cases); i++) {
        media_clip clip = media_bars(5, 256, 64), back;
        reel_media_options o = media_options(&clip, 16);
        o.crf = cases[i].crf;
        media_path(path, sizeof path, *state, cases[i].name);
        media_good(media_write(path, &clip, &o, &err), &err);
        media_good(media_read(path, &back, &err), &err);
        assert_int_equal(back.n, 5);
        for (int32_t t = 0; t < 5; t++) {
            for (int32_t at = 0; at < 16; at++) {
                size_t pixel = ((size_t)t * 64 + (at < 8 ? 16 : 48)) * 256 + (size_t)(at % 8) * 32 + 16;
                for (size_t c = 0; c < 3; c++) {
                    int want = clip.rgb[pixel * 3 + c], got = back.rgb[pixel * 3 + c];
                    if (abs(want - got) > cases[i].slack)
                        fail_msg("%s frame %d bar %d channel %zu: %d, wanted %d", cases[i].name, t, at, c, got, want);
                }
            }
        }
        media_clip_free(&clip);
        media_clip_free(&back);
    }
}

static void same_bytes(void **state)
{
    static const char *const names[] = {"a.mp4", "a.webm", "a.gif", "a.y4m"};
    char path[600], again[600], name[32];
    reel_error err;
    srand((unsigned)time(NULL));
    for (size_t i = 0; i < REEL_COUNT(names); i++) {
        media_clip clip = media_waves(17, 416, 240, (uint32_t)rand());
        reel_media_options o = media_options(&clip, 23.976);
        o.comment = "{\"prompt\": \"a\"}";
        for (int threads = 1; threads <= 3; threads += 2) {
            o.n_thread = threads;
            media_path(path, sizeof path, *state, names[i]);
            (void)snprintf(name, sizeof name, "other name, %s", names[i]);
            media_path(again, sizeof again, *state, name);
            media_good(media_write(path, &clip, &o, &err), &err);
#ifdef M_PERTURB
            (void)mallopt(M_PERTURB, rand() % 255 + 1); /* other contents of fresh memory: nothing may depend on them */
#endif
            media_good(media_write(again, &clip, &o, &err), &err);
            media_same_files(path, again);
            /* Neither folder nor name nor date is inside: a date of this decade would hold "202". */
            size_t n;
            char *bytes = (char *)media_bytes(path, &n);
            if (i < 2) {
                assert_null(memmem(bytes, n, "media-test", 10));
                assert_null(memmem(bytes, n, "T00:", 4));
                assert_null(memmem(bytes, n, "Lavf5", 5)); /* nor a version of FFmpeg */
                assert_null(memmem(bytes, n, "Lavf6", 5));
            }
            free(bytes);
        }
        media_clip_free(&clip);
    }
#ifdef M_PERTURB
    (void)mallopt(M_PERTURB, 0);
#endif
}

static void gif_times(void **state)
{
    static const struct {
        double fps;
        int32_t n, hundredths;
    } cases[] = {{16, 17, 106}, {24, 17, 71}, {23.976, 2, 8}, {10, 1, 10}, {50, 3, 6}, {16, 1, 6}};
    char path[600];
    reel_error err;
    media_path(path, sizeof path, *state, "t.gif");
    for (size_t i = 0; i < REEL_COUNT(cases); i++) {
        media_clip clip = media_waves(cases[i].n, 33, 21, (uint32_t)time(NULL)), back;
        reel_media_options o = media_options(&clip, cases[i].fps);
        media_good(media_write(path, &clip, &o, &err), &err);
        /* Graphic control extensions: 21 F9 04 flags, delay in hundredths, little end first. */
        size_t n;
        int32_t sum = 0, count = 0;
        uint8_t *bytes = media_bytes(path, &n);
        for (size_t at = 0; at + 8 <= n; at++) {
            if (bytes[at] != 0x21 || bytes[at + 1] != 0xF9 || bytes[at + 2] != 4 || bytes[at + 7] != 0) continue;
            sum += bytes[at + 4] | bytes[at + 5] << 8;
            count++;
        }
        free(bytes);
        assert_int_equal(count, cases[i].n);
        assert_int_equal(sum, cases[i].hundredths);
        media_good(media_read(path, &back, &err), &err);
        assert_int_equal(back.n, clip.n);
        /* Three channels of full-range waves through 255 colours and dithering: at least 21 dB seen. Wrong channels are below 10. */
        double psnr = media_psnr(&clip, &back);
        if (psnr < 20) fail_msg("%d frames: PSNR %.2f", clip.n, psnr);
        media_clip_free(&clip);
        media_clip_free(&back);
    }
}

static void comment_round_trip(void **state)
{
    char path[600], *back = NULL;
    reel_error err;
    reel_buf text = {0};
    media_good(reel_buf_text(&text, "{\"prompt\": \"\\\"quoted\\\"; a=b #1 \\\\ 一只猫 🐈 é\",\n\t\"negative\": \"", &err), &err);
    for (int i = 0; i < 4000; i++) media_good(reel_buf_printf(&text, &err, "色%d ", i * 7919 % 4001), &err);
    media_good(reel_buf_text(&text, "\"}\n", &err), &err);
    const char *const comments[] = {text.data, "{}", " leading and trailing blanks \n", "line\r\nends\n"};
    for (size_t v = 0; v < REEL_COUNT(video); v++) {
        for (size_t i = 0; i < REEL_COUNT(comments); i++) {
            media_clip clip = media_bars(2, 64, 32);
            reel_media_options o = media_options(&clip, 24);
            o.comment = comments[i];
            media_path(path, sizeof path, *state, video[v]);
            media_good(media_write(path, &clip, &o, &err), &err);
            media_good(reel_media_read_comment(path, &back, &err), &err);
            assert_string_equal(back, comments[i]);
            free(back);
            back = NULL;
            o.comment = NULL;
            media_good(media_write(path, &clip, &o, &err), &err);
            assert_int_equal(reel_media_read_comment(path, &back, &err), REEL_E_IO);
            assert_null(back);
            media_clip_free(&clip);
        }
    }
    reel_buf_deinit(&text);
    media_path(path, sizeof path, *state, "absent.mp4");
    assert_int_equal(reel_media_read_comment(path, &back, &err), REEL_E_IO);
}

static void decode_png(const char *path, media_clip *out)
{
    size_t n;
    uint8_t *bytes = media_bytes(path, &n);
    AVCodecContext *c = avcodec_alloc_context3(avcodec_find_decoder(AV_CODEC_ID_PNG));
    AVPacket *p = av_packet_alloc();
    AVFrame *f = av_frame_alloc();
    assert_true(c && p && f);
    assert_int_equal(avcodec_open2(c, NULL, NULL), 0);
    assert_int_equal(av_new_packet(p, (int)n), 0);
    memcpy(p->data, bytes, n);
    assert_int_equal(avcodec_send_packet(c, p), 0);
    assert_int_equal(avcodec_receive_frame(c, f), 0);
    assert_int_equal(f->format, AV_PIX_FMT_RGB24);
    *out = (media_clip){.n = 1, .width = f->width, .height = f->height, .rgb = malloc((size_t)f->width * (size_t)f->height * 3)};
    assert_non_null(out->rgb);
    for (int y = 0; y < f->height; y++) memcpy(out->rgb + y * f->width * 3, f->data[0] + y * f->linesize[0], (size_t)f->width * 3);
    av_frame_free(&f);
    av_packet_free(&p);
    avcodec_free_context(&c);
    free(bytes);
}

static void png_exact(void **state)
{
    char path[600], pattern[600];
    reel_error err;
    media_clip clip = media_waves(17, 31, 19, (uint32_t)time(NULL)), back;
    reel_media_options o = media_options(&clip, 24);
    static const char *const targets[] = {"new/", "f-%03d.png", "new/"};
    static const char *const names[] = {"new/frame-%05d.png", "f-%03d.png", "new/frame-%05d.png"};
    for (int k = 0; k < 3; k++) {
        media_path(path, sizeof path, *state, targets[k]);
        media_good(media_write(path, &clip, &o, &err), &err);
        media_path(pattern, sizeof pattern, *state, names[k]);
        for (int i = 0; i < 17; i++) {
            media_good(reel_media_png_name(pattern, i, path, sizeof path, &err), &err);
            decode_png(path, &back);
            assert_memory_equal(back.rgb, clip.rgb + (size_t)i * 31 * 19 * 3, 31 * 19 * 3);
            media_clip_free(&back);
        }
    }
    assert_int_equal(media_folder_count(*state), 18);
    media_path(path, sizeof path, *state, "new");
    assert_int_equal(media_folder_count(path), 17);
    media_path(path, sizeof path, *state, "one.png");
    media_good(reel_media_write_png(path, clip.rgb, 31, 19, true, &err), &err);
    decode_png(path, &back);
    assert_memory_equal(back.rgb, clip.rgb, 31 * 19 * 3);
    media_clip_free(&back);
    assert_int_equal(reel_media_write_png(path, clip.rgb, 31, 19, true, &err), REEL_E_IO);
    assert_int_equal(reel_media_write_png(path, clip.rgb, 0, 19, false, &err), REEL_E_ARGUMENT);
    media_clip_free(&clip);
}

/* Any cut and many flipped bits: frames, or an error with a remedy; never a crash, never fewer frames called good for a cut MP4. */
static void damaged_files(void **state)
{
    static const char *const names[] = {"d.mp4", "d.webm", "d.gif"};
    char path[600], bad[600];
    reel_error err;
    srand((unsigned)time(NULL));
    for (size_t v = 0; v < REEL_COUNT(names); v++) {
        media_clip clip = media_waves(9, 64, 48, (uint32_t)time(NULL)), back;
        reel_media_options o = media_options(&clip, 24);
        o.comment = "{}";
        media_path(path, sizeof path, *state, names[v]);
        media_path(bad, sizeof bad, *state, "bad");
        media_good(media_write(path, &clip, &o, &err), &err);
        size_t n;
        uint8_t *bytes = media_bytes(path, &n);
        for (int i = 0; i < 60; i++) {
            size_t keep = (size_t)i * (n - 2) / 60;
            media_good(reel_write_file(bad, bytes, keep, false, &err), &err);
            reel_status status = media_read(bad, &back, &err);
            if (status == REEL_OK) {
                /* A GIF may be cut right after a byte that looks like its end. */
                bool looks_whole = v == 2 && keep > 0 && bytes[keep - 1] == 0x3B;
                if (!looks_whole) fail_msg("%s: %zu of %zu bytes were taken for a whole clip of %d frames", names[v], keep, n, back.n);
                media_clip_free(&back);
            } else {
                assert_non_null(strstr(err.text, "remedy: "));
            }
        }
        for (int i = 0; i < 150; i++) {
            size_t at = (size_t)rand() % n;
            uint8_t was = bytes[at];
            bytes[at] ^= (uint8_t)(1 << rand() % 8);
            media_good(reel_write_file(bad, bytes, n, false, &err), &err);
            if (media_read(bad, &back, &err) == REEL_OK) media_clip_free(&back);
            char *comment = NULL;
            if (reel_media_read_comment(bad, &comment, &err) == REEL_OK) free(comment);
            bytes[at] = was;
        }
        free(bytes);
        media_clip_free(&clip);
    }
}

static void limits(void **state)
{
    char path[600];
    reel_error err;
    media_clip clip = media_waves(2, 64, 48, 1);
    reel_media_options o = media_options(&clip, 24);
    media_path(path, sizeof path, *state, "l.mp4");
    media_good(media_write(path, &clip, &o, &err), &err);
    reel_media_info info = {.n_frame = -7};
    assert_int_equal(reel_media_read_frames(path, 64 * 48 - 1, NULL, NULL, &info, &err), REEL_E_IO);
    assert_int_equal(info.n_frame, -7);
    assert_int_equal(reel_media_read_frames(*state, 1 << 20, NULL, NULL, &info, &err), REEL_E_IO);
    media_path(path, sizeof path, *state, "list.m3u8");
    const char *list = "#EXTM3U\n#EXTINF:1,\nl.mp4\n#EXT-X-ENDLIST\n";
    media_good(reel_write_file(path, list, strlen(list), false, &err), &err);
    assert_int_equal(reel_media_read_frames(path, 1 << 20, NULL, NULL, &info, &err), REEL_E_IO);
    media_clip_free(&clip);
}

static void log_level_stays(void **state)
{
    char path[600];
    reel_error err;
    media_clip clip = media_bars(2, 64, 32), back;
    reel_media_options o = media_options(&clip, 24);
    media_path(path, sizeof path, *state, "log.mp4");
    static const int levels[] = {AV_LOG_INFO, AV_LOG_ERROR, AV_LOG_QUIET};
    for (size_t i = 0; i < REEL_COUNT(levels); i++) {
        av_log_set_level(levels[i]);
        media_good(media_write(path, &clip, &o, &err), &err);
        media_good(media_read(path, &back, &err), &err);
        assert_int_equal(av_log_get_level(), levels[i]);
        media_clip_free(&back);
    }
    av_log_set_level(AV_LOG_INFO);
    media_clip_free(&clip);
    assert_non_null(strstr(reel_media_libraries(), "libavcodec "));
}

#else

static void off_says_why(void **state)
{
    static const char *const names[] = {"a.mp4", "a.webm", "a.gif", "a-%d.png", "a/"};
    char path[600], *comment = NULL;
    reel_error err;
    media_clip clip = media_bars(2, 64, 32);
    reel_media_options o = media_options(&clip, 24);
    for (size_t i = 0; i < REEL_COUNT(names); i++) {
        media_path(path, sizeof path, *state, names[i]);
        assert_int_equal(media_write(path, &clip, &o, &err), REEL_E_UNSUPPORTED);
        assert_non_null(strstr(err.text, "REEL_MEDIA=OFF"));
        assert_non_null(strstr(err.text, "remedy: "));
    }
    assert_int_equal(media_folder_count(*state), 0);
    media_good(reel_write_file(media_path(path, sizeof path, *state, "a.mp4"), "abcdefghijkl", 12, false, &err), &err);
    assert_int_equal(reel_media_read_frames(path, 100, NULL, NULL, NULL, &err), REEL_E_UNSUPPORTED);
    assert_int_equal(reel_media_read_comment(path, &comment, &err), REEL_E_UNSUPPORTED);
    assert_int_equal(reel_media_write_png(path, clip.rgb, 64, 32, false, &err), REEL_E_UNSUPPORTED);
    media_clip_free(&clip);
}

#endif

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(y4m_round_trip),     TEST(y4m_damage),
#ifdef REEL_WITH_MEDIA
        TEST(video_round_trip),   TEST(faststart),  TEST(colour_bars),   TEST(same_bytes), TEST(gif_times),
        TEST(comment_round_trip), TEST(png_exact),  TEST(damaged_files), TEST(limits),     TEST(log_level_stays),
#else
        TEST(off_says_why),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
