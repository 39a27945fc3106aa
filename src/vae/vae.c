/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening an autoencoder: sizes, weight regions with the checkpoint's names, constants, and the choice of attention.
 *
 * One region per residual block, attention and resampling, and one per half for what stands at its two ends. Shapes are checked against
 * the config here. */
#include "vae/vae.h"

#include <stdio.h>
#include <stdlib.h>

#include "vae/session.h"

enum { REQUEST_MAX = 8, NAME_MAX_BYTES = 160 };

/* A region under way: what to ask for, and what shape to expect. */
typedef struct wish_list {
    char name[REQUEST_MAX][NAME_MAX_BYTES];
    reel_weight_request request[REQUEST_MAX];
    int64_t n_row[REQUEST_MAX], n_col[REQUEST_MAX]; /* vectors: n_row elements */
    int32_t kernel[REQUEST_MAX][3];
    int32_t n;
} wish_list;

static void want(wish_list *wish, const char *path, const char *name, reel_weight_kind kind, int64_t n_row, int64_t n_col)
{
    int32_t i = wish->n++;
    (void)snprintf(wish->name[i], sizeof wish->name[i], "%.80s%s%.70s", path, path[0] ? "." : "", name);
    wish->request[i] = (reel_weight_request){.name = wish->name[i], .kind = kind};
    wish->n_row[i] = n_row;
    wish->n_col[i] = n_col;
}

/* A convolution [c_out, c_in, kt, kh, kw], or with kt 0 [c_out, c_in, kh, kw]; and its bias. A kernel of 1 is a matrix. */
static void want_conv(wish_list *wish, const char *path, const char *name, int64_t c_out, int64_t c_in, int32_t kt, int32_t k)
{
    char full[NAME_MAX_BYTES];
    int32_t i = wish->n;
    (void)snprintf(full, sizeof full, "%s.weight", name);
    int32_t depth = kt > 0 ? kt : 1;
    bool is_matrix = depth * k == 1;
    want(wish, path, full, is_matrix ? REEL_WEIGHT_MATRIX : REEL_WEIGHT_CONV, c_out, c_in * depth * k * k);
    if (!is_matrix) {
        wish->kernel[i][0] = depth;
        wish->kernel[i][1] = wish->kernel[i][2] = k;
    }
    (void)snprintf(full, sizeof full, "%s.bias", name);
    want(wish, path, full, REEL_WEIGHT_VECTOR, c_out, 1);
}

static reel_status check_entry(const wish_list *wish, int32_t i, const reel_region *region, reel_error *err)
{
    const reel_weight *w = &region->weight[i];
    bool is_good;
    if (wish->request[i].kind == REEL_WEIGHT_VECTOR)
        is_good =
            region->vector[i].data && region->vector[i].dtype == REEL_DTYPE_F32 && reel_tensor_count(&region->vector[i]) == wish->n_row[i];
    else
        is_good = w->n_row == wish->n_row[i] && w->n_col == wish->n_col[i] &&
                  (wish->request[i].kind == REEL_WEIGHT_MATRIX ||
                   (w->kernel[0] == wish->kernel[i][0] && w->kernel[1] == wish->kernel[i][1] && w->kernel[2] == wish->kernel[i][2]));
    if (is_good) return REEL_OK;
    return REEL_FAIL(err, REEL_E_MODEL,
                     "the autoencoder's tensor \"%s\" has another shape than its config demands\nallowed: %lld rows of %lld values\n"
                     "remedy: use the vae/config.json that belongs to these weights",
                     wish->request[i].name, (long long)wish->n_row[i], (long long)wish->n_col[i]);
}

static reel_status add_region(const reel_vae *vae, const wish_list *wish, int32_t *out, reel_error *err)
{
    reel_region region;
    int32_t index;
    reel_status status = REEL_OK;
    REEL_TRY(reel_weights_add_region(vae->weights, wish->request, wish->n, &index, err));
    REEL_TRY(reel_weights_acquire(vae->weights, index, &region, err));
    for (int32_t i = 0; i < wish->n && status == REEL_OK; i++) status = check_entry(wish, i, &region, err);
    reel_weights_release(vae->weights, index);
    REEL_TRY(status);
    *out = index;
    return REEL_OK;
}

static reel_status add_res(const reel_vae *vae, reel_vae_half *half, int32_t level, int32_t res, reel_error *err)
{
    const reel_vae_level *l = &half->net.level[level];
    int32_t c_in = res == 0 ? l->c_in : l->c;
    char path[REEL_VAE_PATH_MAX];
    wish_list wish = {.n = 0};
    reel_vae_net_res_path(&half->net, level, res, path);
    want(&wish, path, "norm1.gamma", REEL_WEIGHT_VECTOR, c_in, 1);
    want_conv(&wish, path, "conv1", l->c, c_in, 3, 3);
    want(&wish, path, "norm2.gamma", REEL_WEIGHT_VECTOR, l->c, 1);
    want_conv(&wish, path, "conv2", l->c, l->c, 3, 3);
    if (c_in != l->c) want_conv(&wish, path, "conv_shortcut", l->c, c_in, 1, 1);
    REEL_TRY(add_region(vae, &wish, &half->region_res[level][res], err));
    return REEL_OK;
}

static reel_status add_attention(const reel_vae *vae, reel_vae_half *half, int32_t c, reel_error *err)
{
    const char *path = half->net.is_encoder ? "encoder.mid_block.attentions.0" : "decoder.mid_block.attentions.0";
    wish_list wish = {.n = 0};
    want(&wish, path, "norm.gamma", REEL_WEIGHT_VECTOR, c, 1);
    want_conv(&wish, path, "to_qkv", 3 * (int64_t)c, c, 0, 1);
    want_conv(&wish, path, "proj", c, c, 0, 1);
    REEL_TRY(add_region(vae, &wish, &half->region_attention, err));
    return REEL_OK;
}

static reel_status add_resample(const reel_vae *vae, reel_vae_half *half, int32_t level, reel_error *err)
{
    const reel_vae_level *l = &half->net.level[level];
    char path[REEL_VAE_PATH_MAX];
    wish_list wish = {.n = 0};
    reel_vae_net_resample_path(&half->net, level, path);
    want_conv(&wish, path, "resample.1", l->c_next, l->c, 0, 3);
    if (l->resample == REEL_VAE_UP_3D || l->resample == REEL_VAE_DOWN_3D) {
        int32_t i = wish.n;
        want_conv(&wish, path, "time_conv", l->resample == REEL_VAE_UP_3D ? 2 * (int64_t)l->c : l->c, l->c, 3, 1);
        assert(i == RESAMPLE_TIME_W && wish.kernel[i][0] == 3);
        (void)i;
    }
    REEL_TRY(add_region(vae, &wish, &half->region_resample[level], err));
    return REEL_OK;
}

static reel_status add_ends(const reel_vae *vae, reel_vae_half *half, reel_error *err)
{
    const reel_vae_net *net = &half->net;
    const char *path = net->is_encoder ? "encoder" : "decoder";
    int64_t c_quant = net->is_encoder ? net->c_last : net->c_first, c = net->level[net->n_level - 1].c;
    wish_list wish = {.n = 0};
    want_conv(&wish, path, "conv_in", net->level[0].c_in, net->c_first, 3, 3);
    want(&wish, path, "norm_out.gamma", REEL_WEIGHT_VECTOR, c, 1);
    want_conv(&wish, path, "conv_out", net->c_last, c, 3, 3);
    want_conv(&wish, "", net->is_encoder ? "quant_conv" : "post_quant_conv", c_quant, c_quant, 1, 1);
    assert(wish.n == ENDS_COUNT);
    REEL_TRY(add_region(vae, &wish, &half->region_ends, err));
    return REEL_OK;
}

static reel_status open_half(const reel_vae *vae, reel_vae_half *half, bool is_encoder, reel_error *err)
{
    REEL_TRY(reel_vae_net_init(&vae->config, is_encoder, &half->net, err));
    REEL_TRY(add_ends(vae, half, err));
    for (int32_t i = 0; i < half->net.n_level; i++) {
        const reel_vae_level *l = &half->net.level[i];
        for (int32_t k = 0; k < l->n_res; k++) REEL_TRY(add_res(vae, half, i, k, err));
        if (l->attention_after >= 0) REEL_TRY(add_attention(vae, half, l->c, err));
        if (l->resample != REEL_VAE_RESAMPLE_NONE) REEL_TRY(add_resample(vae, half, i, err));
    }
    half->is_there = true;
    return REEL_OK;
}

/* By name, or the first of the device's list that takes heads as wide as the middle's channels; else the device's operation. */
static reel_status choose_attention(reel_vae *vae, int32_t c, reel_error *err)
{
    const reel_ops *ops = vae->ops;
    char reason[256] = "the device has no implementation of that name";
    reel_attn_shape shape = {.size = sizeof shape, .dtype = vae->options.compute, .head_dim = c, .n_head = 1};
    if (vae->options.attention) {
        const reel_attn_impl *impl = reel_ops_find_attention(ops, vae->options.attention);
        if (!impl || !impl->supports(ops->device, &shape, reason, sizeof reason))
            return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                             "attention \"%s\" cannot serve the autoencoder: %s\ngiven: one head of width %d, %s\n"
                             "remedy: choose another attention; `reel devices` lists them",
                             vae->options.attention, reason, (int)c, reel_dtype_name(vae->options.compute));
        vae->attention = impl;
        return REEL_OK;
    }
    const reel_attn_impl *const *list = ops->vt->attention ? ops->vt->attention(ops->device) : NULL;
    for (; list && *list && !vae->attention; list++)
        if ((*list)->supports(ops->device, &shape, reason, sizeof reason)) vae->attention = *list;
    return REEL_OK;
}

static reel_status load_constants(reel_vae *vae, reel_error *err)
{
    int32_t z = vae->config.z_dim;
    float scale[REEL_LATENT_CHANNELS_MAX], mean[REEL_LATENT_CHANNELS_MAX];
    size_t bytes = 2 * reel_arena_need(vae->ops->props.alignment_bytes, REEL_DTYPE_F32, z);
    for (int32_t i = 0; i < z; i++) {
        mean[i] = (float)vae->config.latents_mean[i];
        scale[i] = 1.0F / (float)vae->config.latents_std[i]; /* rounded to f32 before the division by it, as the reference does */
    }
    REEL_TRY(reel_arena_init(&vae->constants, vae->ops, "autoencoder constants", bytes, err));
    REEL_TRY(reel_arena_take(&vae->constants, REEL_DTYPE_F32, z, 0, 0, 0, &vae->scale, err));
    REEL_TRY(reel_arena_take(&vae->constants, REEL_DTYPE_F32, z, 0, 0, 0, &vae->mean, err));
    REEL_TRY(reel_ops_upload(vae->ops, &vae->scale, scale, err));
    REEL_TRY(reel_ops_upload(vae->ops, &vae->mean, mean, err));
    return REEL_OK;
}

static reel_status check_options(const reel_vae_options *options, reel_error *err)
{
    int32_t n = options->chunk_frames;
    bool is_good = (options->compute == REEL_DTYPE_F32 || options->compute == REEL_DTYPE_BF16) && (n == 1 || n == 2 || n == 4) &&
                   (options->wants_encoder || options->wants_decoder);
    if (is_good) return REEL_OK;
    return REEL_FAIL(
        err, REEL_E_ARGUMENT,
        "these options of the autoencoder do not go\ngiven: compute %s, chunk_frames %d\n"
        "allowed: compute F32 or BF16, chunk_frames 1, 2 or 4, at least one of encoder and decoder\nremedy: choose among these",
        reel_dtype_name(options->compute), (int)n);
}

reel_status reel_vae_new(const reel_vae_config *config, const reel_ops *ops, reel_weights *weights, const reel_vae_options *options,
                         reel_vae **out, reel_error *err)
{
    reel_status status = REEL_OK;
    REEL_TRY(check_options(options, err));
    reel_vae *vae = calloc(1, sizeof *vae);
    if (!vae) return REEL_FAIL(err, REEL_E_MEMORY, "no memory for the autoencoder's tables\nremedy: close other programs");
    *vae = (reel_vae){.config = *config, .options = *options, .ops = ops, .weights = weights};
    if (options->wants_encoder) REEL_TRY_GOTO(open_half(vae, &vae->encoder, true, err), cleanup);
    if (options->wants_decoder) REEL_TRY_GOTO(open_half(vae, &vae->decoder, false, err), cleanup);
    const reel_vae_net *net = options->wants_encoder ? &vae->encoder.net : &vae->decoder.net;
    REEL_TRY_GOTO(choose_attention(vae, net->level[net->is_encoder ? net->n_level - 1 : 0].c, err), cleanup);
    REEL_TRY_GOTO(load_constants(vae, err), cleanup);
    vae->options.attention = NULL;
    *out = vae;
    return REEL_OK;
cleanup:
    reel_vae_free(&vae);
    return status;
}

void reel_vae_free(reel_vae **vae)
{
    if (!*vae) return;
    if ((*vae)->constants.ops) reel_arena_deinit(&(*vae)->constants);
    free(*vae);
    *vae = NULL;
}
