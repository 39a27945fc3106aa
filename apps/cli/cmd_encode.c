/* SPDX-License-Identifier: Apache-2.0
 *
 * reel encode: a clip into latents, or a prompt into embeddings, as safetensors. */
#include "apps/cli/cli.h"

static reel_status check(const cli_args *args, reel_error *err)
{
    int32_t n_prompt = 0;
    for (int32_t i = 0; i < args->n_given; i++) n_prompt += args->given[i].option == cli_option_find(CLI_ENCODE, "prompt", 6);
    if (args->n_positional + n_prompt != 1) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "encode takes one thing at a time\ngiven: %d clips, %d prompts\nallowed: reel encode CLIP -o FILE, or reel encode "
                         "--prompt TEXT -o "
                         "FILE\nremedy: give one of them",
                         (int)args->n_positional, (int)n_prompt);
    }
    const char *wrong = args->n_positional ? (cli_has(args, "negative_prompt") ? "--negative-prompt"
                                              : cli_has(args, "dtype")         ? "--dtype"
                                                                               : NULL)
                                           : (cli_has(args, "vae_dtype") ? "--vae-dtype" : NULL);
    if (wrong) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "an option does not belong here\ngiven: %s when encoding a %s\nallowed: --vae-dtype for clips; --negative-prompt "
                         "and --dtype for "
                         "prompts\nremedy: drop %s",
                         wrong, args->n_positional ? "clip" : "prompt", wrong);
    }
    if (!cli_has(args, "output")) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "there is no output\ngiven: no -o\nallowed: a file ending in .safetensors\nremedy: add -o FILE.safetensors");
    }
    return REEL_OK;
}

reel_status cli_encode(cli_session *session, reel_error *err)
{
    const cli_args *args = &session->args;
    reel_engine *engine = NULL;
    reel_status status = REEL_OK;
    REEL_TRY(check(args, err));
    REEL_TRY(cli_engine_open(session, cli_value(args, "model"), &engine, err));
    if (args->n_positional) {
        const char *vae_dtype = cli_value(args, "vae_dtype");
        status = reel_encode_clip(engine, args->positional[0], vae_dtype ? vae_dtype : "f32", cli_value(args, "output"), err);
    } else {
        const char *dtype = cli_value(args, "dtype");
        status = reel_encode_text(engine, cli_value(args, "prompt"), cli_value(args, "negative_prompt"), dtype ? dtype : "auto",
                                  cli_value(args, "output"), err);
    }
    reel_engine_close(&engine);
    if (status == REEL_OK) cli_print_wrote(session);
    return status;
}
