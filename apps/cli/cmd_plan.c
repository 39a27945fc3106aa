/* SPDX-License-Identifier: Apache-2.0
 *
 * reel plan: what `reel generate` with the same options would take, before anything is loaded. */
#include "apps/cli/cli.h"

static reel_status run(cli_session *session, reel_engine *engine, reel_error *err)
{
    static const char *const nothing = "";
    cli_request request;
    char *json = NULL;
    REEL_TRY(cli_request_make(session, engine, &request, err));
    if (request.request.n_prompt == 0) { /* the plan is the same for any prompt */
        request.request.prompt = &nothing;
        request.request.n_prompt = 1;
    }
    reel_status status = reel_plan_text(engine, &request.request, &json, err);
    if (status == REEL_OK) status = cli_print_json(session, json, err);
    reel_text_free(json);
    cli_request_deinit(&request);
    return status;
}

reel_status cli_plan(cli_session *session, reel_error *err)
{
    char *model = NULL;
    const char *given = cli_value(&session->args, "model"), *clip = cli_value(&session->args, "from");
    reel_engine *engine = NULL;
    reel_status status = REEL_OK;
    REEL_TRY(cli_request_check(session, err));
    if (!given && clip) REEL_TRY(reel_clip_model(clip, &model, err));
    REEL_TRY_GOTO(cli_engine_open(session, model ? model : given, &engine, err), cleanup);
    REEL_TRY_GOTO(run(session, engine, err), cleanup);
cleanup:
    reel_engine_close(&engine);
    reel_text_free(model);
    return status;
}
