/* SPDX-License-Identifier: Apache-2.0
 *
 * A small list of (ids, dtype) → states, newest use first (text/embed_cache.h). Prompts are few: a list is enough. */
#include "text/embed_cache.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    struct entry *next;
    int32_t n;
    reel_dtype dtype;
    size_t bytes;
    int32_t *ids;
    void *states;
} entry;

struct reel_embed_cache {
    entry *first;
    size_t bytes, max_bytes;
};

static void free_entry(entry *e)
{
    if (!e) return;
    free(e->ids);
    free(e->states);
    free(e);
}

reel_status reel_embed_cache_new(size_t max_bytes, reel_embed_cache **out, reel_error *err)
{
    reel_embed_cache *c = calloc(1, sizeof *c);
    if (!c) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for the cache of text states\nremedy: close other programs");
    c->max_bytes = max_bytes;
    *out = c;
    return REEL_OK;
}

void reel_embed_cache_free(reel_embed_cache **cache)
{
    if (!*cache) return;
    while ((*cache)->first) {
        entry *next = (*cache)->first->next;
        free_entry((*cache)->first);
        (*cache)->first = next;
    }
    free(*cache);
    *cache = NULL;
}

/* Unlinks and returns the entry of these tokens, or NULL. */
static entry *take(reel_embed_cache *cache, const reel_tokens *tokens, reel_dtype dtype)
{
    for (entry **at = &cache->first; *at; at = &(*at)->next) {
        entry *e = *at;
        if (e->n == tokens->n && e->dtype == dtype && memcmp(e->ids, tokens->id, sizeof *e->ids * (size_t)e->n) == 0) {
            *at = e->next;
            return e;
        }
    }
    return NULL;
}

const void *reel_embed_cache_get(reel_embed_cache *cache, const reel_tokens *tokens, reel_dtype dtype)
{
    entry *e = take(cache, tokens, dtype);
    if (!e) return NULL;
    e->next = cache->first;
    cache->first = e;
    return e->states;
}

static void drop_oldest(reel_embed_cache *cache)
{
    while (cache->bytes > cache->max_bytes && cache->first && cache->first->next) {
        entry **at = &cache->first->next;
        while ((*at)->next) at = &(*at)->next;
        cache->bytes -= (*at)->bytes;
        free_entry(*at);
        *at = NULL;
    }
}

reel_status reel_embed_cache_put(reel_embed_cache *cache, const reel_tokens *tokens, reel_dtype dtype, const void *states, size_t bytes,
                                 reel_error *err)
{
    entry *old = take(cache, tokens, dtype);
    if (old) cache->bytes -= old->bytes;
    free_entry(old);
    entry *e = calloc(1, sizeof *e);
    if (e) e->ids = malloc(sizeof *e->ids * (size_t)tokens->n);
    if (e) e->states = malloc(bytes);
    if (!e || !e->ids || !e->states) {
        free_entry(e);
        return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for the cache of text states\nremedy: close other programs");
    }
    memcpy(e->ids, tokens->id, sizeof *e->ids * (size_t)tokens->n);
    memcpy(e->states, states, bytes);
    e->n = tokens->n;
    e->dtype = dtype;
    e->bytes = bytes;
    e->next = cache->first;
    cache->first = e;
    cache->bytes += bytes;
    drop_oldest(cache);
    return REEL_OK;
}
