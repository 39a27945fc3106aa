/* SPDX-License-Identifier: Apache-2.0
 *
 * Completion scripts for bash, zsh and fish, from the table: commands, options of a command, words of options that take words, files and
 * folders of those that take paths. */
#include <string.h>

#include "apps/cli/cli.h"
#include "base/nearest.h"

cli_offer cli_option_offer(const cli_option *option, const char **words)
{
    *words = "";
    if (option->kind == CLI_KIND_FLAG) return CLI_OFFER_NONE;
    if (option->kind == CLI_KIND_ENUM) {
        *words = option->values;
        return CLI_OFFER_WORDS;
    }
    if (strcmp(option->key, "scheduler") == 0) {
        *words = "unipc|euler|dpm++";
        return CLI_OFFER_WORDS;
    }
    if (strcmp(option->key, "isa") == 0) {
        *words = "avx2|avx512|avx512-bf16|amx";
        return CLI_OFFER_WORDS;
    }
    if (strcmp(option->placeholder, "DIR") == 0) return CLI_OFFER_FOLDERS;
    if (strcmp(option->placeholder, "FILE") == 0 || strcmp(option->placeholder, "CLIP") == 0) return CLI_OFFER_FILES;
    return CLI_OFFER_NONE;
}

static void print_spaced(FILE *out, const char *words)
{
    for (const char *p = words; *p; p++) (void)fputc(*p == '|' ? ' ' : *p, out);
}

static void print_command_words(FILE *out)
{
    for (int32_t c = 0; c < CLI_COMMAND_COUNT; c++) (void)fprintf(out, "%s%s", c ? " " : "", cli_command_word((cli_command)c));
}

static void bash_values(FILE *out)
{
    int32_t n;
    const cli_option *options = cli_options(&n);
    char flag[CLI_FLAG_MAX];
    (void)fputs("    case $before in\n", out);
    for (int32_t i = 0; i < n; i++) {
        const char *words;
        cli_offer offer = cli_option_offer(&options[i], &words);
        if (options[i].kind == CLI_KIND_FLAG) continue;
        (void)fprintf(out, "    %s", cli_flag_text(&options[i], flag));
        if (options[i].letter) (void)fprintf(out, "|-%c", options[i].letter);
        (void)fputs(") COMPREPLY=(", out);
        if (offer == CLI_OFFER_WORDS) {
            (void)fputs("$(compgen -W '", out);
            print_spaced(out, words);
            (void)fputs("' -- \"$word\")", out);
        } else if (offer != CLI_OFFER_NONE) {
            (void)fprintf(out, "$(compgen %s -- \"$word\")", offer == CLI_OFFER_FILES ? "-f" : "-d");
        }
        (void)fputs("); return;;\n", out);
    }
    (void)fputs("    esac\n", out);
}

static void print_bash(FILE *out)
{
    int32_t n;
    const cli_option *options = cli_options(&n);
    char flag[CLI_FLAG_MAX];
    (void)fputs("# bash completion of reel; use: source <(reel completion bash)\n_reel()\n{\n"
                "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n    COMPREPLY=()\n"
                "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '",
                out);
    print_command_words(out);
    (void)fputs(" --help --version --man' -- \"$word\"))\n        return\n    fi\n", out);
    bash_values(out);
    (void)fputs("    case $word in\n    -*)\n        case $command in\n", out);
    for (int32_t c = 0; c < CLI_COMMAND_COUNT; c++) {
        (void)fprintf(out, "        %s) COMPREPLY=($(compgen -W '", cli_command_word((cli_command)c));
        for (int32_t i = 0; i < n; i++) {
            if (cli_option_is_for(&options[i], (cli_command)c)) (void)fprintf(out, "%s ", cli_flag_text(&options[i], flag));
        }
        (void)fputs("' -- \"$word\"));;\n", out);
    }
    (void)fputs("        esac\n        return;;\n    esac\n    case $command in\n    completion) COMPREPLY=($(compgen -W 'bash zsh fish' "
                "-- \"$word\"));;\n"
                "    help) COMPREPLY=($(compgen -W '",
                out);
    print_command_words(out);
    (void)fputs("' -- \"$word\"));;\n    inspect) COMPREPLY=($(compgen -d -- \"$word\"));;\n    encode|decode) COMPREPLY=($(compgen -f -- "
                "\"$word\"));;\n    esac\n}\n"
                "complete -o filenames -F _reel reel\n",
                out);
}

/* Help in single quotes: for zsh brackets and colons have a meaning, for both a quote ends the text. */
static void print_quoted(FILE *out, const char *text, const char *escaped)
{
    for (const char *p = text; *p; p++) {
        if (*p == '\'') {
            (void)fputs("'\\''", out);
            continue;
        }
        if (strchr(escaped, *p)) (void)fputc('\\', out);
        (void)fputc(*p, out);
    }
}

static void zsh_option(FILE *out, const cli_option *option)
{
    char flag[CLI_FLAG_MAX];
    const char *words;
    cli_offer offer = cli_option_offer(option, &words);
    (void)fprintf(out, " \\\n            '%s%s%s[", option->repeats ? "*" : "", cli_flag_text(option, flag),
                  option->kind == CLI_KIND_FLAG ? "" : "=");
    print_quoted(out, option->help, "[]:\\");
    (void)fputc(']', out);
    if (option->kind != CLI_KIND_FLAG) {
        (void)fputc(':', out);
        print_quoted(out, option->placeholder, "[]:\\");
        (void)fputc(':', out);
        if (offer == CLI_OFFER_WORDS) {
            (void)fputc('(', out);
            print_spaced(out, words);
            (void)fputc(')', out);
        } else if (offer != CLI_OFFER_NONE) {
            (void)fputs(offer == CLI_OFFER_FILES ? "_files" : "_files -/", out);
        }
    }
    (void)fputc('\'', out);
}

static void print_zsh(FILE *out)
{
    int32_t n;
    const cli_option *options = cli_options(&n);
    (void)fputs("#compdef reel\n# zsh completion of reel; put it as _reel into a folder of $fpath\n_reel()\n{\n    if (( CURRENT == 2 )); "
                "then\n        local -a commands\n"
                "        commands=(",
                out);
    for (int32_t c = 0; c < CLI_COMMAND_COUNT; c++) {
        (void)fprintf(out, "\n            '%s:", cli_command_word((cli_command)c));
        print_quoted(out, cli_command_text((cli_command)c), ":\\");
        (void)fputc('\'', out);
    }
    (void)fputs(")\n        _describe command commands\n        return\n    fi\n    local command=$words[2]\n    shift words\n    (( "
                "CURRENT-- ))\n    case $command in\n",
                out);
    for (int32_t c = 0; c < CLI_COMMAND_COUNT; c++) {
        const char *rest = c == CLI_COMPLETION ? "1:shell:(bash zsh fish)" : c == CLI_INSPECT ? "1:model:_files -/" : "1:file:_files";
        (void)fprintf(out, "    %s)\n        _arguments", cli_command_word((cli_command)c));
        for (int32_t i = 0; i < n; i++) {
            if (cli_option_is_for(&options[i], (cli_command)c)) zsh_option(out, &options[i]);
        }
        if (cli_command_rest((cli_command)c)[0]) (void)fprintf(out, " \\\n            '%s'", rest);
        (void)fputs(";;\n", out);
    }
    (void)fputs("    esac\n}\n_reel \"$@\"\n", out);
}

static void print_fish(FILE *out)
{
    int32_t n;
    const cli_option *options = cli_options(&n);
    char flag[CLI_FLAG_MAX];
    (void)fputs("# fish completion of reel; use: reel completion fish > ~/.config/fish/completions/reel.fish\ncomplete -c reel -f\n", out);
    for (int32_t c = 0; c < CLI_COMMAND_COUNT; c++) {
        (void)fprintf(out, "complete -c reel -n __fish_use_subcommand -a %s -d '", cli_command_word((cli_command)c));
        print_quoted(out, cli_command_text((cli_command)c), "");
        (void)fputs("'\n", out);
    }
    for (int32_t i = 0; i < n; i++) {
        const char *words;
        cli_offer offer = cli_option_offer(&options[i], &words);
        (void)fputs("complete -c reel -n '__fish_seen_subcommand_from", out);
        for (int32_t c = 0; c < CLI_COMMAND_COUNT; c++) {
            if (cli_option_is_for(&options[i], (cli_command)c)) (void)fprintf(out, " %s", cli_command_word((cli_command)c));
        }
        (void)fprintf(out, "' -l %s", cli_flag_text(&options[i], flag) + 2);
        if (options[i].letter) (void)fprintf(out, " -s %c", options[i].letter);
        if (options[i].kind != CLI_KIND_FLAG) (void)fputs(offer == CLI_OFFER_FILES || offer == CLI_OFFER_FOLDERS ? " -r -F" : " -x", out);
        if (offer == CLI_OFFER_WORDS) {
            (void)fputs(" -a '", out);
            print_spaced(out, words);
            (void)fputc('\'', out);
        }
        (void)fputs(" -d '", out);
        print_quoted(out, options[i].help, "");
        (void)fputs("'\n", out);
    }
    (void)fputs("complete -c reel -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\ncomplete -c reel -n "
                "'__fish_seen_subcommand_from inspect encode decode' -F\n",
                out);
}

reel_status cli_completion(cli_session *session, reel_error *err)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    static void (*const print[])(FILE * out) = {print_bash, print_zsh, print_fish};
    const char *shell = session->args.n_positional ? session->args.positional[0] : "";
    for (size_t i = 0; i < REEL_COUNT(shells); i++) {
        if (strcmp(shells[i], shell) != 0) continue;
        print[i](stdout);
        return REEL_OK;
    }
    const char *near_shell = reel_word_nearest(shell, shells, REEL_COUNT(shells));
    return REEL_FAIL(err, REEL_E_ARGUMENT, "completion is made for three shells\ngiven: %.60s\nallowed: bash, zsh, fish\nremedy: %s%s",
                     shell[0] ? shell : "nothing", near_shell ? "did you mean " : "name one of them", near_shell ? near_shell : "");
}
