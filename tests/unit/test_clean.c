/* SPDX-License-Identifier: Apache-2.0
 *
 * Prompt cleaning and token ids against the 3,000 recorded prompts (tests/fixtures/text/README.md), and cleaning's errors and edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/file.h"
#include "text/text.h"

#define FIXTURES REEL_SOURCE_DIR "/tests/fixtures/text"

#ifdef REEL_WITH_ICU /* the recorded prompts are hardly ever ASCII */

enum { LIBRARIES = 4, PROMPTS = 3000 };

typedef struct recorded {
    reel_buf text;
    const char *cleaned; /* NULL: equal to text, or only its sum known */
    size_t n_cleaned;
    uint32_t cleaned_sum; /* 0: not given */
    bool is_suspect;
    uint32_t id_sum[LIBRARIES]; /* 0: the known exception */
} recorded;

static uint32_t fnv(const void *data, size_t n)
{
    const unsigned char *bytes = data;
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < n; i++) sum = (sum ^ bytes[i]) * 16777619u;
    return sum;
}

static uint32_t sum_of_ids(const reel_tokens *tokens)
{
    unsigned char bytes[REEL_TOKEN_MAX * 4];
    for (int32_t i = 0; i < tokens->n; i++)
        for (int j = 0; j < 4; j++) bytes[i * 4 + j] = (unsigned char)((uint32_t)tokens->id[i] >> (8 * j));
    return fnv(bytes, (size_t)tokens->n * 4);
}

static void read_recorded(json_t *line, recorded *out)
{
    memset(out, 0, sizeof *out);
    json_t *prompt = json_array_get(line, 0), *cleaned = json_array_get(line, 2);
    for (json_int_t i = json_integer_value(json_array_get(line, 1)); i > 0; i--)
        assert_int_equal(reel_buf_append(&out->text, json_string_value(prompt), json_string_length(prompt), NULL), REEL_OK);
    out->cleaned = json_string_value(cleaned);
    out->n_cleaned = json_string_length(cleaned);
    out->cleaned_sum = (uint32_t)json_integer_value(cleaned);
    out->is_suspect = json_integer_value(json_array_get(line, 3)) != 0;
    for (size_t i = 0; i < LIBRARIES; i++) out->id_sum[i] = (uint32_t)json_integer_value(json_array_get(line, 4 + i));
}

static void check_cleaned(const recorded *want, const reel_buf *got, bool is_suspect, int line)
{
    const char *text = want->cleaned ? want->cleaned : want->text.data;
    size_t n = want->cleaned ? want->n_cleaned : want->text.n;
    bool is_equal = want->cleaned_sum ? fnv(got->data, got->n) == want->cleaned_sum : got->n == n && memcmp(got->data, text, n) == 0;
    if (!is_equal) fail_msg("line %d: cleaned to \"%.200s\"", line, got->data);
    if (is_suspect != want->is_suspect) fail_msg("line %d: suspect is %d, recorded %d", line, is_suspect, want->is_suspect);
}

typedef struct tokenizers {
    reel_tokenizer *library[LIBRARIES];
    int compared[LIBRARIES], suspects;
} tokenizers;

static void check_line(tokenizers *t, const char *text, size_t n, int line)
{
    json_t *tree = json_loadb(text, n, JSON_ALLOW_NUL, NULL);
    assert_non_null(tree);
    recorded want;
    read_recorded(tree, &want);
    reel_buf got = {0};
    bool is_suspect = false;
    reel_error err;
    if (reel_prompt_clean(want.text.data, want.text.n, &got, &is_suspect, &err) != REEL_OK) fail_msg("line %d: %s", line, err.text);
    check_cleaned(&want, &got, is_suspect, line);
    t->suspects += is_suspect;
    for (int i = 0; i < LIBRARIES; i++) {
        reel_tokens tokens;
        memset(&tokens, 0xA5, sizeof tokens);
        if (reel_tokenize(t->library[i], got.data, got.n, REEL_TOKEN_MAX, &tokens, &err) != REEL_OK)
            fail_msg("line %d: %s", line, err.text);
        for (int32_t j = tokens.n; j < REEL_TOKEN_MAX; j++) assert_int_equal(tokens.id[j], 0);
        if (want.id_sum[i] == 0) continue;
        if (sum_of_ids(&tokens) != want.id_sum[i]) fail_msg("line %d: ids of tokenizer %d differ for \"%.200s\"", line, i, got.data);
        t->compared[i]++;
    }
    reel_buf_deinit(&got);
    reel_buf_deinit(&want.text);
    json_decref(tree);
}

static void test_recorded_prompts(void **state)
{
    (void)state;
    const char *folder[LIBRARIES] = {REEL_SOURCE_DIR "/models/wan-tiny-t2v/tokenizer", FIXTURES "/split", FIXTURES "/plain",
                                     FIXTURES "/only-spiece"};
    tokenizers t = {0};
    reel_error err;
    for (int i = 0; i < LIBRARIES; i++)
        if (reel_tokenizer_open(folder[i], &t.library[i], &err) != REEL_OK) fail_msg("%s", err.text);
    reel_buf file = {0};
    assert_int_equal(reel_read_file(FIXTURES "/prompts.jsonl", (size_t)4 << 20, &file, NULL), REEL_OK);
    int lines = 0;
    for (char *at = file.data, *end; (end = memchr(at, '\n', (size_t)(file.data + file.n - at))) != NULL; at = end + 1)
        check_line(&t, at, (size_t)(end - at), ++lines);
    assert_int_equal(lines, PROMPTS);
    assert_true(t.suspects > 100);
    for (int i = 0; i < LIBRARIES; i++) {
        assert_true(t.compared[i] >= PROMPTS - 20); /* only the known exception is left out, with the bundled tokenizer */
        reel_tokenizer_close(&t.library[i]);
    }
    reel_buf_deinit(&file);
}

#endif

static void expect(const char *text, size_t n, const char *want)
{
    reel_buf got = {0};
    bool is_suspect = true;
    assert_int_equal(reel_buf_text(&got, "kept ", NULL), REEL_OK);
    assert_int_equal(reel_prompt_clean(text, n, &got, &is_suspect, NULL), REEL_OK);
    assert_string_equal(got.data + 5, want);
    assert_memory_equal(got.data, "kept ", 5); /* appended */
    assert_false(is_suspect);
    reel_buf_deinit(&got);
}

#define EXPECT(text, want) expect("" text, sizeof(text) - 1, want)

static void test_rules(void **state)
{
    (void)state;
    EXPECT("", "");
    EXPECT(" \t a \r\n\x0B b\x0C", "a b");
    EXPECT("nul\0 and \x7F", "nul and");
    EXPECT("\x1B[1;31mred\x1B[0m \x1B[x", "red");
    EXPECT("&amp;amp;amp;amp;lt;", "<");
    EXPECT("<\n&amp;amp;amp;lt;", "< &amp;lt;");
    EXPECT("a &notit; b &hellip;", "a \xC2\xACit; b \xE2\x80\xA6");
    EXPECT("P&EACUTE;REZ", "P\xC3\x89REZ");
    EXPECT("&#x3b; &#59; &#xZZ;", "; ; &#xZZ;");
    EXPECT("&#0;&#xD800;&#1;&#1114112;&#99999999999999999999;", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
#ifdef REEL_WITH_ICU
    EXPECT("\xE2\x80\x9Cq\xE2\x80\x9D \xE2\x80\x98s\xE2\x80\x99", "\"q\" 's'");
    EXPECT("\xEF\xAC\x81 \xC5\x89 \xEF\xAC\x85", "fi 'n \xC5\xBFt");
    EXPECT("\xEF\xBC\xA1\xE3\x80\x80\xEF\xBC\x8C", "A ,");
    EXPECT("\xC2\x85|\xC2\x80|\xC2\x81", "\xE2\x80\xA6|\xE2\x82\xAC|\xC2\x81");
    EXPECT("e\xCC\x81", "\xC3\xA9");
    EXPECT("\xEF\xBB\xBF"
           "bom\xE2\x80\xA8line",
           "bom line");
#endif
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        const char *byte;
    } wrong[] = {
        {"ab\xFF", 3, "byte 2"},          {"\xC0\x80", 2, "byte 0"},     {"a\xED\xA0\x80", 4, "byte 1"}, {"\xF4\x90\x80\x80", 4, "byte 0"},
        {"abc\xE2\x82", 5, "byte 3"},     {"\xE0\x80\x80", 3, "byte 0"}, {"x\x80", 2, "byte 1"},         {"\xF0\x80\x80\x80", 4, "byte 0"},
        {"\xF5\x80\x80\x80", 4, "byte 0"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        reel_error err = {0};
        reel_buf out = {0};
        bool is_suspect = true;
        reel_status status = reel_prompt_clean(wrong[i].text, wrong[i].n, &out, &is_suspect, &err);
#ifdef REEL_WITH_ICU
        assert_int_equal(status, REEL_E_ARGUMENT);
#else
        assert_int_equal(status, REEL_E_UNSUPPORTED);
#endif
        assert_non_null(strstr(err.text, wrong[i].byte));
        assert_int_equal(out.n, 0);
        assert_true(is_suspect); /* untouched */
        reel_buf_deinit(&out);
    }
}

static void test_size_limit(void **state)
{
    (void)state;
    size_t n = REEL_PROMPT_BYTES_MAX + 1;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, 'a', n);
    reel_buf out = {0};
    bool is_suspect = false;
    assert_int_equal(reel_prompt_clean(text, n, &out, &is_suspect, NULL), REEL_E_ARGUMENT);
    assert_int_equal(reel_prompt_clean(text, n - 1, &out, &is_suspect, NULL), REEL_OK);
    assert_int_equal(out.n, n - 1);
    reel_buf_deinit(&out);
    free(text);
}

/* References nested so that each round of cleaning undoes one level: an error after a bounded time, not an endless run. */
static void test_nested_references(void **state)
{
    (void)state;
    reel_buf text = {0}, out = {0};
    bool is_suspect = false;
    for (int i = 0; i < 20000; i++) assert_int_equal(reel_buf_text(&text, "&#4", NULL), REEL_OK);
    assert_int_equal(reel_buf_text(&text, "1", NULL), REEL_OK);
    for (int i = 0; i < 20000; i++) assert_int_equal(reel_buf_text(&text, "9;", NULL), REEL_OK);
    reel_status status = reel_prompt_clean(text.data, text.n, &out, &is_suspect, NULL);
    assert_true(status == REEL_OK || status == REEL_E_ARGUMENT);
    reel_buf_clear(&text);
    reel_buf_clear(&out);
    assert_int_equal(reel_buf_text(&text, "&", NULL), REEL_OK);
    for (int i = 0; i < 100000; i++) assert_int_equal(reel_buf_text(&text, "amp;", NULL), REEL_OK);
    assert_int_equal(reel_prompt_clean(text.data, text.n, &out, &is_suspect, NULL), REEL_OK);
    assert_string_equal(out.data, "&");
    reel_buf_deinit(&text);
    reel_buf_deinit(&out);
}

#ifdef REEL_WITH_ICU
static void test_wrong_encodings(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_suspect;
    } cases[] = {
        {"schÃ¶n", true},
        {"âœ” done", true},
        {"voilÃ le travail", true},
        {"РџСЂРёРІРµС‚", true},
        {"schön", false},
        {"Ünïcödé ÄÖÜ façade ¿qué? «oui» №5", false},
        {"Чёрный кот «сидит»", false},
        {"ÂME ET CŒUR", false},
        {"(ง'̀-'́)ง ┬─┬ノ", false},
        {"100 € — 3½ × 2² °C", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        reel_buf out = {0};
        bool is_suspect = !cases[i].is_suspect;
        assert_int_equal(reel_prompt_clean(cases[i].text, strlen(cases[i].text), &out, &is_suspect, NULL), REEL_OK);
        if (is_suspect != cases[i].is_suspect) fail_msg("\"%s\": suspect is %d", cases[i].text, is_suspect);
        if (i == 0) assert_string_equal(out.data, cases[i].text); /* used as given */
        reel_buf_deinit(&out);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef REEL_WITH_ICU
        cmocka_unit_test(test_recorded_prompts),
        cmocka_unit_test(test_wrong_encodings),
#endif
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_size_limit),
        cmocka_unit_test(test_nested_references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
