/* SPDX-License-Identifier: Apache-2.0
 *
 * Flash attention on the CPU: never a score matrix larger than one block of queries by one block of keys.
 *
 * Heads come in groups whose packed keys and values fit a budget: all panels of a group are packed first (shared by all threads), then every
 * thread takes blocks of queries, so that short sequences cost two waits and not two per head. For a block of BQ queries and BK keys the
 * scores are one small matrix product, the softmax runs row by row with a running maximum and sum, and the output is a second product.
 * Panels of keys (64 × D) and of values (BK × 64) fit the first-level cache and are reused by all strips of MR rows of the block; the
 * block's scores stay in the second level. A row's numbers depend only on its own query and on the fixed key blocks, so results do not
 * change with threads, with how many queries are handed over, or with other heads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/device/cpu/attn.h"

enum { BQ = 96, BK = 256, LANES = 16 };
static_assert(BQ % REEL_ATTN_MR == 0, "blocks are whole strips");

typedef struct flash {
    const reel_attn_kernels *k;
    const reel_op_attention *o;
    int64_t first_head, n_head; /* of the group, counted over batch and heads */
    int64_t n_query, n_key, d;
    int64_t d_inner, d_columns, keys; /* D padded to 16 units; D padded to whole panels; keys padded to whole panels */
    size_t element;
    size_t keys_bytes, head_bytes; /* of one head: packed keys, keys and values */
    char *packed; /* per head: [keys / NR][D' / unit][NR][unit], then [D'' / NR][keys / unit][NR][unit] */
    char *local; /* per thread */
    size_t local_bytes;
} flash;

/* One head of the group. */
typedef struct head {
    int64_t b, h;
    char *keys, *values;
} head;

/* One thread's memory for a block of queries. */
typedef struct block {
    char *query; /* [BQ, d_inner] element */
    float *scores; /* [BQ, BK] */
    char *probability; /* [BQ, BK] element; the scores' own memory for f32 */
    float *sums; /* [BQ, d_columns] */
    float *most, *total; /* [BQ] */
} block;

static size_t up64(size_t n)
{
    return (n + 63) / 64 * 64;
}

static int64_t up(int64_t n, int64_t m)
{
    return (n + m - 1) / m * m;
}

static size_t local_layout(const flash *f, char *base, block *out)
{
    size_t at = 0;
    const size_t query = up64((size_t)(BQ * f->d_inner) * f->element), scores = up64(sizeof(float) * BQ * BK), half = up64(2 * BQ * BK);
    out->query = base + at;
    at += query;
    out->scores = (float *)(void *)(base + at);
    at += scores;
    out->probability = f->element == 4 ? (char *)out->scores : base + at;
    at += f->element == 4 ? 0 : half;
    out->sums = (float *)(void *)(base + at);
    at += up64(sizeof(float) * (size_t)(BQ * f->d_columns));
    out->most = (float *)(void *)(base + at);
    at += up64(sizeof(float) * BQ);
    out->total = (float *)(void *)(base + at);
    return at + up64(sizeof(float) * BQ);
}

static const char *row_of(const reel_tensor *t, int64_t b, int64_t s, int64_t h)
{
    return (const char *)t->data + (b * t->stride[0] + s * t->stride[1] + h * t->stride[2]) * (int64_t)reel_dtype_bytes(t->dtype);
}

static head head_of(const flash *f, int64_t index)
{
    const int64_t n_head = f->o->q.extent[2], at = f->first_head + index;
    char *keys = f->packed + (size_t)index * f->head_bytes;
    return (head){.b = at / n_head, .h = at % n_head, .keys = keys, .values = keys + f->keys_bytes};
}

/* ---- packing: both kinds move 32-bit words, a pair of bf16 or one f32 --------------------------------------------------------------------- */

/* One row of keys or values in the element type, zeros beyond D and beyond the last key. */
static void load_row(const flash *f, const head *a, const reel_tensor *t, int64_t key, int64_t n, char *row)
{
    memset(row, 0, (size_t)n * f->element);
    if (key < f->n_key) f->k->load(row_of(t, a->b, key, a->h), t->dtype, f->d, row);
}

static void pack_keys(const flash *f, const head *a, int64_t panel, char *row)
{
    const int64_t nr = f->k->nr, n_word = f->d_inner * (int64_t)f->element / 4;
    uint32_t *to = (uint32_t *)(void *)(a->keys + (size_t)(panel * nr * f->d_inner) * f->element);
    for (int64_t j = 0; j < nr; j++) {
        const uint32_t *from = (const uint32_t *)(void *)row;
        load_row(f, a, &f->o->k, panel * nr + j, f->d_inner, row);
        for (int64_t c = 0; c < n_word; c++) to[c * nr + j] = from[c];
    }
}

/* Rows key, key + 1 (bf16) or key (f32) of values, column panels NR wide. */
static void pack_values(const flash *f, const head *a, int64_t panel, char *row)
{
    const int64_t nr = f->k->nr, unit = f->k->unit, columns = f->d_columns;
    char *second = row + (size_t)columns * f->element;
    for (int64_t key = panel * nr; key < (panel + 1) * nr; key += unit) {
        load_row(f, a, &f->o->v, key, columns, row);
        if (unit == 2) load_row(f, a, &f->o->v, key + 1, columns, second);
        for (int64_t c = 0; c < columns; c += nr) {
            uint32_t *to = (uint32_t *)(void *)(a->values + (size_t)(c * f->keys) * f->element) + key / unit * nr;
            if (unit == 1) {
                memcpy(to, row + 4 * c, 4 * (size_t)nr);
                continue;
            }
            const uint16_t *low = (const uint16_t *)(void *)row + c, *high = (const uint16_t *)(void *)second + c;
            for (int64_t j = 0; j < nr; j++) to[j] = (uint32_t)low[j] | (uint32_t)high[j] << 16;
        }
    }
}

static void pack_panels(void *context, int64_t begin, int64_t end, int32_t thread)
{
    const flash *f = context;
    const int64_t n_panel = f->keys / f->k->nr;
    char *row = f->local + (size_t)thread * f->local_bytes; /* two rows in the element type */
    for (int64_t i = begin; i < end; i++) {
        const head a = head_of(f, i / n_panel);
        pack_keys(f, &a, i % n_panel, row);
        pack_values(f, &a, i % n_panel, row);
    }
}

/* ---- one block of queries --------------------------------------------------------------------------------------------------------------- */

static void load_queries(const flash *f, const head *a, const block *m, int64_t first, int64_t n)
{
    memset(m->query, 0, (size_t)(BQ * f->d_inner) * f->element);
    for (int64_t i = 0; i < n; i++) {
        f->k->load(row_of(&f->o->q, a->b, first + i, a->h), f->o->q.dtype, f->d, m->query + (size_t)(i * f->d_inner) * f->element);
        m->most[i] = -INFINITY;
        m->total[i] = 0.0F;
    }
    memset(m->sums, 0, sizeof(float) * (size_t)(BQ * f->d_columns));
}

/* Strips that hold a query; the rest of the block is not computed. */
static int64_t strips_of(int64_t n)
{
    return (n + REEL_ATTN_MR - 1) / REEL_ATTN_MR;
}

static void block_scores(const flash *f, const head *a, const block *m, int64_t n, int64_t key, int64_t n_column)
{
    const int64_t nr = f->k->nr;
    for (int64_t c = 0; c < n_column; c += nr) {
        const char *panel = a->keys + (size_t)((key + c) * f->d_inner) * f->element;
        for (int64_t s = 0; s < strips_of(n); s++) {
            const int64_t row = s * REEL_ATTN_MR;
            f->k->tile(m->query + (size_t)(row * f->d_inner) * f->element, f->d_inner, panel, f->d_inner, m->scores + row * BK + c, BK,
                       false);
        }
    }
}

/* Softmax of one row over this block of keys: running maximum, sum, and the scaling of what was summed before. */
static void row_softmax(const flash *f, const head *a, const block *m, int64_t i, int64_t query, int64_t key, int64_t n_valid,
                        int64_t n_column)
{
    const reel_op_attention *o = f->o;
    float *s = m->scores + i * BK;
    const float *key_bias = o->key_bias.data ? (const float *)o->key_bias.data + key : NULL;
    const float *relative = o->relative_bias.data
                                ? (const float *)o->relative_bias.data + a->h * o->relative_bias.stride[0] + key - query + f->n_query - 1
                                : NULL;
    const float in_block = f->k->bias_max(s, n_column, n_valid, o->scale, key_bias, relative);
    const float most = in_block > m->most[i] ? in_block : m->most[i];
    const float shift = most == -INFINITY ? 0.0F : most; /* every key so far is masked */
    if (most > m->most[i] && m->total[i] > 0.0F) {
        const float factor = expf(m->most[i] - shift);
        m->total[i] *= factor;
        f->k->scale(m->sums + i * f->d_columns, f->d_columns, factor);
    }
    m->most[i] = most;
    m->total[i] += f->k->exponent(s, n_column, shift, m->probability + (size_t)(i * BK) * f->element);
}

static void block_output(const flash *f, const head *a, const block *m, int64_t n, int64_t key, int64_t n_column)
{
    const int64_t nr = f->k->nr;
    for (int64_t c = 0; c < f->d_columns; c += nr) {
        const char *panel = a->values + (size_t)(c * f->keys + key * nr) * f->element;
        for (int64_t s = 0; s < strips_of(n); s++) {
            const int64_t row = s * REEL_ATTN_MR;
            f->k->tile(m->probability + (size_t)(row * BK) * f->element, BK, panel, n_column, m->sums + row * f->d_columns + c,
                       f->d_columns, true);
        }
    }
}

static void store_block(const flash *f, const head *a, const block *m, int64_t first, int64_t n)
{
    const reel_op_attention *o = f->o;
    for (int64_t i = 0; i < n; i++) {
        char *to = (char *)(uintptr_t)row_of(&o->out, a->b, first + i, a->h);
        f->k->store(m->sums + i * f->d_columns, f->d, 1.0F / m->total[i], to, o->out.dtype);
        if (o->lse.data) {
            float *lse = (float *)o->lse.data + a->b * o->lse.stride[0] + a->h * o->lse.stride[1] + (first + i) * o->lse.stride[2];
            *lse = m->most[i] + logf(m->total[i]);
        }
    }
}

static void query_blocks(void *context, int64_t begin, int64_t end, int32_t thread)
{
    const flash *f = context;
    const int64_t n_block = (f->n_query + BQ - 1) / BQ;
    block m;
    (void)local_layout(f, f->local + (size_t)thread * f->local_bytes, &m);
    for (int64_t item = begin; item < end; item++) {
        const head a = head_of(f, item / n_block);
        const int64_t first = item % n_block * BQ, n = first + BQ < f->n_query ? BQ : f->n_query - first;
        load_queries(f, &a, &m, first, n);
        for (int64_t key = 0; key < f->n_key; key += BK) {
            const int64_t n_valid = key + BK < f->n_key ? BK : f->n_key - key, n_column = up(n_valid, f->k->nr);
            block_scores(f, &a, &m, n, key, n_column);
            for (int64_t i = 0; i < n; i++) row_softmax(f, &a, &m, i, first + i, key, n_valid, n_column);
            block_output(f, &a, &m, n, key, n_column);
        }
        store_block(f, &a, &m, first, n);
    }
}

/* Packed heads that are held at once: within the second-level and third-level caches of today's processors. */
#define GROUP_BYTES ((size_t)24 << 20)

static void set_sizes(flash *f)
{
    block unused;
    f->element = reel_dtype_bytes(f->k->element);
    f->d_inner = up(f->d, f->k->unit * LANES);
    f->d_columns = up(f->d, f->k->nr);
    f->keys = up(f->n_key, f->k->nr);
    f->keys_bytes = up64((size_t)(f->keys * f->d_inner) * f->element);
    f->head_bytes = f->keys_bytes + up64((size_t)(f->keys * f->d_columns) * f->element);
    f->local_bytes = local_layout(f, NULL, &unused);
    const size_t rows = up64(2 * (size_t)(f->d_columns > f->d_inner ? f->d_columns : f->d_inner) * f->element);
    if (f->local_bytes < rows) f->local_bytes = rows;
}

reel_status reel_cpu_attention_flash(reel_device *device, const reel_attn_kernels *kernels, const reel_op_attention *args, reel_error *err)
{
    flash f = {.k = kernels, .o = args, .n_query = args->q.extent[1], .n_key = args->k.extent[1], .d = args->q.extent[3]};
    set_sizes(&f);
    const int64_t n_total = args->q.extent[0] * args->q.extent[2], fits = (int64_t)(GROUP_BYTES / f.head_bytes);
    const int64_t at_once = fits < 1 ? 1 : fits < n_total ? fits : n_total;
    const size_t bytes = f.head_bytes * (size_t)at_once + f.local_bytes * (size_t)device->n_thread;
    f.packed = reel_cpu_scratch(device, bytes);
    if (!f.packed) {
        return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for attention\ngiven: %lld keys need %zu bytes\nremedy: choose a smaller size",
                         (long long)f.n_key, bytes);
    }
    f.local = f.packed + f.head_bytes * (size_t)at_once;
    for (f.first_head = 0; f.first_head < n_total; f.first_head += at_once) {
        f.n_head = f.first_head + at_once < n_total ? at_once : n_total - f.first_head;
        reel_cpu_parallel_for(device, f.n_head * (f.keys / kernels->nr), &f, pack_panels);
        reel_cpu_parallel_dynamic(device, f.n_head * ((f.n_query + BQ - 1) / BQ), 1, &f, query_blocks);
    }
    return REEL_OK;
}
