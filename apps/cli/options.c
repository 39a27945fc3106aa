/* SPDX-License-Identifier: Apache-2.0
 *
 * The parser: GNU long options with "=" or a separate value, short ones bundled or with their value attached, "--" ends options. */
#include "apps/cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

typedef struct pair {
    const char *a, *b;
} pair;

static const pair rivals[] = {{"size", "resolution"}, {"prompt", "prompt_file"}, {"quiet", "verbose"}};

static const cli_given *find_given(const cli_args *args, const char *key)
{
    for (int32_t i = args->n_given - 1; i >= 0; i--) {
        if (strcmp(args->given[i].option->key, key) == 0) return &args->given[i];
    }
    return NULL;
}

const char *cli_value(const cli_args *args, const char *key)
{
    const cli_given *given = find_given(args, key);
    return given ? given->value : NULL;
}

bool cli_has(const cli_args *args, const char *key)
{
    return find_given(args, key) != NULL;
}

static reel_status bad_value(const cli_option *option, const char *value, reel_error *err)
{
    char flag[CLI_FLAG_MAX];
    return REEL_FAIL(err, REEL_E_ARGUMENT, "%s needs a number in its range\ngiven: \"%.80s\"\nallowed: %g to %g\nremedy: correct the value",
                     cli_flag_text(option, flag), value, option->min, option->max);
}

reel_status cli_real(const cli_args *args, const char *key, double *out, reel_error *err)
{
    const cli_option *option = cli_option_find(args->command, key, strlen(key));
    assert(option);
    const char *value = cli_value(args, key);
    double number = option->preset;
    if (value) {
        char *end = NULL;
        errno = 0;
        number = strtod(value, &end);
        if (value[0] == '\0' || strspn(value, "0123456789+-.eE") != strlen(value) || *end != '\0') return bad_value(option, value, err);
        if (!(number >= option->min && number <= option->max)) return bad_value(option, value, err);
    }
    *out = number;
    return REEL_OK;
}

reel_status cli_int(const cli_args *args, const char *key, int32_t *out, reel_error *err)
{
    double number = 0.0;
    REEL_TRY(cli_real(args, key, &number, err));
    if (number != floor(number)) return bad_value(cli_option_find(args->command, key, strlen(key)), cli_value(args, key), err);
    *out = (int32_t)number;
    return REEL_OK;
}

const cli_option *cli_rival(const cli_args *args, const cli_option *option)
{
    for (size_t i = 0; i < REEL_COUNT(rivals); i++) {
        const char *other = strcmp(option->key, rivals[i].a) == 0   ? rivals[i].b
                            : strcmp(option->key, rivals[i].b) == 0 ? rivals[i].a
                                                                    : NULL;
        const cli_given *given = other ? find_given(args, other) : NULL;
        if (given) return given->option;
    }
    return NULL;
}

reel_status cli_add(cli_args *args, const cli_option *option, const char *value, bool from_config, reel_error *err)
{
    char flag[CLI_FLAG_MAX], other[CLI_FLAG_MAX];
    if (!option->repeats && cli_has(args, option->key)) {
        return REEL_FAIL(err, REEL_E_ARGUMENT, "an option is repeated\ngiven: %s twice\nallowed: once\nremedy: drop one of them",
                         cli_flag_text(option, flag));
    }
    const cli_option *rival = cli_rival(args, option);
    if (rival) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "two options contradict each other\ngiven: %s and %s\nallowed: one of them\nremedy: drop one of them",
                         cli_flag_text(rival, other), cli_flag_text(option, flag));
    }
    cli_given *grown = realloc(args->given, sizeof *grown * ((size_t)args->n_given + 1));
    if (!grown) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for the options\nremedy: close other programs");
    args->given = grown;
    args->given[args->n_given++] = (cli_given){.option = option, .value = value, .from_config = from_config};
    return REEL_OK;
}

static bool is_help(const char *text)
{
    return strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0;
}

typedef struct reader {
    int argc, at;
    const char *const *argv;
} reader;

/* The next argument as a value; one that is itself a known option is a forgotten value, not a value. */
static reel_status take_value(reader *r, const cli_args *args, const cli_option *option, const char **out, reel_error *err)
{
    char flag[CLI_FLAG_MAX];
    const char *next = r->at < r->argc ? r->argv[r->at] : NULL;
    bool is_option = next && strncmp(next, "--", 2) == 0 && cli_option_find(args->command, next + 2, strcspn(next + 2, "="));
    if (!next || is_option) {
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "%s needs a value\ngiven: %s\nallowed: %s %s\nremedy: write the value after it (with \"=\" if it begins like an option)",
            cli_flag_text(option, flag), next ? next : "nothing", flag, option->placeholder);
    }
    r->at++;
    *out = next;
    return REEL_OK;
}

static reel_status unknown_option(const cli_args *args, const char *text, const char *name, reel_error *err)
{
    char near_flag[CLI_FLAG_MAX], cut[CLI_FLAG_MAX];
    size_t n = strcspn(name, "=");
    if (n >= sizeof cut) n = sizeof cut - 1;
    memcpy(cut, name, n);
    cut[n] = '\0';
    const char *near_name = cli_option_nearest(args->command, cut, near_flag);
    if (near_name) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "unknown option\ngiven: %.80s\nallowed: the options that `reel %s --help` lists\nremedy: did you mean %s?", text,
                         cli_command_word(args->command), near_name);
    }
    return REEL_FAIL(err, REEL_E_ARGUMENT,
                     "unknown option\ngiven: %.80s\nallowed: the options that `reel %s --help` lists\nremedy: drop it", text,
                     cli_command_word(args->command));
}

static reel_status read_long(reader *r, cli_args *args, const char *text, reel_error *err)
{
    const char *name = text + 2, *equals = strchr(name, '='), *value = NULL;
    const cli_option *option = cli_option_find(args->command, name, equals ? (size_t)(equals - name) : strlen(name));
    if (!option) return unknown_option(args, text, name, err);
    if (option->kind == CLI_KIND_FLAG) {
        if (equals) {
            return REEL_FAIL(err, REEL_E_ARGUMENT, "an option takes no value\ngiven: %.80s\nallowed: %.*s\nremedy: drop the value", text,
                             (int)(equals - text), text);
        }
    } else if (equals) {
        value = equals + 1;
    } else {
        REEL_TRY(take_value(r, args, option, &value, err));
    }
    return cli_add(args, option, value, false, err);
}

static const cli_option *find_letter(cli_command command, char letter)
{
    int32_t n;
    const cli_option *options = cli_options(&n);
    for (int32_t i = 0; i < n; i++) {
        if (cli_option_is_for(&options[i], command) && options[i].letter == letter) return &options[i];
    }
    return NULL;
}

static reel_status read_short(reader *r, cli_args *args, const char *text, reel_error *err)
{
    for (const char *p = text + 1; *p; p++) {
        const cli_option *option = find_letter(args->command, *p);
        const char *value = NULL;
        if (!option) return unknown_option(args, text, text + 1, err);
        if (option->kind != CLI_KIND_FLAG && p[1]) {
            value = p + 1;
            p += strlen(p) - 1;
        } else if (option->kind != CLI_KIND_FLAG) {
            REEL_TRY(take_value(r, args, option, &value, err));
        }
        REEL_TRY(cli_add(args, option, value, false, err));
    }
    return REEL_OK;
}

static reel_status add_positional(cli_args *args, const char *text, reel_error *err)
{
    const char *rest = cli_command_rest(args->command);
    bool takes_one = rest[0] != '\0' && strcmp(rest, "[OPTION]…") != 0;
    if (!takes_one || args->n_positional > 0) {
        bool is_prompt = args->command == CLI_GENERATE || args->command == CLI_PLAN;
        return REEL_FAIL(err, REEL_E_ARGUMENT, "an argument stands alone\ngiven: \"%.80s\"\nallowed: reel %s %s\nremedy: %s", text,
                         cli_command_word(args->command), rest,
                         is_prompt ? "prompts go after --prompt, in quotes" : "drop it, or quote names that hold blanks");
    }
    args->positional[args->n_positional++] = text;
    return REEL_OK;
}

static reel_status read_command(const char *word, cli_command *out, reel_error *err)
{
    const char *words[CLI_COMMAND_COUNT];
    for (int32_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        words[i] = cli_command_word((cli_command)i);
        if (strcmp(words[i], word) == 0) {
            *out = (cli_command)i;
            return REEL_OK;
        }
    }
    if (word[0] == '-') {
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "an option stands where a command belongs\ngiven: %.80s\nallowed: reel COMMAND [OPTION]…; alone: --help, --version, "
            "--man\nremedy: put the command first, such as `reel generate %.80s`",
            word, word);
    }
    const char *near_word = reel_word_nearest(word, words, CLI_COMMAND_COUNT);
    return REEL_FAIL(
        err, REEL_E_ARGUMENT,
        "unknown command\ngiven: %.80s\nallowed: generate, inspect, plan, devices, encode, decode, bench, completion, help\nremedy: %s%s%s",
        word, near_word ? "did you mean " : "see `reel --help`", near_word ? near_word : "", near_word ? "?" : "");
}

static reel_status read_all(reader *r, cli_args *args, reel_error *err)
{
    bool ended = false;
    while (r->at < r->argc) {
        const char *text = r->argv[r->at++];
        if (!ended && strcmp(text, "--") == 0) {
            ended = true;
        } else if (!ended && strncmp(text, "--", 2) == 0) {
            REEL_TRY(read_long(r, args, text, err));
        } else if (!ended && text[0] == '-' && text[1] != '\0') {
            REEL_TRY(read_short(r, args, text, err));
        } else {
            REEL_TRY(add_positional(args, text, err));
        }
    }
    return REEL_OK;
}

reel_status cli_parse(int argc, const char *const *argv, cli_args *out, reel_error *err)
{
    if (argc < 2) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "there is no command\ngiven: nothing\nallowed: reel COMMAND [OPTION]…\nremedy: see `reel --help`");
    }
    cli_args args = {.command = CLI_NONE};
    reader r = {.argc = argc, .at = 2, .argv = argv};
    REEL_TRY(read_command(argv[1], &args.command, err));
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) args.wants_help = args.wants_help || is_help(argv[i]);
    args.positional = calloc((size_t)argc, sizeof *args.positional);
    if (!args.positional) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for the options\nremedy: close other programs");
    reel_status status = args.wants_help ? REEL_OK : read_all(&r, &args, err); /* help is given whatever else is wrong */
    if (status != REEL_OK) {
        cli_args_deinit(&args);
        return reel_trace(err, status, __FILE__, __LINE__);
    }
    *out = args;
    return REEL_OK;
}

void cli_args_deinit(cli_args *args)
{
    for (int32_t i = 0; i < args->n_kept; i++) free(args->kept[i]);
    free(args->kept);
    free(args->given);
    free(args->positional);
    *args = (cli_args){.command = CLI_NONE};
}
