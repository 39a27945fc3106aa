/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers that a name decides (hashed.h). */
#include "common/hashed.h"

void hashed_values(const char *name, float *out, int64_t n)
{
    uint32_t crc = 0xFFFFFFFFU;
    for (const char *c = name; *c; c++) {
        crc ^= (uint8_t)*c;
        for (int32_t k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1U ? 0xEDB88320U : 0U);
    }
    crc = ~crc;
    for (int64_t i = 0; i < n; i++) {
        uint32_t x = (uint32_t)i * 0x9E3779B1U + crc;
        x ^= x >> 16;
        x *= 0x85EBCA6BU;
        x ^= x >> 13;
        x *= 0xC2B2AE35U;
        x ^= x >> 16;
        out[i] = (float)(x >> 8) * 0x1p-23F - 1.0F;
    }
}
