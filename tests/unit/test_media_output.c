/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole or nothing: an output appears when it is finished, and after any failure (options, folders, full disks, a kill) there is no new file
 * and the old one is as it was. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "media/inner.h"
#include "media_clip.h"

#ifdef REEL_WITH_MEDIA
static const char *const files[] = {"o.y4m", "o.mp4", "o.webm", "o.gif"};
#else
static const char *const files[] = {"o.y4m"};
#endif

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

static void put_old(const char *path)
{
    reel_error err;
    media_good(reel_write_file(path, "old", 3, false, &err), &err);
}

static void is_old(const char *path)
{
    size_t n;
    uint8_t *bytes = media_bytes(path, &n);
    assert_int_equal(n, 3);
    assert_memory_equal(bytes, "old", 3);
    free(bytes);
}

static void refused(reel_status status, reel_status want, const reel_error *err, const char *word)
{
    if (status != want) fail_msg("status %s, wanted %s", reel_status_name(status), reel_status_name(want));
    if (!strstr(err->text, word) || !strstr(err->text, "\nremedy: ")) fail_msg("\"%s\" lacks \"%s\" or a remedy", err->text, word);
}

static void old_stays_until_finish(void **state)
{
    char path[600];
    reel_error err;
    media_clip clip = media_waves(5, 64, 48, 3);
    reel_media_options o = media_options(&clip, 24);
    for (size_t i = 0; i < REEL_COUNT(files); i++) {
        reel_writer *w = NULL;
        media_path(path, sizeof path, *state, files[i]);
        put_old(path);
        for (int finish = 0; finish < 2; finish++) {
            media_good(reel_writer_open(path, &o, &w, &err), &err);
            media_good(reel_writer_frames(w, clip.rgb, 5, &err), &err);
            is_old(path);
            if (finish)
                media_good(reel_writer_finish(&w, &err), &err);
            else
                reel_writer_abandon(&w);
            assert_null(w);
            assert_int_equal(media_folder_count(*state), 1);
        }
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        assert_true(st.st_size > 100);
        assert_int_equal(st.st_mode & 0777, 0644); /* not mkstemp's 0600 */
        assert_int_equal(unlink(path), 0);
    }
    reel_writer *none = NULL;
    reel_writer_abandon(&none);
    reel_writer_abandon(NULL);
    media_clip_free(&clip);
}

static void no_clobber(void **state)
{
    char path[600];
    reel_error err;
    media_clip clip = media_waves(2, 64, 48, 3);
    reel_media_options o = media_options(&clip, 24);
    o.no_clobber = true;
    for (size_t i = 0; i < REEL_COUNT(files); i++) {
        reel_writer *w = NULL;
        media_path(path, sizeof path, *state, files[i]);
        put_old(path);
        refused(reel_media_check(path, &o, &err), REEL_E_IO, &err, "--no-clobber");
        refused(media_write(path, &clip, &o, &err), REEL_E_IO, &err, "--no-clobber");
        is_old(path);
        assert_int_equal(unlink(path), 0);
        /* it appears while we work */
        media_good(reel_writer_open(path, &o, &w, &err), &err);
        media_good(reel_writer_frames(w, clip.rgb, 2, &err), &err);
        put_old(path);
        refused(reel_writer_finish(&w, &err), REEL_E_IO, &err, "--no-clobber");
        is_old(path);
        assert_int_equal(media_folder_count(*state), 1);
        assert_int_equal(unlink(path), 0);
        media_good(media_write(path, &clip, &o, &err), &err);
        assert_int_equal(media_folder_count(*state), 1);
        assert_int_equal(unlink(path), 0);
    }
    media_clip_free(&clip);
}

static void bad_options(void **state)
{
    static const struct {
        const char *name, *word;
        int32_t width, height, crf, n_thread;
        double fps;
    } cases[] = {
        {"a.y4m", "size", 0, 32, -1, 1, 24},
        {"a.y4m", "size", 32, -1, -1, 1, 24},
        {"a.y4m", "size", 100000, 32, -1, 1, 24},
        {"a.y4m", "rate", 32, 32, -1, 1, 0},
        {"a.y4m", "rate", 32, 32, -1, 1, NAN},
        {"a.y4m", "rate", 32, 32, -1, 1, -24},
        {"a.y4m", "rate", 32, 32, -1, 1, INFINITY},
        {"a.y4m", "rate", 32, 32, -1, 1, 1001},
        {"a.y4m", "--crf", 32, 32, 20, 1, 24},
        {"a.y4m", "threads", 32, 32, -1, 0, 24},
        {"a.y4m", "threads", 32, 32, -1, 65, 24},
        {"a.avi", "ending", 32, 32, -1, 1, 24},
#ifdef REEL_WITH_MEDIA
        {"a.mp4", "use 34x32", 33, 32, -1, 1, 24},
        {"a.webm", "use 32x18", 32, 17, -1, 1, 24},
        {"a.mp4", "allowed: 0 (best) to 51", 32, 32, 52, 1, 24},
        {"a.webm", "to 63", 32, 32, 64, 1, 24},
        {"a.mp4", "quality", 32, 32, -2, 1, 24},
        {"a.gif", "hundredths", 32, 32, -1, 1, 60},
        {"a.gif", "--crf", 32, 32, 20, 1, 24},
        {"%d.png", "--crf", 32, 32, 20, 1, 24},
        {"a.png", "%d", 32, 32, -1, 1, 24},
#endif
    };
    char path[600];
    reel_error err;
    for (size_t i = 0; i < REEL_COUNT(cases); i++) {
        reel_media_options o = {
            .width = cases[i].width, .height = cases[i].height, .crf = cases[i].crf, .n_thread = cases[i].n_thread, .fps = cases[i].fps};
        reel_writer *w = NULL;
        media_path(path, sizeof path, *state, cases[i].name);
        refused(reel_media_check(path, &o, &err), REEL_E_ARGUMENT, &err, cases[i].word);
        refused(reel_writer_open(path, &o, &w, &err), REEL_E_ARGUMENT, &err, cases[i].word);
        assert_null(w);
    }
    assert_int_equal(media_folder_count(*state), 0);
}

static void bad_places(void **state)
{
    char path[600], long_name[4300];
    reel_error err;
    media_clip clip = media_waves(1, 64, 48, 3);
    reel_media_options o = media_options(&clip, 24);
    for (size_t i = 0; i < REEL_COUNT(files); i++) {
        (void)snprintf(path, sizeof path, "%s/absent/%s", (char *)*state, files[i]);
        refused(reel_media_check(path, &o, &err), REEL_E_IO, &err, "No such file");
        put_old(media_path(path, sizeof path, *state, "file"));
        (void)snprintf(path, sizeof path, "%s/file/%s", (char *)*state, files[i]);
        refused(reel_media_check(path, &o, &err), REEL_E_IO, &err, "Not a directory");
        media_path(path, sizeof path, *state, files[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        refused(reel_media_check(path, &o, &err), REEL_E_IO, &err, "folder");
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
        refused(reel_media_check(path, &o, &err), REEL_E_IO, &err, "not a regular file");
        assert_int_equal(unlink(path), 0);
        memset(long_name, 'a', sizeof long_name);
        (void)snprintf(long_name + 4200, 16, "%s", files[i]);
        assert_int_equal(media_write(long_name, &clip, &o, &err), REEL_E_IO);
        (void)snprintf(path, sizeof path, "/proc/%s", files[i]); /* nobody can make files there */
        assert_int_equal(media_write(path, &clip, &o, &err), REEL_E_IO);
    }
    assert_int_equal(media_folder_count(*state), 1);
    media_clip_free(&clip);
}

/* In a child, since root may write anywhere: it becomes nobody first. */
static void folder_without_permission(void **state)
{
    reel_media_options o = {.width = 32, .height = 32, .fps = 24, .crf = -1, .n_thread = 1};
    assert_int_equal(chmod(*state, 0555), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char path[600];
        reel_error err;
        if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
        reel_status status = reel_media_check(media_path(path, sizeof path, *state, "a.y4m"), &o, &err);
        _exit(status == REEL_E_IO && strstr(err.text, "Permission denied") ? 0 : 1);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(chmod(*state, 0755), 0);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

static void without_frames(void **state)
{
    char path[600];
    reel_error err;
    media_clip clip = media_waves(1, 64, 48, 3);
    reel_media_options o = media_options(&clip, 24);
    for (size_t i = 0; i < REEL_COUNT(files); i++) {
        reel_writer *w = NULL;
        media_good(reel_writer_open(media_path(path, sizeof path, *state, files[i]), &o, &w, &err), &err);
        refused(reel_writer_finish(&w, &err), REEL_E_ARGUMENT, &err, "without frames");
        assert_null(w);
    }
    assert_int_equal(media_folder_count(*state), 0);
    media_clip_free(&clip);
}

/* A limit on file size stands for a full disk: writes fail beyond it. Every limit below the file's size must be noticed, those that are met
 * only by the trailer, by faststart's second pass or by the last flush included. */
static void disk_full(void **state)
{
    char path[600];
    reel_error err;
    media_clip clip = media_waves(9, 96, 64, 3);
    reel_media_options o = media_options(&clip, 24);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*was)(int) = signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < REEL_COUNT(files); i++) {
        media_path(path, sizeof path, *state, files[i]);
        media_good(media_write(path, &clip, &o, &err), &err);
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        put_old(path);
        for (int k = 0; k < 24; k++) {
            off_t limit = k < 12 ? st.st_size * k / 12 : st.st_size - ((off_t)1 << (k - 12));
            if (limit < 0) continue;
            struct rlimit small = {.rlim_cur = (rlim_t)limit, .rlim_max = before.rlim_max};
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
            reel_status status = media_write(path, &clip, &o, &err);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
            if (status != REEL_E_IO)
                fail_msg("%s with %lld of %lld bytes: %s", files[i], (long long)limit, (long long)st.st_size, reel_status_name(status));
            assert_non_null(strstr(err.text, "remedy: "));
            is_old(path);
            assert_int_equal(media_folder_count(*state), 1);
        }
        assert_int_equal(unlink(path), 0);
    }
    (void)signal(SIGXFSZ, was);
    media_clip_free(&clip);
}

/* A process killed while it writes leaves the old file, or the new one whole; never a half of it. */
static void killed(void **state)
{
    char path[600];
    reel_error err;
    for (size_t i = 0; i < REEL_COUNT(files); i++) {
        media_path(path, sizeof path, *state, files[i]);
        put_old(path);
        int pipes[2];
        assert_int_equal(pipe(pipes), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            media_clip clip = media_waves(3, 64, 48, 3);
            reel_media_options o = media_options(&clip, 24);
            reel_writer *w = NULL;
            if (reel_writer_open(path, &o, &w, &err) != REEL_OK || reel_writer_frames(w, clip.rgb, 3, &err) != REEL_OK) _exit(1);
            if (write(pipes[1], "x", 1) != 1) _exit(1);
            for (;;) (void)pause();
        }
        char c = 0;
        (void)close(pipes[1]);
        assert_int_equal(read(pipes[0], &c, 1), 1);
        (void)close(pipes[0]);
        assert_int_equal(kill(child, SIGKILL), 0);
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how));
        is_old(path);
    }
}

/* Runs a writer with stdout replaced, in a child. Returns its status as exit code. */
static pid_t write_to_stdout(int fd, const media_clip *clip, bool ignore_pipe)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    reel_media_options o = media_options(clip, 24);
    reel_error err;
    if (ignore_pipe) (void)signal(SIGPIPE, SIG_IGN);
    if (dup2(fd, STDOUT_FILENO) < 0) _exit(99);
    (void)close(fd);
    _exit(-(int)media_write("-", clip, &o, &err));
}

static int exit_of(pid_t child)
{
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    return WEXITSTATUS(how);
}

static void stdout_is_the_file(void **state)
{
    char path[600], piped[600];
    reel_error err;
    media_clip clip = media_waves(5, 161, 99, 3);
    reel_media_options o = media_options(&clip, 24);
    media_good(media_write(media_path(path, sizeof path, *state, "a.y4m"), &clip, &o, &err), &err);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(fcntl(pipes[1], F_SETFL, O_NONBLOCK), 0); /* partial and refused writes on the way */
    pid_t child = write_to_stdout(pipes[1], &clip, false);
    (void)close(pipes[1]);
    FILE *f = fopen(media_path(piped, sizeof piped, *state, "b.y4m"), "wb");
    assert_non_null(f);
    char chunk[3000];
    for (ssize_t n; (n = read(pipes[0], chunk, sizeof chunk)) > 0;) assert_int_equal(fwrite(chunk, 1, (size_t)n, f), (size_t)n);
    assert_int_equal(fclose(f), 0);
    (void)close(pipes[0]);
    assert_int_equal(exit_of(child), 0);
    media_same_files(path, piped);
    media_clip_free(&clip);
}

static void stdout_fails(void **state)
{
    (void)state;
    media_clip clip = media_waves(5, 161, 99, 3);
    int full = open("/dev/full", O_WRONLY);
    assert_true(full >= 0);
    assert_int_equal(exit_of(write_to_stdout(full, &clip, false)), -(int)REEL_E_IO);
    (void)close(full);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    (void)close(pipes[0]);
    assert_int_equal(exit_of(write_to_stdout(pipes[1], &clip, true)), -(int)REEL_E_IO);
    (void)close(pipes[1]);
    media_clip_free(&clip);
}

#ifdef REEL_WITH_MEDIA

static void png_whole_or_nothing(void **state)
{
    char path[600], one[600];
    reel_error err;
    media_clip clip = media_waves(4, 31, 19, 3);
    reel_media_options o = media_options(&clip, 24);
    reel_writer *w = NULL;
    static const char *const targets[] = {"new/", "f-%d.png"};
    for (int i = 0; i < 2; i++) { /* abandoned and without frames */
        media_path(path, sizeof path, *state, targets[i]);
        media_good(reel_writer_open(path, &o, &w, &err), &err);
        media_good(reel_writer_frames(w, clip.rgb, 4, &err), &err);
        reel_writer_abandon(&w);
        assert_int_equal(media_folder_count(*state), 0);
        media_good(reel_writer_open(path, &o, &w, &err), &err);
        refused(reel_writer_finish(&w, &err), REEL_E_ARGUMENT, &err, "without frames");
        assert_int_equal(media_folder_count(*state), 0);
    }
    /* Old frames stay until the end. */
    put_old(media_path(one, sizeof one, *state, "f-2.png"));
    media_good(reel_writer_open(path, &o, &w, &err), &err);
    media_good(reel_writer_frames(w, clip.rgb, 4, &err), &err);
    is_old(one);
    /* Frame 3's place becomes a folder: the move fails there, and frames 0 to 2 are taken back. */
    assert_int_equal(mkdir(media_path(one, sizeof one, *state, "f-3.png"), 0700), 0);
    refused(reel_writer_finish(&w, &err), REEL_E_IO, &err, "f-3.png");
    is_old(media_path(one, sizeof one, *state, "f-2.png"));
    assert_int_equal(media_folder_count(*state), 2);
    assert_int_equal(rmdir(media_path(one, sizeof one, *state, "f-3.png")), 0);
    /* With no_clobber frame 2 is refused when it comes. */
    o.no_clobber = true;
    refused(media_write(path, &clip, &o, &err), REEL_E_IO, &err, "f-2.png with --no-clobber");
    assert_int_equal(media_folder_count(*state), 1);
    o.no_clobber = false;
    media_good(media_write(path, &clip, &o, &err), &err);
    assert_int_equal(media_folder_count(*state), 4);
    /* A full disk. */
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*was)(int) = signal(SIGXFSZ, SIG_IGN);
    struct rlimit small = {.rlim_cur = 100, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    reel_status folder = media_write(media_path(path, sizeof path, *state, "new/"), &clip, &o, NULL);
    reel_status single = reel_media_write_png(media_path(one, sizeof one, *state, "one.png"), clip.rgb, 31, 19, false, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, was);
    assert_int_equal(folder, REEL_E_IO);
    assert_int_equal(single, REEL_E_IO);
    assert_int_equal(media_folder_count(*state), 4);
    media_clip_free(&clip);
}

#endif

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(old_stays_until_finish), TEST(no_clobber), TEST(bad_options), TEST(bad_places),         TEST(folder_without_permission),
        TEST(without_frames),         TEST(disk_full),  TEST(killed),      TEST(stdout_is_the_file), TEST(stdout_fails),
#ifdef REEL_WITH_MEDIA
        TEST(png_whole_or_nothing),
#endif
    };
    (void)umask(022);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
