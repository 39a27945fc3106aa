/* SPDX-License-Identifier: Apache-2.0
 *
 * A checkpoint described by its configs: kinds and sizes of every component, and the tensors that each must have.
 *
 * reel_model_open reads model_index.json and the component configs of a directory in the Hugging Face diffusers layout, checks
 * types and ranges, and checks that the parts belong together (latent channels of VAE and transformer, text width of encoder
 * and transformer, both experts alike). It opens no weights; the engine compares reel_model_tensors with the files. Plain
 * values, no pointers: a reel_model may be copied. Pure host code. Source of names and defaults: diffusers 0.42 configs. */
#ifndef REEL_MODEL_MODEL_H
#define REEL_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/file.h"

/* WanTransformer3DModel */
typedef struct reel_dit_config {
    int32_t n_head, head_dim, n_layer, ffn_dim;
    int32_t in_channels, out_channels;
    int32_t text_dim, freq_dim;
    int32_t patch[3]; /* t, h, w; t is 1 */
    int32_t rope_max; /* positions per axis */
    bool cross_attn_norm;
    double eps;
    int32_t image_dim, added_kv_dim, pos_embed_len; /* 0: none */
} reel_dit_config;

/* UMT5EncoderModel */
typedef struct reel_umt5_config {
    int32_t d_model, d_kv, n_head, d_ff, n_layer, vocab;
    int32_t n_bucket, max_distance;
    double eps;
} reel_umt5_config;

enum { REEL_LATENT_CHANNELS_MAX = 64, REEL_VAE_STAGE_MAX = 8 };

/* AutoencoderKLWan */
typedef struct reel_vae_config {
    int32_t base_dim, decoder_base_dim, z_dim;
    int32_t n_stage, dim_mult[REEL_VAE_STAGE_MAX];
    int32_t n_res_block;
    bool temporal_downsample[REEL_VAE_STAGE_MAX]; /* n_stage − 1 entries, encoder order */
    bool is_residual; /* Wan2.2 */
    int32_t in_channels, out_channels, patch; /* patch 1: none */
    int32_t spatial_factor, temporal_factor;
    double latents_mean[REEL_LATENT_CHANNELS_MAX], latents_std[REEL_LATENT_CHANNELS_MAX];
} reel_vae_config;

typedef struct reel_scheduler_config {
    char class_name[64];
    double flow_shift;
    int32_t n_train_timesteps;
    int32_t solver_order;
} reel_scheduler_config;

typedef enum reel_component {
    REEL_COMPONENT_TEXT_ENCODER = 0,
    REEL_COMPONENT_TRANSFORMER = 1, /* high-noise expert, or the only one */
    REEL_COMPONENT_TRANSFORMER_2 = 2, /* low-noise expert */
    REEL_COMPONENT_VAE = 3,
    REEL_COMPONENT_COUNT = 4
} reel_component;

typedef struct reel_model {
    char dir[REEL_PATH_MAX];
    char family[64]; /* "Wan2.2 T2V-A14B", "Wan2.1 T2V-1.3B", or "Wan2.2 T2V (custom size)" */
    char pipeline_class[64]; /* "WanPipeline" */
    bool has_component[REEL_COMPONENT_COUNT];
    double boundary_ratio; /* NaN: one expert for all steps */
    bool expand_timesteps;
    reel_umt5_config text;
    reel_dit_config dit[2]; /* [0] transformer, [1] transformer_2 */
    reel_vae_config vae;
    reel_scheduler_config scheduler;
} reel_model;

reel_status reel_model_open(const char *dir, reel_model *out, reel_error *err);

/* REEL_E_UNSUPPORTED with the reason when this version cannot run the model; `reel inspect` describes it all the same. */
reel_status reel_model_check_supported(const reel_model *model, reel_error *err);

/* "transformer_2": the folder of a component. */
const char *reel_component_folder(reel_component component);
/* "diffusion_pytorch_model" or "model": the stem of its safetensors files. */
const char *reel_component_stem(reel_component component);

/* One tensor that a component must have. rank ≤ 5. */
typedef struct reel_tensor_spec {
    const char *name; /* valid during the call */
    int32_t n_dim;
    int64_t extent[5];
} reel_tensor_spec;
typedef reel_status (*reel_tensor_spec_fn)(void *user, const reel_tensor_spec *spec, reel_error *err);

/* Calls fn for every tensor that the component's config demands. */
reel_status reel_model_tensors(const reel_model *model, reel_component component, reel_tensor_spec_fn fn, void *user, reel_error *err);

/* Latent and token sizes that follow from pixels and frames. */
int64_t reel_model_latent_frames(const reel_model *model, int64_t n_frame);
/* What a width or height must be a multiple of: spatial factor × patch. */
int32_t reel_model_size_multiple(const reel_model *model);

#endif
