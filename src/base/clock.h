/* SPDX-License-Identifier: Apache-2.0
 *
 * Monotonic time in seconds, for progress and phase times only; never for results. */
#ifndef REEL_BASE_CLOCK_H
#define REEL_BASE_CLOCK_H

double reel_clock_s(void);

#endif
