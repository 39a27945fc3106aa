/* SPDX-License-Identifier: Apache-2.0
 *
 * base/clock.h over CLOCK_MONOTONIC. */
#include "base/clock.h"

#include <time.h>

double reel_clock_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
