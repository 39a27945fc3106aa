/* SPDX-License-Identifier: Apache-2.0
 *
 * reel: one program, one command a run. main reads the command line, does the command, prints what went wrong and returns the exit code that
 * docs/exit-codes.md lists. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "base/env.h"

#if defined(REEL_WITH_OPENMP)
/* OpenMP's threads shall sleep while they wait. libgomp's default is to spin for milliseconds at every barrier: on a machine that does anything else, a
 * spinning thread keeps the very thread it waits for off the processor (a clip took 38 s instead of 2 s beside a compiler). libgomp reads its
 * settings before main, so the program starts itself once more with the setting in place. What the user has set stays; where the program cannot
 * be started again it goes on as it is. */
static void let_threads_sleep(char **argv)
{
    if (reel_env("OMP_WAIT_POLICY") || reel_env("GOMP_SPINCOUNT")) return;
    if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0) (void)execv("/proc/self/exe", argv);
}
#endif

typedef reel_status (*command_fn)(cli_session *session, reel_error *err);

static const command_fn commands[CLI_COMMAND_COUNT] = {
    [CLI_GENERATE] = cli_generate, [CLI_INSPECT] = cli_inspect, [CLI_PLAN] = cli_plan,
    [CLI_DEVICES] = cli_devices,   [CLI_ENCODE] = cli_encode,   [CLI_DECODE] = cli_decode,
    [CLI_BENCH] = cli_bench,       [CLI_HELP] = cli_help,       [CLI_COMPLETION] = cli_completion,
};

static reel_status print_version(reel_error *err)
{
    char *json = NULL;
    reel_json libraries;
    (void)printf("reel %s\n", reel_version());
    REEL_TRY(reel_libraries(&json, err));
    reel_status status = reel_json_parse(json, strlen(json), "the list of libraries", REEL_E_INTERNAL, &libraries, err);
    if (status == REEL_OK) {
        (void)json_object_del(libraries.root, "reel"); /* printed above */
        cli_render(stdout, libraries.root);
        reel_json_deinit(&libraries);
    }
    reel_text_free(json);
    return status;
}

/* Options that stand without a command. True when argv[1] was one. */
static bool run_alone(const char *word, reel_status *status, reel_error *err)
{
    *status = REEL_OK;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        cli_print_help(stdout);
    } else if (strcmp(word, "--version") == 0) {
        *status = print_version(err);
    } else if (strcmp(word, "--man") == 0) {
        cli_print_man(stdout);
    } else if (strcmp(word, "--options-md") == 0) {
        cli_print_options_md(stdout);
    } else if (strcmp(word, "--exit-codes-md") == 0) {
        cli_print_exit_codes_md(stdout);
    } else {
        return false;
    }
    return true;
}

static reel_status run_command(cli_session *session, reel_error *err)
{
    cli_args *args = &session->args;
    if (args->wants_help) {
        cli_print_command_help(stdout, args->command);
        return REEL_OK;
    }
    const char *config = cli_value(args, "config");
    if (config) REEL_TRY(cli_config_read(args, config, err));
    cli_progress_init(&session->progress, args->command == CLI_GENERATE && cli_has(args, "json"), cli_has(args, "quiet"),
                      cli_has(args, "verbose"));
    cli_signals_install();
    return commands[args->command](session, err);
}

static int exit_code(reel_status status)
{
    int number = *cli_signals_flag();
    if (status == REEL_E_CANCELLED && number != 0) return 128 + number;
    return reel_status_exit_code(status);
}

int main(int argc, char **argv)
{
#if defined(REEL_WITH_OPENMP)
    let_threads_sleep(argv);
#endif
    reel_error err = {.code = REEL_OK};
    reel_status status = REEL_OK;
    cli_session session = {.args = {.command = CLI_NONE}};
    if (argc != 2 || !run_alone(argv[1], &status, &err)) {
        status = cli_parse(argc, (const char *const *)argv, &session.args, &err);
        if (status == REEL_OK) status = run_command(&session, &err);
    }
    if (status == REEL_OK) status = cli_flush(&err);
    if (status != REEL_OK) {
        err.code = status;
        cli_progress_clear(&session.progress);
        cli_report(&err, session.progress.is_verbose);
        const char *output = session.progress.is_json ? cli_value(&session.args, "output") : NULL;
        if (session.progress.is_json && !(output && strcmp(output, "-") == 0)) {
            cli_progress_event("error", json_pack("{s:s,s:i,s:o}", "status", reel_status_name(status), "exit_code", exit_code(status),
                                                  "text", cli_json_text(err.text)));
        }
        (void)fflush(stdout);
    }
    int code = exit_code(status);
    cli_args_deinit(&session.args);
    return code;
}
