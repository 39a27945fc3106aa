/* SPDX-License-Identifier: Apache-2.0
 *
 * --help and `reel help`, from the table. */
#include <math.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "base/nearest.h"

enum { TEXT_COLUMN = 30, LINE_WIDTH = 100 };

void cli_option_facts(const cli_option *option, char *out, size_t out_bytes)
{
    const char *unit = option->unit && option->unit[0] ? option->unit : NULL;
    out[0] = '\0';
    if (option->kind == CLI_KIND_ENUM) {
        if (option->preset_text && option->preset_text[0]) (void)snprintf(out, out_bytes, "default %s", option->preset_text);
    } else if (option->kind == CLI_KIND_INT || option->kind == CLI_KIND_REAL) {
        size_t n = (size_t)snprintf(out, out_bytes, "%g to %g%s%s", option->min, option->max, unit ? " " : "", unit ? unit : "");
        bool is_value =
            option->preset >= option->min && option->preset <= option->max; /* others mean "the model's own", as the text says */
        if (is_value && n < out_bytes) (void)snprintf(out + n, out_bytes - n, "; default %g", option->preset);
    }
}

/* Prints words from the current column on, broken at LINE_WIDTH. */
static void print_wrapped(FILE *out, const char *text, int32_t column)
{
    bool is_first = true;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t n = strcspn(text, " ");
        int32_t width = 0;
        for (size_t i = 0; i < n; i++) width += ((unsigned char)text[i] & 0xC0U) != 0x80U;
        if (!is_first && column + 1 + width > LINE_WIDTH) {
            (void)fprintf(out, "\n%*s", TEXT_COLUMN, "");
            column = TEXT_COLUMN;
        } else if (!is_first) {
            (void)fputc(' ', out);
            column++;
        }
        (void)fprintf(out, "%.*s", (int)n, text);
        column += width;
        text += n;
        is_first = false;
    }
    (void)fputc('\n', out);
}

static void print_option(FILE *out, const cli_option *option)
{
    char flag[CLI_FLAG_MAX], left[160], facts[96], text[640];
    (void)snprintf(left, sizeof left, "  %c%c%c %s%s%s", option->letter ? '-' : ' ', option->letter ? option->letter : ' ',
                   option->letter ? ',' : ' ', cli_flag_text(option, flag), option->placeholder ? " " : "",
                   option->placeholder ? option->placeholder : "");
    cli_option_facts(option, facts, sizeof facts);
    (void)snprintf(text, sizeof text, "%s%s%s%s", option->help, facts[0] ? " (" : "", facts, facts[0] ? ")" : "");
    int32_t n = (int32_t)strlen(left);
    if (n >= TEXT_COLUMN - 1) {
        (void)fprintf(out, "%s\n%*s", left, TEXT_COLUMN, "");
    } else {
        (void)fprintf(out, "%s%*s", left, (int)(TEXT_COLUMN - n), "");
    }
    print_wrapped(out, text, TEXT_COLUMN);
}

static void print_group(FILE *out, cli_command command, bool settings)
{
    int32_t n;
    const cli_option *options = cli_options(&n);
    for (int32_t i = 0; i < n; i++) {
        if (options[i].is_setting == settings && cli_option_is_for(&options[i], command)) print_option(out, &options[i]);
    }
}

void cli_print_command_help(FILE *out, cli_command command)
{
    (void)fprintf(out, "reel %s %s\n\n", cli_command_word(command), cli_command_rest(command));
    print_wrapped(out, cli_command_text(command), 0);
    if (command == CLI_GENERATE) {
        (void)fputs("\n  reel generate --prompt \"A red circle moves from left to right on a white background.\" -o circle.mp4\n", out);
    }
    int32_t n, n_setting = 0;
    const cli_option *options = cli_options(&n);
    for (int32_t i = 0; i < n; i++) n_setting += options[i].is_setting && cli_option_is_for(&options[i], command);
    if (n_setting > 0) {
        (void)fputs("\nSettings of the clip:\n", out);
        print_group(out, command, true);
    }
    (void)fputs(n_setting > 0 ? "\nOther options:\n" : "\nOptions:\n", out);
    print_group(out, command, false);
}

void cli_print_help(FILE *out)
{
    (void)fputs("reel makes video from text with the Wan models.\n\nreel COMMAND [OPTION]…\n\n", out);
    for (int32_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        (void)fprintf(out, "  %-12s", cli_command_word((cli_command)i));
        print_wrapped(out, cli_command_text((cli_command)i), 14);
    }
    (void)fputs("\nAlone: --help, --version (with the libraries), --man (manual page in troff)\n"
                "`reel COMMAND --help` explains a command. Exit codes are in the manual page and docs/exit-codes.md.\n",
                out);
}

reel_status cli_help(cli_session *session, reel_error *err)
{
    if (session->args.n_positional == 0) {
        cli_print_help(stdout);
        return REEL_OK;
    }
    const char *words[CLI_COMMAND_COUNT];
    for (int32_t i = 0; i < CLI_COMMAND_COUNT; i++) {
        words[i] = cli_command_word((cli_command)i);
        if (strcmp(words[i], session->args.positional[0]) != 0) continue;
        cli_print_command_help(stdout, (cli_command)i);
        return REEL_OK;
    }
    const char *near_word = reel_word_nearest(session->args.positional[0], words, CLI_COMMAND_COUNT);
    return REEL_FAIL(
        err, REEL_E_ARGUMENT, "no such command to explain\ngiven: %.80s\nallowed: the commands that `reel --help` lists\nremedy: %s%s%s",
        session->args.positional[0], near_word ? "did you mean " : "see `reel --help`", near_word ? near_word : "", near_word ? "?" : "");
}
