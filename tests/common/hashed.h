/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers that a name decides: fixtures store outputs alone, weights and inputs are made on both sides. tests/reference makes the same. */
#ifndef REEL_TESTS_HASHED_H
#define REEL_TESTS_HASHED_H

#include <stdint.h>

/* n values in [−1, 1): 24 bits of a mixed 32-bit counter whose seed is the CRC-32 of the name. */
void hashed_values(const char *name, float *out, int64_t n);

#endif
