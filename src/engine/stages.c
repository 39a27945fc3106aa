/* SPDX-License-Identifier: Apache-2.0
 *
 * Stages on their own: text to embeddings, a clip to latents, latents to a clip. Results are safetensors files or clips, whole or not at all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_internal.h"

static void log_warning(void *user, const char *text)
{
    const reel_engine *e = user;
    reel_log_write(&e->log, REEL_LOG_WARNING, "%s", text);
}

/* ---- text ------------------------------------------------------------------------------------------------------------------------- */

typedef struct text_tensors {
    reel_states states;
    int32_t mask[REEL_TOKEN_MAX];
} text_tensors;

static int32_t list_text(const text_tensors *t, int64_t width, reel_dtype dtype, bool is_negative, reel_stored_out *out)
{
    static const char *const name[2][3] = {{"prompt_ids", "prompt_mask", "prompt_states"},
                                           {"negative_ids", "negative_mask", "negative_states"}};
    const char *const *n = name[is_negative ? 1 : 0];
    out[0] = (reel_stored_out){n[0], reel_tensor_dense((void *)(uintptr_t)t->states.tokens.id, REEL_DTYPE_I32, REEL_TOKEN_MAX, 0, 0, 0)};
    out[1] = (reel_stored_out){n[1], reel_tensor_dense((void *)(uintptr_t)t->mask, REEL_DTYPE_I32, REEL_TOKEN_MAX, 0, 0, 0)};
    out[2] = (reel_stored_out){n[2], reel_tensor_dense(t->states.host, dtype, t->states.tokens.n, width, 0, 0)};
    return 3;
}

static reel_status encode_one(const reel_pipeline *p, const char *text, const char *what, text_tensors *t, reel_error *err)
{
    REEL_TRY(reel_stage_text(p, text, what, &t->states, err));
    for (int32_t i = 0; i < t->states.tokens.n; i++) t->mask[i] = 1;
    return REEL_OK;
}

REEL_API reel_status reel_encode_text(reel_engine *engine, const char *prompt, const char *negative, const char *dtype, const char *output,
                                      reel_error *err)
{
    reel_plan *plan = calloc(1, sizeof *plan);
    text_tensors *t = calloc(2, sizeof *t);
    reel_stored_out out[6];
    int32_t n = 0;
    const char *negative_text = NULL;
    const reel_hooks hooks = {.user = engine, .warn = log_warning};
    const reel_pipeline p = {.plan = plan, .components = &engine->components, .tokenizer = NULL, .cache = engine->cache, .hooks = &hooks};
    reel_pipeline with_tokenizer = p;
    reel_status status = REEL_OK;
    if (!plan || !t) {
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory for text\nremedy: close other programs");
        goto cleanup;
    }
    REEL_TRY_GOTO(reel_engine_stage_plan(engine, dtype, NULL, plan, err), cleanup);
    REEL_TRY_GOTO(reel_engine_open_tokenizer(engine, err), cleanup);
    with_tokenizer.tokenizer = engine->tokenizer;
    REEL_TRY_GOTO(encode_one(&with_tokenizer, prompt, "prompt", &t[0], err), cleanup);
    n = list_text(&t[0], engine->model.text.d_model, plan->text_compute, false, out);
    if (negative) {
        REEL_TRY_GOTO(reel_negative_preset(negative, &negative_text, err), cleanup);
        REEL_TRY_GOTO(encode_one(&with_tokenizer, negative_text, "negative prompt", &t[1], err), cleanup);
        n += list_text(&t[1], engine->model.text.d_model, plan->text_compute, true, out + n);
    }
    const char *const metadata[] = {"prompt", prompt, "negative_prompt", negative_text ? negative_text : "", NULL};
    REEL_TRY_GOTO(reel_safetensors_write(output, out, n, metadata, false, err), cleanup);
cleanup:
    reel_components_drop(&engine->components, REEL_COMPONENT_TEXT_ENCODER);
    for (int32_t i = 0; t && i < 2; i++) reel_states_deinit(&t[i].states);
    free(t);
    free(plan);
    return status;
}

/* ---- clip to latents ----------------------------------------------------------------------------------------------------------------- */

typedef struct clip_scope {
    reel_engine *engine;
    const reel_plan *plan;
    reel_vae_session *session;
    reel_arena arena;
    reel_tensor frames, mean, logvar; /* device: [4, H, W, 3], [z, h, w] twice, f32 */
    float *host; /* [4, H, W, 3] */
    int64_t px_w, px_h, lat_w, lat_h;
    int32_t held, want; /* frames in host, frames that the next push takes: 1, then 4 */
    reel_buf means, logvars; /* [T][z, h, w] f32 */
    int64_t n_pushed;
} clip_scope;

static reel_status push_held(clip_scope *s, reel_error *err)
{
    const reel_ops *ops = &s->engine->ops;
    reel_tensor frames = reel_tensor_slice(s->frames, 0, 0, s->held);
    const size_t bytes = reel_tensor_bytes(&s->mean);
    float *latent = malloc(bytes);
    if (!latent) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for latents\nremedy: close other programs");
    reel_status status = REEL_OK;
    REEL_TRY_GOTO(reel_ops_upload(ops, &frames, s->host, err), cleanup);
    REEL_TRY_GOTO(reel_vae_encode_push(s->session, &frames, &s->mean, &s->logvar, err), cleanup);
    REEL_TRY_GOTO(reel_ops_download(ops, latent, &s->mean, err), cleanup);
    REEL_TRY_GOTO(reel_buf_append(&s->means, latent, bytes, err), cleanup);
    REEL_TRY_GOTO(reel_ops_download(ops, latent, &s->logvar, err), cleanup);
    REEL_TRY_GOTO(reel_buf_append(&s->logvars, latent, bytes, err), cleanup);
    s->n_pushed++;
    s->held = 0;
    s->want = s->engine->model.vae.temporal_factor;
cleanup:
    free(latent);
    return status;
}

static reel_status begin_clip(clip_scope *s, int32_t width, int32_t height, reel_error *err)
{
    const reel_vae_config *v = &s->engine->model.vae;
    const size_t a = s->engine->ops.props.alignment_bytes;
    const int64_t k = v->temporal_factor;
    if (width % v->spatial_factor != 0 || height % v->spatial_factor != 0) {
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "the clip's size does not fit the VAE\ngiven: %dx%d\nallowed: multiples of %d\nremedy: scale or crop the clip first",
            (int)width, (int)height, (int)v->spatial_factor);
    }
    s->px_w = width;
    s->px_h = height;
    s->lat_w = width / v->spatial_factor;
    s->lat_h = height / v->spatial_factor;
    s->want = 1;
    s->means.max = s->logvars.max = (size_t)16 << 30;
    s->host = malloc(sizeof *s->host * (size_t)(k * s->px_w * s->px_h * 3));
    if (!s->host) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for frames\nremedy: use a smaller clip");
    const size_t bytes = reel_arena_need(a, REEL_DTYPE_F32, k * s->px_w * s->px_h * 3) +
                         2 * reel_arena_need(a, REEL_DTYPE_F32, v->z_dim * s->lat_w * s->lat_h);
    REEL_TRY(reel_arena_init(&s->arena, &s->engine->ops, "clip", bytes, err));
    REEL_TRY(reel_arena_take(&s->arena, REEL_DTYPE_F32, k, s->px_h, s->px_w, 3, &s->frames, err));
    REEL_TRY(reel_arena_take(&s->arena, REEL_DTYPE_F32, v->z_dim, s->lat_h, s->lat_w, 0, &s->mean, err));
    REEL_TRY(reel_arena_take(&s->arena, REEL_DTYPE_F32, v->z_dim, s->lat_h, s->lat_w, 0, &s->logvar, err));
    REEL_TRY(reel_components_ensure_vae(&s->engine->components, s->plan, true, false, err));
    return reel_vae_encode_begin(s->engine->components.vae, s->px_h, s->px_w, &s->session, err);
}

static reel_status take_frame(void *user, const uint8_t *rgb, int32_t width, int32_t height, reel_error *err)
{
    clip_scope *s = user;
    if (!s->session) REEL_TRY(begin_clip(s, width, height, err));
    if (width != s->px_w || height != s->px_h) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "the clip changes its size\ngiven: %dx%d after %lldx%lld\nallowed: one size\nremedy: scale the clip first",
                         (int)width, (int)height, (long long)s->px_w, (long long)s->px_h);
    }
    const int64_t n = s->px_w * s->px_h * 3;
    float *at = s->host + s->held * n;
    for (int64_t i = 0; i < n; i++) at[i] = (float)rgb[i] / 127.5F - 1.0F;
    s->held++;
    return s->held == s->want ? push_held(s, err) : REEL_OK;
}

/* [T][z, h, w] → [z, T, h, w]; with mul, (x − mean)·(1/std) in the reference's two steps. */
static float *gather(const clip_scope *s, const reel_buf *from, bool is_normalised)
{
    const reel_vae_config *v = &s->engine->model.vae;
    const int64_t plane = s->lat_w * s->lat_h, t_count = s->n_pushed;
    float *out = malloc(sizeof *out * (size_t)(v->z_dim * t_count * plane));
    for (int64_t c = 0; out && c < v->z_dim; c++) {
        const float mean = (float)v->latents_mean[c], inverse = 1.0F / (float)v->latents_std[c];
        for (int64_t t = 0; t < t_count; t++) {
            for (int64_t i = 0; i < plane; i++) {
                float x;
                memcpy(&x, from->data + sizeof x * (size_t)((t * v->z_dim + c) * plane + i), sizeof x);
                out[(c * t_count + t) * plane + i] = is_normalised ? (x - mean) * inverse : x;
            }
        }
    }
    return out;
}

static reel_status write_latents(const clip_scope *s, const char *output, reel_error *err)
{
    const int64_t z = s->engine->model.vae.z_dim;
    float *mean = gather(s, &s->means, false), *logvar = gather(s, &s->logvars, false), *latents = gather(s, &s->means, true);
    reel_status status = REEL_OK;
    if (!mean || !logvar || !latents) {
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory for latents\nremedy: use a shorter clip");
    } else {
        const reel_stored_out out[3] = {{"mean", reel_tensor_dense(mean, REEL_DTYPE_F32, z, s->n_pushed, s->lat_h, s->lat_w)},
                                        {"logvar", reel_tensor_dense(logvar, REEL_DTYPE_F32, z, s->n_pushed, s->lat_h, s->lat_w)},
                                        {"latents", reel_tensor_dense(latents, REEL_DTYPE_F32, z, s->n_pushed, s->lat_h, s->lat_w)}};
        status = reel_safetensors_write(output, out, 3, NULL, false, err);
    }
    free(mean);
    free(logvar);
    free(latents);
    return status;
}

REEL_API reel_status reel_encode_clip(reel_engine *engine, const char *clip, const char *vae_dtype, const char *output, reel_error *err)
{
    enum { PIXELS_MAX = 8192 * 8192 };
    reel_plan *plan = calloc(1, sizeof *plan);
    clip_scope s = {.engine = engine, .plan = plan};
    reel_media_info info;
    reel_status status = REEL_OK;
    if (!plan) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a plan\nremedy: close other programs");
    REEL_TRY_GOTO(reel_engine_stage_plan(engine, NULL, vae_dtype, plan, err), cleanup);
    REEL_TRY_GOTO(reel_media_read_frames(clip, PIXELS_MAX, take_frame, &s, &info, err), cleanup);
    if (s.n_pushed == 0 || s.held > 0) {
        status =
            REEL_FAIL(err, REEL_E_ARGUMENT,
                      "the clip's length does not fit the VAE\ngiven: %lld frames\nallowed: %dk + 1\nremedy: cut the clip to %lld frames",
                      (long long)info.n_frame, (int)engine->model.vae.temporal_factor,
                      (long long)((info.n_frame - 1) / engine->model.vae.temporal_factor * engine->model.vae.temporal_factor + 1));
        goto cleanup;
    }
    REEL_TRY_GOTO(write_latents(&s, output, err), cleanup);
cleanup:
    reel_vae_session_free(&s.session);
    reel_arena_deinit(&s.arena);
    reel_buf_deinit(&s.means);
    reel_buf_deinit(&s.logvars);
    free(s.host);
    free(plan);
    return status;
}

/* ---- latents to clip ---------------------------------------------------------------------------------------------------------------- */

typedef struct decode_scope {
    reel_writer *writer;
} decode_scope;

static reel_status write_frames(void *user, int32_t clip, const uint8_t *rgb, int64_t first, int32_t n, reel_error *err)
{
    (void)clip;
    (void)first;
    decode_scope *s = user;
    return reel_writer_frames(s->writer, rgb, n, err);
}

static reel_status check_latents(const reel_engine *e, const reel_stored *t, const char *path, reel_error *err)
{
    if (!t || t->n_dim != 4 || t->dtype != REEL_DTYPE_F32 || t->extent[0] != e->model.vae.z_dim || t->extent[1] < 1 || t->extent[2] < 1 ||
        t->extent[3] < 1) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "the file holds no latents for this model\ngiven: %s\nallowed: a tensor \"latents\" or \"latents_final\", F32 "
                         "[%d, frames, height, "
                         "width]\nremedy: make it with `reel encode` or --x-dump",
                         path, (int)e->model.vae.z_dim);
    }
    return REEL_OK;
}

static void plan_for(const reel_engine *e, const reel_stored *t, double fps, reel_plan *plan)
{
    plan->lat_t = t->extent[1];
    plan->lat_h = t->extent[2];
    plan->lat_w = t->extent[3];
    plan->px_h = plan->lat_h * e->model.vae.spatial_factor;
    plan->px_w = plan->lat_w * e->model.vae.spatial_factor;
    plan->n_frame = (plan->lat_t - 1) * e->model.vae.temporal_factor + 1;
    if (!isnan(fps)) plan->fps = fps;
}

REEL_API reel_status reel_decode_latents(reel_engine *engine, const char *latents, const char *vae_dtype, double fps, const char *output,
                                         reel_error *err)
{
    reel_plan *plan = calloc(1, sizeof *plan);
    reel_store *store = NULL;
    float *host = NULL;
    decode_scope scope = {0};
    const reel_hooks hooks = {.user = &scope, .frames = write_frames};
    const reel_pipeline p = {.plan = plan, .components = &engine->components, .cache = engine->cache, .hooks = &hooks};
    reel_status status = REEL_OK;
    if (!plan) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a plan\nremedy: close other programs");
    REEL_TRY_GOTO(reel_engine_stage_plan(engine, NULL, vae_dtype, plan, err), cleanup);
    REEL_TRY_GOTO(reel_store_open_file(latents, &store, err), cleanup);
    const reel_stored *t = reel_store_find(store, "latents");
    if (!t || t->n_dim != 4) t = reel_store_find(store, "latents_final"); /* a dump's `latents` holds every step */
    REEL_TRY_GOTO(check_latents(engine, t, latents, err), cleanup);
    plan_for(engine, t, fps, plan);
    host = malloc(t->bytes);
    if (!host) {
        status = REEL_FAIL(err, REEL_E_MEMORY, "out of memory for latents\nremedy: close other programs");
        goto cleanup;
    }
    memcpy(host, t->data, t->bytes);
    const reel_media_options media = {
        .width = (int32_t)plan->px_w, .height = (int32_t)plan->px_h, .fps = plan->fps, .crf = -1, .n_thread = 1};
    REEL_TRY_GOTO(reel_media_check(output, &media, err), cleanup);
    REEL_TRY_GOTO(reel_writer_open(output, &media, &scope.writer, err), cleanup);
    REEL_TRY_GOTO(reel_stage_decode(&p, 0, host, NULL, err), cleanup);
    REEL_TRY_GOTO(reel_writer_finish(&scope.writer, err), cleanup);
cleanup:
    if (scope.writer) reel_writer_abandon(&scope.writer);
    reel_store_close(&store);
    free(host);
    free(plan);
    return status;
}
