/* SPDX-License-Identifier: Apache-2.0
 *
 * reel: video from text with the Wan models. A complete program:
 *
 *     #include <reel/reel.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         reel_error err;
 *         reel_engine_options options;
 *         reel_engine_options_init(&options);
 *         options.model = "models/wan-tiny-t2v";
 *         reel_engine *engine = NULL;
 *         if (reel_engine_open(&options, &engine, &err) != REEL_OK) return fprintf(stderr, "%s\n", err.text), 1;
 *
 *         const char *prompt = "A red circle moves from left to right on a white background.";
 *         reel_request request;
 *         reel_request_init(&request);
 *         request.prompt = &prompt;
 *         request.n_prompt = 1;
 *         request.output = "circle.mp4";
 *         reel_status status = reel_generate(engine, &request, NULL, NULL, &err);
 *         if (status != REEL_OK) fprintf(stderr, "%s\n", err.text);
 *         reel_engine_close(&engine);
 *         return status == REEL_OK ? 0 : 1;
 *     } */
#ifndef REEL_REEL_H
#define REEL_REEL_H

#include "reel/engine.h"
#include "reel/frames.h"
#include "reel/job.h"
#include "reel/status.h"

#endif
