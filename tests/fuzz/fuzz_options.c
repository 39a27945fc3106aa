/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzzes the command line's parser and configuration files: the input is words, each ended by a line break; what follows an empty line is a
 * configuration file. Whatever parses is asked for all its values. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/options.h"

enum { WORD_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void ask_all(const cli_args *args)
{
    int32_t n, whole;
    double number;
    const cli_option *options = cli_options(&n);
    for (int32_t i = 0; i < n; i++) {
        bool is_number = options[i].kind == CLI_KIND_INT || options[i].kind == CLI_KIND_REAL;
        if (cli_has(args, options[i].key) && !cli_value(args, options[i].key) && options[i].kind != CLI_KIND_FLAG) abort();
        if (!is_number || !cli_option_is_for(&options[i], args->command)) continue;
        (void)cli_real(args, options[i].key, &number, NULL);
        if (options[i].kind == CLI_KIND_INT && cli_has(args, options[i].key)) (void)cli_int(args, options[i].key, &whole, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *argv[WORD_MAX] = {"reel"};
    int argc = 1;
    cli_args args;
    reel_error err;
    char *text = malloc(n + 1), *at = text, *end = text + n;
    if (!text) return 0;
    if (n > 0) memcpy(text, data, n);
    *end = '\0';
    while (at < end && *at != '\n' && argc < WORD_MAX) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        *stop = '\0';
        argv[argc++] = at;
        at = stop < end ? stop + 1 : end;
    }
    if (cli_parse(argc, argv, &args, &err) == REEL_OK) {
        ask_all(&args);
        if (at < end && cli_config_parse(&args, at, (size_t)(end - at), "fuzz.json", &err) == REEL_OK) ask_all(&args);
        cli_args_deinit(&args);
    } else if (!strstr(err.text, "remedy: ")) {
        abort();
    }
    free(text);
    return 0;
}
