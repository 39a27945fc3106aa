/* SPDX-License-Identifier: Apache-2.0
 *
 * The one plan: everything that is decided before a weight is loaded, read by all stages and changed by none.
 *
 * Made in pure steps. reel_plan_resolve turns (model, device facts, request) into sizes, dtypes and solver settings; reel_plan_attention
 * picks from what the device's implementations said; the engine then asks each stage's own formula for its bytes and reel_plan_fit adds them
 * up by phase and refuses what does not fit, saying what would. Host code only; device facts come in as data. A reel_plan is a plain,
 * versioned value without pointers: it can be stored, compared and hashed (ranks compare hashes). */
#ifndef REEL_PLAN_PLAN_H
#define REEL_PLAN_PLAN_H

#include "base/buf.h"
#include "model/model.h"
#include "reel-plugin/device.h"
#include "reel/job.h"

enum { REEL_PLAN_VERSION = 1, REEL_NAME_MAX = 40, REEL_REASON_MAX = 160, REEL_OFFER_MAX = 12, REEL_NOTE_MAX = 12, REEL_NOTE_BYTES = 320 };

/* Where attention is computed. */
typedef enum reel_attention_use { REEL_USE_TEXT = 0, REEL_USE_SELF, REEL_USE_CROSS, REEL_USE_VAE, REEL_USE_COUNT } reel_attention_use;
const char *reel_attention_use_name(reel_attention_use use);

/* What one implementation said to the shape of one use. */
typedef struct reel_attention_offer {
    char name[REEL_NAME_MAX];
    int32_t accepts;
    char reason[REEL_REASON_MAX];
} reel_attention_offer;

/* offer[use]: the device's list, best first, asked for the dtypes of the resolved plan. */
typedef struct reel_plan_offers {
    int32_t n_offer;
    reel_attention_offer offer[REEL_USE_COUNT][REEL_OFFER_MAX];
} reel_plan_offers;

/* How long weights stay. */
typedef enum reel_residency {
    REEL_RESIDENCY_KEEP = 0, /* transformer and VAE stay loaded from clip to clip */
    REEL_RESIDENCY_SEQUENCE = 1 /* all clips are denoised, the transformer is freed, then all are decoded */
} reel_residency;

typedef struct reel_plan_phase {
    char name[REEL_NAME_MAX];
    uint64_t weights_bytes; /* copies beyond the mapped files: conversions and packed layouts */
    uint64_t arena_bytes; /* what stages take for themselves */
    uint64_t other_bytes; /* device scratch, encoder, libraries */
    uint64_t total_bytes;
    double estimate_s;
} reel_plan_phase;

typedef struct reel_plan {
    uint32_t version;
    /* the clip */
    int64_t px_w, px_h, n_frame;
    int64_t lat_t, lat_h, lat_w, n_token;
    double fps;
    int32_t n_prompt, n_clip; /* clips per prompt */
    int32_t max_token;
    /* the solver */
    char scheduler[REEL_NAME_MAX]; /* as the user or the model named it; sample/ knows the names */
    int32_t n_step, solver_order;
    double flow_shift, boundary_ratio; /* boundary NaN: one expert */
    double guidance[2]; /* of transformer, transformer_2 */
    int32_t is_guided; /* a second forward with the negative prompt */
    /* arithmetic */
    reel_dtype dit_compute, text_compute, vae_compute;
    int32_t is_packed;
    char attention[REEL_USE_COUNT][REEL_NAME_MAX];
    char attention_reason[REEL_USE_COUNT][REEL_REASON_MAX];
    /* how */
    int64_t ffn_rows;
    int32_t vae_chunk_frames, encoder_threads, n_thread;
    reel_residency residency;
    int32_t n_rank, n_exchange; /* 1 and 0: one rank exchanges nothing */
    char device[REEL_NAME_MAX];
    char isa[REEL_NAME_MAX]; /* for the time estimate */
    char cache[REEL_NAME_MAX];
    /* what it takes */
    int32_t n_phase;
    reel_plan_phase phase[REEL_PHASE_COUNT];
    uint64_t stored_bytes; /* of the files that are mapped */
    uint64_t peak_bytes; /* highest phase total: memory beyond the mapped files */
    uint64_t available_bytes; /* when the plan was made */
    int32_t n_note;
    char note[REEL_NOTE_MAX][REEL_NOTE_BYTES]; /* what was rounded, chosen or fell back, in the user's words */
    uint64_t hash; /* of everything that can change a bit of the result */
} reel_plan;

/* Defaults of a model, below what the request says. */
typedef struct reel_plan_defaults {
    int64_t px_w, px_h, n_frame;
    int32_t n_step;
    double guidance[2], fps, flow_shift;
    char scheduler[REEL_NAME_MAX];
} reel_plan_defaults;
reel_plan_defaults reel_plan_defaults_of(const reel_model *model);

/* Sizes, dtypes, solver. */
reel_status reel_plan_resolve(const reel_model *model, const reel_plan_defaults *defaults, const reel_device_props *props,
                              const reel_request *request, reel_plan *out, reel_error *err);
/* Picks attention from the offers; `forced` names one, or is NULL or "auto". */
reel_status reel_plan_attention(reel_plan *plan, const reel_plan_offers *offers, const char *forced, reel_error *err);

/* Bytes as the stages' own formulas gave them. */
typedef struct reel_plan_bytes {
    uint64_t stored[REEL_COMPONENT_COUNT]; /* files */
    uint64_t copied[REEL_COMPONENT_COUNT]; /* conversions and packed copies */
    uint64_t text_arena, context_arena, dit_arena, latents_arena, decode_arena;
    uint64_t device_scratch, encoder, process;
} reel_plan_bytes;
/* Fills phases, residency, peak and hash. REEL_E_MEMORY when it does not fit, naming what would. */
reel_status reel_plan_fit(reel_plan *plan, const reel_model *model, const reel_plan_bytes *bytes, uint64_t available, reel_error *err);
uint64_t reel_plan_hash(const reel_plan *plan);

/* FLOP of the phases: one forward of the transformer, one decode, one encoding of n tokens. */
double reel_plan_dit_flop(const reel_dit_config *config, int64_t n_token, int64_t n_key);
double reel_plan_decode_flop(const reel_vae_config *config, int64_t lat_t, int64_t lat_h, int64_t lat_w);
double reel_plan_text_flop(const reel_umt5_config *config, int64_t n_token);

void reel_plan_note(reel_plan *plan, const char *format, ...) REEL_PRINTF(2, 3);

#endif
