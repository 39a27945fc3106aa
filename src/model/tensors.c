/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors that each component's config demands, by name and shape, in the names of diffusers and transformers. One walk per component; whoever
 * compares, lists or counts hands in a callback. Sources: diffusers transformer_wan.py and autoencoder_kl_wan.py, transformers modeling_umt5.py. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/model.h"

typedef struct walk {
    reel_tensor_spec_fn fn;
    void *user;
    reel_error *err;
    reel_status status;
    char prefix[160];
} walk;

/* One tensor: prefix + suffix, extents of which zeros end the list. */
static void one(walk *w, const char *suffix, int64_t e0, int64_t e1, int64_t e2, int64_t e3, int64_t e4)
{
    if (w->status != REEL_OK) return;
    char name[256];
    (void)snprintf(name, sizeof name, "%s%s", w->prefix, suffix);
    const int64_t e[5] = {e0, e1, e2, e3, e4};
    reel_tensor_spec spec = {.name = name};
    while (spec.n_dim < 5 && e[spec.n_dim] > 0) {
        spec.extent[spec.n_dim] = e[spec.n_dim];
        spec.n_dim++;
    }
    w->status = w->fn(w->user, &spec, w->err);
}

static void set_prefix(walk *w, const char *format, ...) REEL_PRINTF(2, 3);
static void set_prefix(walk *w, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(w->prefix, sizeof w->prefix, format, ap);
    va_end(ap);
}

static void linear(walk *w, const char *name, int64_t out, int64_t in)
{
    char text[96];
    (void)snprintf(text, sizeof text, "%s.weight", name);
    one(w, text, out, in, 0, 0, 0);
    (void)snprintf(text, sizeof text, "%s.bias", name);
    one(w, text, out, 0, 0, 0, 0);
}

/* ---- transformer ----------------------------------------------------------------------------------------------------------------------- */

static void dit_block(walk *w, const reel_dit_config *c, int32_t i)
{
    static const char *const attention[] = {"attn1", "attn2"};
    static const char *const projection[] = {"to_q", "to_k", "to_v", "to_out.0"};
    const int64_t d = (int64_t)c->n_head * c->head_dim;
    set_prefix(w, "blocks.%d.", (int)i);
    one(w, "scale_shift_table", 1, 6, d, 0, 0);
    for (int32_t a = 0; a < 2; a++) {
        char name[64];
        for (int32_t p = 0; p < 4; p++) {
            (void)snprintf(name, sizeof name, "%s.%s", attention[a], projection[p]);
            linear(w, name, d, d);
        }
        (void)snprintf(name, sizeof name, "%s.norm_q.weight", attention[a]);
        one(w, name, d, 0, 0, 0, 0);
        (void)snprintf(name, sizeof name, "%s.norm_k.weight", attention[a]);
        one(w, name, d, 0, 0, 0, 0);
    }
    if (c->cross_attn_norm) {
        one(w, "norm2.weight", d, 0, 0, 0, 0);
        one(w, "norm2.bias", d, 0, 0, 0, 0);
    }
    linear(w, "ffn.net.0.proj", c->ffn_dim, d);
    linear(w, "ffn.net.2", d, c->ffn_dim);
    if (c->added_kv_dim) {
        linear(w, "attn2.add_k_proj", d, c->added_kv_dim);
        linear(w, "attn2.add_v_proj", d, c->added_kv_dim);
        one(w, "attn2.norm_added_k.weight", d, 0, 0, 0, 0);
    }
}

static void dit(walk *w, const reel_dit_config *c)
{
    const int64_t d = (int64_t)c->n_head * c->head_dim, patch = (int64_t)c->patch[1] * c->patch[2];
    set_prefix(w, "%s", "");
    one(w, "patch_embedding.weight", d, c->in_channels, c->patch[0], c->patch[1], c->patch[2]);
    one(w, "patch_embedding.bias", d, 0, 0, 0, 0);
    one(w, "scale_shift_table", 1, 2, d, 0, 0);
    linear(w, "proj_out", c->out_channels * patch, d);
    set_prefix(w, "%s", "condition_embedder.");
    linear(w, "time_embedder.linear_1", d, c->freq_dim);
    linear(w, "time_embedder.linear_2", d, d);
    linear(w, "time_proj", 6 * d, d);
    linear(w, "text_embedder.linear_1", d, c->text_dim);
    linear(w, "text_embedder.linear_2", d, d);
    if (c->image_dim) {
        one(w, "image_embedder.norm1.weight", c->image_dim, 0, 0, 0, 0);
        one(w, "image_embedder.norm1.bias", c->image_dim, 0, 0, 0, 0);
        linear(w, "image_embedder.ff.net.0.proj", c->image_dim, c->image_dim);
        linear(w, "image_embedder.ff.net.2", d, c->image_dim);
        one(w, "image_embedder.norm2.weight", d, 0, 0, 0, 0);
        one(w, "image_embedder.norm2.bias", d, 0, 0, 0, 0);
        if (c->pos_embed_len) one(w, "image_embedder.pos_embed", 1, c->pos_embed_len, c->image_dim, 0, 0);
    }
    for (int32_t i = 0; i < c->n_layer; i++) dit_block(w, c, i);
}

/* ---- text encoder ---------------------------------------------------------------------------------------------------------------------- */

static void umt5(walk *w, const reel_umt5_config *c)
{
    const int64_t inner = (int64_t)c->n_head * c->d_kv;
    set_prefix(w, "%s", "");
    one(w, "shared.weight", c->vocab, c->d_model, 0, 0, 0);
    one(w, "encoder.final_layer_norm.weight", c->d_model, 0, 0, 0, 0);
    for (int32_t i = 0; i < c->n_layer; i++) {
        set_prefix(w, "encoder.block.%d.", (int)i);
        one(w, "layer.0.layer_norm.weight", c->d_model, 0, 0, 0, 0);
        one(w, "layer.0.SelfAttention.q.weight", inner, c->d_model, 0, 0, 0);
        one(w, "layer.0.SelfAttention.k.weight", inner, c->d_model, 0, 0, 0);
        one(w, "layer.0.SelfAttention.v.weight", inner, c->d_model, 0, 0, 0);
        one(w, "layer.0.SelfAttention.o.weight", c->d_model, inner, 0, 0, 0);
        one(w, "layer.0.SelfAttention.relative_attention_bias.weight", c->n_bucket, c->n_head, 0, 0, 0);
        one(w, "layer.1.layer_norm.weight", c->d_model, 0, 0, 0, 0);
        one(w, "layer.1.DenseReluDense.wi_0.weight", c->d_ff, c->d_model, 0, 0, 0);
        one(w, "layer.1.DenseReluDense.wi_1.weight", c->d_ff, c->d_model, 0, 0, 0);
        one(w, "layer.1.DenseReluDense.wo.weight", c->d_model, c->d_ff, 0, 0, 0);
    }
}

/* ---- VAE (Wan2.1) ------------------------------------------------------------------------------------------------------------------------ */

static void conv(walk *w, const char *name, int64_t out, int64_t in, int64_t kt, int64_t kh, int64_t kw)
{
    char text[96];
    (void)snprintf(text, sizeof text, "%s.weight", name);
    if (kt > 0) {
        one(w, text, out, in, kt, kh, kw);
    } else {
        one(w, text, out, in, kh, kw, 0);
    }
    (void)snprintf(text, sizeof text, "%s.bias", name);
    one(w, text, out, 0, 0, 0, 0);
}

static void resnet(walk *w, int64_t in, int64_t out)
{
    one(w, "norm1.gamma", in, 1, 1, 1, 0);
    conv(w, "conv1", out, in, 3, 3, 3);
    one(w, "norm2.gamma", out, 1, 1, 1, 0);
    conv(w, "conv2", out, out, 3, 3, 3);
    if (in != out) conv(w, "conv_shortcut", out, in, 1, 1, 1);
}

static void middle(walk *w, const char *side, int64_t d)
{
    set_prefix(w, "%s.mid_block.resnets.0.", side);
    resnet(w, d, d);
    set_prefix(w, "%s.mid_block.attentions.0.", side);
    one(w, "norm.gamma", d, 1, 1, 0, 0);
    conv(w, "to_qkv", 3 * d, d, 0, 1, 1);
    conv(w, "proj", d, d, 0, 1, 1);
    set_prefix(w, "%s.mid_block.resnets.1.", side);
    resnet(w, d, d);
}

static void vae_encoder(walk *w, const reel_vae_config *c)
{
    int64_t in = c->base_dim;
    int32_t at = 0;
    set_prefix(w, "%s", "encoder.");
    conv(w, "conv_in", in, c->in_channels, 3, 3, 3);
    for (int32_t s = 0; s < c->n_stage; s++) {
        const int64_t out = (int64_t)c->base_dim * c->dim_mult[s];
        for (int32_t r = 0; r < c->n_res_block; r++) {
            set_prefix(w, "encoder.down_blocks.%d.", (int)at++);
            resnet(w, in, out);
            in = out;
        }
        if (s == c->n_stage - 1) continue;
        set_prefix(w, "encoder.down_blocks.%d.", (int)at++);
        conv(w, "resample.1", out, out, 0, 3, 3);
        if (c->temporal_downsample[s]) conv(w, "time_conv", out, out, 3, 1, 1);
    }
    middle(w, "encoder", in);
    set_prefix(w, "%s", "encoder.");
    one(w, "norm_out.gamma", in, 1, 1, 1, 0);
    conv(w, "conv_out", 2 * (int64_t)c->z_dim, in, 3, 3, 3);
    set_prefix(w, "%s", "");
    conv(w, "quant_conv", 2 * (int64_t)c->z_dim, 2 * (int64_t)c->z_dim, 1, 1, 1);
}

static void vae_decoder(walk *w, const reel_vae_config *c)
{
    int64_t in = (int64_t)c->decoder_base_dim * c->dim_mult[c->n_stage - 1];
    set_prefix(w, "%s", "");
    conv(w, "post_quant_conv", c->z_dim, c->z_dim, 1, 1, 1);
    set_prefix(w, "%s", "decoder.");
    conv(w, "conv_in", in, c->z_dim, 3, 3, 3);
    middle(w, "decoder", in);
    for (int32_t s = 0; s < c->n_stage; s++) {
        const int64_t out = (int64_t)c->decoder_base_dim * c->dim_mult[c->n_stage - 1 - s];
        for (int32_t r = 0; r < c->n_res_block + 1; r++) {
            set_prefix(w, "decoder.up_blocks.%d.resnets.%d.", (int)s, (int)r);
            resnet(w, in, out);
            in = out;
        }
        if (s == c->n_stage - 1) continue;
        set_prefix(w, "decoder.up_blocks.%d.upsamplers.0.", (int)s);
        conv(w, "resample.1", out / 2, out, 0, 3, 3);
        if (c->temporal_downsample[c->n_stage - 2 - s]) conv(w, "time_conv", 2 * out, out, 3, 1, 1);
        in = out / 2;
    }
    set_prefix(w, "%s", "decoder.");
    one(w, "norm_out.gamma", in, 1, 1, 1, 0);
    conv(w, "conv_out", c->out_channels, in, 3, 3, 3);
}

reel_status reel_model_tensors(const reel_model *model, reel_component component, reel_tensor_spec_fn fn, void *user, reel_error *err)
{
    walk w = {.fn = fn, .user = user, .err = err, .status = REEL_OK};
    switch (component) {
    case REEL_COMPONENT_TEXT_ENCODER: umt5(&w, &model->text); break;
    case REEL_COMPONENT_TRANSFORMER: dit(&w, &model->dit[0]); break;
    case REEL_COMPONENT_TRANSFORMER_2: dit(&w, &model->dit[1]); break;
    case REEL_COMPONENT_VAE:
        if (model->vae.is_residual)
            return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                             "the tensors of the Wan2.2 VAE are not known to this version\nremedy: use a model with the Wan2.1 VAE");
        vae_encoder(&w, &model->vae);
        vae_decoder(&w, &model->vae);
        break;
    case REEL_COMPONENT_COUNT: break;
    }
    return w.status;
}
