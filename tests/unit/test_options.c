/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line's parser and configuration files: forms that are accepted, faults that are named with the nearest option, and that every
 * option of the table can be given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "apps/cli/cli.h"

enum { WORD_MAX = 24 };

/* Splits at blanks, parses. */
static reel_status parse(const char *line, cli_args *args, reel_error *err)
{
    static char copy[512]; /* the parser borrows its texts */
    const char *argv[WORD_MAX] = {"reel"};
    int argc = 1;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        assert_true(argc < WORD_MAX);
        argv[argc++] = word;
    }
    return cli_parse(argc, argv, args, err);
}

static cli_args good(const char *line)
{
    cli_args args;
    reel_error err;
    memset(&args, 0xA5, sizeof args);
    if (parse(line, &args, &err) != REEL_OK) fail_msg("%s: %s", line, err.text);
    return args;
}

/* The error's text holds every word of `words` (separated by '|') and a remedy; *args stays as it was. */
static void bad(const char *line, const char *words)
{
    cli_args args, before;
    reel_error err;
    memset(&args, 0xA5, sizeof args);
    before = args;
    if (parse(line, &args, &err) != REEL_E_ARGUMENT) fail_msg("accepted: %s", line);
    assert_memory_equal(&args, &before, sizeof args);
    char copy[256];
    snprintf(copy, sizeof copy, "%s|remedy: ", words);
    for (char *word = strtok(copy, "|"); word; word = strtok(NULL, "|")) {
        if (!strstr(err.text, word)) fail_msg("%s: no \"%s\" in: %s", line, word, err.text);
    }
}

static void test_forms(void **state)
{
    (void)state;
    cli_args args = good("generate --prompt=red --steps 8 --seed -1 -q -oa.mp4 --no-clobber --guidance-scale=4.5");
    assert_int_equal(args.command, CLI_GENERATE);
    assert_int_equal(args.n_given, 7);
    assert_string_equal(cli_value(&args, "prompt"), "red");
    assert_string_equal(cli_value(&args, "steps"), "8");
    assert_string_equal(cli_value(&args, "seed"), "-1");
    assert_string_equal(cli_value(&args, "output"), "a.mp4");
    assert_true(cli_has(&args, "quiet") && cli_has(&args, "no_clobber"));
    assert_null(cli_value(&args, "no_clobber"));
    assert_false(cli_has(&args, "verbose"));
    cli_args_deinit(&args);

    args = good("generate --prompt a --prompt b --prompt= -o - --guidance_scale_2 3");
    assert_int_equal(args.n_given, 5);
    assert_string_equal(args.given[1].value, "b");
    assert_string_equal(args.given[2].value, "");
    assert_string_equal(cli_value(&args, "output"), "-");
    assert_string_equal(cli_value(&args, "guidance_scale_2"), "3");
    cli_args_deinit(&args);

    args = good("inspect --json -v -- --odd-name");
    assert_int_equal(args.n_positional, 1);
    assert_string_equal(args.positional[0], "--odd-name");
    cli_args_deinit(&args);

    args = good("generate --nonsense --help --steps");
    assert_true(args.wants_help);
    cli_args_deinit(&args);
    args = good("inspect -- --help");
    assert_false(args.wants_help);
    cli_args_deinit(&args);
}

static void test_faults(void **state)
{
    (void)state;
    bad("", "no command|reel --help");
    bad("genrate", "unknown command|did you mean generate?");
    bad("qqq", "unknown command|see `reel --help`");
    bad("--steps 4", "stands where a command belongs");
    bad("generate --setps 4", "unknown option|given: --setps|did you mean --steps?");
    bad("generate --guidence-scale=4", "did you mean --guidance-scale?");
    bad("generate --qqqqqqqqqq", "unknown option|drop it");
    bad("generate -x", "unknown option|given: -x");
    bad("generate --steps 4 --steps 5", "repeated|--steps twice");
    bad("generate -q -q", "repeated|--quiet");
    bad("generate -qv", "contradict|--quiet|--verbose");
    bad("generate --size 64x64 --resolution 480p", "contradict|--size|--resolution");
    bad("generate --resolution 480p --size 64x64", "contradict|--size|--resolution");
    bad("generate --prompt a --prompt-file b", "contradict|--prompt and --prompt-file");
    bad("generate --no-clobber=yes", "takes no value|given: --no-clobber=yes");
    bad("generate --steps", "--steps needs a value|given: nothing");
    bad("generate --prompt --steps 4", "--prompt needs a value|given: --steps");
    bad("generate -o", "--output needs a value");
    bad("generate a red circle", "stands alone|\"a\"|prompts go after --prompt");
    bad("inspect a b", "stands alone|\"b\"");
    bad("devices cpu", "stands alone|\"cpu\"");
    bad("inspect --steps 4 x", "unknown option|--steps"); /* an option of another command */
    bad("devices --prompt a", "unknown option");
}

/* Every option of every command is accepted by its flag, once; what --help prints is what the parser takes. */
static void test_whole_table(void **state)
{
    (void)state;
    int32_t n, n_tried = 0;
    const cli_option *options = cli_options(&n);
    for (int32_t c = 0; c < CLI_COMMAND_COUNT; c++) {
        for (int32_t i = 0; i < n; i++) {
            char flag[CLI_FLAG_MAX], line[200];
            if (!cli_option_is_for(&options[i], (cli_command)c) || strcmp(options[i].key, "help") == 0) continue;
            bool is_flag = options[i].kind == CLI_KIND_FLAG;
            assert_int_equal(is_flag, options[i].placeholder == NULL);
            snprintf(line, sizeof line, "%s %s%s", cli_command_word((cli_command)c), cli_flag_text(&options[i], flag),
                     is_flag ? "" : " 17");
            cli_args args = good(line);
            assert_ptr_equal(args.given[0].option, &options[i]);
            assert_true(is_flag ? args.given[0].value == NULL : strcmp(args.given[0].value, "17") == 0);
            cli_args_deinit(&args);
            n_tried++;
            for (int32_t k = 0; k < i; k++) assert_string_not_equal(options[k].key, options[i].key);
        }
    }
    assert_true(n_tried > 80);
}

static void test_numbers(void **state)
{
    (void)state;
    int32_t n = -1;
    double x = -1.0;
    reel_error err;
    cli_args args = good("bench --threads 2");
    assert_int_equal(cli_int(&args, "threads", &n, &err), REEL_OK);
    assert_int_equal(n, 2);
    assert_int_equal(cli_int(&args, "repeats", &n, &err), REEL_OK);
    assert_int_equal(n, 5); /* the table's preset */
    cli_args_deinit(&args);
    static const char *const wrong[] = {"0", "-1", "1001", "3.5", "x", "", "1e99", "nan", "inf", "5 "};
    for (size_t i = 0; i < REEL_COUNT(wrong); i++) {
        const char *argv[] = {"reel", "bench", "--repeats", wrong[i]};
        assert_int_equal(cli_parse(4, argv, &args, &err), REEL_OK);
        n = -1;
        assert_int_equal(cli_int(&args, "repeats", &n, &err), REEL_E_ARGUMENT);
        assert_int_equal(n, -1);
        assert_non_null(strstr(err.text, "--repeats"));
        assert_non_null(strstr(err.text, "1 to 1000"));
        cli_args_deinit(&args);
    }
    args = good("decode a --fps 23.976");
    assert_int_equal(cli_real(&args, "fps", &x, &err), REEL_OK);
    assert_true(x == 23.976);
    cli_args_deinit(&args);
    args = good("decode a --fps 0");
    assert_int_equal(cli_real(&args, "fps", &x, &err), REEL_E_ARGUMENT);
    cli_args_deinit(&args);
}

static cli_args with_config(const char *line, const char *json)
{
    cli_args args = good(line);
    reel_error err;
    if (cli_config_parse(&args, json, strlen(json), "test.json", &err) != REEL_OK) fail_msg("%s: %s", json, err.text);
    return args;
}

static void test_config(void **state)
{
    (void)state;
    cli_args args = with_config(
        "generate --steps 4 --resolution 480p",
        "{\"steps\": 8, \"size\": \"64x64\", \"prompt\": [\"a\", \"b\"], \"guidance-scale\": 4.25, \"seed\": \"18446744073709551615\", "
        "\"no_clobber\": true, \"sidecar\": false, \"frames\": 17, \"fps\": null}");
    assert_string_equal(cli_value(&args, "steps"), "4"); /* the command line wins */
    assert_false(cli_has(&args, "size")); /* and so does the option that contradicts */
    assert_string_equal(cli_value(&args, "prompt"), "b");
    assert_string_equal(cli_value(&args, "guidance_scale"), "4.25");
    assert_string_equal(cli_value(&args, "seed"), "18446744073709551615");
    assert_string_equal(cli_value(&args, "frames"), "17");
    assert_true(cli_has(&args, "no_clobber"));
    assert_false(cli_has(&args, "sidecar") || cli_has(&args, "fps"));
    cli_args_deinit(&args);

    args = with_config("generate --prompt c", "{\"prompt\": [\"a\", \"b\"], \"seed\": -5}");
    assert_int_equal(args.n_given, 2);
    assert_string_equal(cli_value(&args, "prompt"), "c");
    assert_string_equal(cli_value(&args, "seed"), "-5");
    cli_args_deinit(&args);
}

static void test_config_faults(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"{\"setps\": 3}", "did you mean \"steps\"?"},
                                           {"{\"steps\": true}", "true or false"},
                                           {"{\"no_clobber\": 1}", "allowed: true or false"},
                                           {"{\"size\": 5}", "allowed: a string"},
                                           {"{\"prompt\": [[\"a\"]]}", "an array"},
                                           {"{\"config\": \"x\"}", "may not hold"},
                                           {"{\"help\": true}", "may not hold"},
                                           {"{\"repeats\": 3}", "unknown setting"}, /* of another command */
                                           {"{\"size\": \"1x1\", \"resolution\": \"480p\"}", "contradict"},
                                           {"{\"guidance-scale\": 1, \"guidance_scale\": 2}", "repeated"},
                                           {"{\"steps\": 1, \"steps\": 2}", "not valid JSON"},
                                           {"[1]", "allowed: an object"},
                                           {"{\"prompt\": \"a\\u0000b\"}", "remedy: "},
                                           {"", "not valid JSON"}};
    for (size_t i = 0; i < REEL_COUNT(cases); i++) {
        cli_args args = good("generate");
        reel_error err;
        assert_int_equal(cli_config_parse(&args, cases[i][0], strlen(cases[i][0]), "test.json", &err), REEL_E_ARGUMENT);
        if (!strstr(err.text, cases[i][1]) || !strstr(err.text, "remedy: ")) fail_msg("%s: %s", cases[i][0], err.text);
        cli_args_deinit(&args);
    }
}

static void test_render(void **state)
{
    (void)state;
    static const char source[] =
        "{\"device\": \"cpu\", \"peak_bytes\": 1572864, \"is_fast\": true, \"latent\": [5, 16, 16], \"notes\": [], \"boundary\": null,"
        "\"phases\": [{\"name\": \"text\", \"total_bytes\": 2048, \"estimate_s\": 0.5}, {\"name\": \"decode\", \"total_bytes\": "
        "3221225472}],"
        "\"attention\": {\"self\": {\"name\": \"flash\", \"reason\": \"first\"}}, "
        "\"times\": {\"text\": {\"median_s\": 0.25}, \"decode\": {\"median_s\": 300}}}";
    static const char want[] = "device: cpu\npeak: 1.5 MiB\nis fast: yes\nlatent: 5, 16, 16\nnotes: none\nboundary: -\nphases:\n"
                               "  name      total  estimate\n"
                               "  text    2.0 KiB     0.5 s\n"
                               "  decode  3.0 GiB          \n"
                               "attention:\n  self:\n    name: flash\n    reason: first\n"
                               "times:\n          median\n  text    0.25 s\n  decode    5:00\n";
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    json_t *value = json_loads(source, 0, NULL);
    assert_non_null(out);
    assert_non_null(value);
    cli_render(out, value);
    fclose(out);
    assert_string_equal(text, want);
    json_decref(value);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),   cmocka_unit_test(test_faults), cmocka_unit_test(test_whole_table),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_config), cmocka_unit_test(test_config_faults),
        cmocka_unit_test(test_render),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
