/* SPDX-License-Identifier: Apache-2.0
 *
 * reel generate: a request made of options, done by the engine, with progress and a way to stop. */
#include <string.h>

#include "apps/cli/cli.h"

/* What would mix with a clip on standard output, or has no file to act on there. */
static reel_status check_stdout(const cli_args *args, reel_error *err)
{
    static const char *const no[] = {"json", "no_clobber", "sidecar"};
    const char *output = cli_value(args, "output");
    char flag[CLI_FLAG_MAX];
    if (!output && !cli_has(args, "x_dump")) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "there is no output\ngiven: neither -o nor --x-dump\nallowed: a file ending in .mp4, .webm, .gif or .y4m, a "
                         "folder or pattern of "
                         ".png, or '-'\nremedy: add -o clip.mp4");
    }
    if (!output || strcmp(output, "-") != 0) return REEL_OK;
    for (size_t i = 0; i < REEL_COUNT(no); i++) {
        if (!cli_has(args, no[i])) continue;
        const cli_option *option = cli_option_find(args->command, no[i], strlen(no[i]));
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "two options contradict each other\ngiven: %s with -o -\nallowed: the clip alone goes to standard output\nremedy: "
                         "write to a file, or "
                         "drop %s",
                         cli_flag_text(option, flag), flag);
    }
    return REEL_OK;
}

static bool is_shown(const reel_request *request)
{
    return request->preview && strcmp(request->preview, "show") == 0;
}

/* A picture needs a terminal, and one that nothing else is printed to. */
static reel_status check_preview(const cli_session *session, reel_error *err)
{
    const cli_progress *progress = &session->progress;
    const char *preview = cli_value(&session->args, "preview");
    if (!preview || strcmp(preview, "show") != 0) return REEL_OK;
    if (progress->is_terminal && !progress->is_json && !progress->is_quiet) return REEL_OK;
    return REEL_FAIL(err, REEL_E_ARGUMENT,
                     "a preview cannot be shown here\ngiven: --preview show, %s\nallowed: a terminal on standard error, without --json and "
                     "-q\nremedy: store "
                     "pictures instead, such as --preview preview-%%03d.png",
                     progress->is_terminal ? "with --json or -q" : "standard error is no terminal");
}

static void print_done(cli_session *session, const reel_result *result)
{
    reel_json record;
    cli_progress_clear(&session->progress);
    if (reel_json_parse(result->record, strlen(result->record), "the job's record", REEL_E_INTERNAL, &record, NULL) != REEL_OK) return;
    if (session->progress.is_json) {
        cli_progress_event("done", json_pack("{s:O}", "record", record.root));
    } else if (!session->progress.is_quiet) {
        size_t i;
        const json_t *clip;
        json_array_foreach(json_object_get(record.root, "clips"), i, clip)
        {
            const char *file = json_string_value(json_object_get(clip, "file")), *seed = json_string_value(json_object_get(clip, "seed"));
            if (file && file[0] && strcmp(file, "-") != 0) (void)fprintf(stderr, "wrote %s (seed %s)\n", file, seed ? seed : "unknown");
        }
        (void)fprintf(stderr, "%.1f s:", result->total_s);
        for (int32_t k = 0; k < REEL_PHASE_COUNT; k++)
            (void)fprintf(stderr, "%s %s %.1f", k ? "," : "", reel_phase_name((reel_phase)k), result->phase_s[k]);
        (void)fputc('\n', stderr);
    }
    reel_json_deinit(&record);
}

static reel_status run(cli_session *session, reel_engine *engine, reel_error *err)
{
    cli_request request;
    reel_result result = {.bytes = sizeof result};
    REEL_TRY(cli_request_make(session, engine, &request, err));
    const bool shows = is_shown(&request.request);
    if (shows) request.request.preview = NULL;
    const reel_callbacks callbacks = {.bytes = sizeof callbacks,
                                      .user = &session->progress,
                                      .progress = cli_progress_show,
                                      .preview = shows ? cli_preview_show : NULL,
                                      .cancel = cli_signals_flag()};
    reel_status status = reel_generate(engine, &request.request, &callbacks, &result, err);
    if (status == REEL_OK) {
        print_done(session, &result);
        reel_result_free(&result);
    }
    cli_request_deinit(&request);
    return status;
}

reel_status cli_generate(cli_session *session, reel_error *err)
{
    char *model = NULL;
    const char *given = cli_value(&session->args, "model"), *clip = cli_value(&session->args, "from");
    reel_engine *engine = NULL;
    reel_status status = REEL_OK;
    REEL_TRY(check_stdout(&session->args, err));
    REEL_TRY(check_preview(session, err));
    if (!clip && !cli_has(&session->args, "prompt") && !cli_has(&session->args, "prompt_file")) {
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "there is no prompt\ngiven: neither --prompt, --prompt-file nor --from\nallowed: any text; \"\" makes a clip of no particular "
            "subject\nremedy: add --prompt \"TEXT\"");
    }
    REEL_TRY(cli_request_check(session, err));
    if (!given && clip) REEL_TRY(reel_clip_model(clip, &model, err));
    REEL_TRY_GOTO(cli_engine_open(session, model ? model : given, &engine, err), cleanup);
    REEL_TRY_GOTO(run(session, engine, err), cleanup);
cleanup:
    reel_engine_close(&engine);
    reel_text_free(model);
    return status;
}
