/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores on disk: written and read back, shards and their index, folders without safetensors, and writes that fail in the middle. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/file.h"
#include "common/temp_dir.h"
#include "reel-plugin/tensor_util.h"
#include "weights/weights.h"

static reel_error err;
#define GOOD(call)                                                  \
    do {                                                            \
        if ((call) != REEL_OK) fail_msg("%s: %s", #call, err.text); \
    } while (0)

static void expect(reel_status status, reel_status wanted, const char *text)
{
    if (status != wanted || !strstr(err.text, text) || !strstr(err.text, "remedy: "))
        fail_msg("wanted \"%s\", got %d: %s", text, (int)status, err.text);
}

static void fill(void *data, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525U + 1013904223U;
        ((uint8_t *)data)[i] = (uint8_t)(seed >> 24);
    }
}

/* One tensor of every dtype, odd sizes, an empty one and a scalar: read back equal, each aligned to its element, header a multiple of 8. */
static void test_round_trip(void **state)
{
    (void)state;
    char *dir = temp_dir_new();
    static const reel_dtype dtypes[] = {REEL_DTYPE_U8,      REEL_DTYPE_F32,     REEL_DTYPE_BF16, REEL_DTYPE_F16, REEL_DTYPE_F64,
                                        REEL_DTYPE_F8_E4M3, REEL_DTYPE_F8_E5M2, REEL_DTYPE_I32,  REEL_DTYPE_I64};
    static const char *const metadata[] = {"settings", "{\"seed\": 18446744073709551615}", "\xE7\xBA\xA2", "\xF0\x9F\x99\x82", NULL};
    enum { N = REEL_COUNT(dtypes) };
    uint8_t data[N][8 * 15];
    char names[N][64];
    reel_stored_out out[N + 2];
    for (size_t i = 0; i < N; i++) {
        fill(data[i], sizeof data[i], (uint32_t)i + 7);
        (void)snprintf(names[i], sizeof names[i], "t.\"%s\"\xE2\x96\x81\n", reel_dtype_name(dtypes[i]));
        out[i] = (reel_stored_out){names[i], reel_tensor_dense(data[i], dtypes[i], 3, 5, 0, 0)};
    }
    out[N] = (reel_stored_out){"scalar", {.data = data[1], .dtype = REEL_DTYPE_F32}};
    out[N + 1] = (reel_stored_out){"empty", {.data = data[2], .dtype = REEL_DTYPE_BF16, .n_dim = 2, .extent = {0, 4}, .stride = {4, 1}}};
    const char *path = temp_path(dir, "x.safetensors");
    GOOD(reel_safetensors_write(path, out, N + 2, metadata, true, &err));
    reel_buf raw = {0};
    GOOD(reel_read_file(path, 1 << 20, &raw, &err));
    assert_int_equal((uint8_t)raw.data[0] % 8, 0);
    assert_int_equal(raw.data[8], '{');
    reel_buf_deinit(&raw);
    reel_store *store = NULL;
    GOOD(reel_store_open(dir, "x", &store, &err));
    assert_int_equal(reel_store_count(store), N + 2);
    for (size_t i = 0; i < N + 2; i++) {
        const reel_stored *t = reel_store_find(store, out[i].name);
        assert_non_null(t);
        assert_int_equal(t->dtype, out[i].tensor.dtype);
        assert_int_equal(t->n_dim, out[i].tensor.n_dim);
        assert_int_equal(t->bytes, reel_tensor_bytes(&out[i].tensor));
        assert_memory_equal(t->data, out[i].tensor.data, t->bytes);
        assert_int_equal((uintptr_t)t->data % reel_dtype_bytes(t->dtype), 0);
    }
    for (size_t i = 0; metadata[i]; i += 2) assert_string_equal(reel_store_metadata(store, metadata[i]), metadata[i + 1]);
    reel_store_close(&store);
    expect(reel_safetensors_write(path, out, 1, NULL, true, &err), REEL_E_IO, "may not be replaced");
    assert_int_equal(temp_count(dir), 1);
    temp_dir_free(dir);
}

static void test_writer_refuses(void **state)
{
    (void)state;
    char *dir = temp_dir_new();
    const char *path = temp_path(dir, "x.safetensors");
    float data[6] = {0};
    const reel_tensor good = reel_tensor_dense(data, REEL_DTYPE_F32, 2, 3, 0, 0);
    reel_tensor turned = good;
    turned.extent[0] = 3, turned.extent[1] = 2, turned.stride[0] = 1, turned.stride[1] = 3;
    const reel_tensor untyped = reel_tensor_dense(data, REEL_DTYPE_NONE, 6, 0, 0, 0);
    const reel_stored_out twice[2] = {{"a", good}, {"a", good}};
    const reel_stored_out bad[] = {{"turned", turned}, {"__metadata__", good}, {"\xFF", good}, {"untyped", untyped}};
    static const char *const bad_metadata[] = {"k", "\xFF", NULL};
    expect(reel_safetensors_write(path, twice, 2, NULL, false, &err), REEL_E_ARGUMENT, "twice");
    for (size_t i = 0; i < REEL_COUNT(bad); i++)
        expect(reel_safetensors_write(path, &bad[i], 1, NULL, false, &err), REEL_E_ARGUMENT, "cannot be written");
    expect(reel_safetensors_write(path, twice, 1, bad_metadata, false, &err), REEL_E_ARGUMENT, "not UTF-8");
    assert_int_equal(temp_count(dir), 0);
    expect(reel_safetensors_write(temp_path(dir, "no/x.safetensors"), twice, 1, NULL, false, &err), REEL_E_IO, "cannot be written");
    expect(reel_safetensors_write(dir, twice, 1, NULL, false, &err), REEL_E_IO, "names a folder");
    temp_dir_free(dir);
}

/* The file-size limit stands for a full disk: the write fails in the middle, the old file stays, nothing is left beside it. */
static void test_disk_full(void **state)
{
    (void)state;
    char *dir = temp_dir_new();
    const char *path = temp_path(dir, "x.safetensors");
    enum { N = 1 << 16 };
    uint8_t *data = malloc(N);
    assert_non_null(data);
    fill(data, N, 3);
    const reel_stored_out out = {"a", reel_tensor_dense(data, REEL_DTYPE_U8, N, 0, 0, 0)};
    temp_write(dir, "x.safetensors", "old", 3);
    struct rlimit before, low;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = before;
    low.rlim_cur = N / 2;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    const reel_status status = reel_safetensors_write(path, &out, 1, NULL, false, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    expect(status, REEL_E_IO, "cannot be written");
    assert_int_equal(temp_count(dir), 1);
    reel_buf old = {0};
    GOOD(reel_read_file(path, 100, &old, &err));
    assert_string_equal(old.data, "old");
    reel_buf_deinit(&old);
    free(data);
    temp_dir_free(dir);
}

/* ---- shards -------------------------------------------------------------------------------------------------------------------- */

static float shard_data[4] = {1.5F, -2.0F, 0.25F, 8.0F};

/* m-1: a, c; m-2: b. 16 bytes. */
static char *two_shards(void)
{
    char *dir = temp_dir_new();
    const reel_stored_out first[2] = {{"c", reel_tensor_dense(&shard_data[0], REEL_DTYPE_F32, 1, 0, 0, 0)},
                                      {"a", reel_tensor_dense(&shard_data[1], REEL_DTYPE_F32, 2, 0, 0, 0)}};
    const reel_stored_out second[1] = {{"b", reel_tensor_dense(&shard_data[3], REEL_DTYPE_F32, 1, 0, 0, 0)}};
    GOOD(reel_safetensors_write(temp_path(dir, "m-1.safetensors"), first, 2, NULL, true, &err));
    GOOD(reel_safetensors_write(temp_path(dir, "m-2.safetensors"), second, 1, NULL, true, &err));
    return dir;
}

static void put_index(const char *dir, const char *text)
{
    temp_write(dir, "m.safetensors.index.json", text, strlen(text));
}

#define MAP "\"weight_map\": {\"a\": \"m-1.safetensors\", \"b\": \"m-2.safetensors\", \"c\": \"m-1.safetensors\"}"

static void test_shards(void **state)
{
    (void)state;
    static const char *const good[] = {"{\"metadata\": {\"total_size\": 16}, " MAP "}", "{\"metadata\": {\"total_size\": 16.0}, " MAP "}",
                                       "{\"metadata\": {}, " MAP "}", "{" MAP "}"};
    char *dir = two_shards();
    for (size_t i = 0; i < REEL_COUNT(good); i++) {
        reel_store *store = NULL;
        put_index(dir, good[i]);
        GOOD(reel_store_open(dir, "m", &store, &err));
        assert_int_equal(reel_store_count(store), 3);
        assert_int_equal(reel_store_bytes(store), 16);
        assert_string_equal(reel_store_at(store, 1)->name, "b");
        assert_memory_equal(reel_store_find(store, "a")->data, &shard_data[1], 8);
        assert_memory_equal(reel_store_find(store, "b")->data, &shard_data[3], 4);
        assert_non_null(strstr(reel_store_find(store, "b")->file, "m-2.safetensors"));
        reel_store_close(&store);
    }
    temp_dir_free(dir);
}

static void test_bad_index(void **state)
{
    (void)state;
    static const struct {
        const char *index, *text;
    } bad[] = {
        {"{\"metadata\": {\"total_size\": 17}, " MAP "}", "total_size 17"},
        {"{\"weight_map\": {\"a\": \"m-1.safetensors\", \"b\": \"m-3.safetensors\", \"c\": \"m-1.safetensors\"}}",
         "m-3.safetensors, which is not there"},
        {"{\"weight_map\": {\"a\": \"m-1.safetensors\", \"b\": \"m-1.safetensors\", \"c\": \"m-2.safetensors\"}}", "it does not"},
        {"{\"weight_map\": {\"a\": \"m-1.safetensors\", \"b\": \"m-2.safetensors\", \"c\": \"m-1.safetensors\", \"d\": "
         "\"m-1.safetensors\"}}",
         "\"d\""},
        {"{\"weight_map\": {\"b\": \"m-2.safetensors\", \"c\": \"m-1.safetensors\"}}", "holds \"a\""},
        {"{\"weight_map\": {\"a\": \"../m-1.safetensors\"}}", "allowed: a file name in the same folder"},
        {"{\"weight_map\": {\"a\": 3}}", "allowed: a file name"},
        {"{\"weight_map\": {\"a\": \"\"}}", "allowed: a file name"},
        {"{\"weight_map\": []}", "no weight_map"},
        {"{\"weight_map\": {}}", "no weight_map"},
        {"{}", "no weight_map"},
        {"[]", "allowed: an object"},
        {"{\"weight_map\": {", "not valid JSON"},
    };
    char *dir = two_shards();
    for (size_t i = 0; i < REEL_COUNT(bad); i++) {
        reel_store *store = NULL;
        put_index(dir, bad[i].index);
        expect(reel_store_open(dir, "m", &store, &err), REEL_E_MODEL, bad[i].text);
        assert_null(store);
    }
    /* a tensor in two shards */
    const reel_stored_out both[2] = {{"b", reel_tensor_dense(&shard_data[3], REEL_DTYPE_F32, 1, 0, 0, 0)},
                                     {"a", reel_tensor_dense(&shard_data[1], REEL_DTYPE_F32, 2, 0, 0, 0)}};
    reel_store *store = NULL;
    GOOD(reel_safetensors_write(temp_path(dir, "m-2.safetensors"), both, 2, NULL, false, &err));
    put_index(dir, "{" MAP "}");
    expect(reel_store_open(dir, "m", &store, &err), REEL_E_MODEL, "there twice");
    assert_non_null(strstr(err.text, "m-1.safetensors"));
    assert_non_null(strstr(err.text, "m-2.safetensors"));
    temp_dir_free(dir);
}

static void test_nothing_there(void **state)
{
    (void)state;
    char *dir = temp_dir_new();
    reel_store *store = NULL;
    expect(reel_store_open(dir, "model", &store, &err), REEL_E_MODEL, "neither model.safetensors nor model.safetensors.index.json");
    expect(reel_store_open(temp_path(dir, "no"), "model", &store, &err), REEL_E_MODEL, "neither");
    static const char *const pickles[] = {"pytorch_model.bin", "x.pth", "x.pt", "x.ckpt"};
    for (size_t i = 0; i < REEL_COUNT(pickles); i++) {
        temp_write(dir, pickles[i], "x", 1);
        expect(reel_store_open(dir, "model", &store, &err), REEL_E_MODEL, "pickle");
        assert_non_null(strstr(err.text, pickles[i]));
        assert_int_equal(remove(temp_path(dir, pickles[i])), 0);
    }
    temp_write(dir, "model.safetensors", "", 0);
    expect(reel_store_open(dir, "model", &store, &err), REEL_E_MODEL, "is empty");
    expect(reel_store_open_file(temp_path(dir, "none"), &store, &err), REEL_E_IO, "cannot be opened");
    expect(reel_store_open_file(dir, &store, &err), REEL_E_IO, "not a regular file");
    temp_dir_free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_writer_refuses),
                                       cmocka_unit_test(test_disk_full),  cmocka_unit_test(test_shards),
                                       cmocka_unit_test(test_bad_index),  cmocka_unit_test(test_nothing_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
