/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of dit/ share: the expert's struct, the entries of its weight regions, and the tensors of one forward. */
#ifndef REEL_DIT_INTERNAL_H
#define REEL_DIT_INTERNAL_H

#include "dit/dit.h"

/* Entries of the embedding region. */
enum {
    E_PATCH_W,
    E_PATCH_B,
    E_TIME_1_W,
    E_TIME_1_B,
    E_TIME_2_W,
    E_TIME_2_B,
    E_TIME_PROJ_W,
    E_TIME_PROJ_B,
    E_TEXT_1_W,
    E_TEXT_1_B,
    E_TEXT_2_W,
    E_TEXT_2_B,
    E_HEAD_TABLE,
    E_HEAD_W,
    E_HEAD_B,
    E_COUNT
};

/* Entries of a block's region. attn1 is self attention, attn2 cross attention. */
enum {
    B_TABLE,
    B_Q1_W,
    B_Q1_B,
    B_K1_W,
    B_K1_B,
    B_V1_W,
    B_V1_B,
    B_O1_W,
    B_O1_B,
    B_NORM_Q1,
    B_NORM_K1,
    B_Q2_W,
    B_Q2_B,
    B_K2_W,
    B_K2_B,
    B_V2_W,
    B_V2_B,
    B_O2_W,
    B_O2_B,
    B_NORM_Q2,
    B_NORM_K2,
    B_NORM2_W,
    B_NORM2_B,
    B_FFN_1_W,
    B_FFN_1_B,
    B_FFN_2_W,
    B_FFN_2_B,
    B_COUNT
};

struct reel_dit {
    reel_dit_config config;
    reel_dit_options options;
    const reel_ops *ops;
    reel_weights *weights;
    int64_t width; /* n_head · head_dim */
    int32_t pair_t, pair_h; /* rotary pairs of a head along frames and rows; the rest is columns */
    reel_tensor rope; /* [rope_max, head_dim/2, 2] f32, device */
    const reel_attn_impl *attention_self, *attention_cross; /* NULL: the device decides */
    int32_t region_embed;
    int32_t *region_block;
};

struct reel_dit_context {
    int64_t n_key; /* real rows, and one for all padding */
    reel_tensor key_bias; /* [n_key] f32 */
    reel_tensor *key, *value; /* per block [n_key, width] compute */
};

/* The tensors of a forward over R tokens with U timesteps. */
typedef struct dit_buffers {
    reel_tensor patches; /* [R, in_channels·ph·pw] compute */
    reel_tensor x; /* [R, width] f32: the residual stream */
    reel_tensor norm; /* [R, width] compute; also holds what output projections give */
    reel_tensor q, k, v; /* [R, width] compute; attention writes over q */
    reel_tensor hidden; /* [ffn rows, ffn_dim] compute */
    reel_tensor head; /* [R, ph·pw·out_channels] f32 */
    reel_tensor time_sinusoid; /* [U, freq_dim] f32 */
    reel_tensor time_hidden, time_embedding, time_silu; /* [U, width] f32 */
    reel_tensor time_projection; /* [U, 6·width] f32 */
    reel_tensor modulation; /* [U, 6, width] f32 */
    reel_tensor head_modulation; /* [U, 2, width] f32 */
} dit_buffers;

int64_t reel_dit_ffn_rows(const reel_dit_options *options, int64_t n_token);
/* rope3d.c: fills the table and the split of a head over the axes. */
void reel_dit_rope_split(int32_t head_dim, int32_t *pair_t, int32_t *pair_h);
reel_status reel_dit_rope_table(reel_dit *dit, reel_error *err);
/* embed.c */
reel_status reel_dit_embed_time(reel_dit *dit, const reel_region *w, const reel_dit_input *in, const dit_buffers *b, reel_error *err);
reel_status reel_dit_embed_patches(reel_dit *dit, const reel_region *w, const reel_dit_input *in, const dit_buffers *b, reel_error *err);
reel_status reel_dit_head(reel_dit *dit, const reel_region *w, const reel_dit_input *in, const dit_buffers *b, reel_error *err);
/* block.c */
reel_status reel_dit_block(reel_dit *dit, int32_t index, const reel_dit_input *in, const dit_buffers *b, reel_error *err);
/* One call for all attentions: the implementation when the plan named one, else the device's choice. */
reel_status reel_dit_attend(const reel_dit *dit, const reel_attn_impl *impl, const reel_op_attention *args, reel_error *err);
/* A [rows, width] tensor as [1, rows, n_head, head_dim]. */
reel_tensor reel_dit_heads(const reel_dit *dit, reel_tensor t);
/* Row u-strided view [U, width] of entry i of a modulation tensor [U, R, width]. */
reel_tensor reel_dit_modulation_row(reel_tensor modulation, int64_t i);
reel_status reel_dit_tell(const reel_dit_input *in, const char *name, const reel_tensor *t, reel_error *err);

#endif
