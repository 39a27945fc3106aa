/* SPDX-License-Identifier: Apache-2.0
 *
 * Which reader takes a clip: by the file's first bytes, never by its name. y4m is ours, all else FFmpeg's. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "media/inner.h"

reel_status reel_media_read_frames(const char *path, int64_t max_pixels, reel_media_frame_fn fn, void *user, reel_media_info *info,
                                   reel_error *err)
{
    char start[9] = "";
    FILE *f = fopen(path, "rbe");
    if (!f || reel_path_is_dir(path)) {
        int code = f ? EISDIR : errno;
        if (f) (void)fclose(f);
        return REEL_FAIL(err, REEL_E_IO, "a clip cannot be opened\ngiven: %s (%s)\nremedy: check the path and its permissions", path,
                         strerror(code));
    }
    size_t n = fread(start, 1, sizeof start, f);
    (void)fclose(f);
    if (n == sizeof start && memcmp(start, "YUV4MPEG2", sizeof start) == 0) return reel_y4m_read(path, max_pixels, fn, user, info, err);
#ifdef REEL_WITH_MEDIA
    return reel_av_read(path, max_pixels, fn, user, info, err);
#else
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "this build reads only y4m clips: it was configured with REEL_MEDIA=OFF\ngiven: %s\nremedy: convert it to y4m, or "
                     "build with -DREEL_MEDIA=ON",
                     path);
#endif
}
