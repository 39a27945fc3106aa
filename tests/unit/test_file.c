/* SPDX-License-Identifier: Apache-2.0
 *
 * Outputs appear whole or not at all; reads and mappings say why they fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "common/temp_dir.h"

static reel_error err;

static void expect(reel_status status, reel_status wanted, const char *text)
{
    if (status != wanted || !strstr(err.text, text) || !strstr(err.text, "remedy: "))
        fail_msg("wanted %d \"%s\", got %d: %s", (int)wanted, text, (int)status, err.text);
}

static void expect_content(const char *path, const char *wanted)
{
    reel_buf buf = {0};
    if (reel_read_file(path, 1000, &buf, &err) != REEL_OK) fail_msg("%s", err.text);
    assert_int_equal(buf.n, strlen(wanted));
    assert_memory_equal(buf.data, wanted, buf.n);
    reel_buf_deinit(&buf);
}

static void test_output(void **state)
{
    (void)state;
    char *dir = temp_dir_new();
    const char *path = temp_path(dir, "clip.v1.mp4");
    reel_output out = {0};
    reel_output_abandon(&out);
    temp_write(dir, "clip.v1.mp4", "old", 3);
    assert_int_equal(reel_output_begin(&out, path, false, &err), REEL_OK);
    assert_string_equal(strrchr(out.temporary, '.'), ".mp4");
    assert_int_equal(strncmp(out.temporary, dir, strlen(dir)), 0);
    assert_int_equal(temp_count(dir), 2);
    expect_content(path, "old");
    reel_output_abandon(&out);
    reel_output_abandon(&out);
    assert_int_equal(temp_count(dir), 1);
    expect_content(path, "old");
    assert_int_equal(reel_write_file(path, "new!", 4, false, &err), REEL_OK);
    expect_content(path, "new!");
    struct stat st;
    const mode_t mask = umask(0);
    (void)umask(mask);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0666 & ~mask);
    expect(reel_write_file(path, "x", 1, true, &err), REEL_E_IO, "--no-clobber");
    expect_content(path, "new!");
    assert_int_equal(temp_count(dir), 1);
    temp_dir_free(dir);
}

/* With no_clobber, a file that appears between begin and commit stays. */
static void test_no_clobber_late(void **state)
{
    (void)state;
    char *dir = temp_dir_new();
    const char *path = temp_path(dir, "x");
    reel_output out;
    assert_int_equal(reel_output_begin(&out, path, true, &err), REEL_OK);
    temp_write(dir, "x", "mine", 4);
    expect(reel_output_commit(&out, &err), REEL_E_IO, "cannot be given its name");
    expect_content(path, "mine");
    assert_int_equal(temp_count(dir), 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(reel_output_begin(&out, path, true, &err), REEL_OK);
    assert_int_equal(reel_output_commit(&out, &err), REEL_OK);
    assert_int_equal(temp_count(dir), 1);
    expect_content(path, "");
    /* a temporary file that vanished: an error, and no name */
    assert_int_equal(reel_output_begin(&out, temp_path(dir, "y"), false, &err), REEL_OK);
    assert_int_equal(unlink(out.temporary), 0);
    expect(reel_output_commit(&out, &err), REEL_E_IO, "cannot be written");
    assert_int_equal(temp_count(dir), 1);
    temp_dir_free(dir);
}

static void test_bad_outputs(void **state)
{
    (void)state;
    char *dir = temp_dir_new();
    reel_output out;
    expect(reel_output_begin(&out, dir, false, &err), REEL_E_IO, "names a folder");
    expect(reel_output_begin(&out, temp_path(dir, ""), false, &err), REEL_E_IO, "names a folder");
    expect(reel_output_begin(&out, "", false, &err), REEL_E_IO, "names a folder");
    expect(reel_output_begin(&out, temp_path(dir, "none/x"), false, &err), REEL_E_IO, "cannot be written");
    char *path = malloc(8000);
    assert_non_null(path);
    memset(path, 'a', 7999);
    path[7999] = '\0';
    expect(reel_output_begin(&out, path, false, &err), REEL_E_IO, "too long");
    path[300] = '\0';
    expect(reel_output_begin(&out, path, false, &err), REEL_E_IO, "cannot be written");
    char joined[300];
    expect(reel_path_join(joined, sizeof joined, dir, path, &err), REEL_E_IO, "too long");
    free(path);
    assert_int_equal(reel_path_join(joined, sizeof joined, "a/", "b", &err), REEL_OK);
    assert_string_equal(joined, "a/b");
    assert_int_equal(reel_path_join(joined, sizeof joined, "a", "b", &err), REEL_OK);
    assert_string_equal(joined, "a/b");
    assert_int_equal(temp_count(dir), 0);
    temp_dir_free(dir);
}

static void test_reading(void **state)
{
    (void)state;
    char *dir = temp_dir_new(), *large = malloc(200000);
    assert_non_null(large);
    memset(large, 'x', 200000);
    temp_write(dir, "large", large, 200000);
    temp_write(dir, "empty", "", 0);
    reel_buf buf = {0};
    reel_mapping map = {0};
    expect(reel_read_file(temp_path(dir, "large"), 199999, &buf, &err), REEL_E_IO, "too large");
    reel_buf_deinit(&buf);
    assert_int_equal(reel_read_file(temp_path(dir, "large"), 200000, &buf, &err), REEL_OK);
    assert_memory_equal(buf.data, large, 200001 - 1);
    assert_int_equal(buf.data[200000], 0);
    reel_buf_deinit(&buf);
    expect(reel_read_file(temp_path(dir, "none"), 1, &buf, &err), REEL_E_IO, "No such file");
    expect(reel_read_file(dir, 1, &buf, &err), REEL_E_IO, "directory");
    reel_buf_deinit(&buf);
    assert_int_equal(reel_map_file(temp_path(dir, "large"), &map, &err), REEL_OK);
    assert_int_equal(map.bytes, 200000);
    assert_memory_equal(map.data, large, 200000);
    reel_unmap_file(&map);
    reel_unmap_file(&map);
    expect(reel_map_file(temp_path(dir, "empty"), &map, &err), REEL_E_IO, "empty");
    expect(reel_map_file(temp_path(dir, "none"), &map, &err), REEL_E_IO, "No such file");
    expect(reel_map_file(dir, &map, &err), REEL_E_IO, "not a regular file");
    expect(reel_map_file("/dev/null", &map, &err), REEL_E_IO, "not a regular file");
    assert_null(map.data);
    assert_true(reel_path_is_dir(dir) && !reel_path_is_file(dir) && reel_path_is_file(temp_path(dir, "empty")) &&
                !reel_path_is_dir(temp_path(dir, "none")));
    free(large);
    temp_dir_free(dir);
}

/* The buffer keeps to its maximum, and stays as it was when it refuses. */
static void test_buffer(void **state)
{
    (void)state;
    reel_buf buf = {.max = 10};
    assert_int_equal(reel_buf_text(&buf, "12345", &err), REEL_OK);
    assert_int_equal(reel_buf_printf(&buf, &err, "%d%s", 67, "89"), REEL_OK);
    expect(reel_buf_text(&buf, "xy", &err), REEL_E_MEMORY, "limit");
    assert_string_equal(buf.data, "123456789");
    assert_int_equal(reel_buf_text(&buf, "0", &err), REEL_OK);
    expect(reel_buf_append(&buf, "x", SIZE_MAX, &err), REEL_E_MEMORY, "limit");
    assert_string_equal(buf.data, "1234567890");
    reel_buf_clear(&buf);
    assert_int_equal(buf.n, 0);
    reel_buf_deinit(&buf);
    reel_buf_deinit(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_output), cmocka_unit_test(test_no_clobber_late),
                                       cmocka_unit_test(test_bad_outputs), cmocka_unit_test(test_reading), cmocka_unit_test(test_buffer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
