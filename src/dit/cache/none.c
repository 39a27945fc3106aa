/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache policy that computes every block (dit/cache/cache.h). */
#include "dit/cache/cache.h"

static bool none_wants(const reel_cache_policy *policy, int32_t block)
{
    (void)policy;
    (void)block;
    return false;
}

static reel_status none_ask(const reel_cache_policy *policy, const reel_cache_moment *moment, int32_t *skip, reel_error *err)
{
    (void)policy;
    (void)moment;
    (void)err;
    *skip = 0;
    return REEL_OK;
}

const reel_cache_policy reel_cache_none = {.name = "none", .wants = none_wants, .ask = none_ask};
