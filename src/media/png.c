/* SPDX-License-Identifier: Apache-2.0
 *
 * PNG frames: all of them appear together at the end, or none.
 *
 * Frames go to a temporary folder. When the target is a folder that does not exist yet, the temporary one lies beside it and is renamed:
 * one step. Else it lies inside the target's folder and its files are moved out one by one; files in their way are kept in it until the last
 * one is in place, and put back when a move fails. A process killed in the middle of that moving (not before) may leave both kinds. */
#include "media/inner.h"

#ifdef REEL_WITH_MEDIA

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "media/av.h"

typedef struct png_state {
    reel_png_encoder png;
    char temporary[REEL_PATH_MAX]; /* the folder, without '/' at the end; "" once it is gone */
    bool is_new_folder; /* `temporary` becomes the target itself */
} png_state;

static reel_status io_fail(const char *path, reel_error *err)
{
    return REEL_FAIL(err, REEL_E_IO, "the output cannot be written\ngiven: %s (%s)\nremedy: check free space and permissions", path,
                     strerror(errno));
}

static reel_status too_long(const char *path, reel_error *err)
{
    return REEL_FAIL(err, REEL_E_IO, "an output path is too long\ngiven: %zu bytes\nallowed: %d\nremedy: use a shorter path", strlen(path),
                     REEL_PATH_MAX - 64);
}

/* Name of frame i in the temporary folder; kind is "png" or "old". In a new folder they have their final names already. */
static void inside(const reel_writer *w, int64_t i, const char *kind, char out[REEL_PATH_MAX])
{
    const png_state *s = w->state;
    int n = s->is_new_folder ? snprintf(out, REEL_PATH_MAX, "%.4000s/frame-%05lld.%s", s->temporary, (long long)i, kind)
                             : snprintf(out, REEL_PATH_MAX, "%.4000s/%lld.%s", s->temporary, (long long)i, kind);
    assert(n > 0 && n < REEL_PATH_MAX);
    (void)n;
}

/* Removes the temporary folder with whatever of frames [0, n] lies in it. */
static void remove_temporary(reel_writer *w)
{
    png_state *s = w->state;
    char name[REEL_PATH_MAX];
    if (s->temporary[0] == '\0') return;
    for (int64_t i = 0; i <= w->n_frame; i++) {
        inside(w, i, "png", name);
        (void)unlink(name);
        inside(w, i, "old", name);
        (void)unlink(name);
    }
    (void)rmdir(s->temporary);
    s->temporary[0] = '\0';
}

static void png_close(reel_writer *w)
{
    png_state *s = w->state;
    if (!s) return;
    remove_temporary(w);
    reel_png_encoder_deinit(&s->png);
    free(s);
    w->state = NULL;
}

static reel_status make_temporary(reel_writer *w, png_state *s, reel_error *err)
{
    const char *path = w->path;
    size_t n = strlen(path);
    if (n + 64 > REEL_PATH_MAX) return too_long(path, err);
    bool is_folder = path[n - 1] == '/';
    s->is_new_folder = is_folder && !reel_path_is_dir(path);
    const char *slash = strrchr(path, '/');
    if (s->is_new_folder) {
        while (n > 1 && path[n - 1] == '/') n--;
        (void)snprintf(s->temporary, sizeof s->temporary, "%.*s.XXXXXX", (int)n, path);
    } else {
        (void)snprintf(s->temporary, sizeof s->temporary, "%.*s.frames.XXXXXX", slash ? (int)(slash - path + 1) : 0, path);
    }
    if (!mkdtemp(s->temporary)) {
        s->temporary[0] = '\0';
        return io_fail(path, err);
    }
    if (s->is_new_folder) {
        mode_t mask = umask(0);
        (void)umask(mask);
        (void)chmod(s->temporary, 0777 & ~mask);
    }
    return REEL_OK;
}

static reel_status png_open(reel_writer *w, reel_error *err)
{
    png_state *s = calloc(1, sizeof *s);
    if (!s) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a clip's writer\nremedy: close other programs");
    w->state = s;
    int before = reel_av_quiet_begin();
    reel_status status = reel_png_encoder_init(&s->png, w->options.width, w->options.height, err);
    reel_av_quiet_end(before);
    if (status != REEL_OK) return status;
    return make_temporary(w, s, err);
}

static reel_status png_frame(reel_writer *w, const uint8_t *rgb, reel_error *err)
{
    png_state *s = w->state;
    char name[REEL_PATH_MAX];
    if (w->options.no_clobber && !s->is_new_folder) {
        struct stat st;
        REEL_TRY(reel_media_png_name(w->path, w->n_frame, name, sizeof name, err));
        if (lstat(name, &st) == 0) {
            return REEL_FAIL(err, REEL_E_IO,
                             "the output exists and may not be replaced\ngiven: %s with --no-clobber\nremedy: choose another name or leave "
                             "out --no-clobber",
                             name);
        }
    }
    int before = reel_av_quiet_begin();
    reel_status status = reel_png_encode(&s->png, rgb, err);
    reel_av_quiet_end(before);
    if (status != REEL_OK) return status;
    inside(w, w->n_frame, "png", name);
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return io_fail(name, err);
    status = reel_media_write_all(fd, s->png.packet->data, (size_t)s->png.packet->size, w->path, err);
    if (status == REEL_OK && fsync(fd) != 0) status = io_fail(w->path, err);
    if (close(fd) != 0 && status == REEL_OK) status = io_fail(w->path, err);
    return status;
}

/* Puts frame i in its place; what was there is kept as "old". */
static reel_status move_out(reel_writer *w, int64_t i, reel_error *err)
{
    char name[REEL_PATH_MAX], from[REEL_PATH_MAX], old[REEL_PATH_MAX];
    REEL_TRY(reel_media_png_name(w->path, i, name, sizeof name, err));
    inside(w, i, "png", from);
    inside(w, i, "old", old);
    if (w->options.no_clobber) {
        if (link(from, name) == 0) return REEL_OK;
        return io_fail(name, err);
    }
    struct stat st;
    bool is_there = lstat(name, &st) == 0;
    if (is_there && S_ISDIR(st.st_mode)) errno = EISDIR;
    /* A second name for the old file keeps it readable until the rename; file systems without links lose that moment only. */
    bool is_kept = is_there && !S_ISDIR(st.st_mode) && (link(name, old) == 0 || rename(name, old) == 0);
    if (is_there && !is_kept) return io_fail(name, err);
    if (rename(from, name) == 0) return REEL_OK;
    int keep = errno;
    if (is_kept) (void)rename(old, name);
    errno = keep;
    return io_fail(name, err);
}

/* Takes frames [0, n) out of their places again and puts back what was there. */
static void move_back(reel_writer *w, int64_t n)
{
    char name[REEL_PATH_MAX], old[REEL_PATH_MAX];
    for (int64_t i = 0; i < n; i++) {
        if (reel_media_png_name(w->path, i, name, sizeof name, NULL) != REEL_OK) continue;
        inside(w, i, "old", old);
        if (rename(old, name) != 0) (void)unlink(name);
    }
}

static reel_status png_finish(reel_writer *w, reel_error *err)
{
    png_state *s = w->state;
    if (s->is_new_folder) {
        char target[REEL_PATH_MAX];
        size_t n = strlen(w->path);
        while (n > 1 && w->path[n - 1] == '/') n--;
        (void)snprintf(target, sizeof target, "%.*s", (int)n, w->path);
        if (rename(s->temporary, target) != 0) return io_fail(w->path, err);
        s->temporary[0] = '\0';
        return REEL_OK;
    }
    for (int64_t i = 0; i < w->n_frame; i++) {
        reel_status status = move_out(w, i, err);
        if (status == REEL_OK) continue;
        move_back(w, i);
        return status;
    }
    return REEL_OK;
}

const reel_writer_table reel_png_writer = {.open = png_open, .frame = png_frame, .finish = png_finish, .close = png_close};

#endif
