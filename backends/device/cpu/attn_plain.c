/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in plain C: one query at a time, two passes over the scores. For processors without AVX2 and for checking the fast ones. */
#include <math.h>
#include <stdlib.h>

#include "backends/device/cpu/attn.h"

static float read_one(const reel_tensor *t, int64_t i)
{
    if (t->dtype == REEL_DTYPE_F32) return ((const float *)t->data)[i];
    const uint16_t half = ((const uint16_t *)t->data)[i];
    return t->dtype == REEL_DTYPE_BF16 ? reel_f32_from_bf16(half) : reel_f32_from_f16(half);
}

static void write_one(const reel_tensor *t, int64_t i, float x)
{
    if (t->dtype == REEL_DTYPE_F32) {
        ((float *)t->data)[i] = x;
    } else {
        ((uint16_t *)t->data)[i] = t->dtype == REEL_DTYPE_BF16 ? reel_bf16_from_f32(x) : reel_f16_from_f32(x);
    }
}

static int64_t place(const reel_tensor *t, int64_t b, int64_t s, int64_t h)
{
    return b * t->stride[0] + s * t->stride[1] + h * t->stride[2];
}

typedef struct plain_scope {
    const reel_op_attention *o;
    float *memory; /* per thread: Sk scores, D query, D sums */
    int64_t each;
} plain_scope;

/* Score of query q with key j: bias terms included. */
static float score(const reel_op_attention *o, const float *query, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const int64_t at = place(&o->k, b, j, h), d = o->q.extent[3];
    float sum = 0.0F;
    for (int64_t c = 0; c < d; c++) sum += query[c] * read_one(&o->k, at + c);
    sum *= o->scale;
    if (o->key_bias.data) sum += ((const float *)o->key_bias.data)[j * o->key_bias.stride[0]];
    if (o->relative_bias.data) {
        const reel_tensor *r = &o->relative_bias;
        sum += ((const float *)r->data)[h * r->stride[0] + (j - i + o->q.extent[1] - 1) * r->stride[1]];
    }
    return sum;
}

static void one_query(const plain_scope *s, int64_t item, float *memory)
{
    const reel_op_attention *o = s->o;
    const int64_t n_head = o->q.extent[2], n_query = o->q.extent[1], n_key = o->k.extent[1], d = o->q.extent[3];
    const int64_t b = item / (n_head * n_query), h = item / n_query % n_head, i = item % n_query;
    float *scores = memory, *query = memory + n_key, *sums = query + d;
    const int64_t from = place(&o->q, b, i, h), to = place(&o->out, b, i, h);
    for (int64_t c = 0; c < d; c++) {
        query[c] = read_one(&o->q, from + c);
        sums[c] = 0.0F;
    }
    float most = -INFINITY, total = 0.0F;
    for (int64_t j = 0; j < n_key; j++) {
        scores[j] = score(o, query, b, h, i, j);
        most = scores[j] > most ? scores[j] : most;
    }
    for (int64_t j = 0; j < n_key; j++) {
        const float p = expf(scores[j] - most);
        const int64_t at = place(&o->v, b, j, h);
        total += p;
        for (int64_t c = 0; c < d; c++) sums[c] += p * read_one(&o->v, at + c);
    }
    for (int64_t c = 0; c < d; c++) write_one(&o->out, to + c, sums[c] / total);
    if (o->lse.data) ((float *)o->lse.data)[b * o->lse.stride[0] + h * o->lse.stride[1] + i * o->lse.stride[2]] = most + logf(total);
}

static void body(void *context, int64_t begin, int64_t end, int32_t thread)
{
    const plain_scope *s = context;
    for (int64_t i = begin; i < end; i++) one_query(s, i, s->memory + thread * s->each);
}

reel_status reel_cpu_attention_plain(reel_device *device, const reel_op_attention *o, reel_error *err)
{
    plain_scope s = {.o = o, .each = o->k.extent[1] + 2 * o->q.extent[3]};
    s.memory = malloc(sizeof *s.memory * (size_t)(s.each * device->n_thread));
    if (!s.memory) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for attention\nremedy: choose a smaller size");
    reel_cpu_parallel_for(device, o->q.extent[0] * o->q.extent[1] * o->q.extent[2], &s, body);
    free(s.memory);
    return REEL_OK;
}
