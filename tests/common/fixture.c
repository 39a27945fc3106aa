/* SPDX-License-Identifier: Apache-2.0
 *
 * The tests' own reader of safetensors. */
#include "common/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

fixture fixture_open(const char *relative)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", REEL_SOURCE_DIR, relative);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("cannot open %s", path);
    fseek(file, 0, SEEK_END);
    long n = ftell(file);
    rewind(file);
    assert_true(n > 8);
    fixture f = {.n = (size_t)n, .bytes = malloc((size_t)n)};
    assert_non_null(f.bytes);
    assert_int_equal(fread(f.bytes, 1, f.n, file), f.n);
    fclose(file);
    uint64_t header;
    memcpy(&header, f.bytes, sizeof header);
    assert_true(header < f.n - 8);
    f.data_begin = 8 + (size_t)header;
    f.header = json_loadb((const char *)f.bytes + 8, (size_t)header, 0, NULL);
    assert_non_null(f.header);
    return f;
}

void fixture_close(fixture *f)
{
    json_decref(f->header);
    free(f->bytes);
    *f = (fixture){0};
}

const void *fixture_get(const fixture *f, const char *name, const char *dtype, size_t *count)
{
    const json_t *entry = json_object_get(f->header, name);
    if (!entry) fail_msg("the fixture has no tensor %s", name);
    assert_string_equal(json_string_value(json_object_get(entry, "dtype")), dtype);
    const json_t *shape = json_object_get(entry, "shape"), *offsets = json_object_get(entry, "data_offsets");
    size_t n = 1, element = strstr(dtype, "64") ? 8 : strstr(dtype, "32") ? 4 : strstr(dtype, "16") ? 2 : 1;
    for (size_t i = 0; i < json_array_size(shape); i++) n *= (size_t)json_integer_value(json_array_get(shape, i));
    size_t begin = (size_t)json_integer_value(json_array_get(offsets, 0)), end = (size_t)json_integer_value(json_array_get(offsets, 1));
    assert_int_equal(end - begin, n * element);
    assert_true(f->data_begin + end <= f->n);
    const uint8_t *data = f->bytes + f->data_begin + begin;
    assert_int_equal((uintptr_t)data % element, 0);
    *count = n;
    return data;
}
