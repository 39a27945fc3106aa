/* SPDX-License-Identifier: Apache-2.0
 *
 * The Wan transformer (WanTransformer3DModel): one forward gives the velocity of noisy latents.
 *
 * A reel_dit is one expert's weights and sizes. A reel_dit_context is what depends on the prompt only (text projection, cross-attention
 * keys and values of every block), computed once per prompt and expert. Functions take a token range [t0, t1) of the S tokens; RoPE,
 * modulation and unpatchify index by global token, so one rank is [0, S). Cache policies and exchanges between ranks are data that the
 * block loop reads (empty on one rank). Weights are leased block by block. */
#ifndef REEL_DIT_DIT_H
#define REEL_DIT_DIT_H

#include "dit/cache/cache.h"
#include "model/model.h"
#include "ops/ops.h"
#include "weights/weights.h"

typedef struct reel_dit reel_dit;
typedef struct reel_dit_context reel_dit_context;

enum { REEL_DIT_TIMESTEP_MAX = 2 };

typedef struct reel_dit_options {
    reel_dtype compute; /* activations that meet matrices: F32 or BF16 */
    const char *attention_self, *attention_cross; /* names of implementations; NULL: the device's first that takes the shape */
    int64_t ffn_rows; /* feed-forward rows at a time; bounds its scratch, changes no bit. 0: all */
} reel_dit_options;

/* Where the blocks exchange data with other ranks; the plan fills `run`, NULL on one rank. */
typedef enum reel_exchange_point {
    REEL_EXCHANGE_QK_SUM = 0, /* sums of squares of Q and K, added over ranks that split heads */
    REEL_EXCHANGE_ATTENTION_IN, /* tokens → heads */
    REEL_EXCHANGE_ATTENTION_OUT, /* heads → tokens */
    REEL_EXCHANGE_LINEAR_SUM /* partial sums of a row-split linear */
} reel_exchange_point;
typedef struct reel_exchange {
    void *user;
    reel_status (*run)(void *user, reel_exchange_point point, reel_tensor *tensors, int32_t n, reel_error *err);
} reel_exchange;

/* Called with a named tensor on the device; the callee reads it after a wait of its own. For `--x-dump`. */
typedef reel_status (*reel_dit_tap)(void *user, const char *name, const reel_tensor *tensor, reel_error *err);

/* Borrows ops and weights, which must outlive it. */
reel_status reel_dit_new(const reel_dit_config *config, const reel_ops *ops, reel_weights *weights, const reel_dit_options *options,
                         reel_dit **out, reel_error *err);
void reel_dit_free(reel_dit **dit);

/* Bytes of scratch for a forward over n_token tokens, of a context that lives in an arena, and of the scratch that making it needs. */
size_t reel_dit_scratch_bytes(const reel_dit_config *config, const reel_dit_options *options, int64_t n_token, size_t alignment);
size_t reel_dit_context_bytes(const reel_dit_config *config, const reel_dit_options *options, int64_t n_text, size_t alignment);
size_t reel_dit_context_scratch_bytes(const reel_dit_config *config, const reel_dit_options *options, int64_t n_text, size_t alignment);

/* states [n, text_dim] float: the real rows; n_padded − n rows of zeros follow (they are attended to: one key with ln(n_padded − n) added
 * to its logit stands for them). Keys and values are taken from `arena` and live until it is rewound; scratch is rewound on return. */
reel_status reel_dit_context_new(reel_dit *dit, const reel_tensor *states, int32_t n_padded, reel_arena *arena, reel_arena *scratch,
                                 reel_dit_tap tap, void *tap_user, reel_dit_context **out, reel_error *err);
void reel_dit_context_free(reel_dit_context **context);

typedef struct reel_dit_input {
    reel_tensor latents; /* [in_channels, T, h, w] float */
    const reel_dit_context *context;
    float timestep[REEL_DIT_TIMESTEP_MAX];
    int32_t n_timestep; /* distinct values, at least 1 */
    reel_tensor token_timestep; /* [t1 − t0] i32 → index into timestep, or absent (all 0) */
    int64_t t0, t1; /* token range; 0, S on one rank */
    reel_tensor velocity; /* out: [out_channels, T, h, w] f32; only the range's patches are written */
    const reel_cache_policy *cache; /* NULL: none */
    const reel_exchange *exchange; /* NULL on one rank */
    int32_t expert, branch, step; /* for the cache policy */
    reel_dit_tap tap; /* NULL: none */
    void *tap_user;
    reel_status (*agree)(void *user, reel_error *err); /* asked between blocks: REEL_E_CANCELLED stops; NULL: never */
    void *agree_user;
} reel_dit_input;

/* One forward. scratch is rewound on return. Asynchronous on ops->stream. */
reel_status reel_dit_forward(reel_dit *dit, const reel_dit_input *input, reel_arena *scratch, reel_error *err);

#endif
