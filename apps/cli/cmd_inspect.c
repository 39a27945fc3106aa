/* SPDX-License-Identifier: Apache-2.0
 *
 * reel inspect: what a model folder holds, and its problems; works on broken ones, and then ends with the model's exit code. */
#include <string.h>

#include "apps/cli/cli.h"

reel_status cli_inspect(cli_session *session, reel_error *err)
{
    const cli_args *args = &session->args;
    if (args->n_positional == 0) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "there is no model to inspect\ngiven: nothing\nallowed: reel inspect MODEL\nremedy: name a model folder");
    }
    char *json = NULL;
    reel_json report;
    REEL_TRY(reel_inspect(args->positional[0], &json, err));
    reel_status status = reel_json_parse(json, strlen(json), "the report", REEL_E_INTERNAL, &report, err);
    if (status == REEL_OK) {
        size_t n = json_array_size(json_object_get(report.root, "problems"));
        status = cli_print_json(session, json, err);
        if (status == REEL_OK && n > 0) {
            status = REEL_FAIL(err, REEL_E_MODEL, "the model has problems\ngiven: %s, %zu found\nremedy: see \"problems\" in the report",
                               args->positional[0], n);
        }
        reel_json_deinit(&report);
    }
    reel_text_free(json);
    return status;
}
