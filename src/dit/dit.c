/* SPDX-License-Identifier: Apache-2.0
 *
 * The transformer as a whole: opening an expert, the layout of a forward's tensors, and the block loop.
 *
 * The loop is the only one there is: caches, exchanges and cancellation are asked for through the input's tables. Weights are leased for
 * the time of a block. Shapes are checked against the config when a forward begins. */
#include "dit/dit.h"

#include <stdio.h>
#include <stdlib.h>

#include "dit/dit_internal.h"

static const struct {
    const char *name;
    reel_weight_kind kind;
} embed_names[E_COUNT] = {
    [E_PATCH_W] = {"patch_embedding.weight", REEL_WEIGHT_MATRIX},
    [E_PATCH_B] = {"patch_embedding.bias", REEL_WEIGHT_VECTOR},
    [E_TIME_1_W] = {"condition_embedder.time_embedder.linear_1.weight", REEL_WEIGHT_MATRIX_F32},
    [E_TIME_1_B] = {"condition_embedder.time_embedder.linear_1.bias", REEL_WEIGHT_VECTOR},
    [E_TIME_2_W] = {"condition_embedder.time_embedder.linear_2.weight", REEL_WEIGHT_MATRIX_F32},
    [E_TIME_2_B] = {"condition_embedder.time_embedder.linear_2.bias", REEL_WEIGHT_VECTOR},
    [E_TIME_PROJ_W] = {"condition_embedder.time_proj.weight", REEL_WEIGHT_MATRIX_F32},
    [E_TIME_PROJ_B] = {"condition_embedder.time_proj.bias", REEL_WEIGHT_VECTOR},
    [E_TEXT_1_W] = {"condition_embedder.text_embedder.linear_1.weight", REEL_WEIGHT_MATRIX},
    [E_TEXT_1_B] = {"condition_embedder.text_embedder.linear_1.bias", REEL_WEIGHT_VECTOR},
    [E_TEXT_2_W] = {"condition_embedder.text_embedder.linear_2.weight", REEL_WEIGHT_MATRIX},
    [E_TEXT_2_B] = {"condition_embedder.text_embedder.linear_2.bias", REEL_WEIGHT_VECTOR},
    [E_HEAD_TABLE] = {"scale_shift_table", REEL_WEIGHT_VECTOR},
    [E_HEAD_W] = {"proj_out.weight", REEL_WEIGHT_MATRIX},
    [E_HEAD_B] = {"proj_out.bias", REEL_WEIGHT_VECTOR},
};

static const char *const block_names[B_COUNT] = {
    [B_TABLE] = "scale_shift_table",     [B_Q1_W] = "attn1.to_q.weight",      [B_Q1_B] = "attn1.to_q.bias",
    [B_K1_W] = "attn1.to_k.weight",      [B_K1_B] = "attn1.to_k.bias",        [B_V1_W] = "attn1.to_v.weight",
    [B_V1_B] = "attn1.to_v.bias",        [B_O1_W] = "attn1.to_out.0.weight",  [B_O1_B] = "attn1.to_out.0.bias",
    [B_NORM_Q1] = "attn1.norm_q.weight", [B_NORM_K1] = "attn1.norm_k.weight", [B_Q2_W] = "attn2.to_q.weight",
    [B_Q2_B] = "attn2.to_q.bias",        [B_K2_W] = "attn2.to_k.weight",      [B_K2_B] = "attn2.to_k.bias",
    [B_V2_W] = "attn2.to_v.weight",      [B_V2_B] = "attn2.to_v.bias",        [B_O2_W] = "attn2.to_out.0.weight",
    [B_O2_B] = "attn2.to_out.0.bias",    [B_NORM_Q2] = "attn2.norm_q.weight", [B_NORM_K2] = "attn2.norm_k.weight",
    [B_NORM2_W] = "norm2.weight",        [B_NORM2_B] = "norm2.bias",          [B_FFN_1_W] = "ffn.net.0.proj.weight",
    [B_FFN_1_B] = "ffn.net.0.proj.bias", [B_FFN_2_W] = "ffn.net.2.weight",    [B_FFN_2_B] = "ffn.net.2.bias",
};

static bool is_block_matrix(int32_t i)
{
    switch (i) {
    case B_Q1_W:
    case B_K1_W:
    case B_V1_W:
    case B_O1_W:
    case B_Q2_W:
    case B_K2_W:
    case B_V2_W:
    case B_O2_W:
    case B_FFN_1_W:
    case B_FFN_2_W: return true;
    default: return false;
    }
}

static reel_status add_block(reel_dit *dit, int32_t index, reel_error *err)
{
    char name[B_COUNT][96];
    reel_weight_request request[B_COUNT];
    for (int32_t i = 0; i < B_COUNT; i++) {
        (void)snprintf(name[i], sizeof name[i], "blocks.%d.%s", (int)index, block_names[i]);
        bool is_norm2 = i == B_NORM2_W || i == B_NORM2_B;
        request[i] = (reel_weight_request){.name = name[i],
                                           .kind = is_block_matrix(i) ? REEL_WEIGHT_MATRIX : REEL_WEIGHT_VECTOR,
                                           .is_optional = is_norm2 && !dit->config.cross_attn_norm};
    }
    return reel_weights_add_region(dit->weights, request, B_COUNT, &dit->region_block[index], err);
}

static reel_status add_embed(reel_dit *dit, reel_error *err)
{
    reel_weight_request request[E_COUNT];
    for (int32_t i = 0; i < E_COUNT; i++) request[i] = (reel_weight_request){.name = embed_names[i].name, .kind = embed_names[i].kind};
    return reel_weights_add_region(dit->weights, request, E_COUNT, &dit->region_embed, err);
}

reel_status reel_dit_new(const reel_dit_config *config, const reel_ops *ops, reel_weights *weights, const reel_dit_options *options,
                         reel_dit **out, reel_error *err)
{
    reel_status status = REEL_OK;
    reel_dit *dit = calloc(1, sizeof *dit);
    if (dit) dit->region_block = calloc((size_t)config->n_layer, sizeof *dit->region_block);
    if (!dit || !dit->region_block) {
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory while opening a transformer\nremedy: close other programs");
        goto cleanup;
    }
    dit->config = *config;
    dit->options = *options;
    dit->ops = ops;
    dit->weights = weights;
    dit->width = (int64_t)config->n_head * config->head_dim;
    if (options->attention_self) dit->attention_self = reel_ops_find_attention(ops, options->attention_self);
    if (options->attention_cross) dit->attention_cross = reel_ops_find_attention(ops, options->attention_cross);
    reel_dit_rope_split(config->head_dim, &dit->pair_t, &dit->pair_h);
    REEL_TRY_GOTO(reel_dit_rope_table(dit, err), cleanup);
    REEL_TRY_GOTO(add_embed(dit, err), cleanup);
    for (int32_t i = 0; i < config->n_layer; i++) REEL_TRY_GOTO(add_block(dit, i, err), cleanup);
    *out = dit;
    return REEL_OK;
cleanup:
    reel_dit_free(&dit);
    return status;
}

void reel_dit_free(reel_dit **dit)
{
    if (!*dit) return;
    if ((*dit)->rope.data) (*dit)->ops->vt->buffer_free((*dit)->ops->device, (*dit)->rope.data);
    free((*dit)->region_block);
    free(*dit);
    *dit = NULL;
}

int64_t reel_dit_ffn_rows(const reel_dit_options *options, int64_t n_token)
{
    return options->ffn_rows > 0 && options->ffn_rows < n_token ? options->ffn_rows : n_token;
}

/* Walks the buffers: takes them from `arena`, or adds their needs to *bytes when arena is NULL. */
static reel_status layout(const reel_dit_config *c, const reel_dit_options *o, int64_t n_token, int64_t n_time, size_t alignment,
                          reel_arena *arena, dit_buffers *b, size_t *bytes, reel_error *err)
{
    const int64_t width = (int64_t)c->n_head * c->head_dim, patch = (int64_t)c->patch[1] * c->patch[2];
    const struct {
        reel_tensor *t;
        reel_dtype dtype;
        int64_t e0, e1, e2;
    } list[] = {
        {&b->patches, o->compute, n_token, c->in_channels * patch, 0},
        {&b->x, REEL_DTYPE_F32, n_token, width, 0},
        {&b->norm, o->compute, n_token, width, 0},
        {&b->q, o->compute, n_token, width, 0},
        {&b->k, o->compute, n_token, width, 0},
        {&b->v, o->compute, n_token, width, 0},
        {&b->hidden, o->compute, reel_dit_ffn_rows(o, n_token), c->ffn_dim, 0},
        {&b->head, REEL_DTYPE_F32, n_token, c->out_channels * patch, 0},
        {&b->time_sinusoid, REEL_DTYPE_F32, n_time, c->freq_dim, 0},
        {&b->time_hidden, REEL_DTYPE_F32, n_time, width, 0},
        {&b->time_embedding, REEL_DTYPE_F32, n_time, width, 0},
        {&b->time_silu, REEL_DTYPE_F32, n_time, width, 0},
        {&b->time_projection, REEL_DTYPE_F32, n_time, 6 * width, 0},
        {&b->modulation, REEL_DTYPE_F32, n_time, 6, width},
        {&b->head_modulation, REEL_DTYPE_F32, n_time, 2, width},
    };
    for (size_t i = 0; i < REEL_COUNT(list); i++) {
        if (arena) {
            REEL_TRY(reel_arena_take(arena, list[i].dtype, list[i].e0, list[i].e1, list[i].e2, 0, list[i].t, err));
        } else {
            *bytes += reel_arena_need(alignment, list[i].dtype, list[i].e0 * list[i].e1 * (list[i].e2 > 0 ? list[i].e2 : 1));
        }
    }
    return REEL_OK;
}

size_t reel_dit_scratch_bytes(const reel_dit_config *config, const reel_dit_options *options, int64_t n_token, size_t alignment)
{
    dit_buffers unused = {0};
    size_t bytes = 0;
    (void)layout(config, options, n_token, REEL_DIT_TIMESTEP_MAX, alignment, NULL, &unused, &bytes, NULL);
    return bytes;
}

reel_status reel_dit_tell(const reel_dit_input *in, const char *name, const reel_tensor *t, reel_error *err)
{
    return in->tap ? in->tap(in->tap_user, name, t, err) : REEL_OK;
}

reel_tensor reel_dit_heads(const reel_dit *dit, reel_tensor t)
{
    return reel_tensor_dense(t.data, t.dtype, 1, t.extent[0], dit->config.n_head, dit->config.head_dim);
}

reel_tensor reel_dit_modulation_row(reel_tensor modulation, int64_t i)
{
    reel_tensor row = reel_tensor_slice(modulation, 1, i, i + 1);
    row.n_dim = 2;
    row.extent[1] = modulation.extent[2];
    row.stride[1] = modulation.stride[2];
    return row;
}

reel_status reel_dit_attend(const reel_dit *dit, const reel_attn_impl *impl, const reel_op_attention *args, reel_error *err)
{
    reel_op_attention scaled = *args;
    scaled.scale = (float)(1.0 / sqrt((double)dit->config.head_dim));
    return impl ? reel_ops_attention_by(dit->ops, impl, &scaled, err) : reel_ops_attention(dit->ops, &scaled, err);
}

static reel_status check_input(const reel_dit *dit, const reel_dit_input *in, reel_error *err)
{
    const reel_dit_config *c = &dit->config;
    const int64_t *e = in->latents.extent;
    if (in->latents.n_dim != 4 || e[0] != c->in_channels || e[1] < 1 || e[2] < c->patch[1] || e[3] < c->patch[2] ||
        e[2] % c->patch[1] != 0 || e[3] % c->patch[2] != 0) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "latents of a wrong shape\ngiven: %lldx%lldx%lldx%lld\nallowed: %d channels, height and width multiples of %d "
                         "and %d\nremedy: choose another size",
                         (long long)e[0], (long long)e[1], (long long)e[2], (long long)e[3], (int)c->in_channels, (int)c->patch[1],
                         (int)c->patch[2]);
    }
    if (e[1] > c->rope_max || e[2] / c->patch[1] > c->rope_max || e[3] / c->patch[2] > c->rope_max) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "the clip is larger than the model has positions for\ngiven: %lld latent frames, %lld rows, %lld columns of "
                         "tokens\nallowed: %d each\nremedy: choose a smaller size or fewer frames",
                         (long long)e[1], (long long)(e[2] / c->patch[1]), (long long)(e[3] / c->patch[2]), (int)c->rope_max);
    }
    return REEL_OK;
}

/* The block loop. */
static reel_status run_blocks(reel_dit *dit, const reel_dit_input *in, const dit_buffers *b, reel_error *err)
{
    const reel_cache_policy *cache = in->cache ? in->cache : &reel_cache_none;
    reel_cache_moment moment = {.expert = in->expert, .branch = in->branch, .step = in->step, .input = b->x, .residual = b->x};
    for (int32_t i = -1; i < dit->config.n_layer; i++) {
        if (i >= 0) REEL_TRY(reel_dit_block(dit, i, in, b, err));
        if (in->agree) REEL_TRY(in->agree(in->agree_user, err));
        if (!cache->wants(cache, i)) continue;
        if (cache->reads_device) REEL_TRY(reel_ops_sync(dit->ops, err));
        int32_t skip = 0;
        moment.block = i;
        REEL_TRY(cache->ask(cache, &moment, &skip, err));
        i += skip;
    }
    return REEL_OK;
}

static reel_status forward(reel_dit *dit, const reel_dit_input *in, const dit_buffers *b, const reel_region *w, reel_error *err)
{
    REEL_TRY(reel_dit_embed_time(dit, w, in, b, err));
    REEL_TRY(reel_dit_embed_patches(dit, w, in, b, err));
    REEL_TRY(run_blocks(dit, in, b, err));
    return reel_dit_head(dit, w, in, b, err);
}

reel_status reel_dit_forward(reel_dit *dit, const reel_dit_input *input, reel_arena *scratch, reel_error *err)
{
    REEL_TRY(check_input(dit, input, err));
    const size_t mark = scratch->used;
    reel_status status = REEL_OK;
    dit_buffers b = {0};
    reel_region w;
    REEL_TRY_GOTO(layout(&dit->config, &dit->options, input->t1 - input->t0, input->n_timestep, 0, scratch, &b, NULL, err), cleanup);
    REEL_TRY_GOTO(reel_weights_acquire(dit->weights, dit->region_embed, &w, err), cleanup);
    status = forward(dit, input, &b, &w, err);
    reel_weights_release(dit->weights, dit->region_embed);
cleanup:
    reel_arena_rewind(scratch, mark);
    return status;
}
