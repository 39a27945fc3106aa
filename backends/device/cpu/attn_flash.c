/* SPDX-License-Identifier: Apache-2.0
 *
 * Flash attention on the CPU: never a score matrix larger than one block of queries by one block of keys.
 *
 * Head by head: keys and values are packed once into panels (shared by all threads), then every thread takes blocks of queries. For a block of BQ
 * queries and BK keys the scores are one small matrix product, the softmax runs row by row with a running maximum and sum, and the output
 * is a second product. Panels of keys (64 × D) and of values (BK × 64) fit the first-level cache and are reused by all strips of MR rows of
 * the block; the block's scores stay in the second level. A row's numbers depend only on its own query and on the fixed key blocks, so
 * results do not change with threads, with how many queries are handed over, or with other heads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/device/cpu/attn.h"

enum { BQ = 96, BK = 256, LANES = 16 };
static_assert(BQ % REEL_ATTN_MR == 0, "blocks are whole strips");

typedef struct flash {
    const reel_attn_kernels *k;
    const reel_op_attention *o;
    int64_t b, h; /* head at work */
    int64_t n_query, n_key, d;
    int64_t d_inner, d_columns, keys; /* D padded to the unit; D padded to whole panels; keys padded to whole panels */
    size_t element;
    char *keys_packed, *values_packed; /* [keys / NR][D'/unit][NR][unit]; [D''/NR][keys / unit][NR][unit] */
    char *local; /* per thread */
    size_t local_bytes;
} flash;

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

/* ---- packing ----------------------------------------------------------------------------------------------------------------------------- */

/* Element `c` of a row, moved whole: 2 or 4 bytes. */
static void move(char *to, int64_t i, const char *from, int64_t c, size_t element)
{
    if (element == 4) {
        memcpy(to + 4 * i, from + 4 * c, 4);
    } else {
        memcpy(to + 2 * i, from + 2 * c, 2);
    }
}

/* Panels [begin, end) of NR keys each: column j of a panel is key panel·NR + j; missing keys are zero. */
static void pack_panels(void *context, int64_t begin, int64_t end, int32_t thread)
{
    const flash *f = context;
    const int64_t nr = f->k->nr, unit = f->k->unit, panel = f->d_inner * nr;
    char *row = f->local + (size_t)thread * f->local_bytes; /* one row in the element type */
    for (int64_t p = begin; p < end; p++) {
        char *to = f->keys_packed + (size_t)(p * panel) * f->element;
        for (int64_t j = 0; j < nr; j++) {
            const int64_t key = p * nr + j;
            memset(row, 0, (size_t)f->d_inner * f->element);
            if (key < f->n_key) f->k->load(row_of(&f->o->k, f->b, key, f->h), f->o->k.dtype, f->d, row);
            for (int64_t c = 0; c < f->d_inner; c++) move(to, (c / unit * nr + j) * unit + c % unit, row, c, f->element);
            if (key < f->n_key) f->k->load(row_of(&f->o->v, f->b, key, f->h), f->o->v.dtype, f->d, row);
            for (int64_t c = 0; c < f->d_columns; c++) {
                char *column = f->values_packed + (size_t)(c / nr * f->keys * nr) * f->element;
                const int64_t at = (key / unit * nr + c % nr) * unit + key % unit;
                if (c < f->d && key < f->n_key) {
                    move(column, at, row, c, f->element);
                } else {
                    memset(column + (size_t)at * f->element, 0, f->element);
                }
            }
        }
    }
}

/* ---- one block of queries --------------------------------------------------------------------------------------------------------------- */

static void load_queries(const flash *f, const block *m, int64_t first, int64_t n)
{
    memset(m->query, 0, (size_t)(BQ * f->d_inner) * f->element);
    for (int64_t i = 0; i < n; i++) {
        f->k->load(row_of(&f->o->q, f->b, first + i, f->h), f->o->q.dtype, f->d, m->query + (size_t)(i * f->d_inner) * f->element);
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

static void block_scores(const flash *f, const block *m, int64_t n, int64_t key, int64_t n_column)
{
    const int64_t nr = f->k->nr;
    for (int64_t c = 0; c < n_column; c += nr) {
        const char *panel = f->keys_packed + (size_t)((key + c) * f->d_inner) * f->element;
        for (int64_t s = 0; s < strips_of(n); s++) {
            const int64_t row = s * REEL_ATTN_MR;
            f->k->tile(m->query + (size_t)(row * f->d_inner) * f->element, f->d_inner, panel, f->d_inner, m->scores + row * BK + c, BK,
                       false);
        }
    }
}

/* Softmax of one row over this block of keys: running maximum, sum, and the scaling of what was summed before. */
static void row_softmax(const flash *f, const block *m, int64_t i, int64_t query, int64_t key, int64_t n_valid, int64_t n_column)
{
    const reel_op_attention *o = f->o;
    float *s = m->scores + i * BK;
    const float *key_bias = o->key_bias.data ? (const float *)o->key_bias.data + key : NULL;
    const float *relative = o->relative_bias.data
                                ? (const float *)o->relative_bias.data + f->h * o->relative_bias.stride[0] + key - query + f->n_query - 1
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

static void block_output(const flash *f, const block *m, int64_t n, int64_t key, int64_t n_column)
{
    const int64_t nr = f->k->nr;
    for (int64_t c = 0; c < f->d_columns; c += nr) {
        const char *panel = f->values_packed + (size_t)(c * f->keys + key * nr) * f->element;
        for (int64_t s = 0; s < strips_of(n); s++) {
            const int64_t row = s * REEL_ATTN_MR;
            f->k->tile(m->probability + (size_t)(row * BK) * f->element, BK, panel, n_column, m->sums + row * f->d_columns + c,
                       f->d_columns, true);
        }
    }
}

static void store_block(const flash *f, const block *m, int64_t first, int64_t n)
{
    const reel_op_attention *o = f->o;
    for (int64_t i = 0; i < n; i++) {
        char *to = (char *)(uintptr_t)row_of(&o->out, f->b, first + i, f->h);
        f->k->store(m->sums + i * f->d_columns, f->d, 1.0F / m->total[i], to, o->out.dtype);
        if (o->lse.data) {
            float *lse = (float *)o->lse.data + f->b * o->lse.stride[0] + f->h * o->lse.stride[1] + (first + i) * o->lse.stride[2];
            *lse = m->most[i] + logf(m->total[i]);
        }
    }
}

static void query_blocks(void *context, int64_t begin, int64_t end, int32_t thread)
{
    const flash *f = context;
    block m;
    (void)local_layout(f, f->local + (size_t)thread * f->local_bytes, &m);
    for (int64_t q = begin; q < end; q++) {
        const int64_t first = q * BQ, n = first + BQ < f->n_query ? BQ : f->n_query - first;
        load_queries(f, &m, first, n);
        for (int64_t key = 0; key < f->n_key; key += BK) {
            const int64_t n_valid = key + BK < f->n_key ? BK : f->n_key - key, n_column = up(n_valid, f->k->nr);
            block_scores(f, &m, n, key, n_column);
            for (int64_t i = 0; i < n; i++) row_softmax(f, &m, i, first + i, key, n_valid, n_column);
            block_output(f, &m, n, key, n_column);
        }
        store_block(f, &m, first, n);
    }
}

reel_status reel_cpu_attention_flash(reel_device *device, const reel_attn_kernels *kernels, const reel_op_attention *args, reel_error *err)
{
    flash f = {.k = kernels, .o = args, .n_query = args->q.extent[1], .n_key = args->k.extent[1], .d = args->q.extent[3]};
    block unused;
    f.element = reel_dtype_bytes(kernels->element);
    f.d_inner = up(f.d, kernels->unit * LANES);
    f.d_columns = up(f.d, kernels->nr);
    f.keys = up(f.n_key, kernels->nr);
    f.local_bytes = local_layout(&f, NULL, &unused);
    const size_t keys_bytes = up64((size_t)(f.keys * f.d_inner) * f.element),
                 values_bytes = up64((size_t)(f.keys * f.d_columns) * f.element);
    const size_t bytes = keys_bytes + values_bytes + f.local_bytes * (size_t)device->n_thread;
    char *memory = reel_cpu_scratch(device, bytes);
    if (!memory) {
        return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for attention\ngiven: %lld keys need %zu bytes\nremedy: choose a smaller size",
                         (long long)f.n_key, bytes);
    }
    f.keys_packed = memory;
    f.values_packed = memory + keys_bytes;
    f.local = f.values_packed + values_bytes;
    for (f.b = 0; f.b < args->q.extent[0]; f.b++) {
        for (f.h = 0; f.h < args->q.extent[2]; f.h++) {
            reel_cpu_parallel_for(device, f.keys / kernels->nr, &f, pack_panels);
            reel_cpu_parallel_dynamic(device, (f.n_query + BQ - 1) / BQ, 1, &f, query_blocks);
        }
    }
    return REEL_OK;
}
