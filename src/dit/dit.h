/* SPDX-License-Identifier: Apache-2.0
 *
 * The Wan transformer (WanTransformer3DModel): one forward gives the velocity of noisy latents.
 *
 * A reel_dit is one expert's weights and sizes. A reel_dit_context is what depends on the prompt only (text projection, cross-attention
 * keys and values of every block), computed once per prompt and expert. Functions take a token range [t0, t1) of the S tokens; RoPE,
 * modulation and unpatchify index by global token, so one rank is [0, S). The block loop reads the plan's cache policy and exchanges
 * as lists (empty on one rank). */
#ifndef REEL_DIT_DIT_H
#define REEL_DIT_DIT_H

#include "model/model.h"
#include "ops/ops.h"
#include "weights/weights.h"

typedef struct reel_dit reel_dit;
typedef struct reel_dit_context reel_dit_context;

typedef struct reel_dit_options {
    reel_dtype compute;      /* activations that meet matrices: F32 or BF16 */
    reel_dtype residual;     /* the residual stream: F32 or compute */
    const char *attention_self, *attention_cross; /* names of implementations; NULL: the device's first */
} reel_dit_options;

/* Called with a named tensor on the device; the callee reads it after a sync of its own. For `--x-dump`. */
typedef reel_status (*reel_dit_tap)(void *user, const char *name, const reel_tensor *tensor, reel_error *err);

reel_status reel_dit_new(const reel_dit_config *config, const reel_ops *ops, reel_weights *weights, const reel_dit_options *options, reel_dit **out, reel_error *err);
void reel_dit_free(reel_dit **dit);

/* states [n, text_dim]: the real rows; n_token_padded − n rows of zeros follow (they are attended to). Keys and values are taken from
 * `arena` and live until it is rewound. scratch: rewound on return. */
reel_status reel_dit_context_new(reel_dit *dit, const reel_tensor *states, int32_t n_token_padded, reel_arena *arena, reel_arena *scratch,
                                 reel_dit_context **out, reel_error *err);
void reel_dit_context_free(reel_dit_context **context);

typedef struct reel_dit_input {
    reel_tensor latents;        /* [in_channels, T, h, w] float */
    const reel_dit_context *context;
    const float *timesteps;     /* n_timestep distinct values, host */
    int32_t n_timestep;
    reel_tensor token_timestep; /* [S] i32 → index into timesteps, or absent (all 0) */
    int64_t t0, t1;             /* token range; 0, S on one rank */
    reel_tensor velocity;       /* out: [out_channels, T, h, w] f32 */
    reel_dit_tap tap;           /* NULL: none */
    void *tap_user;
    reel_status (*agree)(void *user, reel_error *err); /* asked between blocks: REEL_E_CANCELLED stops; NULL: never */
    void *agree_user;
} reel_dit_input;

/* One forward. scratch is rewound on return. Asynchronous on ops->stream. */
reel_status reel_dit_forward(reel_dit *dit, const reel_dit_input *input, reel_arena *scratch, reel_error *err);

#endif
