/* SPDX-License-Identifier: Apache-2.0
 *
 * reel bench: times of the phases, every sample, as JSON (rendered as a table unless --json). */
#include "apps/cli/cli.h"

reel_status cli_bench(cli_session *session, reel_error *err)
{
    const cli_args *args = &session->args;
    const char *what = cli_value(args, "what");
    int32_t repeats = 0;
    char *json = NULL;
    reel_engine *engine = NULL;
    REEL_TRY(cli_int(args, "repeats", &repeats, err));
    REEL_TRY(cli_engine_open(session, cli_value(args, "model"), &engine, err));
    reel_status status = reel_bench(engine, what ? what : "generate", repeats, &json, err);
    if (status == REEL_OK) status = cli_print_json(session, json, err);
    reel_text_free(json);
    reel_engine_close(&engine);
    return status;
}
