/* SPDX-License-Identifier: Apache-2.0
 *
 * Which format a path means, and what this build can write. One table of endings; the names of PNG frames. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "media/inner.h"

#ifdef REEL_WITH_MEDIA
#include <libavcodec/avcodec.h>
#endif

static const struct {
    const char *ending, *encoder; /* FFmpeg's name; NULL: written by reel itself */
} formats[] = {
    [REEL_MEDIA_MP4] = {".mp4", "libx264"}, [REEL_MEDIA_WEBM] = {".webm", "libvpx-vp9"}, [REEL_MEDIA_GIF] = {".gif", "gif"},
    [REEL_MEDIA_PNG] = {".png", "png"},     [REEL_MEDIA_Y4M] = {".y4m", NULL},
};

const char *reel_media_ending(reel_media_format format)
{
    return formats[format].ending;
}

reel_status reel_media_supported(reel_media_format format, reel_error *err)
{
    const char *name = formats[format].encoder;
    if (!name) return REEL_OK;
#ifdef REEL_WITH_MEDIA
    if (avcodec_find_encoder_by_name(name)) return REEL_OK;
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "this build's FFmpeg cannot write the format\ngiven: %s, which needs the encoder %s\nremedy: install an "
                     "FFmpeg with %s, or choose another ending",
                     formats[format].ending, name, name);
#else
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "this build cannot write or read the format: it was configured with REEL_MEDIA=OFF\ngiven: %s\nallowed: "
                     ".y4m, or - for y4m to stdout\nremedy: write .y4m, or build with -DREEL_MEDIA=ON",
                     formats[format].ending);
#endif
}

static void list_endings(char *out, size_t bytes)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < REEL_COUNT(formats); i++) {
        if (reel_media_supported((reel_media_format)i, NULL) != REEL_OK) continue;
        const char *more = i == REEL_MEDIA_PNG ? " (with %d in the name, or a folder ending in /)" : "";
        int w = snprintf(out + n, bytes - n, "%s%s%s", n > 0 ? ", " : "", formats[i].ending, more);
        if (w < 0 || (size_t)w >= bytes - n) break;
        n += (size_t)w;
    }
}

/* One %d or %0Nd (N 1…9), and else only %%. */
static bool is_pattern(const char *path)
{
    int n_number = 0;
    for (const char *p = path; *p; p++) {
        if (*p != '%') continue;
        p++;
        if (*p == '%') continue;
        if (p[0] == '0' && p[1] >= '1' && p[1] <= '9') p += 2;
        if (*p != 'd') return false;
        n_number++;
    }
    return n_number == 1;
}

reel_status reel_media_format_of(const char *path, reel_media_format *out, reel_error *err)
{
    char allowed[256];
    list_endings(allowed, sizeof allowed);
    size_t n = strlen(path);
    if (strcmp(path, "-") == 0) {
        *out = REEL_MEDIA_Y4M;
        return REEL_OK;
    }
    if (n > 0 && path[n - 1] == '/') {
        *out = REEL_MEDIA_PNG;
        return REEL_OK;
    }
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < REEL_COUNT(formats); i++) {
        if (strcasecmp(dot, formats[i].ending) != 0) continue;
        if (i == REEL_MEDIA_PNG && !is_pattern(name)) {
            return REEL_FAIL(err, REEL_E_ARGUMENT,
                             "PNG frames need a number in their name\ngiven: %s\nallowed: one %%d or %%0Nd in the file's name, or "
                             "a folder ending in /\nremedy: use for example frame-%%04d.png",
                             path);
        }
        *out = (reel_media_format)i;
        return REEL_OK;
    }
    return REEL_FAIL(err, REEL_E_ARGUMENT,
                     "the output's format is not known by its ending\ngiven: \"%s\"\nallowed: %s, or - for y4m to stdout\n"
                     "remedy: give the file one of these endings",
                     path, allowed);
}

reel_status reel_media_png_name(const char *path, int64_t index, char *out, size_t out_bytes, reel_error *err)
{
    size_t n = strlen(path), used = 0;
    char number[40], whole[REEL_PATH_MAX];
    int w = snprintf(whole, sizeof whole, "%s%s", path, n > 0 && path[n - 1] == '/' ? "frame-%05d.png" : "");
    bool is_good = w >= 0 && (size_t)w < sizeof whole;
    const char *name = is_good && strrchr(whole, '/') ? strrchr(whole, '/') + 1 : whole;
    for (const char *p = whole; is_good && *p; p++) {
        const char *piece = p;
        size_t piece_n = 1;
        if (p >= name && p[0] == '%' && p[1] == '%')
            p++;
        else if (p >= name && p[0] == '%') {
            int width = p[1] == '0' ? p[2] - '0' : 0;
            p += p[1] == '0' ? 3 : 1;
            piece_n = (size_t)snprintf(number, sizeof number, "%0*" PRId64, width, index);
            piece = number;
        }
        is_good = used + piece_n < out_bytes;
        if (is_good) memcpy(out + used, piece, piece_n);
        used += piece_n;
    }
    if (!is_good) {
        return REEL_FAIL(err, REEL_E_IO, "an output path is too long\ngiven: %zu bytes\nallowed: %d\nremedy: use a shorter path", n,
                         REEL_PATH_MAX - 1);
    }
    out[used] = '\0';
    return REEL_OK;
}
