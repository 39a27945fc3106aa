/* SPDX-License-Identifier: Apache-2.0
 *
 * Typed access to JSON: right types and ranges are taken, wrong ones named with file, key and type, and out-parameters stay as they were. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "common/temp_dir.h"

static reel_error err;

static void expect(reel_status status, const char *text)
{
    if (status != REEL_E_MODEL || !strstr(err.text, text) || !strstr(err.text, "doc"))
        fail_msg("wanted \"%s\", got %d: %s", text, (int)status, err.text);
}

static reel_json parse(const char *text)
{
    reel_json json = {0};
    if (reel_json_parse(text, strlen(text), "doc", REEL_E_MODEL, &json, &err) != REEL_OK) fail_msg("%s: %s", text, err.text);
    return json;
}

static void test_documents(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      "{} x",
                                      "{\"a\": 1, \"a\": 1}",
                                      "{\"a\": 01}",
                                      "{\"a\": NaN}",
                                      "{\"a\": 1e999}",
                                      "{'a': 1}",
                                      "{\"a\": 99999999999999999999}",
                                      "\xEF\xBB\xBF{}",
                                      "{\"\xC3\": 1}",
                                      "[1]",
                                      "\"text\"",
                                      "{\"b\": {\"a\": 1, \"a\": 1}}"};
    for (size_t i = 0; i < REEL_COUNT(bad); i++) {
        reel_json json = {.path = "mark"};
        expect(reel_json_parse(bad[i], strlen(bad[i]), "doc", REEL_E_MODEL, &json, &err), "remedy: ");
        assert_string_equal(json.path, "mark");
        assert_int_equal(reel_json_parse(bad[i], strlen(bad[i]), "doc", REEL_E_ARGUMENT, &json, NULL), REEL_E_ARGUMENT);
    }
    reel_json json;
    expect(reel_json_parse("{\n  \"a\": x}", 11, "doc", REEL_E_MODEL, &json, &err), "line 2");
    char deep[9000] = "{\"a\":";
    memset(deep + 5, '[', 8000);
    expect(reel_json_parse(deep, 8005, "doc", REEL_E_MODEL, &json, &err), "depth");
    json = parse(" {} ");
    reel_json_deinit(&json);
    assert_null(json.root);
}

static void test_numbers(void **state)
{
    (void)state;
    reel_json json = parse("{\"i\": 7, \"low\": -9223372036854775808, \"r\": 2.5, \"big\": 1e300, \"s\": \"7\", \"t\": true, \"n\": null, "
                           "\"l\": [1, 2.5], \"m\": [1, \"2\"]}");
    int64_t n = 55;
    double d = 55.0, list[2] = {0};
    assert_int_equal(reel_json_int(&json, "i", 7, 7, &n, &err), REEL_OK);
    assert_int_equal(n, 7);
    assert_int_equal(reel_json_opt_int(&json, "low", INT64_MIN, 0, &n, &err), REEL_OK);
    assert_true(n == INT64_MIN);
    n = 55;
    expect(reel_json_int(&json, "i", 8, 9, &n, &err), "allowed: 8 to 9");
    expect(reel_json_int(&json, "i", 1, 6, &n, &err), "out of range");
    expect(reel_json_int(&json, "r", 0, 9, &n, &err), "\"r\" in doc is a number");
    expect(reel_json_int(&json, "s", 0, 9, &n, &err), "is a string");
    expect(reel_json_int(&json, "t", 0, 9, &n, &err), "is true or false");
    expect(reel_json_int(&json, "l", 0, 9, &n, &err), "is an array");
    expect(reel_json_int(&json, "n", 0, 9, &n, &err), "has no \"n\"");
    expect(reel_json_int(&json, "none", 0, 9, &n, &err), "has no \"none\"");
    assert_int_equal(reel_json_opt_int(&json, "n", 0, 9, &n, &err), REEL_OK);
    assert_int_equal(reel_json_opt_int(&json, "none", 0, 9, &n, &err), REEL_OK);
    assert_int_equal(n, 55);
    assert_int_equal(reel_json_opt_double(&json, "n", 0, 9, &d, &err), REEL_OK);
    expect(reel_json_opt_double(&json, "big", 0, 1e299, &d, &err), "out of range");
    expect(reel_json_opt_double(&json, "s", 0, 9, &d, &err), "a number");
    assert_true(d == 55.0);
    assert_int_equal(reel_json_opt_double(&json, "i", 0, 9, &d, &err), REEL_OK);
    assert_true(d == 7.0);
    assert_int_equal(reel_json_doubles(&json, "l", 2, list, &err), REEL_OK);
    assert_true(list[0] == 1.0 && list[1] == 2.5);
    expect(reel_json_doubles(&json, "l", 3, list, &err), "has 2 values");
    expect(reel_json_doubles(&json, "m", 2, list, &err), "array of finite numbers");
    expect(reel_json_doubles(&json, "i", 1, list, &err), "is a whole number");
    expect(reel_json_doubles(&json, "none", 1, list, &err), "is nothing");
    reel_json_deinit(&json);
}

static void test_other_types(void **state)
{
    (void)state;
    reel_json json = parse("{\"yes\": true, \"no\": false, \"text\": \"\xE7\xBA\xA2\", \"n\": null, \"o\": {}}");
    bool b = false;
    const char *text = "as before";
    assert_int_equal(reel_json_opt_bool(&json, "yes", &b, &err), REEL_OK);
    assert_true(b);
    assert_int_equal(reel_json_opt_bool(&json, "n", &b, &err), REEL_OK);
    assert_true(b);
    assert_int_equal(reel_json_opt_bool(&json, "no", &b, &err), REEL_OK);
    assert_false(b);
    expect(reel_json_opt_bool(&json, "text", &b, &err), "is a string");
    expect(reel_json_opt_string(&json, "yes", &text, &err), "is true or false");
    expect(reel_json_opt_string(&json, "o", &text, &err), "is an object");
    assert_int_equal(reel_json_opt_string(&json, "n", &text, &err), REEL_OK);
    assert_string_equal(text, "as before");
    assert_int_equal(reel_json_opt_string(&json, "text", &text, &err), REEL_OK);
    assert_string_equal(text, "\xE7\xBA\xA2");
    assert_true(reel_json_has(&json, "o") && !reel_json_has(&json, "n") && !reel_json_has(&json, "none"));
    reel_json_deinit(&json);
}

static void test_files(void **state)
{
    (void)state;
    char *dir = temp_dir_new();
    reel_json json;
    assert_int_equal(reel_json_load(temp_path(dir, "none"), REEL_E_MODEL, &json, &err), REEL_E_IO);
    assert_int_equal(reel_json_load(dir, REEL_E_MODEL, &json, &err), REEL_E_IO);
    temp_write(dir, "empty", "", 0);
    assert_int_equal(reel_json_load(temp_path(dir, "empty"), REEL_E_ARGUMENT, &json, &err), REEL_E_ARGUMENT);
    temp_write(dir, "good", "{\"a\": 3}", 8);
    assert_int_equal(reel_json_load(temp_path(dir, "good"), REEL_E_MODEL, &json, &err), REEL_OK);
    assert_true(reel_json_has(&json, "a"));
    reel_json_deinit(&json);
    temp_dir_free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_documents), cmocka_unit_test(test_numbers), cmocka_unit_test(test_other_types),
                                       cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
