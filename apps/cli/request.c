/* SPDX-License-Identifier: Apache-2.0
 *
 * Options → a request. Order of precedence: command line, configuration file, the clip of --from, the table's defaults. */
#include <stdlib.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "base/file.h"

enum { PROMPT_FILE_MAX = 64 << 20 };

static reel_status read_stdin(reel_buf *out, reel_error *err)
{
    char chunk[4096];
    size_t n;
    out->max = PROMPT_FILE_MAX;
    while ((n = fread(chunk, 1, sizeof chunk, stdin)) > 0) REEL_TRY(reel_buf_append(out, chunk, n, err));
    if (ferror(stdin)) return REEL_FAIL(err, REEL_E_IO, "standard input could not be read\nremedy: check where it comes from");
    return REEL_OK;
}

/* Cuts the text into lines in place; lines of blanks alone are separators, not empty prompts. */
static reel_status split_lines(cli_request *out, const char *path, reel_error *err)
{
    char *at = out->file.data, *end = at + out->file.n;
    if (out->file.n >= 3 && memcmp(at, "\xEF\xBB\xBF", 3) == 0) at += 3;
    if (memchr(at, '\0', (size_t)(end - at))) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "a prompt file holds zero bytes\ngiven: %s\nallowed: UTF-8 text, one prompt a line\nremedy: convert the file",
                         path);
    }
    size_t n_line = 1;
    for (const char *p = at; p < end; p++) n_line += *p == '\n';
    out->prompts = calloc(n_line, sizeof *out->prompts);
    if (!out->prompts) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for the prompts\nremedy: split the file");
    int32_t n = 0;
    while (at < end) {
        char *next = memchr(at, '\n', (size_t)(end - at));
        char *stop = next ? next : end;
        if (stop > at && stop[-1] == '\r') stop[-1] = '\0';
        *stop = '\0'; /* the buffer ends with a zero of its own */
        if (at[strspn(at, " \t")] != '\0') out->prompts[n++] = at;
        at = stop + 1;
    }
    if (n == 0) {
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "a prompt file holds no prompt\ngiven: %s\nallowed: UTF-8 text, one prompt a line\nremedy: write one, or give --prompt \"\"",
            path);
    }
    out->request.prompt = out->prompts;
    out->request.n_prompt = n;
    return REEL_OK;
}

static reel_status read_prompts(const cli_args *args, cli_request *out, reel_error *err)
{
    const char *path = cli_value(args, "prompt_file");
    if (path) {
        if (strcmp(path, "-") == 0) {
            REEL_TRY(read_stdin(&out->file, err));
        } else {
            REEL_TRY(reel_read_file(path, PROMPT_FILE_MAX, &out->file, err));
        }
        if (!out->file.data) REEL_TRY(reel_buf_text(&out->file, "", err));
        return split_lines(out, path, err);
    }
    if (!cli_has(args, "prompt")) return REEL_OK;
    out->prompts = calloc((size_t)args->n_given, sizeof *out->prompts);
    if (!out->prompts) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for the prompts\nremedy: give fewer");
    int32_t n = 0;
    for (int32_t i = 0; i < args->n_given; i++) {
        if (strcmp(args->given[i].option->key, "prompt") == 0) out->prompts[n++] = args->given[i].value;
    }
    out->request.prompt = out->prompts;
    out->request.n_prompt = n;
    return REEL_OK;
}

reel_status cli_request_check(const cli_session *session, reel_error *err)
{
    reel_request request;
    const cli_args *args = &session->args;
    reel_request_init(&request);
    for (int32_t i = 0; i < args->n_given; i++) {
        if (args->given[i].option->is_setting) REEL_TRY(reel_request_set(&request, args->given[i].option->key, args->given[i].value, err));
    }
    return REEL_OK;
}

/* Sets what is given. With a clip's settings below, each is named, since the clip then is not a plain repetition. */
static reel_status apply_options(cli_session *session, cli_request *out, bool over_clip, reel_error *err)
{
    const cli_args *args = &session->args;
    for (int32_t i = 0; i < args->n_given; i++) {
        const cli_given *given = &args->given[i];
        if (!given->option->is_setting) continue;
        if (over_clip && strcmp(given->option->key, "size") == 0) out->request.resolution = "";
        if (over_clip && strcmp(given->option->key, "resolution") == 0) out->request.size = NULL;
        REEL_TRY(reel_request_set(&out->request, given->option->key, given->value, err));
        if (!over_clip) continue;
        char flag[CLI_FLAG_MAX], text[256];
        (void)snprintf(text, sizeof text, "%s%s%.160s instead of the clip's setting", cli_flag_text(given->option, flag),
                       given->value ? " " : "", given->value ? given->value : "");
        cli_progress_log(&session->progress, 2, text);
    }
    if (over_clip && out->prompts) cli_progress_log(&session->progress, 2, "another prompt instead of the clip's");
    return REEL_OK;
}

static reel_status begin_from_clip(cli_session *session, reel_engine *engine, const char *clip, cli_request *out, reel_error *err)
{
    char *differences = NULL, text[1024];
    REEL_TRY(reel_request_from_clip(engine, clip, &out->request, &out->clip_texts, &differences, err));
    if (differences) {
        (void)snprintf(text, sizeof text, "the clip may come out differently: %.900s", differences);
        cli_progress_log(&session->progress, 1, text);
    }
    reel_text_free(differences);
    return REEL_OK;
}

static reel_status make(cli_session *session, reel_engine *engine, cli_request *out, reel_error *err)
{
    const cli_args *args = &session->args;
    const char *clip = cli_value(args, "from");
    if (clip) {
        REEL_TRY(begin_from_clip(session, engine, clip, out, err));
    } else {
        reel_request_init(&out->request);
    }
    REEL_TRY(read_prompts(args, out, err));
    REEL_TRY(apply_options(session, out, clip != NULL, err));
    out->request.output = cli_value(args, "output");
    out->request.dump_dir = cli_value(args, "x_dump");
    return REEL_OK;
}

reel_status cli_request_make(cli_session *session, reel_engine *engine, cli_request *out, reel_error *err)
{
    *out = (cli_request){0};
    reel_status status = make(session, engine, out, err);
    if (status != REEL_OK) cli_request_deinit(out);
    return status;
}

void cli_request_deinit(cli_request *request)
{
    free(request->prompts);
    reel_buf_deinit(&request->file);
    reel_text_free(request->clip_texts);
    *request = (cli_request){0};
}
