/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that lie: each is parsed from a heap block of its exact size, so that a byte read beyond it is seen by the sanitizers. The verdicts are those
 * of the official library (safetensors 0.8), except where a line says otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "weights/weights.h"

#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}"
#define ONE T("F32", "1", "0,4")

typedef struct header_case {
    const char *header;
    size_t data; /* bytes behind it */
    const char *text; /* part of the error; NULL: good */
    int n; /* tensors when good */
} header_case;

static reel_status parse(const void *header, size_t n, uint64_t said, size_t data, reel_store **out, reel_error *err)
{
    uint8_t *block = malloc(8 + n + data);
    assert_non_null(block);
    for (int i = 0; i < 8; i++) block[i] = (uint8_t)(said >> (8 * i));
    memcpy(block + 8, header, n);
    memset(block + 8 + n, 0xA5, data);
    reel_status status = reel_store_parse(block, 8 + n + data, "case", out, err);
    if (status == REEL_OK) {
        for (int32_t i = 0; i < reel_store_count(*out); i++) {
            const reel_stored *t = reel_store_at(*out, i);
            assert_true(t->data >= block + 8 + n && t->data + t->bytes <= block + 8 + n + data);
            for (size_t k = 0; k < t->bytes; k++) assert_int_equal(t->data[k], 0xA5);
            assert_ptr_equal(reel_store_find(*out, t->name), t);
        }
    }
    free(block); /* what is asked of the store after this is not its data */
    return status;
}

static const header_case cases[] = {
    {"{}", 0, NULL, 0},
    {"{}", 1, "1 bytes behind its last tensor", 0},
    {"{\"a\":" ONE "}", 4, NULL, 1},
    {"{\"a\":" ONE "}", 5, "1 bytes behind", 0},
    {"{\"a\":" ONE "}", 3, "outside the file", 0},
    {"{\"a\":" ONE "}", 0, "outside the file", 0},
    {"{\"b\":" ONE ",\"a\":" T("F32", "1", "4,8") "}", 8, NULL, 2},
    {"{\"a\":" ONE ",\"b\":" T("F32", "1", "5,9") "}", 9, "\"b\": there is a hole before it", 0},
    {"{\"a\":" T("F32", "1", "1,5") "}", 5, "hole", 0},
    {"{\"a\":" ONE ",\"b\":" ONE "}", 4, "overlaps", 0},
    {"{\"a\":" T("F32", "2", "0,8") ",\"b\":" T("F32", "1", "4,8") "}", 8, "overlaps", 0},
    {"{\"a\":" T("F32", "0", "0,0") "}", 0, NULL, 1},
    {"{\"a\":" ONE ",\"z\":" T("F32", "0,3", "4,4") ",\"b\":" T("F32", "1", "4,8") "}", 8, NULL, 3},
    {"{\"a\":" T("F32", "2", "0,8") ",\"z\":" T("F32", "0,3", "4,4") "}", 8, "overlaps", 0},
    {"{\"a\":" T("F32", "", "0,4") "}", 4, NULL, 1},
    {"{\"a\":" T("F32", "1,1,1,1,1,1", "0,4") "}", 4, NULL, 1},
    {"{\"a\":" T("F32", "1,1,1,1,1,1,1", "0,4") "}", 4, "too many dimensions", 0}, /* the library takes it */
    {"{\"a\":{\"extra\":3,\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, NULL, 1},
    {" {\"a\":" ONE "}\n\t ", 4, NULL, 1},
    {"{\"a\":" ONE "}x", 4, "not valid JSON", 0},
    {"{\"a\":" ONE ",\"a\":" ONE "}", 4, "duplicate", 0}, /* the library takes equal ones */
    {"{\"a\":" ONE ",\"a\":" T("F32", "1", "4,8") "}", 8, "duplicate", 0},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "duplicate", 0},
    {"{\"a\xFF\":" ONE "}", 4, "not valid JSON", 0},
    {"{\"a\xC0\x80\":" ONE "}", 4, "not valid JSON", 0},
    {"{\"a\xED\xA0\x80\":" ONE "}", 4, "not valid JSON", 0},
    {"{\"a\\u0000\":" ONE "}", 4, "not valid JSON", 0}, /* the library takes it; a C string cannot */
    {"{\"\xE7\xBA\xA2\":" ONE "}", 4, NULL, 1},
    {"{\"\":" ONE "}", 4, NULL, 1},
    {"{\"a\":" T("F32", "1.0", "0,4") "}", 4, "whole numbers", 0},
    {"{\"a\":" T("F32", "-1", "0,4") "}", 4, "whole numbers", 0},
    {"{\"a\":" T("F32", "true", "0,4") "}", 4, "whole numbers", 0},
    {"{\"a\":" T("F32", "1099511627776,1099511627776", "0,4") "}", 4, "no memory holds", 0},
    {"{\"a\":" T("F32", "9223372036854775807", "0,4") "}", 4, "no memory holds", 0},
    {"{\"a\":" T("F32", "18446744073709551616", "0,4") "}", 4, "not valid JSON", 0},
    {"{\"a\":" T("F32", "1099511627776,1099511627776,0", "0,0") "}", 0, "no memory holds", 0},
    {"{\"a\":" T("F32", "2", "0,4") "}", 4, "do not agree with shape", 0},
    {"{\"a\":" T("F32", "1", "4,0") "}", 4, "outside the file", 0},
    {"{\"a\":" T("F32", "1", "-4,0") "}", 4, "outside the file", 0},
    {"{\"a\":" T("F32", "1", "0,9223372036854775807") "}", 4, "outside the file", 0},
    {"{\"a\":" T("F32", "1", "0,4,4") "}", 4, "two whole numbers", 0},
    {"{\"a\":" T("F32", "1", "0") "}", 4, "two whole numbers", 0},
    {"{\"a\":" T("F32", "1", "0,\\\"4\\\"") "}", 4, "not valid JSON", 0},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "no dtype or no shape", 0},
    {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype or no shape", 0},
    {"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype or no shape", 0},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":{},\"data_offsets\":[0,4]}}", 4, "no dtype or no shape", 0},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{}}}", 4, "two whole numbers", 0},
    {"{\"a\":3}", 4, "not an object", 0},
    {"{\"a\":null}", 4, "not an object", 0},
    {"[]", 0, "allowed: an object", 0},
    {"null", 0, "not valid JSON", 0},
    {"", 0, "not valid JSON", 0},
    {"{\"__metadata__\":{\"a\":\"b\"}}", 0, NULL, 0},
    {"{\"__metadata__\":null}", 0, NULL, 0},
    {"{\"__metadata__\":{\"a\":1}}", 0, "not a string", 0},
    {"{\"__metadata__\":[]}", 0, "not an object", 0},
    {"{\"a\":" T("X9", "1", "0,4") "}", 4, "is X9", 0},
    {"{\"a\":" T("f32", "1", "0,4") "}", 4, "unknown dtype", 0},
    {"{\"a\":" T("F4", "2", "0,1") "}", 1, NULL, 1},
    {"{\"a\":" T("F4", "1", "0,1") "}", 1, "ends within a byte", 0},
    {"{\"a\":" T("F6_E2M3", "4", "0,3") "}", 3, NULL, 1},
    {"{\"a\":" T("F6_E3M2", "1", "0,1") "}", 1, "ends within a byte", 0},
};

static void test_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < REEL_COUNT(cases); i++) {
        reel_store *store = (reel_store *)(uintptr_t)0x1;
        reel_error err = {0};
        const size_t n = strlen(cases[i].header);
        const reel_status status = parse(cases[i].header, n, n, cases[i].data, &store, &err);
        if (!cases[i].text) {
            if (status != REEL_OK) fail_msg("%s: %s", cases[i].header, err.text);
            assert_int_equal(reel_store_count(store), cases[i].n);
            assert_int_equal(reel_store_bytes(store), cases[i].data);
            reel_store_close(&store);
            assert_null(store);
            continue;
        }
        if (status == REEL_OK) fail_msg("taken: %s", cases[i].header);
        assert_true(status == REEL_E_MODEL || status == REEL_E_UNSUPPORTED);
        if (!strstr(err.text, cases[i].text)) fail_msg("%s: \"%s\" is not in: %s", cases[i].header, cases[i].text, err.text);
        if (!strstr(err.text, "case") || !strstr(err.text, "remedy: ")) fail_msg("no file or no remedy: %s", err.text);
        assert_ptr_equal(store, (reel_store *)(uintptr_t)0x1); /* written only on success */
    }
}

static void test_dtypes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int bytes;
        reel_dtype dtype;
    } known[] = {{"F64", 8, REEL_DTYPE_F64},
                 {"F32", 4, REEL_DTYPE_F32},
                 {"F16", 2, REEL_DTYPE_F16},
                 {"BF16", 2, REEL_DTYPE_BF16},
                 {"F8_E4M3", 1, REEL_DTYPE_F8_E4M3},
                 {"F8_E5M2", 1, REEL_DTYPE_F8_E5M2},
                 {"I64", 8, REEL_DTYPE_I64},
                 {"I32", 4, REEL_DTYPE_I32},
                 {"U8", 1, REEL_DTYPE_U8},
                 {"BOOL", 1, 0},
                 {"I8", 1, 0},
                 {"I16", 2, 0},
                 {"U16", 2, 0},
                 {"U32", 4, 0},
                 {"U64", 8, 0},
                 {"C64", 8, 0},
                 {"F8_E8M0", 1, 0},
                 {"F8_E4M3FNUZ", 1, 0},
                 {"F8_E5M2FNUZ", 1, 0}};
    for (size_t i = 0; i < REEL_COUNT(known); i++) {
        char header[128];
        reel_store *store = NULL;
        reel_error err = {0};
        const int n = snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"%s\",\"shape\":[3,2],\"data_offsets\":[0,%d]}}", known[i].name,
                               6 * known[i].bytes);
        if (parse(header, (size_t)n, (uint64_t)n, 6 * (size_t)known[i].bytes, &store, &err) != REEL_OK) fail_msg("%s", err.text);
        const reel_stored *t = reel_store_at(store, 0);
        assert_int_equal(t->dtype, known[i].dtype);
        assert_string_equal(t->dtype_name, known[i].name);
        assert_int_equal(t->n_dim, 2);
        assert_int_equal(t->extent[0], 3);
        assert_int_equal(t->extent[1], 2);
        reel_store_close(&store);
    }
}

static void test_lengths(void **state)
{
    (void)state;
    static const char header[] = "{\"a\":" ONE "}";
    const size_t n = sizeof header - 1;
    static const uint64_t said[] = {
        0, 1, n - 1, n + 4 + 1, 100000000, 100000001, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX, UINT64_MAX - 7};
    reel_error err = {0};
    reel_store *store = NULL;
    for (size_t i = 0; i < REEL_COUNT(said); i++) assert_int_equal(parse(header, n, said[i], 4, &store, &err), REEL_E_MODEL);
    /* every shorter file is refused, whatever is cut */
    uint8_t whole[256] = {(uint8_t)n};
    memcpy(whole + 8, header, n);
    for (size_t k = 0; k < 8 + n + 4; k++) {
        uint8_t *cut = malloc(k + 1);
        assert_non_null(cut);
        memcpy(cut, whole, k);
        uint8_t *exact = realloc(cut, k > 0 ? k : 1);
        assert_int_equal(reel_store_parse(exact, k, "cut", &store, &err), REEL_E_MODEL);
        assert_non_null(strstr(err.text, "cut"));
        free(exact);
    }
    assert_int_equal(reel_store_parse(whole, 8 + n + 4, "whole", &store, &err), REEL_OK);
    reel_store_close(&store);
}

static void test_foreign_files(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *text;
    } foreign[] = {{"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 7\n", "git lfs pull"},
                   {"PK\3\4 and more of a zip file", "pickle"},
                   {"\x80\x02}q\x01 and more of it", "pickle"},
                   {"GGUF\3 and so on", "GGUF"},
                   {"<!doctype html><html>", "web page"},
                   {"1234567", "at least 8"}};
    for (size_t i = 0; i < REEL_COUNT(foreign); i++) {
        reel_store *store = NULL;
        reel_error err = {0};
        assert_int_equal(reel_store_parse((const uint8_t *)foreign[i].bytes, strlen(foreign[i].bytes), "foreign", &store, &err),
                         REEL_E_MODEL);
        if (!strstr(err.text, foreign[i].text)) fail_msg("%s", err.text);
    }
}

/* Many tensors: found, sorted, and none that is not there. */
static void test_many(void **state)
{
    (void)state;
    enum { N = 5000, ENTRY = 96 };
    char *header = malloc(N * ENTRY + 16);
    assert_non_null(header);
    int at = sprintf(header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < N; i++) {
        const int k = (i * 1237) % N; /* names in no order */
        at += sprintf(header + at, ",\"block.%d.weight\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[%d,%d]}", k, 2 * i, 2 * i + 2);
    }
    at += sprintf(header + at, "}");
    reel_store *store = NULL;
    reel_error err = {0};
    if (parse(header, (size_t)at, (uint64_t)at, 2 * N, &store, &err) != REEL_OK) fail_msg("%s", err.text);
    free(header);
    assert_int_equal(reel_store_count(store), N);
    for (int32_t i = 1; i < N; i++) assert_true(strcmp(reel_store_at(store, i - 1)->name, reel_store_at(store, i)->name) < 0);
    for (int i = 0; i < N; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "block.%d.weight", i);
        assert_non_null(reel_store_find(store, name));
    }
    assert_null(reel_store_find(store, "block.5000.weight"));
    assert_null(reel_store_find(store, ""));
    assert_string_equal(reel_store_metadata(store, "format"), "pt");
    assert_null(reel_store_metadata(store, "other"));
    reel_store_close(&store);
    reel_store_close(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_headers), cmocka_unit_test(test_dtypes), cmocka_unit_test(test_lengths),
                                       cmocka_unit_test(test_foreign_files), cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
