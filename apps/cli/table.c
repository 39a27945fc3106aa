/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of options: reel/params.def and the program's own. */
#include <math.h>
#include <string.h>

#include "apps/cli/options.h"
#include "base/nearest.h"

#define G (1U << CLI_GENERATE)
#define P (1U << CLI_PLAN)
#define I (1U << CLI_INSPECT)
#define D (1U << CLI_DEVICES)
#define E (1U << CLI_ENCODE)
#define C (1U << CLI_DECODE)
#define B (1U << CLI_BENCH)
#define ALL ((1U << CLI_COMMAND_COUNT) - 1U)
#define ENGINE (G | P | E | C | B)

#define OWN_TEXT(name, character, hint, where, text)                                                                  \
    {                                                                                                                 \
        .key = name, .letter = character, .kind = CLI_KIND_TEXT, .placeholder = hint, .commands = where, .help = text \
    }
#define OWN_FLAG(name, character, where, text)                                                   \
    {                                                                                            \
        .key = name, .letter = character, .kind = CLI_KIND_FLAG, .commands = where, .help = text \
    }

static const cli_option table[] = {
    OWN_TEXT("model", 0, "DIR", ENGINE, "model folder in the diffusers layout; default: the bundled wan-tiny-t2v"),
    {.key = "prompt",
     .kind = CLI_KIND_TEXT,
     .placeholder = "TEXT",
     .commands = G | P | E,
     .repeats = true,
     .help = "what the clip shows; give it several times for several clips; \"\" is allowed"},
    OWN_TEXT("prompt_file", 0, "FILE", G | P, "prompts from a file, one a line, blank lines left out; '-' reads standard input"),

#define P_INT(field, def, low, high, what, text) \
    {.key = #field,                              \
     .kind = CLI_KIND_INT,                       \
     .placeholder = "N",                         \
     .unit = what,                               \
     .preset = (double)(def),                    \
     .min = (double)(low),                       \
     .max = (double)(high),                      \
     .is_setting = true,                         \
     .commands = G | P,                          \
     .help = text},
#define P_U64(field, text) {.key = #field, .kind = CLI_KIND_U64, .placeholder = "N", .is_setting = true, .commands = G | P, .help = text},
#define P_REAL(field, def, low, high, what, text) \
    {.key = #field,                               \
     .kind = CLI_KIND_REAL,                       \
     .placeholder = "X",                          \
     .unit = what,                                \
     .preset = (double)(def),                     \
     .min = low,                                  \
     .max = high,                                 \
     .is_setting = true,                          \
     .commands = G | P,                           \
     .help = text},
#define P_ENUM(field, def, words, text) \
    {.key = #field,                     \
     .kind = CLI_KIND_ENUM,             \
     .placeholder = words,              \
     .values = words,                   \
     .preset_text = def,                \
     .is_setting = true,                \
     .commands = G | P,                 \
     .help = text},
#define P_TEXT(field, hint, text) \
    {.key = #field, .kind = CLI_KIND_TEXT, .placeholder = hint, .is_setting = true, .commands = G | P, .help = text},
#define P_FLAG(field, text) {.key = #field, .kind = CLI_KIND_FLAG, .is_setting = true, .commands = G | P, .help = text},
#include "reel/params.def"
#undef P_INT
#undef P_U64
#undef P_REAL
#undef P_ENUM
#undef P_TEXT
#undef P_FLAG

    OWN_TEXT("from", 0, "CLIP", G | P, "repeat a clip made by reel (or its .json side file); options given too win, and are named"),
    OWN_TEXT("config", 0, "FILE", G | P, "settings from a JSON object of the same keys; the command line wins"),
    {.key = "what",
     .kind = CLI_KIND_ENUM,
     .placeholder = "generate|attention",
     .values = "generate|attention",
     .preset_text = "generate",
     .commands = B,
     .help = "what to time"},
    {.key = "repeats",
     .kind = CLI_KIND_INT,
     .placeholder = "N",
     .unit = "times",
     .preset = 5,
     .min = 1,
     .max = 1000,
     .commands = B,
     .help = "how often"},
    OWN_TEXT("device", 0, "NAME", ENGINE | D, "where to compute: cpu, auto, or a plug-in's name"),
    {.key = "threads",
     .kind = CLI_KIND_INT,
     .placeholder = "N",
     .unit = "threads",
     .min = 0,
     .max = 1024,
     .commands = ENGINE | D,
     .help = "threads for computing; 0: one per core that this process may use"},
    OWN_TEXT("isa", 0, "NAME", ENGINE | D, "highest CPU instruction set to use: avx2, avx512, avx512-bf16 or amx; default: all there is"),
    OWN_TEXT("plugins", 0, "DIR", ENGINE | D, "folder with further devices"),
    OWN_TEXT("output", 'o', "FILE", G | P | E | C,
             "where to write, format by ending: .mp4 .webm .gif .y4m, a folder or %04d.png for frames; '-': y4m to standard output; "
             "several clips: clip-%03d.mp4"),
    OWN_TEXT("x_dump", 0, "DIR", G | P, "write the tensors of every stage as safetensors into a folder (for comparing)"),
    OWN_FLAG("json", 0, G | P | I | D | B, "print JSON: the result, or with generate one event a line"),
    OWN_FLAG("quiet", 'q', ALL, "print errors only"),
    OWN_FLAG("verbose", 'v', ALL, "print details"),
    OWN_FLAG("help", 'h', ALL, "explain the command and its options"),
};

/* Settings that commands besides generate and plan take. */
static const struct {
    const char *key;
    uint32_t commands;
} wider[] = {{"negative_prompt", E}, {"dtype", E}, {"vae_dtype", E | C}, {"fps", C}};

bool cli_option_is_for(const cli_option *option, cli_command command)
{
    if (command >= CLI_COMMAND_COUNT) return false;
    if (option->commands & cli_bit(command)) return true;
    for (size_t i = 0; i < REEL_COUNT(wider); i++) {
        if ((wider[i].commands & cli_bit(command)) && strcmp(wider[i].key, option->key) == 0) return true;
    }
    return false;
}

const cli_option *cli_options(int32_t *n)
{
    *n = (int32_t)REEL_COUNT(table);
    return table;
}

typedef struct command_row {
    const char *word, *rest, *text;
} command_row;

static const command_row commands[] = {
#define X(name, command, follows, line) {command, follows, line},
    CLI_COMMAND_LIST(X)
#undef X
};

const char *cli_command_word(cli_command command)
{
    return command < CLI_COMMAND_COUNT ? commands[command].word : "";
}

const char *cli_command_rest(cli_command command)
{
    return command < CLI_COMMAND_COUNT ? commands[command].rest : "";
}

const char *cli_command_text(cli_command command)
{
    return command < CLI_COMMAND_COUNT ? commands[command].text : "";
}

const char *cli_flag_text(const cli_option *option, char *out)
{
    size_t n = 0;
    out[n++] = '-';
    out[n++] = '-';
    for (const char *p = option->key; *p && n + 1 < CLI_FLAG_MAX; p++) out[n++] = *p == '_' ? '-' : *p;
    out[n] = '\0';
    return out;
}

static bool same_name(const char *key, const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (key[i] == '\0' || key[i] != (name[i] == '-' ? '_' : name[i])) return false;
    }
    return key[n] == '\0';
}

const cli_option *cli_option_find(cli_command command, const char *name, size_t n)
{
    for (size_t i = 0; i < REEL_COUNT(table); i++) {
        if (cli_option_is_for(&table[i], command) && same_name(table[i].key, name, n)) return &table[i];
    }
    return NULL;
}

const char *cli_option_nearest(cli_command command, const char *name, char *out)
{
    char text[REEL_COUNT(table)][CLI_FLAG_MAX];
    const char *list[REEL_COUNT(table)];
    size_t n = 0;
    for (size_t i = 0; i < REEL_COUNT(table); i++) {
        if (cli_option_is_for(&table[i], command)) {
            list[n] = cli_flag_text(&table[i], text[n]) + 2;
            n++;
        }
    }
    const char *best = reel_word_nearest(name, list, n);
    if (!best) return NULL;
    memcpy(out, best - 2, strlen(best) + 3);
    return out;
}
