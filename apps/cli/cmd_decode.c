/* SPDX-License-Identifier: Apache-2.0
 *
 * reel decode: latents of a safetensors file into a clip. */
#include <math.h>

#include "apps/cli/cli.h"

reel_status cli_decode(cli_session *session, reel_error *err)
{
    const cli_args *args = &session->args;
    const char *vae_dtype = cli_value(args, "vae_dtype");
    double fps = NAN;
    reel_engine *engine = NULL;
    if (args->n_positional == 0) {
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "there are no latents to decode\ngiven: nothing\nallowed: reel decode LATENTS.safetensors -o CLIP\nremedy: name a file");
    }
    if (!cli_has(args, "output")) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "there is no output\ngiven: no -o\nallowed: a file ending in .mp4, .webm, .gif or .y4m, a folder or pattern of "
                         ".png, or '-'\nremedy: "
                         "add -o clip.mp4");
    }
    REEL_TRY(cli_real(args, "fps", &fps, err));
    REEL_TRY(cli_engine_open(session, cli_value(args, "model"), &engine, err));
    reel_status status =
        reel_decode_latents(engine, args->positional[0], vae_dtype ? vae_dtype : "f32", fps, cli_value(args, "output"), err);
    reel_engine_close(&engine);
    if (status == REEL_OK) cli_print_wrote(session);
    return status;
}
