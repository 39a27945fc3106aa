/* SPDX-License-Identifier: Apache-2.0
 *
 * The frame rate as a fraction, so that timestamps are exact. Film and television rates are n·1000/1001 and are usually given rounded
 * (23.976, 29.97, 59.94), so a number within 0.005 of such a rate, and not whole, means that rate. */
#include <math.h>

#include "media/inner.h"

enum { DENOMINATOR_MAX = 10000 };

static bool television_rate(double fps, reel_rate *out)
{
    int32_t n = (int32_t)ceil(fps);
    bool is_base = n >= 24 && (n % 24 == 0 || n % 30 == 0);
    if (!is_base || fabs(fps - n * 1000.0 / 1001.0) > 0.005) return false;
    *out = (reel_rate){n * 1000, 1001};
    return true;
}

reel_rate reel_media_rate(double fps)
{
    assert(fps >= 0.01 && fps <= 1000.0);
    reel_rate rate;
    if (fabs(fps - round(fps)) < 1e-6) return (reel_rate){(int32_t)lround(fps), 1};
    if (television_rate(fps, &rate)) return rate;
    /* Convergents of the continued fraction p/q, until exact or the denominator is full. */
    int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
    double x = fps;
    for (int i = 0; i < 32; i++) {
        int64_t a = (int64_t)floor(x);
        int64_t p2 = a * p1 + p0, q2 = a * q1 + q0;
        if (q2 > DENOMINATOR_MAX || p2 > INT32_MAX) break;
        p0 = p1, q0 = q1, p1 = p2, q1 = q2;
        double rest = x - (double)a;
        if (fabs((double)p1 / (double)q1 - fps) < fps * 1e-10 || rest < 1e-10) break;
        x = 1.0 / rest;
    }
    return (reel_rate){(int32_t)p1, (int32_t)q1};
}
