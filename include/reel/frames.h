/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures as callers get them: RGB, 8 bits a sample, valid during the call. */
#ifndef REEL_FRAMES_H
#define REEL_FRAMES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct reel_frames {
    uint32_t bytes; /* sizeof the struct */
    int32_t clip; /* index over all prompts and clips */
    int64_t first_frame; /* index of frame 0 of this batch within the clip */
    int32_t n_frame, width, height;
    const uint8_t *rgb; /* [n_frame, height, width, 3] */
} reel_frames;

#ifdef __cplusplus
}
#endif
#endif
