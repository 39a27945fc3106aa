/* SPDX-License-Identifier: Apache-2.0
 *
 * The comment of a clip: where reel keeps a clip's settings. And the libraries of this build. */
#include <stdlib.h>
#include <string.h>

#include "media/inner.h"

#ifdef REEL_WITH_MEDIA

#include <libavfilter/version.h>
#include <libswscale/version.h>

#include "media/av.h"

reel_status reel_media_read_comment(const char *path, char **out, reel_error *err)
{
    AVFormatContext *demux = NULL;
    int before = reel_av_quiet_begin();
    reel_status status = reel_av_demux_open(path, &demux, err);
    if (status == REEL_OK) {
        const AVDictionaryEntry *e = av_dict_get(demux->metadata, "comment", NULL, 0);
        char *copy = e ? strdup(e->value) : NULL;
        if (!e) {
            status = REEL_FAIL(err, REEL_E_IO,
                               "a clip holds no settings\ngiven: %s\nallowed: mp4 and webm files that reel wrote\nremedy: name such a file",
                               path);
        } else if (!copy) {
            status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a clip's settings\nremedy: close other programs");
        } else {
            *out = copy;
        }
        avformat_close_input(&demux);
    }
    reel_av_quiet_end(before);
    return status;
}

const char *reel_media_libraries(void)
{
    /* As compiled against: the text is a constant. A minor version may be newer at run time. */
    return "libavformat " AV_STRINGIFY(LIBAVFORMAT_VERSION) ", libavcodec " AV_STRINGIFY(LIBAVCODEC_VERSION) ", libavfilter " AV_STRINGIFY(
        LIBAVFILTER_VERSION) ", libavutil " AV_STRINGIFY(LIBAVUTIL_VERSION) ", libswscale " AV_STRINGIFY(LIBSWSCALE_VERSION);
}

#else

reel_status reel_media_read_comment(const char *path, char **out, reel_error *err)
{
    (void)out;
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "this build cannot read clips' settings: it was configured with REEL_MEDIA=OFF\ngiven: %s\nremedy: build with "
                     "-DREEL_MEDIA=ON",
                     path);
}

reel_status reel_media_write_png(const char *path, const uint8_t *rgb, int32_t width, int32_t height, bool no_clobber, reel_error *err)
{
    (void)path, (void)rgb, (void)width, (void)height, (void)no_clobber;
    return reel_media_supported(REEL_MEDIA_PNG, err);
}

const char *reel_media_libraries(void)
{
    return "none (built with REEL_MEDIA=OFF)";
}

#endif
