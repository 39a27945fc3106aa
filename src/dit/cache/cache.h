/* SPDX-License-Identifier: Apache-2.0
 *
 * Step caches of the transformer as data: a policy that the block loop asks, never another loop.
 *
 * Before block 0 and after each block that a policy names, the loop hands over (expert, branch, step, input, residual) and learns how many
 * of the following blocks may be skipped because the policy has written their result into the residual. Policies that read device
 * data say so, since the loop must then wait. `none` computes everything. */
#ifndef REEL_DIT_CACHE_CACHE_H
#define REEL_DIT_CACHE_CACHE_H

#include "ops/ops.h"

typedef struct reel_cache_moment {
    int32_t expert, branch, step; /* branch: entry of the guidance list */
    int32_t block; /* −1: before block 0; else the block just done */
    reel_tensor input; /* residual stream as it entered block 0 */
    reel_tensor residual; /* now; a policy that skips writes it */
} reel_cache_moment;

typedef struct reel_cache_policy {
    const char *name;
    bool reads_device; /* the loop syncs before asking */
    void *state;
    bool (*wants)(const struct reel_cache_policy *policy, int32_t block); /* asked after this block? */
    /* *skip: how many blocks after `block` not to compute. */
    reel_status (*ask)(const struct reel_cache_policy *policy, const reel_cache_moment *moment, int32_t *skip, reel_error *err);
} reel_cache_policy;

/* Computes every block. */
extern const reel_cache_policy reel_cache_none;

#endif
