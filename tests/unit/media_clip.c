/* SPDX-License-Identifier: Apache-2.0
 *
 * Clips and scratch folders for the tests of src/media (media_clip.h). */
#include "media_clip.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void media_good(reel_status status, const reel_error *err)
{
    if (status != REEL_OK) fail_msg("%s\n(%s)", err->text, err->trace);
}

static media_clip new_clip(int32_t n, int32_t width, int32_t height)
{
    media_clip clip = {.n = n, .width = width, .height = height, .capacity = n};
    clip.rgb = malloc((size_t)n * (size_t)width * (size_t)height * 3);
    assert_non_null(clip.rgb);
    return clip;
}

static uint32_t next(uint32_t *state)
{
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

media_clip media_waves(int32_t n, int32_t width, int32_t height, uint32_t seed)
{
    media_clip clip = new_clip(n, width, height);
    double phase[3], fx[3], fy[3];
    for (int c = 0; c < 3; c++) {
        phase[c] = next(&seed) % 628 / 100.0;
        fx[c] = (1 + next(&seed) % 2) * 6.2831853 / 64.0;
        fy[c] = (1 + next(&seed) % 2) * 6.2831853 / 64.0;
    }
    uint8_t *to = clip.rgb;
    for (int32_t t = 0; t < n; t++) {
        for (int32_t y = 0; y < height; y++) {
            for (int32_t x = 0; x < width; x++) {
                for (int c = 0; c < 3; c++) *to++ = (uint8_t)lround(127.5 + 127.0 * sin(phase[c] + fx[c] * x + fy[c] * y + 0.2 * t));
            }
        }
    }
    return clip;
}

media_clip media_bars(int32_t n, int32_t width, int32_t height)
{
    static const uint8_t bars[8] = {7, 6, 3, 2, 5, 4, 1, 0}; /* bits: red 4, green 2, blue 1 */
    media_clip clip = new_clip(n, width, height);
    uint8_t *to = clip.rgb;
    for (int32_t t = 0; t < n; t++) {
        for (int32_t y = 0; y < height; y++) {
            for (int32_t x = 0; x < width; x++) {
                uint8_t bar = bars[x * 8 / width], level = y * 2 < height ? 191 : 255;
                for (int c = 0; c < 3; c++) *to++ = (uint8_t)(bar >> (2 - c) & 1 ? level : 0);
            }
        }
    }
    return clip;
}

void media_clip_free(media_clip *clip)
{
    free(clip->rgb);
    *clip = (media_clip){0};
}

double media_psnr(const media_clip *a, const media_clip *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->height, b->height);
    size_t n = (size_t)a->n * (size_t)a->width * (size_t)a->height * 3;
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += pow((double)a->rgb[i] - (double)b->rgb[i], 2);
    return sum == 0 ? INFINITY : 10 * log10(255.0 * 255.0 / (sum / (double)n));
}

reel_media_options media_options(const media_clip *clip, double fps)
{
    return (reel_media_options){.width = clip->width, .height = clip->height, .fps = fps, .crf = -1, .n_thread = 2};
}

reel_status media_write(const char *path, const media_clip *clip, const reel_media_options *options, reel_error *err)
{
    reel_writer *w = NULL;
    REEL_TRY(reel_writer_open(path, options, &w, err));
    size_t frame = (size_t)clip->width * (size_t)clip->height * 3;
    for (int32_t i = 0, n = 1; i < clip->n; i += n, n = 4) {
        reel_status status = reel_writer_frames(w, clip->rgb + (size_t)i * frame, i + n <= clip->n ? n : clip->n - i, err);
        if (status != REEL_OK) {
            reel_writer_abandon(&w);
            assert_null(w);
            return status;
        }
    }
    reel_status status = reel_writer_finish(&w, err);
    assert_null(w);
    return status;
}

static reel_status add_frame(void *user, const uint8_t *rgb, int32_t width, int32_t height, reel_error *err)
{
    media_clip *clip = user;
    size_t frame = (size_t)width * (size_t)height * 3;
    (void)err;
    clip->width = width;
    clip->height = height;
    clip->rgb = realloc(clip->rgb, ((size_t)clip->n + 1) * frame);
    assert_non_null(clip->rgb);
    memcpy(clip->rgb + (size_t)clip->n * frame, rgb, frame);
    clip->n++;
    return REEL_OK;
}

reel_status media_read(const char *path, media_clip *out, reel_error *err)
{
    reel_media_info info = {.width = -7, .height = -7, .fps = NAN, .n_frame = -7};
    *out = (media_clip){0};
    reel_status status = reel_media_read_frames(path, (int64_t)1 << 24, add_frame, out, &info, err);
    if (status != REEL_OK) {
        assert_int_equal(info.n_frame, -7); /* results are written only on success */
        media_clip_free(out);
        return status;
    }
    assert_int_equal(info.width, out->width);
    assert_int_equal(info.height, out->height);
    assert_int_equal(info.n_frame, out->n);
    out->fps = info.fps;
    out->n_reported = info.n_frame;
    return REEL_OK;
}

void media_folder_new(char *out, size_t bytes)
{
    int n = snprintf(out, bytes, "%s/media-test.XXXXXX", REEL_BINARY_DIR);
    assert_true(n > 0 && (size_t)n < bytes);
    assert_non_null(mkdtemp(out));
}

void media_folder_remove(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d) return;
    char path[4096];
    for (struct dirent *e; (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        struct stat st;
        media_path(path, sizeof path, folder, e->d_name);
        if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
            media_folder_remove(path);
        else
            assert_int_equal(unlink(path), 0);
    }
    (void)closedir(d);
    assert_int_equal(rmdir(folder), 0);
}

int media_folder_count(const char *folder)
{
    DIR *d = opendir(folder);
    assert_non_null(d);
    int n = 0;
    while (readdir(d)) n++;
    (void)closedir(d);
    return n - 2;
}

const char *media_path(char *out, size_t bytes, const char *folder, const char *name)
{
    int n = snprintf(out, bytes, "%s/%s", folder, name);
    assert_true(n > 0 && (size_t)n < bytes);
    return out;
}

uint8_t *media_bytes(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is not there", path);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long size = ftell(f);
    assert_true(size >= 0);
    rewind(f);
    uint8_t *data = malloc((size_t)size + 1);
    assert_non_null(data);
    *n = fread(data, 1, (size_t)size, f);
    assert_int_equal(*n, (size_t)size);
    data[*n] = 0;
    (void)fclose(f);
    return data;
}

void media_same_files(const char *a, const char *b)
{
    size_t na, nb;
    uint8_t *pa = media_bytes(a, &na), *pb = media_bytes(b, &nb);
    assert_int_equal(na, nb);
    assert_true(na > 0);
    assert_memory_equal(pa, pb, na);
    free(pa);
    free(pb);
}
