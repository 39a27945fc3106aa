/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations of a device: one argument struct per operation, one list that names them all.
 *
 * Every operation has the signature reel_op_fn and is looked up by name and version (device.h: op). Arguments hold tensors by
 * value, so a device may queue the struct and run it later; nothing on the host is read after the call returns except
 * weights, which stay leased until the caller has waited. MUST operations are filled by the C references in src/ops/ref on
 * devices whose memory the host can address; MAY operations are fused forms that src/ops/compose.c can build from others.
 *
 * Conventions: row-major, last dimension contiguous unless a stride says otherwise. "float" operands take f32, bf16 or f16,
 * each tensor its own dtype; arithmetic is f32, one rounding at the store. An output may alias an input of the same extents,
 * strides and dtype unless the comment says no. Outputs are written whole. Vectors (bias, norm weights, modulation) are f32.
 * Results do not depend on the number of threads nor on how many rows are handed over in one call.
 * Sources of the formulas: diffusers 0.42 WanTransformer3DModel and AutoencoderKLWan, transformers 5 UMT5. */
#ifndef REEL_PLUGIN_OPS_H
#define REEL_PLUGIN_OPS_H

#include "reel-plugin/tensor.h"
#include "reel/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct reel_stream reel_stream;

/* args points at the struct of the operation, whose first field is its size. */
typedef reel_status (*reel_op_fn)(reel_stream *stream, const void *args, reel_error *err);

/* X(name, version, MUST or MAY) */
#define REEL_OP_LIST(X)         \
    X(linear, 1, MUST)          \
    X(conv3d, 1, MUST)          \
    X(attention, 1, MUST)       \
    X(layer_norm, 1, MUST)      \
    X(rms_norm, 1, MUST)        \
    X(rms_sum, 1, MUST)         \
    X(rms_apply_rope, 1, MUST)  \
    X(rms_norm_rope, 1, MAY)    \
    X(channel_norm, 1, MUST)    \
    X(gate_residual, 1, MUST)   \
    X(gated_gelu, 1, MUST)      \
    X(silu, 1, MUST)            \
    X(modulation, 1, MUST)      \
    X(patchify, 1, MUST)        \
    X(unpatchify, 1, MUST)      \
    X(gather_rows, 1, MUST)     \
    X(convert, 1, MUST)         \
    X(combine, 1, MUST)         \
    X(affine_channels, 1, MUST) \
    X(frames_to_u8, 1, MUST)    \
    X(count_nonfinite, 1, MUST)

typedef enum reel_activation {
    REEL_ACTIVATION_NONE = 0,
    REEL_ACTIVATION_GELU_TANH = 1, /* 0.5·z·(1 + tanh(√(2/π)·(z + 0.044715·z³))) */
    REEL_ACTIVATION_SILU = 2 /* z / (1 + e^−z) */
} reel_activation;

/* y = act(x·Wᵀ + bias).  x [M, K] float, rows may be strided; w n_row = N, n_col = K, rows [row_begin, row_end) give the N' columns
 * of y; bias [N'] f32 or absent; y [M, N'] float, rows may be strided; must not alias x. M, N', K ≥ 1.
 * The product is accumulated in f32 (operands bf16 where x is bf16, else f32, weights converted exactly or, bf16 x with f32/f16
 * weights, rounded to bf16). */
typedef struct reel_op_linear {
    uint32_t size;
    reel_tensor x;
    reel_weight w;
    reel_tensor bias;
    reel_activation act;
    reel_tensor y;
} reel_op_linear;

/* Causal 3-D convolution over channels-last frames.
 *   x    [n_history + T, H, W, I] float, dense: the first n_history frames are the cache of earlier chunks
 *   w    n_row = O, kernel (kt, kh, kw); stored [O, I, kt, kh, kw]
 *   y    [T_out, H_out, W_out, O] float, frames may be strided; must not alias x
 *   residual  like y or absent: added to the result before the store (f32 sum)
 * Time: `pad_front` zero frames go before x (never behind). Space: pad[4] = top, bottom, left, right zero rows/columns; a side
 * whose bit is set in `halo` is not padded because x already holds the neighbour's rows. stride = t, h, w. With upsample2 x is
 * read as if every pixel stood 2×2 (nearest), H and W then counting the duplicated picture.
 * Rows of y at or beyond valid_rows (0: all valid) are written as zero.
 * T_out = (pad_front + n_history + T − kt)/stride_t + 1, and so on: y's extents must agree. Operands are rounded as in linear.
 * Frames in pieces give the same bits; picture rows in pieces (halo) may differ by the order of the f32 sum. */
typedef struct reel_op_conv3d {
    uint32_t size;
    reel_tensor x;
    reel_weight w;
    reel_tensor bias; /* [O] f32 or absent */
    reel_tensor residual;
    reel_tensor y;
    int32_t n_history, pad_front;
    int32_t pad[4];
    uint32_t halo; /* bit 0 top, 1 bottom, 2 left, 3 right */
    int32_t stride[3];
    int32_t upsample2;
    int64_t valid_rows;
} reel_op_conv3d;

/* out = softmax(scale·q·kᵀ + key_bias + relative_bias)·v, never holding a score matrix of Sq×Sk.
 *   q [B, Sq, H, D], k, v [B, Sk, H, D], out [B, Sq, H, D] float, any strides with D contiguous; out may alias q
 *   key_bias       [Sk] f32 or absent, added to every score of that key (ln n lets one key stand for n equal ones)
 *   relative_bias  [H, Sq + Sk − 1] f32 or absent: entry k − q + Sq − 1 is added to score (q, k)
 *   lse            [B, H, Sq] f32 or absent: natural log of the sum of exponentials, for merging partial results
 * D is any positive number; 64, 80, 128 and 384 must be fast. */
typedef struct reel_op_attention {
    uint32_t size;
    reel_tensor q, k, v, out;
    reel_tensor key_bias, relative_bias, lse;
    float scale;
} reel_op_attention;

/* y = LN(x)·(a + scale_u) + shift_u per row, LN with biased variance over D, f32.
 *   x, y [S, D] float; shift, scale [U, D] f32 (rows may be strided) or absent; row_index [S] i32 (row → u) or absent (u = 0)
 *   With one_plus 1, a = 1 (modulation: 1 + scale); with 0, a = 0 (affine: scale is the weight). Absent scale: factor 1. */
typedef struct reel_op_layer_norm {
    uint32_t size;
    reel_tensor x, y, scale, shift, row_index;
    int32_t one_plus;
    float eps;
} reel_op_layer_norm;

/* y = x·rsqrt(mean(x²) + eps)·weight over D (T5).  x, y [S, D] float, weight [D] f32. */
typedef struct reel_op_rms_norm {
    uint32_t size;
    reel_tensor x, weight, y;
    float eps;
} reel_op_rms_norm;

/* sum[s] = Σ_d x[s, d]², the half of a QK norm that ranks add up.  x [S, D] float, sum [S] f32. */
typedef struct reel_op_rms_sum {
    uint32_t size;
    reel_tensor x, sum;
} reel_op_rms_sum;

/* Rotary position embedding over (frame, row, column). Token s of the call is global token first_token + s = (t·grid_h + y)·grid_w + x.
 * table [P, D/2, 2] f32 holds cos and sin of position p for channel pair j; the first pair_t pairs of a head take p = t, the next pair_h
 * p = y, the rest p = x. Adjacent channels pair: y0 = x0·cos − x1·sin, y1 = x0·sin + x1·cos. Absent table: no rotation. */
typedef struct reel_rope {
    reel_tensor table;
    int64_t first_token;
    int64_t grid_h, grid_w;
    int32_t pair_t, pair_h;
} reel_rope;

/* The other half: y = rope(x·rsqrt(sum/n + eps)·weight).  x, y [S, H, D] float; weight [H·D] f32; sum [S] f32; n = channels over all ranks. */
typedef struct reel_op_rms_apply_rope {
    uint32_t size;
    reel_tensor x, sum, weight, y;
    int64_t n;
    float eps;
    reel_rope rope;
} reel_op_rms_apply_rope;

/* Both halves in one pass, n = H·D.  x, y [S, H, D] float. */
typedef struct reel_op_rms_norm_rope {
    uint32_t size;
    reel_tensor x, weight, y;
    float eps;
    reel_rope rope;
} reel_op_rms_norm_rope;

/* y = act(x / max(‖x‖₂, 1e-12)·√C·gamma) over the last dimension.  x, y [N, C] float (any leading shape, rows strided), gamma [C] f32.
 * act NONE or SILU. */
typedef struct reel_op_channel_norm {
    uint32_t size;
    reel_tensor x, gamma, y;
    reel_activation act;
} reel_op_channel_norm;

/* y = x + a·gate_u per row.  x, a, y [S, D] float; gate [U, D] f32 (rows strided) or absent (factor 1); row_index [S] i32 or absent. */
typedef struct reel_op_gate_residual {
    uint32_t size;
    reel_tensor x, a, gate, row_index, y;
} reel_op_gate_residual;

/* y = GELU_tanh(gate)·up, element by element.  gate, up, y [S, D] float. */
typedef struct reel_op_gated_gelu {
    uint32_t size;
    reel_tensor gate, up, y;
} reel_op_gated_gelu;

/* y = x / (1 + e^−x).  x, y of equal extents, float. */
typedef struct reel_op_silu {
    uint32_t size;
    reel_tensor x, y;
} reel_op_silu;

/* y[u, i, d] = table[i, d] + x[u, i, d]: the modulation rows of one block.  table [R, D] f32; x [U, R, D] float, or [U, 1, D] repeated over R
 * (stride[1] = 0); y [U, R, D] f32. */
typedef struct reel_op_modulation {
    uint32_t size;
    reel_tensor table, x, y;
} reel_op_modulation;

/* Latents to tokens: y[n − first, c·ph·pw + dy·pw + dx] = x[c, t, y·ph + dy, x·pw + dx], n = (t·h/ph + y)·w/pw + x.
 *   x [C, T, h, w] float; y [S', C·ph·pw] float: tokens [first_token, first_token + S'). */
typedef struct reel_op_patchify {
    uint32_t size;
    reel_tensor x, y;
    int32_t patch_h, patch_w;
    int64_t first_token;
} reel_op_patchify;

/* Tokens to latents, other order: y[c, t, y·ph + dy, x·pw + dx] = x[n − first, (dy·pw + dx)·C + c].  x [S', ph·pw·C] float; y [C, T, h, w] float. */
typedef struct reel_op_unpatchify {
    uint32_t size;
    reel_tensor x, y;
    int32_t patch_h, patch_w;
    int64_t first_token;
} reel_op_unpatchify;

/* y[i, :] = w row index[i].  index [S] i32 on the device, each within [0, n_row); w dense; y [S, n_col] float. */
typedef struct reel_op_gather_rows {
    uint32_t size;
    reel_weight w;
    reel_tensor index, y;
} reel_op_gather_rows;

/* y = x with another dtype or other strides (any permutation); equal extents. Float to float (F64 and F8 may be read), round to nearest even. */
typedef struct reel_op_convert {
    uint32_t size;
    reel_tensor x, y;
} reel_op_convert;

enum { REEL_COMBINE_MAX = 6 };

/* y = Σ coef[i]·x[i], i < n, summed in the order given in f32 (fused multiply-add allowed).  All dense, equal extents, float; y may alias
 * any x. Guidance and every scheduler step are combinations. */
typedef struct reel_op_combine {
    uint32_t size;
    int32_t n;
    reel_tensor x[REEL_COMBINE_MAX];
    float coef[REEL_COMBINE_MAX];
    reel_tensor y;
} reel_op_combine;

/* y = x·mul[c] + add[c], or x / div[c] + add[c] when div is given instead.  x, y of equal extents (strides free), c indexes dimension
 * `channel_dim`; mul, div, add [C] f32, absent ones are 1 or 0. */
typedef struct reel_op_affine_channels {
    uint32_t size;
    reel_tensor x, mul, div, add, y;
    int32_t channel_dim;
} reel_op_affine_channels;

/* y = round_half_even(clamp(clamp(x, −1, 1)/2 + 0.5, 0, 1)·255).  x [F, H, W, 3] float, y [F, H, W, 3] u8. NaN becomes 0: check before. */
typedef struct reel_op_frames_to_u8 {
    uint32_t size;
    reel_tensor x, y;
} reel_op_frames_to_u8;

/* count[0] = how many elements of x are NaN or infinite.  x float, count [1] i32. */
typedef struct reel_op_count_nonfinite {
    uint32_t size;
    reel_tensor x, count;
} reel_op_count_nonfinite;

#ifdef __cplusplus
}
#endif
#endif
