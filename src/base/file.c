/* SPDX-License-Identifier: Apache-2.0
 *
 * File reading, mapping and whole-or-nothing writing (base/file.h). POSIX only. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static reel_status io_fail(reel_error *err, const char *what, const char *path, const char *remedy)
{
    int code = errno;
    return REEL_FAIL(err, REEL_E_IO, "%s\ngiven: %s (%s)\nremedy: %s", what, path, strerror(code), remedy);
}

reel_status reel_map_file(const char *path, reel_mapping *out, reel_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return io_fail(err, "a file cannot be opened", path, "check the path and its permissions");
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (!S_ISREG(st.st_mode)) errno = EISDIR;
        (void)close(fd);
        return io_fail(err, "not a regular file", path, "name a file");
    }
    if (st.st_size == 0) {
        (void)close(fd);
        return REEL_FAIL(err, REEL_E_IO, "a file is empty\ngiven: %s\nremedy: fetch or write it again", path);
    }
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int keep = errno;
    (void)close(fd);
    errno = keep;
    if (data == MAP_FAILED && keep == ENOMEM) {
        return REEL_FAIL(err, REEL_E_MEMORY, "not enough address space to map a file\ngiven: %s\nremedy: raise the limit (ulimit -v)",
                         path);
    }
    if (data == MAP_FAILED) return io_fail(err, "a file cannot be mapped into memory", path, "check limits on address space (ulimit -v)");
    out->data = data;
    out->bytes = (size_t)st.st_size;
    return REEL_OK;
}

void reel_unmap_file(reel_mapping *mapping)
{
    if (mapping->data) (void)munmap((void *)(uintptr_t)mapping->data, mapping->bytes);
    *mapping = (reel_mapping){0};
}

reel_status reel_read_file(const char *path, size_t max, reel_buf *out, reel_error *err)
{
    FILE *f = fopen(path, "rbe");
    if (!f) return io_fail(err, "a file cannot be opened", path, "check the path and its permissions");
    reel_status status = REEL_OK;
    size_t total = 0, n;
    char *chunk = malloc((size_t)1 << 16);
    if (!chunk) status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory while reading a file\ngiven: %s\nremedy: close other programs", path);
    while (status == REEL_OK && (n = fread(chunk, 1, (size_t)1 << 16, f)) > 0) {
        total += n;
        if (total > max) {
            status = REEL_FAIL(err, REEL_E_IO,
                               "a file is too large\ngiven: %s\nallowed: at most %zu bytes\nremedy: check that it is the file "
                               "you mean",
                               path, max);
        } else {
            status = reel_buf_append(out, chunk, n, err);
        }
    }
    if (status == REEL_OK && ferror(f)) status = io_fail(err, "a file cannot be read", path, "check that it is a file and not damaged");
    free(chunk);
    (void)fclose(f);
    return status;
}

bool reel_path_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool reel_path_is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

reel_status reel_path_join(char *out, size_t out_bytes, const char *dir, const char *name, reel_error *err)
{
    size_t n = strlen(dir);
    int w = snprintf(out, out_bytes, "%s%s%s", dir, n > 0 && dir[n - 1] == '/' ? "" : "/", name);
    if (w < 0 || (size_t)w >= out_bytes) {
        return REEL_FAIL(err, REEL_E_IO, "a path is too long\ngiven: %s/%s\nallowed: %zu bytes\nremedy: use a shorter folder name", dir,
                         name, out_bytes - 1);
    }
    return REEL_OK;
}

/* Creates path, whose six letters at `letters` are chosen anew until no such file exists; permissions are left to the umask, as for any output
 * (mkstemps would need the umask set to be read, which other threads would see). */
static int create_unique(char *letters, const char *path)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t n = ((uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec) + ((uint64_t)getpid() << 40) + (uintptr_t)letters;
    for (int attempt = 0; attempt < 1000; attempt++) {
        n = n * 6364136223846793005ULL + 1442695040888963407ULL;
        for (int i = 0; i < 6; i++) letters[i] = alphabet[(n >> (16 + 8 * i) & 0xFF) % (sizeof alphabet - 1)];
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

reel_status reel_output_begin(reel_output *out, const char *path, bool no_clobber, reel_error *err)
{
    *out = (reel_output){.no_clobber = no_clobber};
    const char *slash = strrchr(path, '/');
    int dir_n = slash ? (int)(slash - path + 1) : 0;
    const char *name = path + dir_n;
    if (strlen(path) + 24 > sizeof out->path) {
        return REEL_FAIL(err, REEL_E_IO, "an output path is too long\ngiven: %zu bytes\nallowed: %d\nremedy: use a shorter path",
                         strlen(path), REEL_PATH_MAX - 24);
    }
    if (name[0] == '\0' || reel_path_is_dir(path)) {
        return REEL_FAIL(err, REEL_E_IO, "an output path names a folder\ngiven: %s\nallowed: a file name\nremedy: add a file name", path);
    }
    if (no_clobber && access(path, F_OK) == 0) {
        return REEL_FAIL(err, REEL_E_IO,
                         "the output exists and may not be replaced\ngiven: %s with --no-clobber\nremedy: choose another name or "
                         "leave out --no-clobber",
                         path);
    }
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name) dot = name + strlen(name);
    (void)snprintf(out->path, sizeof out->path, "%s", path);
    (void)snprintf(out->temporary, sizeof out->temporary, "%.*s.%.*s.XXXXXX%s", dir_n, path, (int)(dot - name), name, dot);
    int fd = create_unique(out->temporary + dir_n + 1 + (dot - name) + 1, out->temporary);
    if (fd < 0) return io_fail(err, "the output cannot be written", path, "check that the folder exists and may be written to");
    (void)close(fd);
    out->is_open = true;
    return REEL_OK;
}

reel_status reel_output_commit(reel_output *out, reel_error *err)
{
    assert(out->is_open);
    int fd = open(out->temporary, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0) {
        reel_status status = io_fail(err, "the output cannot be written to disk", out->path, "check free space and the disk's health");
        if (fd >= 0) (void)close(fd);
        reel_output_abandon(out);
        return status;
    }
    (void)close(fd);
    int failed = out->no_clobber ? link(out->temporary, out->path) : rename(out->temporary, out->path);
    if (failed != 0) {
        reel_status status = io_fail(err, "the output cannot be given its name", out->path,
                                     out->no_clobber ? "choose another name or leave out --no-clobber" : "check the folder's permissions");
        reel_output_abandon(out);
        return status;
    }
    if (out->no_clobber) (void)unlink(out->temporary);
    out->is_open = false;
    return REEL_OK;
}

void reel_output_abandon(reel_output *out)
{
    if (out->is_open) (void)unlink(out->temporary);
    out->is_open = false;
}

reel_status reel_write_file(const char *path, const void *data, size_t bytes, bool no_clobber, reel_error *err)
{
    reel_output out;
    REEL_TRY(reel_output_begin(&out, path, no_clobber, err));
    FILE *f = fopen(out.temporary, "wbe");
    bool good = f && fwrite(data, 1, bytes, f) == bytes;
    int keep = errno;
    if (f && fclose(f) != 0) {
        if (good) keep = errno;
        good = false;
    }
    if (!good) {
        errno = keep;
        reel_status status = io_fail(err, "the output cannot be written", path, "check free space and permissions");
        reel_output_abandon(&out);
        return status;
    }
    return reel_output_commit(&out, err);
}
