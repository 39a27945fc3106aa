/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the two transformers does a step: the high-noise one above the boundary and at it, the low-noise one below. */
#include <math.h>

#include "sample/sample.h"

int32_t reel_expert_of(double boundary_ratio, float timestep, int32_t n_train_timesteps)
{
    if (isnan(boundary_ratio)) return 0;
    return timestep >= (float)(boundary_ratio * (double)n_train_timesteps) ? 0 : 1; /* the reference compares in float */
}
