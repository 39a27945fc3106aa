/* SPDX-License-Identifier: Apache-2.0
 *
 * Small pictures of latents without a decode: a linear map from latent channels to RGB.
 *
 * The map is measured on the model's own VAE, so that it fits any VAE: a 1×1 latent at the mean and at ± one unit of each channel is decoded
 * and the 8×8 pixels are averaged. Half the difference is that channel's column. */
#include <math.h>
#include <stdlib.h>

#include "pipeline/denoise.h"

typedef struct mean_sink {
    const reel_ops *ops;
    double rgb[3];
} mean_sink;

static reel_status average(void *user, const reel_tensor *frames, int64_t first_frame, int64_t row0, reel_error *err)
{
    (void)first_frame;
    (void)row0;
    mean_sink *s = user;
    float *host = NULL;
    REEL_TRY(reel_download_f32(s->ops, frames, &host, err));
    const int64_t n = reel_tensor_count(frames) / 3;
    for (int64_t i = 0; i < n; i++) {
        for (int32_t c = 0; c < 3; c++) s->rgb[c] += (double)host[3 * i + c] / (double)n;
    }
    free(host);
    return REEL_OK;
}

static reel_status decode_point(const reel_pipeline *p, const reel_tensor *latent, const float *host, double *rgb, reel_error *err)
{
    mean_sink sink = {.ops = p->components->ops};
    reel_vae_session *session = NULL;
    REEL_TRY(reel_ops_upload(p->components->ops, latent, host, err));
    REEL_TRY(reel_vae_decode_begin(p->components->vae, 1, 1, average, &sink, &session, err));
    reel_status status = reel_vae_decode_push(session, latent, err);
    reel_vae_session_free(&session);
    for (int32_t c = 0; c < 3; c++) rgb[c] = sink.rgb[c];
    return status;
}

static reel_status measure(const reel_pipeline *p, const reel_tensor *latent, float *factors, reel_error *err)
{
    const int32_t z = p->components->model->vae.z_dim;
    float point[REEL_LATENT_CHANNELS_MAX] = {0};
    double plus[3], minus[3];
    REEL_TRY(decode_point(p, latent, point, plus, err));
    for (int32_t c = 0; c < 3; c++) factors[3 * z + c] = (float)plus[c];
    for (int32_t i = 0; i < z; i++) {
        point[i] = 1.0F;
        REEL_TRY(decode_point(p, latent, point, plus, err));
        point[i] = -1.0F;
        REEL_TRY(decode_point(p, latent, point, minus, err));
        point[i] = 0.0F;
        for (int32_t c = 0; c < 3; c++) factors[3 * i + c] = (float)((plus[c] - minus[c]) / 2.0);
    }
    return REEL_OK;
}

reel_status reel_preview_factors(const reel_pipeline *p, float **out, reel_error *err)
{
    const int32_t z = p->components->model->vae.z_dim;
    reel_arena arena = {0};
    reel_tensor latent;
    reel_status status = REEL_OK;
    float *factors = malloc(sizeof *factors * 3 * (size_t)(z + 1));
    if (!factors) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a preview\nremedy: leave out --preview");
    REEL_TRY_GOTO(reel_components_ensure_vae(p->components, p->plan, false, true, err), cleanup);
    REEL_TRY_GOTO(reel_arena_init(&arena, p->components->ops, "preview", 4096, err), cleanup);
    REEL_TRY_GOTO(reel_arena_take(&arena, REEL_DTYPE_F32, z, 1, 1, 0, &latent, err), cleanup);
    REEL_TRY_GOTO(measure(p, &latent, factors, err), cleanup);
    *out = factors;
    factors = NULL;
cleanup:
    reel_arena_deinit(&arena);
    free(factors);
    return status;
}

void reel_preview_picture(const reel_plan *plan, int32_t z, const float *factors, const float *x0, uint8_t *rgb)
{
    const int64_t plane = plan->lat_h * plan->lat_w, volume = plan->lat_t * plane;
    const float *frame = x0 + (plan->lat_t / 2) * plane;
    for (int64_t i = 0; i < plane; i++) {
        for (int32_t c = 0; c < 3; c++) {
            float v = factors[3 * z + c];
            for (int32_t k = 0; k < z; k++) v += factors[3 * k + c] * frame[k * volume + i];
            v = v * 0.5F + 0.5F;
            v = v >= 0.0F ? (v <= 1.0F ? v : 1.0F) : 0.0F; /* NaN too: the step's own check ends the job */
            rgb[3 * i + c] = (uint8_t)lrintf(v * 255.0F);
        }
    }
}
