/* SPDX-License-Identifier: Apache-2.0
 *
 * Frame rates as fractions, endings, and the colour conversion against the formula in double precision. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "media/inner.h"
#include "media_clip.h"

static void rates(void **state)
{
    (void)state;
    static const struct {
        double fps;
        int32_t num, den;
    } cases[] = {{16, 16, 1},
                 {24, 24, 1},
                 {23.976, 24000, 1001},
                 {24000.0 / 1001, 24000, 1001},
                 {29.97, 30000, 1001},
                 {30000.0 / 1001, 30000, 1001},
                 {59.94, 60000, 1001},
                 {23.98, 24000, 1001},
                 {12.5, 25, 2},
                 {119.88, 120000, 1001},
                 {1, 1, 1},
                 {240, 240, 1},
                 {1000, 1000, 1},
                 {0.01, 1, 100},
                 {7.0 / 3.0, 7, 3},
                 {14.985, 2997, 200},
                 {4.9975, 1999, 400},
                 {23.9, 239, 10}};
    for (size_t i = 0; i < REEL_COUNT(cases); i++) {
        reel_rate r = reel_media_rate(cases[i].fps);
        if (r.num != cases[i].num || r.den != cases[i].den) fail_msg("%.9g gives %d/%d", cases[i].fps, r.num, r.den);
    }
    srand((unsigned)time(NULL));
    for (int i = 0; i < 1000; i++) {
        double fps = 1 + 239.0 * rand() / RAND_MAX;
        reel_rate r = reel_media_rate(fps);
        assert_true(r.den >= 1 && r.den <= 10000);
        /* 0.005: an NTSC rate was meant; else within 1/(den max) of the number */
        assert_true(fabs((double)r.num / r.den - fps) <= (r.den == 1001 ? 0.005 : 1e-4));
    }
}

static void endings(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int format; /* −1: an error */
    } cases[] = {{"a.mp4", REEL_MEDIA_MP4},
                 {"A.B/c.MP4", REEL_MEDIA_MP4},
                 {"x.webm", REEL_MEDIA_WEBM},
                 {"x.GIF", REEL_MEDIA_GIF},
                 {"-", REEL_MEDIA_Y4M},
                 {"x.y4m", REEL_MEDIA_Y4M},
                 {"out/", REEL_MEDIA_PNG},
                 {"f-%03d.png", REEL_MEDIA_PNG},
                 {"%d.png", REEL_MEDIA_PNG},
                 {"5%%-%d.png", REEL_MEDIA_PNG},
                 {"f.png", -1},
                 {"%s.png", -1},
                 {"%d-%d.png", -1},
                 {"%5d.png", -1},
                 {"%n.png", -1},
                 {"%0d.png", -1},
                 {"", -1},
                 {"clip", -1},
                 {"a.mp4/clip", -1},
                 {"a.avi", -1},
                 {"%d/f.png", -1},
                 {".", -1},
                 {"x.mp4 ", -1}};
    for (size_t i = 0; i < REEL_COUNT(cases); i++) {
        reel_media_format format = (reel_media_format)77;
        reel_error err;
        reel_status status = reel_media_format_of(cases[i].path, &format, &err);
        if (cases[i].format < 0) {
            if (status != REEL_E_ARGUMENT) fail_msg("\"%s\" was taken", cases[i].path);
            assert_int_equal(format, 77);
            assert_non_null(strstr(err.text, "remedy: "));
        } else {
            if (status != REEL_OK || (int)format != cases[i].format)
                fail_msg("\"%s\": status %d, format %d", cases[i].path, status, format);
        }
    }
}

static void png_names(void **state)
{
    (void)state;
    static const struct {
        const char *path, *name;
    } cases[] = {{"a%d/f-%04d.png", "a%d/f-0012.png"},
                 {"out/", "out/frame-00012.png"},
                 {"5%%-%d.png", "5%-12.png"},
                 {"50%/x/", "50%/x/frame-00012.png"}};
    char name[64];
    reel_error err;
    for (size_t i = 0; i < REEL_COUNT(cases); i++) {
        media_good(reel_media_png_name(cases[i].path, 12, name, sizeof name, &err), &err);
        assert_string_equal(name, cases[i].name);
    }
    assert_int_equal(reel_media_png_name("f-%09d.png", 1, name, 12, &err), REEL_E_IO);
}

typedef struct planes {
    reel_yuv yuv;
    uint8_t *data;
} planes;

static planes new_planes(int32_t w, int32_t h, bool is_420)
{
    int64_t cw = is_420 ? (w + 1) / 2 : w, ch = is_420 ? (h + 1) / 2 : h;
    planes p = {.data = malloc((size_t)(w * h + 2 * cw * ch))};
    assert_non_null(p.data);
    memset(p.data, 0xA5, (size_t)(w * h + 2 * cw * ch));
    p.yuv = (reel_yuv){
        .plane = {p.data, p.data + w * h, p.data + w * h + cw * ch}, .stride = {w, cw, cw}, .width = w, .height = h, .is_420 = is_420};
    reel_media_bt709(&p.yuv);
    return p;
}

static void formula(const double rgb[3], bool is_full, double yuv[3])
{
    double y = (0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]) / 255, s = is_full ? 255 : 219, c = is_full ? 255 : 224;
    yuv[0] = (is_full ? 0 : 16) + s * y;
    yuv[1] = 128 + c * (rgb[2] / 255 - y) / 1.8556;
    yuv[2] = 128 + c * (rgb[0] / 255 - y) / 1.5748;
}

/* Rounding to nearest is 0.5; the coefficients' own rounding (2^-19 each, times 255) adds under 0.002. */
static void near_real(double real, uint8_t stored)
{
    double want = real > 255 ? 255 : real < 0 ? 0 : real;
    if (fabs(want - stored) > 0.502) fail_msg("stored %d, formula %.4f", stored, real);
}

static void forward_444(void **state)
{
    (void)state;
    enum { W = 64, H = 64 };
    uint8_t rgb[W * H * 3];
    for (int full = 0; full < 2; full++) {
        for (int round = 0; round < 65; round++) {
            for (int i = 0; i < W * H * 3; i++) {
                static const uint8_t ends[4] = {0, 255, 1, 254};
                int corner = i / 3;
                rgb[i] = round == 64 ? ends[(corner >> (2 * (i % 3))) & 3] : (uint8_t)(rand() & 255);
            }
            planes p = new_planes(W, H, false);
            p.yuv.is_full = full == 1;
            reel_media_rgb_to_yuv(rgb, &p.yuv);
            for (int i = 0; i < W * H; i++) {
                double yuv[3], v[3] = {rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]};
                formula(v, p.yuv.is_full, yuv);
                for (int c = 0; c < 3; c++) near_real(yuv[c], p.yuv.plane[c][i]);
            }
            free(p.data);
        }
    }
}

static void forward_420(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        int32_t w = 2 * (1 + rand() % 20), h = 2 * (1 + rand() % 20);
        uint8_t *rgb = malloc((size_t)(w * h * 3));
        assert_non_null(rgb);
        for (int i = 0; i < w * h * 3; i++) rgb[i] = round % 4 == 0 ? (uint8_t)(rand() & 1 ? 255 : 0) : (uint8_t)(rand() & 255);
        planes p = new_planes(w, h, true);
        reel_media_rgb_to_yuv(rgb, &p.yuv);
        for (int32_t y = 0; y < h; y++) {
            for (int32_t x = 0; x < w; x++) {
                double yuv[3], v[3] = {rgb[3 * (y * w + x)], rgb[3 * (y * w + x) + 1], rgb[3 * (y * w + x) + 2]};
                formula(v, false, yuv);
                near_real(yuv[0], p.yuv.plane[0][y * w + x]);
                if (x % 2 || y % 2) continue;
                double mean[3] = {0};
                for (int dy = 0; dy < 2; dy++) {
                    for (int dx = -1; dx < 2; dx++) {
                        int32_t at = x + dx < 0 ? 0 : x + dx;
                        for (int c = 0; c < 3; c++) mean[c] += (dx == 0 ? 0.25 : 0.125) * rgb[3 * ((y + dy) * w + at) + c];
                    }
                }
                formula(mean, false, yuv);
                near_real(yuv[1], p.yuv.plane[1][y / 2 * (w / 2) + x / 2]);
                near_real(yuv[2], p.yuv.plane[2][y / 2 * (w / 2) + x / 2]);
            }
        }
        free(rgb);
        free(p.data);
    }
}

static void greys_have_no_colour(void **state)
{
    (void)state;
    uint8_t rgb[256 * 3];
    for (int i = 0; i < 256 * 3; i++) rgb[i] = (uint8_t)(i / 3);
    planes p = new_planes(256, 1, false);
    reel_media_rgb_to_yuv(rgb, &p.yuv);
    for (int i = 0; i < 256; i++) {
        assert_int_equal(p.yuv.plane[1][i], 128);
        assert_int_equal(p.yuv.plane[2][i], 128);
    }
    assert_int_equal(p.yuv.plane[0][0], 16);
    assert_int_equal(p.yuv.plane[0][255], 235);
    uint8_t back[256 * 3];
    memset(back, 0x5A, sizeof back);
    reel_media_yuv_to_rgb(&p.yuv, back);
    for (int i = 0; i < 256 * 3; i++) assert_true(abs(back[i] - rgb[i]) <= 1); /* 219 levels for 255 */
    free(p.data);
}

/* The way back against the formula: any bytes, any range and matrix, 4:4:4. */
static void back_444(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        planes p = new_planes(33, 7, false);
        p.yuv.is_full = round % 2;
        if (round % 3 == 0) p.yuv.kr = 0.299, p.yuv.kb = 0.114;
        for (int i = 0; i < 3 * 33 * 7; i++) p.data[i] = (uint8_t)(rand() & 255);
        uint8_t rgb[33 * 7 * 3];
        memset(rgb, 0x5A, sizeof rgb);
        reel_media_yuv_to_rgb(&p.yuv, rgb);
        double s = p.yuv.is_full ? 1 : 255.0 / 219, c = p.yuv.is_full ? 1 : 255.0 / 224, kr = p.yuv.kr, kb = p.yuv.kb, kg = 1 - kr - kb;
        for (int i = 0; i < 33 * 7; i++) {
            double y = s * (p.yuv.plane[0][i] - (p.yuv.is_full ? 0 : 16)), cb = c * (p.yuv.plane[1][i] - 128),
                   cr = c * (p.yuv.plane[2][i] - 128);
            near_real(y + 2 * (1 - kr) * cr, rgb[3 * i]);
            near_real(y - 2 * (1 - kb) * kb / kg * cb - 2 * (1 - kr) * kr / kg * cr, rgb[3 * i + 1]);
            near_real(y + 2 * (1 - kb) * cb, rgb[3 * i + 2]);
        }
        free(p.data);
    }
}

/* A chroma ramp that is linear in space comes back linear: the two sitings differ by half a luma column. */
static void back_420_siting(void **state)
{
    (void)state;
    enum { W = 41, H = 9, CW = 21, CH = 5 };
    for (int centre = 0; centre < 2; centre++) {
        planes p = new_planes(W, H, true);
        p.yuv.is_centre = centre == 1;
        p.yuv.is_full = true;
        memset(p.yuv.plane[0], 128, W * H);
        for (int i = 0; i < CW * CH; i++) {
            p.yuv.plane[1][i] = 128;
            p.yuv.plane[2][i] = (uint8_t)(100 + 2 * (i % CW)); /* one step per luma column */
        }
        uint8_t rgb[W * H * 3];
        reel_media_yuv_to_rgb(&p.yuv, rgb);
        for (int y = 0; y < H; y++) {
            for (int x = 1; x < W - 2; x++) near_real(128 + 1.5748 * (100 + x - 0.5 * centre - 128), rgb[3 * (y * W + x)]);
        }
        free(p.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates),       cmocka_unit_test(endings),         cmocka_unit_test(png_names),
        cmocka_unit_test(forward_444), cmocka_unit_test(forward_420),     cmocka_unit_test(greys_have_no_colour),
        cmocka_unit_test(back_444),    cmocka_unit_test(back_420_siting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
