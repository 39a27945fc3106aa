/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the bundled model when none is named: in the source tree around the program, or where `cmake --install` would put it. */
#include <string.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "base/file.h"

#define BUNDLED "wan-tiny-t2v"
enum { LEVELS_UP = 4 }; /* build/preset/reel lies two levels below the source tree */

/* Cuts the last part of a path; false at the top. */
static bool go_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash == path) return false;
    *slash = '\0';
    return true;
}

static reel_status try_place(const char *folder, const char *below, reel_buf *looked, char *out, size_t out_bytes, bool *found,
                             reel_error *err)
{
    char path[REEL_PATH_MAX];
    REEL_TRY(reel_path_join(path, sizeof path, folder, below, err));
    REEL_TRY(reel_buf_printf(looked, err, "%s%s", looked->n ? ", " : "", path));
    if (!reel_path_is_dir(path) || strlen(path) >= out_bytes) return REEL_OK;
    memcpy(out, path, strlen(path) + 1);
    *found = true;
    return REEL_OK;
}

static reel_status search(reel_buf *looked, char *out, size_t out_bytes, bool *found, reel_error *err)
{
    char folder[REEL_PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (n <= 0) return REEL_OK;
    folder[n] = '\0';
    for (int32_t i = 0; i < LEVELS_UP && !*found && go_up(folder); i++) {
        REEL_TRY(try_place(folder, "models/" BUNDLED, looked, out, out_bytes, found, err));
        if (!*found) REEL_TRY(try_place(folder, "share/reel/models/" BUNDLED, looked, out, out_bytes, found, err));
    }
    return REEL_OK;
}

reel_status cli_locate_model(const char *given, char *out, size_t out_bytes, reel_error *err)
{
    if (given) {
        if (strlen(given) >= out_bytes)
            return REEL_FAIL(err, REEL_E_ARGUMENT, "the model's path is too long\ngiven: %zu bytes\nremedy: use a shorter path",
                             strlen(given));
        memcpy(out, given, strlen(given) + 1);
        return REEL_OK;
    }
    reel_buf looked = {0};
    bool found = false;
    reel_status status = search(&looked, out, out_bytes, &found, err);
    if (status == REEL_OK && !found) {
        status = REEL_FAIL(
            err, REEL_E_MODEL,
            "there is no model\ngiven: no --model, and the bundled one is in none of %s\nremedy: name a model folder with --model DIR",
            looked.data ? looked.data : "the usual places");
    }
    reel_buf_deinit(&looked);
    return status;
}

reel_status cli_engine_options(cli_session *session, reel_engine_options *out, reel_error *err)
{
    const cli_args *args = &session->args;
    int32_t n_thread = 0;
    REEL_TRY(cli_int(args, "threads", &n_thread, err));
    reel_engine_options_init(out);
    if (cli_has(args, "device")) out->device = cli_value(args, "device");
    out->n_thread = n_thread;
    out->isa_max = cli_value(args, "isa");
    out->plugin_dir = cli_value(args, "plugins");
    out->log = cli_progress_log;
    out->log_user = &session->progress;
    return REEL_OK;
}

reel_status cli_engine_open(cli_session *session, const char *model, reel_engine **out, reel_error *err)
{
    char path[REEL_PATH_MAX];
    reel_engine_options options;
    REEL_TRY(cli_engine_options(session, &options, err));
    REEL_TRY(cli_locate_model(model, path, sizeof path, err));
    options.model = path; /* the engine keeps its own copy */
    return reel_engine_open(&options, out, err);
}
