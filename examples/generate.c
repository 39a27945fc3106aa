/* SPDX-License-Identifier: Apache-2.0
 *
 * A clip from a prompt through the public API:  generate MODEL "a red circle moves right on a white background" clip.mp4 */
#include <reel/reel.h>
#include <stdio.h>

static void show(void *user, const reel_progress *p)
{
    (void)user;
    fprintf(stderr, "\r%s %d/%d   ", reel_phase_name(p->phase), p->done, p->total);
}

int main(int argc, char **argv)
{
    if (argc != 4) return fprintf(stderr, "usage: generate MODEL PROMPT CLIP\n"), 2;
    reel_error err;
    reel_engine *engine = NULL;
    reel_engine_options options;
    reel_engine_options_init(&options);
    options.model = argv[1];
    if (reel_engine_open(&options, &engine, &err) != REEL_OK) return fprintf(stderr, "%s\n", err.text), 1;

    const char *prompt = argv[2];
    reel_request request;
    reel_request_init(&request);
    request.prompt = &prompt;
    request.n_prompt = 1;
    request.output = argv[3];
    request.steps = 4;
    const reel_callbacks callbacks = {.bytes = sizeof callbacks, .progress = show};
    reel_status status = reel_generate(engine, &request, &callbacks, NULL, &err);
    fprintf(stderr, "\n%s\n", status == REEL_OK ? argv[3] : err.text);
    reel_engine_close(&engine);
    return status == REEL_OK ? 0 : 1;
}
