/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of the program: one table, and the parser that reads a command line by it.
 *
 * The table holds reel/params.def (settings of a clip) and the program's own options. Parser, --help, man page, docs/options.md and shell
 * completion all read it. Parsing checks form: known, given once, with a value where one belongs, not against another. Values of
 * settings are checked by reel_request_set, so that there is one place for ranges. Neither calls the engine. */
#ifndef REEL_CLI_OPTIONS_H
#define REEL_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"

/* X(NAME, word, what follows, one line) */
#define CLI_COMMAND_LIST(X)                                                                                        \
    X(GENERATE, "generate", "[OPTION]…", "make clips from prompts")                                                \
    X(INSPECT, "inspect", "MODEL", "say what a model folder holds, and what is missing or wrong")                  \
    X(PLAN, "plan", "[OPTION]…", "say what a job would take: memory by phase, time, and how it would be computed") \
    X(DEVICES, "devices", "", "list devices: instruction sets, memory, attention implementations with reasons")    \
    X(ENCODE, "encode", "[CLIP]", "turn a clip into latents, or prompts into embeddings (safetensors)")            \
    X(DECODE, "decode", "LATENTS", "turn latents into a clip")                                                     \
    X(BENCH, "bench", "[OPTION]…", "time the phases apart, all samples, as JSON")                                  \
    X(COMPLETION, "completion", "bash|zsh|fish", "print a completion script for a shell")                          \
    X(HELP, "help", "[COMMAND]", "explain a command")

typedef enum cli_command {
#define X(name, word, rest, text) CLI_##name,
    CLI_COMMAND_LIST(X)
#undef X
        CLI_COMMAND_COUNT,
    CLI_NONE = CLI_COMMAND_COUNT /* only options that stand without a command */
} cli_command;

typedef enum cli_kind { CLI_KIND_TEXT, CLI_KIND_INT, CLI_KIND_U64, CLI_KIND_REAL, CLI_KIND_ENUM, CLI_KIND_FLAG } cli_kind;

typedef struct cli_option {
    const char *key; /* JSON key; the flag is the same with dashes */
    char letter; /* 0: none */
    cli_kind kind;
    const char *placeholder; /* NULL for flags */
    const char *values; /* "a|b|c" of enums */
    const char *unit;
    double preset, min, max; /* of numbers; a NaN preset comes from the model */
    const char *preset_text; /* of enums */
    uint32_t commands; /* bit per cli_command; ask cli_option_is_for */
    bool is_setting; /* of reel/params.def */
    bool repeats;
    const char *help;
} cli_option;

const cli_option *cli_options(int32_t *n);
const char *cli_command_word(cli_command command);
const char *cli_command_rest(cli_command command);
const char *cli_command_text(cli_command command);
static inline uint32_t cli_bit(cli_command command)
{
    return 1U << command;
}

bool cli_option_is_for(const cli_option *option, cli_command command);

enum { CLI_FLAG_MAX = 40 };
/* "--guidance-scale" into a buffer of CLI_FLAG_MAX bytes, which it returns. */
const char *cli_flag_text(const cli_option *option, char *out);
/* The option of a command by key, with dashes or underscores; NULL when there is none. */
const cli_option *cli_option_find(cli_command command, const char *name, size_t n);
/* The option's flag that is nearest to a mistyped name, as "--name" in a buffer of CLI_FLAG_MAX bytes; NULL when none is near. */
const char *cli_option_nearest(cli_command command, const char *name, char *out);

typedef struct cli_given {
    const cli_option *option;
    const char *value; /* NULL for flags */
    bool from_config;
} cli_given;

typedef struct cli_args {
    cli_command command;
    bool wants_help;
    cli_given *given;
    int32_t n_given;
    const char **positional;
    int32_t n_positional;
    char **kept; /* texts made from a configuration file */
    int32_t n_kept;
} cli_args;

/* Reads argv[1…]. Texts are borrowed from argv. REEL_E_ARGUMENT with the nearest name on any fault; nothing is kept then. */
reel_status cli_parse(int argc, const char *const *argv, cli_args *out, reel_error *err);
void cli_args_deinit(cli_args *args);

/* The last value of an option, or NULL. */
const char *cli_value(const cli_args *args, const char *key);
bool cli_has(const cli_args *args, const char *key);
/* A number of the program's own options (threads, repeats) with the table's range; the preset when it is not given. */
reel_status cli_int(const cli_args *args, const char *key, int32_t *out, reel_error *err);
reel_status cli_real(const cli_args *args, const char *key, double *out, reel_error *err);

/* Adds an option that was not on the command line (configuration files). */
reel_status cli_add(cli_args *args, const cli_option *option, const char *value, bool from_config, reel_error *err);
/* Two options that cannot stand together: the other one of a pair that is given, or NULL. */
const cli_option *cli_rival(const cli_args *args, const cli_option *option);

/* Adds the settings of a configuration file (JSON object of the options' keys) that the command line does not give. */
reel_status cli_config_read(cli_args *args, const char *path, reel_error *err);
reel_status cli_config_parse(cli_args *args, const char *text, size_t n, const char *path, reel_error *err);

#endif
