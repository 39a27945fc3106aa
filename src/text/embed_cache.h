/* SPDX-License-Identifier: Apache-2.0
 *
 * Remembers text states by token ids, so that a prompt (and the negative prompt, which rarely changes) is encoded once per engine.
 *
 * Host memory, at most `max_bytes`; the least recently used entry goes first. A hit is exact: ids are compared, not only their hash. One thread. */
#ifndef REEL_TEXT_EMBED_CACHE_H
#define REEL_TEXT_EMBED_CACHE_H

#include "text/text.h"

typedef struct reel_embed_cache reel_embed_cache;

reel_status reel_embed_cache_new(size_t max_bytes, reel_embed_cache **out, reel_error *err);
void reel_embed_cache_free(reel_embed_cache **cache);
/* The states of these tokens in this dtype, dense [n, width] in host memory, valid until the next put; NULL when not there. */
const void *reel_embed_cache_get(reel_embed_cache *cache, const reel_tokens *tokens, reel_dtype dtype);
/* Copies bytes of states. Too large for the cache: kept all the same until the next put, so that get right after put always finds it. */
reel_status reel_embed_cache_put(reel_embed_cache *cache, const reel_tokens *tokens, reel_dtype dtype, const void *states, size_t bytes,
                                 reel_error *err);

#endif
