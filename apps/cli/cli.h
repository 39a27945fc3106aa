/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program's files share: a session (one command being done), printing, progress, signals and the commands themselves.
 *
 * The program uses the public API only. Results and JSON go to standard output, everything else to standard error; a command returns a
 * reel_status, and main turns it into the exit code. */
#ifndef REEL_CLI_CLI_H
#define REEL_CLI_CLI_H

#include <stdio.h>

#include "apps/cli/options.h"
#include "base/json.h"
#include "reel/reel.h"

/* Shows how a job goes: a bar on a terminal, lines otherwise, JSON events when asked. */
typedef struct cli_progress {
    bool is_json; /* events on standard output (generate --json) */
    bool is_quiet, is_verbose, is_terminal;
    bool has_bar; /* a bar stands on the current line */
    int32_t preview_lines; /* lines of the picture right above it */
    reel_phase phase;
    int32_t clip;
    double last_line_s;
} cli_progress;

typedef struct cli_session {
    cli_args args;
    cli_progress progress;
} cli_session;

void cli_progress_init(cli_progress *progress, bool is_json, bool is_quiet, bool is_verbose);
/* Callbacks for the library; user is the cli_progress. */
void cli_progress_show(void *user, const reel_progress *p);
void cli_progress_log(void *user, int level, const char *text);
/* Ends a bar's line, so that what follows starts on its own. */
void cli_progress_clear(cli_progress *progress);
int32_t cli_terminal_width(void);
/* A JSON string; what is not UTF-8 becomes question marks, so that an event never gets lost. */
json_t *cli_json_text(const char *text);
/* "wrote FILE" unless quiet or to standard output. */
void cli_print_wrote(const cli_session *session);
/* Draws a small picture of the latents (--preview show); user is the cli_progress, on a terminal. */
void cli_preview_show(void *user, const reel_frames *picture, int32_t step);
/* Prints one event line {"event": name, …}; steals fields, which may be NULL. */
void cli_progress_event(const char *name, json_t *fields);
/* "1:05", "2:03:10". */
const char *cli_time_text(double seconds, char *out, size_t out_bytes);

/* SIGINT, SIGTERM and SIGHUP set a flag; a second one changes nothing, so that no half-written file stays. */
void cli_signals_install(void);
const volatile int *cli_signals_flag(void); /* the signal's number once one came */

/* "reel: error: …" and indented lines on standard error. */
void cli_report(const reel_error *err, bool with_trace);
/* Checks that standard output took everything. */
reel_status cli_flush(reel_error *err);

/* JSON for people: objects as "key: value", lists of objects as tables, bytes and seconds with units. */
void cli_render(FILE *out, const json_t *value);
/* Prints a library's JSON text as it is, or rendered. */
reel_status cli_print_json(const cli_session *session, const char *text, reel_error *err);

/* The model folder: `given`, or the bundled one where it may lie. */
reel_status cli_locate_model(const char *given, char *out, size_t out_bytes, reel_error *err);
reel_status cli_engine_open(cli_session *session, const char *model, reel_engine **out, reel_error *err);
/* Options of the machine alone (devices). */
reel_status cli_engine_options(cli_session *session, reel_engine_options *out, reel_error *err);

/* A request made of options, a prompt file and perhaps a clip's own settings. */
typedef struct cli_request {
    reel_request request;
    const char **prompts;
    reel_buf file; /* the prompt file's text */
    char *clip_texts; /* of --from */
} cli_request;
/* Checks the settings that were given; needs no model, so that a slip of the keyboard is told at once. */
reel_status cli_request_check(const cli_session *session, reel_error *err);
/* The engine is asked about the clip of --from. Texts live as long as *out and the session. */
reel_status cli_request_make(cli_session *session, reel_engine *engine, cli_request *out, reel_error *err);
void cli_request_deinit(cli_request *request);

reel_status cli_generate(cli_session *session, reel_error *err);
reel_status cli_plan(cli_session *session, reel_error *err);
reel_status cli_inspect(cli_session *session, reel_error *err);
reel_status cli_devices(cli_session *session, reel_error *err);
reel_status cli_encode(cli_session *session, reel_error *err);
reel_status cli_decode(cli_session *session, reel_error *err);
reel_status cli_bench(cli_session *session, reel_error *err);
reel_status cli_completion(cli_session *session, reel_error *err);
reel_status cli_help(cli_session *session, reel_error *err);

/* What a shell offers after an option: nothing, words, files or folders. */
typedef enum cli_offer { CLI_OFFER_NONE, CLI_OFFER_WORDS, CLI_OFFER_FILES, CLI_OFFER_FOLDERS } cli_offer;
cli_offer cli_option_offer(const cli_option *option, const char **words);

/* Range, unit and default of an option in words, from the table; "" when there is nothing to say. */
void cli_option_facts(const cli_option *option, char *out, size_t out_bytes);
void cli_print_help(FILE *out);
void cli_print_command_help(FILE *out, cli_command command);
void cli_print_man(FILE *out);
void cli_print_options_md(FILE *out);
void cli_print_exit_codes_md(FILE *out);

#endif
