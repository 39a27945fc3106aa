/* SPDX-License-Identifier: Apache-2.0
 *
 * The manual page (`reel --man`, troff) and the generated pages docs/options.md and docs/exit-codes.md: the same tables, other dress. */
#include <string.h>

#include "apps/cli/cli.h"

typedef struct exit_row {
    int code;
    const char *name, *meaning;
} exit_row;

static const exit_row exit_rows[] = {
#define X(name, value, code, meaning) {code, "REEL_" #name, meaning},
    REEL_STATUS_LIST(X)
#undef X
};

#define SIGNALS_TEXT                                                                                                                    \
    "SIGINT (Ctrl-C), SIGTERM and SIGHUP stop a job after the current operation and leave no half-written file; the program then ends " \
    "with 130, 143 or 129."

/* Text with what troff reads as its own made plain. */
static void troff(FILE *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        bool at_start = p == text || p[-1] == '\n';
        if (at_start && (*p == '.' || *p == '\'')) (void)fputs("\\&", out);
        if (*p == '\\') {
            (void)fputs("\\e", out);
        } else if (*p == '-') {
            (void)fputs("\\-", out);
        } else {
            (void)fputc(*p, out);
        }
    }
}

static void troff_option(FILE *out, const cli_option *option)
{
    char flag[CLI_FLAG_MAX], facts[96];
    (void)fputs(".TP\n", out);
    if (option->letter) (void)fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
    (void)fputs("\\fB", out);
    troff(out, cli_flag_text(option, flag));
    (void)fputs("\\fR", out);
    if (option->placeholder) {
        (void)fputs(" \\fI", out);
        troff(out, option->placeholder);
        (void)fputs("\\fR", out);
    }
    (void)fputc('\n', out);
    troff(out, option->help);
    cli_option_facts(option, facts, sizeof facts);
    if (facts[0]) {
        (void)fputs(" (", out);
        troff(out, facts);
        (void)fputc(')', out);
    }
    (void)fputs("\n", out);
    (void)fputs("Commands:", out);
    const char *comma = " ";
    for (int32_t c = 0; c < CLI_COMMAND_COUNT; c++) {
        if (!cli_option_is_for(option, (cli_command)c)) continue;
        (void)fprintf(out, "%s%s", comma, cli_command_word((cli_command)c));
        comma = ", ";
    }
    (void)fputs(".\n", out);
}

void cli_print_man(FILE *out)
{
    int32_t n;
    const cli_option *options = cli_options(&n);
    (void)fprintf(out, ".TH REEL 1 \"\" \"reel %s\" \"User Commands\"\n.SH NAME\nreel \\- video from text with the Wan models\n",
                  reel_version());
    (void)fputs(".SH SYNOPSIS\n.B reel\n\\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.br\n.B reel\n\\fB\\-\\-help\\fR | \\fB\\-\\-version\\fR | "
                "\\fB\\-\\-man\\fR\n",
                out);
    (void)fputs(".SH DESCRIPTION\nreel turns prompts into clips with Wan models in the diffusers layout. Results and JSON go to standard "
                "output, everything else to standard "
                "error. A file appears whole or not at all; the same request with the same plan gives the same bytes.\n.SH COMMANDS\n",
                out);
    for (int32_t c = 0; c < CLI_COMMAND_COUNT; c++) {
        (void)fprintf(out, ".TP\n\\fBreel %s\\fR ", cli_command_word((cli_command)c));
        troff(out, cli_command_rest((cli_command)c));
        (void)fputc('\n', out);
        troff(out, cli_command_text((cli_command)c));
        (void)fputc('\n', out);
    }
    (void)fputs(".SH SETTINGS OF A CLIP\nEach is also a key of a configuration file, with underscores for dashes.\n", out);
    for (int32_t i = 0; i < n; i++) {
        if (options[i].is_setting) troff_option(out, &options[i]);
    }
    (void)fputs(".SH OTHER OPTIONS\n", out);
    for (int32_t i = 0; i < n; i++) {
        if (!options[i].is_setting) troff_option(out, &options[i]);
    }
    (void)fputs(".SH EXIT STATUS\n", out);
    for (size_t i = 0; i < REEL_COUNT(exit_rows); i++) {
        (void)fprintf(out, ".TP\n\\fB%d\\fR\n", exit_rows[i].code);
        troff(out, exit_rows[i].meaning);
        (void)fputc('\n', out);
    }
    (void)fputs(".PP\n" SIGNALS_TEXT "\n.SH EXAMPLES\n.nf\n", out);
    troff(out, "reel generate --prompt \"A red circle moves from left to right on a white background.\" --seed 42 -o circle.mp4\n"
               "reel generate --from circle.mp4 -o again.mp4\n"
               "reel generate --prompt-file prompts.txt --clips 2 -o clip-%03d.mp4\n"
               "reel generate --prompt \"a blue star\" -o - | ffmpeg -i - star.mkv\n"
               "reel plan --model Wan2.1-T2V-1.3B-Diffusers --resolution 480p --frames 81\n"
               "reel inspect models/wan-tiny-t2v\n");
    (void)fputs(".fi\n", out);
}

/* Markdown table cells: a bar would end the cell. */
static void cell(FILE *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p == '|') (void)fputc('\\', out);
        (void)fputc(*p, out);
    }
}

static void md_option(FILE *out, const cli_option *option)
{
    char flag[CLI_FLAG_MAX], facts[96];
    (void)fputs("| ", out);
    if (option->letter) (void)fprintf(out, "`-%c` ", option->letter);
    (void)fprintf(out, "`%s", cli_flag_text(option, flag));
    if (option->placeholder) {
        (void)fputc(' ', out);
        cell(out, option->placeholder);
    }
    (void)fputs("` | ", out);
    cell(out, option->help);
    cli_option_facts(option, facts, sizeof facts);
    (void)fprintf(out, " | %s | ", facts);
    int32_t n_for = 0;
    for (int32_t c = 0; c < CLI_COMMAND_COUNT; c++) n_for += cli_option_is_for(option, (cli_command)c);
    if (n_for == CLI_COMMAND_COUNT) {
        (void)fputs("all", out);
    } else {
        const char *comma = "";
        for (int32_t c = 0; c < CLI_COMMAND_COUNT; c++) {
            if (!cli_option_is_for(option, (cli_command)c)) continue;
            (void)fprintf(out, "%s%s", comma, cli_command_word((cli_command)c));
            comma = ", ";
        }
    }
    (void)fputs(" |\n", out);
}

void cli_print_options_md(FILE *out)
{
    static const char head[] = "| option | meaning | range and default | commands |\n| --- | --- | --- | --- |\n";
    int32_t n;
    const cli_option *options = cli_options(&n);
    (void)fputs("# Options\n\nMade by `reel --options-md` from the option table; a test holds this page against it.\n\n"
                "Long options take their value after `=` or as the next word; `--` ends options. An option is given once, save `--prompt`. "
                "`--config FILE` reads the same names, with underscores, from a JSON object: numbers as numbers, switches as true or "
                "false, `prompt` as a text or a list of "
                "texts, seeds above 2^63 in quotes. The command line wins over the file, both win over the clip of `--from`.\n\n## "
                "Settings of a clip\n\n",
                out);
    (void)fputs(head, out);
    for (int32_t i = 0; i < n; i++) {
        if (options[i].is_setting) md_option(out, &options[i]);
    }
    (void)fprintf(out, "\n## Other options\n\n%s", head);
    for (int32_t i = 0; i < n; i++) {
        if (!options[i].is_setting) md_option(out, &options[i]);
    }
}

void cli_print_exit_codes_md(FILE *out)
{
    (void)fputs(
        "# Exit codes\n\nMade by `reel --exit-codes-md` from the list in `include/reel/status.h`; a test holds this page against it.\n\n"
        "| code | status of the library | meaning |\n| --- | --- | --- |\n",
        out);
    for (size_t i = 0; i < REEL_COUNT(exit_rows); i++)
        (void)fprintf(out, "| %d | `%s` | %s |\n", exit_rows[i].code, exit_rows[i].name, exit_rows[i].meaning);
    (void)fputs("\n" SIGNALS_TEXT "\n\n`reel inspect` prints its report also for a broken model, and then ends with 3.\n", out);
}
