/* SPDX-License-Identifier: Apache-2.0
 *
 * The umT5 encoder (transformers 5, UMT5EncoderModel): token ids to text states.
 *
 * Only the real tokens are computed: padded keys get probability zero and padded rows are overwritten by zeros in the pipeline, so
 * both can be left out exactly. Every layer owns a table of relative-position biases; scores are not scaled. The residual stream is
 * f32 whatever the compute dtype, which is never less accurate than the reference's rounding after every addition.
 * Source: transformers models/umt5, wan-numerics notes in docs/model.md. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/text.h"

enum { ATTN_NORM, Q, K, V, O, BIAS, FF_NORM, WI_0, WI_1, WO, N_LAYER_WEIGHT };

struct reel_umt5 {
    reel_umt5_config config;
    const reel_ops *ops;
    reel_weights *weights;
    reel_dtype compute;
    int32_t region_embed, region_final;
    int32_t *region_layer;
};

/* The tensors of one encoding, in the order in which they are taken from the arena. */
typedef struct umt5_buffers {
    reel_tensor ids, buckets, bias_rows, bias; /* [n] i32, [2n−1] i32, [2n−1, H] f32, [H, 2n−1] f32 */
    reel_tensor x, norm; /* [n, d] f32; [n, d] compute */
    reel_tensor q, k, v; /* [n, H·dk] compute; attention writes over q */
    reel_tensor out; /* [n, d] compute */
    reel_tensor gate, up; /* [n, ff] compute */
} umt5_buffers;

static reel_status add_layer(reel_umt5 *t, int32_t i, reel_error *err)
{
    static const char *const name[N_LAYER_WEIGHT] = {
        [ATTN_NORM] = "layer.0.layer_norm",     [Q] = "layer.0.SelfAttention.q",
        [K] = "layer.0.SelfAttention.k",        [V] = "layer.0.SelfAttention.v",
        [O] = "layer.0.SelfAttention.o",        [BIAS] = "layer.0.SelfAttention.relative_attention_bias",
        [FF_NORM] = "layer.1.layer_norm",       [WI_0] = "layer.1.DenseReluDense.wi_0",
        [WI_1] = "layer.1.DenseReluDense.wi_1", [WO] = "layer.1.DenseReluDense.wo",
    };
    char text[N_LAYER_WEIGHT][128];
    reel_weight_request request[N_LAYER_WEIGHT];
    for (int32_t j = 0; j < N_LAYER_WEIGHT; j++) {
        (void)snprintf(text[j], sizeof text[j], "encoder.block.%d.%s.weight", (int)i, name[j]);
        reel_weight_kind kind = j == ATTN_NORM || j == FF_NORM ? REEL_WEIGHT_VECTOR : j == BIAS ? REEL_WEIGHT_ROWS : REEL_WEIGHT_MATRIX;
        request[j] = (reel_weight_request){.name = text[j], .kind = kind};
    }
    return reel_weights_add_region(t->weights, request, N_LAYER_WEIGHT, &t->region_layer[i], err);
}

reel_status reel_umt5_new(const reel_umt5_config *config, const reel_ops *ops, reel_weights *weights, reel_dtype compute, reel_umt5 **out,
                          reel_error *err)
{
    reel_umt5 *t = calloc(1, sizeof *t);
    reel_status status = REEL_OK;
    if (t) t->region_layer = calloc((size_t)config->n_layer, sizeof *t->region_layer);
    if (!t || !t->region_layer) {
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory while opening the text encoder\nremedy: close other programs");
        goto cleanup;
    }
    t->config = *config;
    t->ops = ops;
    t->weights = weights;
    t->compute = compute;
    const reel_weight_request embed = {.name = "shared.weight", .kind = REEL_WEIGHT_ROWS};
    const reel_weight_request final = {.name = "encoder.final_layer_norm.weight", .kind = REEL_WEIGHT_VECTOR};
    REEL_TRY_GOTO(reel_weights_add_region(weights, &embed, 1, &t->region_embed, err), cleanup);
    REEL_TRY_GOTO(reel_weights_add_region(weights, &final, 1, &t->region_final, err), cleanup);
    for (int32_t i = 0; i < config->n_layer; i++) REEL_TRY_GOTO(add_layer(t, i, err), cleanup);
    *out = t;
    return REEL_OK;
cleanup:
    reel_umt5_free(&t);
    return status;
}

void reel_umt5_free(reel_umt5 **encoder)
{
    if (!*encoder) return;
    free((*encoder)->region_layer);
    free(*encoder);
    *encoder = NULL;
}

/* Walks the buffers of an encoding of n tokens: takes them from `arena`, or only adds their needs to *bytes when arena is NULL. */
static reel_status layout(const reel_umt5_config *c, reel_dtype compute, int64_t n, size_t alignment, reel_arena *arena, umt5_buffers *b,
                          size_t *bytes, reel_error *err)
{
    int64_t inner = (int64_t)c->n_head * c->d_kv, span = 2 * n - 1;
    const struct {
        reel_tensor *t;
        reel_dtype dtype;
        int64_t rows, columns;
    } list[] = {
        {&b->ids, REEL_DTYPE_I32, n, 0},
        {&b->buckets, REEL_DTYPE_I32, span, 0},
        {&b->bias_rows, REEL_DTYPE_F32, span, c->n_head},
        {&b->bias, REEL_DTYPE_F32, c->n_head, span},
        {&b->x, REEL_DTYPE_F32, n, c->d_model},
        {&b->norm, compute, n, c->d_model},
        {&b->q, compute, n, inner},
        {&b->k, compute, n, inner},
        {&b->v, compute, n, inner},
        {&b->out, compute, n, c->d_model},
        {&b->gate, compute, n, c->d_ff},
        {&b->up, compute, n, c->d_ff},
    };
    for (size_t i = 0; i < REEL_COUNT(list); i++) {
        int64_t columns = list[i].columns > 0 ? list[i].columns : 1;
        if (arena) {
            REEL_TRY(reel_arena_take(arena, list[i].dtype, list[i].rows, list[i].columns, 0, 0, list[i].t, err));
        } else {
            *bytes += reel_arena_need(alignment, list[i].dtype, list[i].rows * columns);
        }
    }
    return REEL_OK;
}

size_t reel_umt5_scratch_bytes(const reel_umt5_config *config, reel_dtype compute, int64_t n_token, size_t alignment)
{
    umt5_buffers unused = {0};
    size_t bytes = 0;
    (void)layout(config, compute, n_token, alignment, NULL, &unused, &bytes, NULL);
    return bytes;
}

int32_t reel_umt5_bucket(int32_t distance, int32_t n_bucket, int32_t max_distance)
{
    int32_t half = n_bucket / 2, exact = half / 2;
    int32_t base = distance > 0 ? half : 0, a = abs(distance);
    if (a < exact) return base + a;
    float steps = logf((float)a / (float)exact) / (float)log((double)max_distance / exact) * (float)(half - exact);
    int32_t large = exact + (int32_t)steps;
    return base + (large < half - 1 ? large : half - 1);
}

/* Uploads ids and the bucket of every distance k − q, q descending: entry j is the distance j − (n − 1). */
static reel_status upload_indices(const reel_umt5 *t, const reel_tokens *tokens, const umt5_buffers *b, reel_error *err)
{
    int32_t bucket[2 * REEL_TOKEN_MAX - 1];
    for (int32_t j = 0; j < 2 * tokens->n - 1; j++) {
        bucket[j] = reel_umt5_bucket(j - (tokens->n - 1), t->config.n_bucket, t->config.max_distance);
    }
    REEL_TRY(reel_ops_upload(t->ops, &b->ids, tokens->id, err));
    return reel_ops_upload(t->ops, &b->buckets, bucket, err);
}

static reel_tensor heads(reel_tensor t, int32_t n_head, int32_t head_dim)
{
    return reel_tensor_dense(t.data, t.dtype, 1, t.extent[0], n_head, head_dim);
}

static reel_status self_attention(const reel_umt5 *t, const reel_region *w, const umt5_buffers *b, const reel_attn_impl *attention,
                                  reel_error *err)
{
    const reel_ops *ops = t->ops;
    const reel_umt5_config *c = &t->config;
    REEL_TRY(REEL_OP(ops, rms_norm, err, .x = b->x, .weight = w->vector[ATTN_NORM], .y = b->norm, .eps = (float)c->eps));
    REEL_TRY(REEL_OP(ops, linear, err, .x = b->norm, .w = w->weight[Q], .y = b->q));
    REEL_TRY(REEL_OP(ops, linear, err, .x = b->norm, .w = w->weight[K], .y = b->k));
    REEL_TRY(REEL_OP(ops, linear, err, .x = b->norm, .w = w->weight[V], .y = b->v));
    REEL_TRY(REEL_OP(ops, gather_rows, err, .w = w->weight[BIAS], .index = b->buckets, .y = b->bias_rows));
    reel_tensor transposed = b->bias_rows;
    transposed.extent[0] = b->bias_rows.extent[1];
    transposed.extent[1] = b->bias_rows.extent[0];
    transposed.stride[0] = 1;
    transposed.stride[1] = b->bias_rows.stride[0];
    REEL_TRY(REEL_OP(ops, convert, err, .x = transposed, .y = b->bias));
    reel_op_attention args = {.size = sizeof args, .scale = 1.0F, .relative_bias = b->bias};
    args.q = args.out = heads(b->q, c->n_head, c->d_kv);
    args.k = heads(b->k, c->n_head, c->d_kv);
    args.v = heads(b->v, c->n_head, c->d_kv);
    if (attention) {
        REEL_TRY(reel_ops_attention_by(ops, attention, &args, err));
    } else {
        REEL_TRY(reel_ops_attention(ops, &args, err));
    }
    REEL_TRY(REEL_OP(ops, linear, err, .x = b->q, .w = w->weight[O], .y = b->out));
    return REEL_OP(ops, gate_residual, err, .x = b->x, .a = b->out, .y = b->x);
}

static reel_status feed_forward(const reel_umt5 *t, const reel_region *w, const umt5_buffers *b, reel_error *err)
{
    const reel_ops *ops = t->ops;
    REEL_TRY(REEL_OP(ops, rms_norm, err, .x = b->x, .weight = w->vector[FF_NORM], .y = b->norm, .eps = (float)t->config.eps));
    REEL_TRY(REEL_OP(ops, linear, err, .x = b->norm, .w = w->weight[WI_0], .y = b->gate));
    REEL_TRY(REEL_OP(ops, linear, err, .x = b->norm, .w = w->weight[WI_1], .y = b->up));
    REEL_TRY(REEL_OP(ops, gated_gelu, err, .gate = b->gate, .up = b->up, .y = b->gate));
    REEL_TRY(REEL_OP(ops, linear, err, .x = b->gate, .w = w->weight[WO], .y = b->out));
    return REEL_OP(ops, gate_residual, err, .x = b->x, .a = b->out, .y = b->x);
}

static reel_status run_layer(reel_umt5 *t, int32_t i, const umt5_buffers *b, const reel_attn_impl *attention, reel_error *err)
{
    reel_region w;
    REEL_TRY(reel_weights_acquire(t->weights, t->region_layer[i], &w, err));
    reel_status status = self_attention(t, &w, b, attention, err);
    if (status == REEL_OK) status = feed_forward(t, &w, b, err);
    reel_weights_release(t->weights, t->region_layer[i]);
    return status;
}

static reel_status embed(reel_umt5 *t, const umt5_buffers *b, reel_error *err)
{
    reel_region w;
    REEL_TRY(reel_weights_acquire(t->weights, t->region_embed, &w, err));
    reel_status status = REEL_OP(t->ops, gather_rows, err, .w = w.weight[0], .index = b->ids, .y = b->x);
    reel_weights_release(t->weights, t->region_embed);
    return status;
}

static reel_status final_norm(reel_umt5 *t, const umt5_buffers *b, const reel_tensor *states, reel_error *err)
{
    reel_region w;
    REEL_TRY(reel_weights_acquire(t->weights, t->region_final, &w, err));
    reel_status status = REEL_OP(t->ops, rms_norm, err, .x = b->x, .weight = w.vector[0], .y = *states, .eps = (float)t->config.eps);
    reel_weights_release(t->weights, t->region_final);
    return status;
}

static reel_status check_ids(const reel_umt5 *t, const reel_tokens *tokens, reel_error *err)
{
    for (int32_t i = 0; i < tokens->n; i++) {
        if (tokens->id[i] < 0 || tokens->id[i] >= t->config.vocab) {
            return REEL_FAIL(err, REEL_E_MODEL,
                             "tokenizer and text encoder do not belong together\ngiven: token id %d\nallowed: 0 to %d, the rows of the "
                             "encoder's embedding\nremedy: use the tokenizer that came with this text encoder",
                             (int)tokens->id[i], (int)t->config.vocab - 1);
        }
    }
    return REEL_OK;
}

reel_status reel_umt5_encode(reel_umt5 *encoder, const reel_tokens *tokens, reel_arena *scratch, const char *attention,
                             const reel_tensor *states, reel_error *err)
{
    REEL_TRY(check_ids(encoder, tokens, err));
    size_t mark = scratch->used;
    umt5_buffers b = {0};
    const reel_attn_impl *impl = attention ? reel_ops_find_attention(encoder->ops, attention) : NULL;
    reel_status status = REEL_OK;
    REEL_TRY_GOTO(layout(&encoder->config, encoder->compute, tokens->n, 0, scratch, &b, NULL, err), cleanup);
    REEL_TRY_GOTO(upload_indices(encoder, tokens, &b, err), cleanup);
    REEL_TRY_GOTO(embed(encoder, &b, err), cleanup);
    for (int32_t i = 0; i < encoder->config.n_layer; i++) REEL_TRY_GOTO(run_layer(encoder, i, &b, impl, err), cleanup);
    REEL_TRY_GOTO(final_norm(encoder, &b, states, err), cleanup);
cleanup:
    reel_arena_rewind(scratch, mark);
    return status;
}
