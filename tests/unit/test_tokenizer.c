/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokenizer's edges: recorded ids of the bundled one, cutting, added tokens, the known exception, and files that lie or are damaged. (Ids of
 * many prompts: test_clean.c.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/file.h"
#include "text/json_scores.h"
#include "text/text.h"

#define BUNDLED REEL_SOURCE_DIR "/models/wan-tiny-t2v/tokenizer"
#define FIXTURES REEL_SOURCE_DIR "/tests/fixtures/text"

enum { N_RECORDED = 64 };

static reel_tokenizer *open_dir(const char *dir)
{
    reel_tokenizer *tokenizer = NULL;
    reel_error err;
    if (reel_tokenizer_open(dir, &tokenizer, &err) != REEL_OK) fail_msg("%s", err.text);
    return tokenizer;
}

static void ids_are(const reel_tokenizer *tokenizer, const char *text, const int32_t *want, int32_t n)
{
    reel_tokens got;
    reel_error err;
    memset(&got, 0xA5, sizeof got);
    if (reel_tokenize(tokenizer, text, strlen(text), REEL_TOKEN_MAX, &got, &err) != REEL_OK) fail_msg("%s", err.text);
    bool is_equal = got.n == n;
    for (int32_t i = 0; i < n && is_equal; i++) is_equal = got.id[i] == want[i];
    if (!is_equal) fail_msg("ids of \"%s\" differ: %d of them, first %d", text, got.n, got.id[0]);
    for (int32_t i = n; i < REEL_TOKEN_MAX; i++) assert_int_equal(got.id[i], 0);
    assert_int_equal(got.n_cut, 0);
    assert_string_equal(got.cut_text, "");
}

#define IDS_ARE(tokenizer, text, ...)                                            \
    do {                                                                         \
        static const int32_t want[] = {__VA_ARGS__};                             \
        ids_are(tokenizer, text, want, (int32_t)(sizeof want / sizeof want[0])); \
    } while (0)

#ifdef REEL_WITH_ICU /* the bundled map of characters looks for clusters */

/* Recorded from SentencePiece on spiece.model. tokenizers says the same but where a text spells a token ("<pad> </s>"). */
static void check_recorded(const reel_tokenizer *tokenizer, bool reads_tokens, size_t n_want)
{
    json_t *list = json_load_file(REEL_SOURCE_DIR "/tests/fixtures/wan-tiny-t2v/tokens.json", 0, NULL);
    assert_true(json_is_array(list) && json_array_size(list) > 10);
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i), *ids = json_object_get(entry, "ids");
        const char *text = json_string_value(json_object_get(entry, "text"));
        int32_t want[REEL_TOKEN_MAX];
        assert_true(json_array_size(ids) <= REEL_TOKEN_MAX);
        if (reads_tokens && strstr(text, "</s>")) continue;
        for (size_t j = 0; j < json_array_size(ids); j++) want[j] = (int32_t)json_integer_value(json_array_get(ids, j));
        ids_are(tokenizer, text, want, (int32_t)json_array_size(ids));
        n++;
    }
    assert_int_equal(n, n_want);
    json_decref(list);
}

/* Values taken from tokenizers 0.23.3. */
static void test_added_tokens(void **state)
{
    (void)state;
    reel_tokenizer *tokenizer = open_dir(BUNDLED);
    IDS_ARE(tokenizer, "", 1);
    IDS_ARE(tokenizer, "</s>", 1, 1);
    IDS_ARE(tokenizer, "a red </S> x", 259, 260, 292, 260, 918, 929, 542, 916, 260, 944, 1);
    IDS_ARE(tokenizer,
            "\xE2\x80\x8B"
            "a",
            259, 1);
    reel_tokenizer_close(&tokenizer);
}

static void test_known_exception(void **state)
{
    (void)state;
    reel_tokenizer *tokenizer = open_dir(BUNDLED);
    /* tokenizers: 260 927 260 198 172 1, without the mark (bytes CC 81 are 207 132). */
    IDS_ARE(tokenizer, "\xE2\x91\xA0\xCC\x81 e\xCC\x81", 260, 927, 207, 132, 260, 198, 172, 1);
    /* A line break's two characters are one cluster too; there nothing is kept. */
    IDS_ARE(tokenizer, "a\r\nb", 259, 526, 1);
    reel_tokenizer_close(&tokenizer);
}

static void test_cut(void **state)
{
    (void)state;
    const char *const folder[] = {BUNDLED, FIXTURES "/split", FIXTURES "/plain", FIXTURES "/only-spiece"};
    for (size_t i = 0; i < sizeof folder / sizeof folder[0]; i++) {
        reel_tokenizer *tokenizer = open_dir(folder[i]);
        const char *text = "A red circle moves right on a white background. \xF0\x9F\x99\x82\xE7\xBA\xA2 the end";
        reel_tokens whole, part;
        assert_int_equal(reel_tokenize(tokenizer, text, strlen(text), REEL_TOKEN_MAX, &whole, NULL), REEL_OK);
        for (int32_t max = 1; max <= whole.n + 1; max++) {
            memset(&part, 0xA5, sizeof part);
            assert_int_equal(reel_tokenize(tokenizer, text, strlen(text), max, &part, NULL), REEL_OK);
            int32_t n = max < whole.n ? max : whole.n;
            assert_int_equal(part.n, n);
            assert_memory_equal(part.id, whole.id, (size_t)(n - 1) * sizeof *part.id);
            assert_int_equal(part.id[n - 1], 1);
            assert_int_equal(part.n_cut, whole.n - n);
            assert_true(part.n_cut == 0 ? part.cut_text[0] == '\0' : memchr(part.cut_text, '\0', sizeof part.cut_text) != NULL);
        }
        reel_tokenizer_close(&tokenizer);
    }
    reel_tokenizer *tokenizer = open_dir(BUNDLED);
    reel_tokens part;
    assert_int_equal(reel_tokenize(tokenizer, "a red circle moves", 18, 4, &part, NULL), REEL_OK);
    assert_string_equal(part.cut_text, "circle moves");
    assert_int_equal(reel_tokenize(tokenizer, "a \xF0\x9F\x99\x82 red", 10, 5, &part, NULL), REEL_OK); /* within the picture's bytes */
    assert_string_equal(part.cut_text, "red");
    reel_buf long_text = {0};
    for (int i = 0; i < 10000; i++) assert_int_equal(reel_buf_text(&long_text, "\xE7\xBA\xA2", NULL), REEL_OK);
    assert_int_equal(reel_tokenize(tokenizer, long_text.data, long_text.n, REEL_TOKEN_MAX, &part, NULL), REEL_OK);
    assert_int_equal(part.n, 512);
    assert_true(strlen(part.cut_text) > 240 && strlen(part.cut_text) % 3 == 0);
    reel_buf_deinit(&long_text);
    reel_tokenizer_close(&tokenizer);
}

#endif

static void test_arguments(void **state)
{
    (void)state;
    reel_tokenizer *tokenizer = open_dir(FIXTURES "/split");
    reel_tokens out;
    reel_error err;
    assert_int_equal(reel_tokenize(tokenizer, "a", 1, 0, &out, NULL), REEL_E_ARGUMENT);
    assert_int_equal(reel_tokenize(tokenizer, "a", 1, REEL_TOKEN_MAX + 1, &out, NULL), REEL_E_ARGUMENT);
    assert_int_equal(reel_tokenize(tokenizer, "ab\xFF", 3, 5, &out, &err), REEL_E_ARGUMENT);
    assert_non_null(strstr(err.text, "byte 2"));
    reel_tokenizer_close(&tokenizer);
}

/* Values that tokenizers 0.23.3 makes of the digits; the first two are a bit off what strtod gives. */
static void test_scores(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":[1,{\"vocab\":[]},\"\\\"]\"],\"model\" :\n{\"type\":\"Unigram\",\"vocab\" : [ [\"a\\\"],\", "
                               "-3.9588284492492676 ],[\"\",-0.0000000000000000000000000000000001234],"
                               "[\"x\",5E+3],[\"y\",-7],[\"z\",0.0],[\"w\",1e-300],[\"v\",18446744073709551616],"
                               "[\"u\",123456789012345678901.25],[\"t\",4e-324],[\"s\",-0.1234567890123456789012345]],\"b\":0}}";
    static const double want[] = {
        -0x1.fabae3fffffffp+1, -0x1.480db02aff52ep-113, 5000, -7, 0, 0x1.56e1fc2f8f359p-997, 0x1p64, 0x1.ac53a7e04bcd9p66, 0x1p-1074,
        -0x1.f9add3746f65fp-4};
    enum { N = sizeof want / sizeof want[0] };
    double got[N + 1];
    assert_true(reel_json_scores(text, sizeof text - 1, got, N));
    for (int i = 0; i < N; i++)
        if (got[i] != want[i]) fail_msg("score %d is %a", i, got[i]);
    assert_false(reel_json_scores(text, sizeof text - 1, got, N + 1));
    assert_false(reel_json_scores(text, sizeof text - 1, got, N - 1));
    size_t end = (size_t)(strstr(text, ",\"b\"") - text); /* behind the list's bracket */
    for (size_t n = 0; n < end; n++) assert_false(reel_json_scores(text, n, got, N));
}

/* ---- folders of their own -------------------------------------------------------------------------------------------------------- */

typedef struct folder {
    char path[64], json[96], spm[96];
} folder;

static folder make_folder(void)
{
    folder f;
    (void)snprintf(f.path, sizeof f.path, "/tmp/reel_tokenizer_XXXXXX");
    assert_non_null(mkdtemp(f.path));
    (void)snprintf(f.json, sizeof f.json, "%s/tokenizer.json", f.path);
    (void)snprintf(f.spm, sizeof f.spm, "%s/spiece.model", f.path);
    return f;
}

static void remove_folder(const folder *f)
{
    (void)unlink(f->json);
    (void)unlink(f->spm);
    assert_int_equal(rmdir(f->path), 0);
}

#ifdef REEL_WITH_ICU

static void test_recorded(void **state)
{
    (void)state;
    reel_tokenizer *tokenizer = open_dir(BUNDLED);
    assert_int_equal(reel_tokenizer_vocab(tokenizer), 949);
    check_recorded(tokenizer, true, N_RECORDED - 1);
    reel_tokenizer_close(&tokenizer);
    assert_null(tokenizer);

    folder f = make_folder();
    reel_buf file = {0};
    assert_int_equal(reel_read_file(BUNDLED "/spiece.model", 1 << 20, &file, NULL), REEL_OK);
    assert_int_equal(reel_write_file(f.spm, file.data, file.n, false, NULL), REEL_OK);
    reel_buf_deinit(&file);
    tokenizer = open_dir(f.path);
    assert_int_equal(reel_tokenizer_vocab(tokenizer), 949);
    check_recorded(tokenizer, false, N_RECORDED);
    reel_tokenizer_close(&tokenizer);
    remove_folder(&f);
}

#endif

/* ---- files that lie -------------------------------------------------------------------------------------------------------- */

/* Opening fails with status and a text that has the word; nothing is handed out. */
static void refused(const folder *f, reel_status status, const char *word)
{
    reel_tokenizer *tokenizer = NULL;
    reel_error err = {0};
    reel_status got = reel_tokenizer_open(f->path, &tokenizer, &err);
    if (got != status || !strstr(err.text, word)) fail_msg("status %d instead of %d, \"%s\" not in \"%s\"", got, status, word, err.text);
    assert_non_null(strstr(err.text, "remedy:"));
    assert_null(tokenizer);
}

static json_t *load_split(void)
{
    json_t *root = json_load_file(FIXTURES "/split/tokenizer.json", 0, NULL);
    assert_non_null(root);
    return root;
}

static void save(const folder *f, json_t *root)
{
    assert_int_equal(json_dump_file(root, f->json, 0), 0);
    json_decref(root);
}

static json_t *object_of_type(const char *type)
{
    return json_pack("{s:s}", "type", type);
}

static void test_unknown_kinds(void **state)
{
    (void)state;
    folder f = make_folder();
    static const char *const part[] = {"normalizer", "pre_tokenizer", "post_processor", "model"};
    static const char *const kind[] = {"BertNormalizer", "ByteLevel", "RobertaProcessing", "BPE"};
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        json_t *root = load_split();
        assert_int_equal(json_object_set_new(root, part[i], object_of_type(kind[i])), 0);
        save(&f, root);
        refused(&f, REEL_E_UNSUPPORTED, kind[i]);
    }
    json_t *root = load_split();
    assert_int_equal(
        json_object_set_new(root, "normalizer", json_pack("{s:s,s:[{s:s}]}", "type", "Sequence", "normalizers", "type", "Lowercase")), 0);
    save(&f, root);
    refused(&f, REEL_E_UNSUPPORTED, "Lowercase");
    root = load_split();
    assert_int_equal(json_object_set_new(root, "normalizer",
                                         json_pack("{s:s,s:{s:s},s:s}", "type", "Replace", "pattern", "Regex", "[a-z]", "content", "")),
                     0);
    save(&f, root);
    refused(&f, REEL_E_UNSUPPORTED, "[a-z]");
    remove_folder(&f);
}

static void test_lies_in_json(void **state)
{
    (void)state;
    folder f = make_folder();
    json_t *root = load_split();
    assert_int_equal(json_object_set_new(json_array_get(json_object_get(root, "added_tokens"), 3), "id", json_integer(5000)), 0);
    save(&f, root);
    refused(&f, REEL_E_MODEL, "entry 3");
    root = load_split();
    assert_int_equal(json_array_set_new(json_object_get(json_object_get(root, "model"), "vocab"), 7, json_pack("[s,s]", "a", "b")), 0);
    save(&f, root);
    refused(&f, REEL_E_MODEL, "entry 7");
    root = load_split();
    assert_int_equal(json_object_set_new(json_object_get(root, "model"), "unk_id", json_integer(1 << 30)), 0);
    save(&f, root);
    refused(&f, REEL_E_MODEL, "unk_id");
    root = load_split();
    assert_int_equal(
        json_object_set_new(root, "normalizer", json_pack("{s:s,s:s}", "type", "Precompiled", "precompiled_charsmap", "ALQCAACEAAA=")), 0);
    save(&f, root);
    refused(&f, REEL_E_MODEL, "map");
    root = load_split();
    assert_int_equal(json_object_set_new(root, "model", json_null()), 0);
    save(&f, root);
    refused(&f, REEL_E_MODEL, "model");
    assert_int_equal(reel_write_file(f.json, "{\"model\":", 9, false, NULL), REEL_OK);
    refused(&f, REEL_E_MODEL, "JSON");
    assert_int_equal(reel_write_file(f.json, "[]", 2, false, NULL), REEL_OK);
    refused(&f, REEL_E_MODEL, "an object");
    remove_folder(&f);
}

static void test_files_that_disagree(void **state)
{
    (void)state;
    folder f = make_folder();
    refused(&f, REEL_E_MODEL, "missing");
    save(&f, load_split());
    reel_tokenizer *tokenizer = open_dir(f.path); /* tokenizer.json alone is enough */
    IDS_ARE(tokenizer, "</s>", 1, 1);
    reel_tokenizer_close(&tokenizer);
    reel_buf file = {0};
    assert_int_equal(reel_read_file(FIXTURES "/plain/spiece.model", 1 << 20, &file, NULL), REEL_OK);
    assert_int_equal(reel_write_file(f.spm, file.data, file.n, false, NULL), REEL_OK);
    refused(&f, REEL_E_MODEL, "do not belong together");
    reel_buf_deinit(&file);
    remove_folder(&f);
}

/* spiece.model cut at every length, and with each byte changed: refused, or opened and used without harm. */
static void test_damaged_spiece(void **state)
{
    (void)state;
    folder f = make_folder();
    reel_buf file = {0};
    assert_int_equal(reel_read_file(FIXTURES "/only-spiece/spiece.model", 1 << 20, &file, NULL), REEL_OK);
    int refused_count = 0, opened = 0;
    for (size_t i = 0; i < file.n; i += 7) {
        bool is_cut = i % 2 == 0;
        char kept = file.data[i];
        if (!is_cut) file.data[i] = (char)(kept ^ (1 << (i % 8)));
        assert_int_equal(reel_write_file(f.spm, file.data, is_cut ? i : file.n, false, NULL), REEL_OK);
        file.data[i] = kept;
        reel_tokenizer *tokenizer = NULL;
        reel_tokens tokens;
        if (reel_tokenizer_open(f.path, &tokenizer, NULL) != REEL_OK) {
            refused_count++;
            continue;
        }
        opened++;
        (void)reel_tokenize(tokenizer, "the cat and \xE7\xBA\xA2", 15, REEL_TOKEN_MAX, &tokens, NULL);
        reel_tokenizer_close(&tokenizer);
    }
    assert_true(refused_count > 50 && opened > 5);
    assert_int_equal(reel_write_file(f.spm, "", 0, false, NULL), REEL_OK);
    refused(&f, REEL_E_MODEL, "empty");
    reel_buf_deinit(&file);
    remove_folder(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef REEL_WITH_ICU
        cmocka_unit_test(test_recorded),     cmocka_unit_test(test_added_tokens),        cmocka_unit_test(test_known_exception),
        cmocka_unit_test(test_cut),
#endif
        cmocka_unit_test(test_scores),       cmocka_unit_test(test_arguments),           cmocka_unit_test(test_unknown_kinds),
        cmocka_unit_test(test_lies_in_json), cmocka_unit_test(test_files_that_disagree), cmocka_unit_test(test_damaged_spiece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
