/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference of `attention`: per head, the row of scores of one query, its maximum, the exponentials, and the weighted values.
 *
 * Keys and values of a head are turned into doubles once; keys transposed, so that the loops run over keys. When every score of a
 * row is −∞, the row of out is 0 and its lse −∞: what merging partial results needs. */
#include <math.h>
#include <stdlib.h>

#include "ops/ref/ref.h"

typedef struct head {
    const reel_op_attention *a;
    int64_t b, h, n_query, n_key, n_channel;
    double *keys; /* [D][Sk] */
    double *values; /* [Sk][D] */
    double *score; /* [Sk] */
    double *out; /* [D] */
    double *query; /* [D] */
} head;

static void load_head(head *c)
{
    const reel_tensor *k = &c->a->k, *v = &c->a->v;
    for (int64_t s = 0; s < c->n_key; s++) {
        for (int64_t d = 0; d < c->n_channel; d++) {
            c->keys[d * c->n_key + s] = reel_ref_get(k, c->b * k->stride[0] + s * k->stride[1] + c->h * k->stride[2] + d * k->stride[3]);
            c->values[s * c->n_channel + d] =
                reel_ref_get(v, c->b * v->stride[0] + s * v->stride[1] + c->h * v->stride[2] + d * v->stride[3]);
        }
    }
}

/* score[k] for query s; returns the largest */
static double score_row(head *c, int64_t s)
{
    const reel_op_attention *a = c->a;
    for (int64_t d = 0; d < c->n_channel; d++)
        c->query[d] = reel_ref_get(&a->q, c->b * a->q.stride[0] + s * a->q.stride[1] + c->h * a->q.stride[2] + d * a->q.stride[3]);
    for (int64_t k = 0; k < c->n_key; k++) c->score[k] = 0.0;
    for (int64_t d = 0; d < c->n_channel; d++)
        for (int64_t k = 0; k < c->n_key; k++) c->score[k] += c->query[d] * c->keys[d * c->n_key + k];
    double most = -INFINITY;
    for (int64_t k = 0; k < c->n_key; k++) {
        c->score[k] *= (double)a->scale;
        if (a->key_bias.data) c->score[k] += reel_ref_get(&a->key_bias, k * a->key_bias.stride[0]);
        if (a->relative_bias.data)
            c->score[k] +=
                reel_ref_get(&a->relative_bias, c->h * a->relative_bias.stride[0] + (k - s + c->n_query - 1) * a->relative_bias.stride[1]);
        if (!(c->score[k] <= most)) most = c->score[k];
    }
    return most;
}

static void query_row(head *c, int64_t s)
{
    const reel_op_attention *a = c->a;
    double most = score_row(c, s), sum = 0.0;
    for (int64_t d = 0; d < c->n_channel; d++) c->out[d] = 0.0;
    for (int64_t k = 0; k < c->n_key; k++) {
        double p = most == -INFINITY ? 0.0 : exp(c->score[k] - most);
        sum += p;
        for (int64_t d = 0; d < c->n_channel; d++) c->out[d] += p * c->values[k * c->n_channel + d];
    }
    for (int64_t d = 0; d < c->n_channel; d++)
        reel_ref_set(&a->out, c->b * a->out.stride[0] + s * a->out.stride[1] + c->h * a->out.stride[2] + d * a->out.stride[3],
                     sum == 0.0 ? 0.0 : c->out[d] / sum);
    if (a->lse.data) reel_ref_set(&a->lse, c->b * a->lse.stride[0] + c->h * a->lse.stride[1] + s * a->lse.stride[2], most + log(sum));
}

reel_status reel_ref_attention(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream;
    const reel_op_attention *a = args;
    head c = {.a = a, .n_query = a->q.extent[1], .n_key = a->k.extent[1], .n_channel = a->q.extent[3]};
    REEL_TRY(reel_ref_alloc(2 * c.n_key * c.n_channel + c.n_key + 2 * c.n_channel, &c.keys, err));
    c.values = c.keys + c.n_key * c.n_channel;
    c.score = c.values + c.n_key * c.n_channel;
    c.out = c.score + c.n_key;
    c.query = c.out + c.n_channel;
    for (c.b = 0; c.b < a->q.extent[0]; c.b++)
        for (c.h = 0; c.h < a->q.extent[2]; c.h++) {
            load_head(&c);
            for (int64_t s = 0; s < c.n_query; s++) query_row(&c, s);
        }
    free(c.keys);
    return REEL_OK;
}
