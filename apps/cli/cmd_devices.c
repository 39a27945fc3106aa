/* SPDX-License-Identifier: Apache-2.0
 *
 * reel devices: what there is to compute with. */
#include "apps/cli/cli.h"

reel_status cli_devices(cli_session *session, reel_error *err)
{
    reel_engine_options options;
    char *json = NULL;
    REEL_TRY(cli_engine_options(session, &options, err));
    REEL_TRY(reel_devices(&options, &json, err));
    reel_status status = cli_print_json(session, json, err);
    reel_text_free(json);
    return status;
}
