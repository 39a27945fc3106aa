/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders of tests (temp_dir.h). */
#include "common/temp_dir.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/env.h"

char *temp_dir_new(void)
{
    const char *base = reel_env("TMPDIR");
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/reel-test-XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(path));
    char *out = strdup(path);
    assert_non_null(out);
    return out;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st, (void)kind, (void)walk;
    return remove(path);
}

void temp_dir_free(char *dir)
{
    assert_int_equal(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    free(dir);
}

const char *temp_path(const char *dir, const char *name)
{
    static char path[4][2048];
    static int turn;
    turn = (turn + 1) % 4;
    (void)snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

void temp_write(const char *dir, const char *name, const void *data, size_t n)
{
    char path[2048];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    for (char *slash = strchr(path + strlen(dir) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        assert_true(mkdir(path, 0777) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_true(n == 0 || fwrite(data, 1, n, f) == n);
    assert_int_equal(fclose(f), 0);
}

int temp_count(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    (void)closedir(d);
    return n;
}
