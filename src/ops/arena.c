/* SPDX-License-Identifier: Apache-2.0
 *
 * Arenas (ops.h): one device buffer, cut from the front. */
#include <stdint.h>
#include <string.h>

#include "ops/ops.h"

size_t reel_arena_need(size_t alignment, reel_dtype dtype, int64_t n_element)
{
    size_t bytes = (size_t)n_element * reel_dtype_bytes(dtype);
    return alignment > 1 ? (bytes + alignment - 1) / alignment * alignment : bytes;
}

reel_status reel_arena_init(reel_arena *arena, const reel_ops *ops, const char *name, size_t bytes, reel_error *err)
{
    void *base = NULL;
    if (bytes > 0) REEL_TRY(ops->vt->buffer_new(ops->device, bytes, &base, err));
    *arena = (reel_arena){.ops = ops, .name = name, .base = base, .bytes = bytes};
    return REEL_OK;
}

void reel_arena_deinit(reel_arena *arena)
{
    if (arena->base) arena->ops->vt->buffer_free(arena->ops->device, arena->base);
    *arena = (reel_arena){.name = arena->name};
}

/* The number of elements, or −1 when an extent is wrong or the product too large. */
static int64_t count_elements(const int64_t extent[4])
{
    int64_t n = 1;
    int32_t n_dim = 0;
    while (n_dim < 4 && extent[n_dim] != 0) {
        if (extent[n_dim] < 0 || n > INT64_MAX / 16 / extent[n_dim]) return -1;
        n *= extent[n_dim++];
    }
    return n_dim > 0 ? n : -1;
}

reel_status reel_arena_take(reel_arena *arena, reel_dtype dtype, int64_t e0, int64_t e1, int64_t e2, int64_t e3, reel_tensor *out,
                            reel_error *err)
{
    int64_t extent[4] = {e0, e1, e2, e3}, n = count_elements(extent);
    if (n < 0 || reel_dtype_bytes(dtype) == 0)
        return REEL_FAIL(
            err, REEL_E_INTERNAL,
            "arena \"%s\": no such tensor\ngiven: %s [%lld, %lld, %lld, %lld]\nremedy: this is a fault of reel; please report it",
            arena->name, reel_dtype_name(dtype), (long long)e0, (long long)e1, (long long)e2, (long long)e3);
    size_t need = reel_arena_need(arena->ops->props.alignment_bytes, dtype, n);
    if (need > arena->bytes - arena->used)
        return REEL_FAIL(err, REEL_E_INTERNAL,
                         "arena \"%s\" is full: the plan stated too few bytes\ngiven: %zu bytes for %s [%lld, %lld, %lld, %lld]\nallowed: "
                         "%zu of %zu bytes "
                         "left\nremedy: this is a fault of reel; please report it with the request",
                         arena->name, need, reel_dtype_name(dtype), (long long)e0, (long long)e1, (long long)e2, (long long)e3,
                         arena->bytes - arena->used, arena->bytes);
    *out = reel_tensor_dense(arena->base + arena->used, dtype, e0, e1, e2, e3);
    arena->used += need;
    if (arena->used > arena->high) arena->high = arena->used;
    return REEL_OK;
}

void reel_arena_rewind(reel_arena *arena, size_t mark)
{
    assert(mark <= arena->used);
    arena->used = mark;
}
