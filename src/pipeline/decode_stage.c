/* SPDX-License-Identifier: Apache-2.0
 *
 * Latents to 8-bit frames: pushes latent frames through the VAE and hands every chunk on at once. Values that are not finite end the job:
 * a black clip is never a success. */
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"

typedef struct frame_scope {
    const reel_pipeline *p;
    int32_t clip;
    reel_dump *dump;
    reel_tensor u8, count; /* device: [chunk, H, W, 3] u8, [1] i32 */
    uint8_t *host;
    float *planes; /* of the first frames, for the dump */
} frame_scope;

enum { FLOAT_FRAMES_IN_DUMP = 5 };

size_t reel_stage_decode_bytes(const reel_model *model, const reel_plan *plan, size_t alignment)
{
    const int64_t z = model->vae.z_dim, pixels = plan->px_h * plan->px_w * 3;
    return reel_vae_decode_bytes(&model->vae, plan->vae_compute, plan->vae_chunk_frames, plan->lat_h, plan->lat_w, alignment) +
           reel_arena_need(alignment, REEL_DTYPE_F32, z * plan->lat_t * plan->lat_h * plan->lat_w) +
           reel_arena_need(alignment, REEL_DTYPE_U8, pixels * model->vae.temporal_factor) + reel_arena_need(alignment, REEL_DTYPE_I32, 1);
}

/* Keeps the first frames for the dump, planes apart: [3, n, H, W] as the recordings have them. */
static reel_status keep_float_frames(frame_scope *s, const reel_tensor *frames, int64_t first, reel_error *err)
{
    if (!s->dump || first >= FLOAT_FRAMES_IN_DUMP) return REEL_OK;
    const int64_t plane = frames->extent[1] * frames->extent[2], most = s->p->plan->n_frame;
    const int64_t kept = most < FLOAT_FRAMES_IN_DUMP ? most : FLOAT_FRAMES_IN_DUMP;
    float *host = NULL;
    if (!s->planes) s->planes = malloc(sizeof *s->planes * (size_t)(3 * kept * plane));
    if (!s->planes) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for --x-dump\nremedy: leave out --x-dump");
    REEL_TRY(reel_download_f32(s->p->components->ops, frames, &host, err));
    for (int64_t f = 0; f < frames->extent[0] && first + f < kept; f++) {
        for (int64_t i = 0; i < 3 * plane; i++) s->planes[(i % 3 * kept + first + f) * plane + i / 3] = host[3 * plane * f + i];
    }
    free(host);
    return REEL_OK;
}

/* frames_float before the clamp to −1…1, frames_clamped after it. */
static reel_status dump_float_frames(const frame_scope *s, reel_error *err)
{
    if (!s->planes) return REEL_OK;
    const reel_plan *plan = s->p->plan;
    const int64_t kept = plan->n_frame < FLOAT_FRAMES_IN_DUMP ? plan->n_frame : FLOAT_FRAMES_IN_DUMP,
                  extent[4] = {3, kept, plan->px_h, plan->px_w};
    REEL_TRY(reel_dump_host(s->dump, "frames_float", REEL_DTYPE_F32, extent, 4, s->planes, err));
    for (int64_t i = 0; i < 3 * kept * plan->px_h * plan->px_w; i++) {
        const float x = s->planes[i];
        s->planes[i] = x < -1.0F ? -1.0F : x > 1.0F ? 1.0F : x;
    }
    return reel_dump_host(s->dump, "frames_clamped", REEL_DTYPE_F32, extent, 4, s->planes, err);
}

static reel_status check_finite(const frame_scope *s, const reel_tensor *frames, int64_t first, reel_error *err)
{
    const reel_ops *ops = s->p->components->ops;
    int32_t n = 0;
    REEL_TRY(REEL_OP(ops, count_nonfinite, err, .x = *frames, .count = s->count));
    REEL_TRY(reel_ops_download(ops, &n, &s->count, err));
    if (n == 0) return REEL_OK;
    return REEL_FAIL(
        err, REEL_E_NUMERIC,
        "the decoder gave values that are not finite\ngiven: %d values from frame %lld on\nallowed: finite values\nremedy: try "
        "--vae-dtype f32; check the VAE's files with `reel inspect`",
        (int)n, (long long)first);
}

static reel_status take_frames(void *user, const reel_tensor *frames, int64_t first, int64_t row0, reel_error *err)
{
    (void)row0; /* whole pictures on one rank */
    frame_scope *s = user;
    const reel_ops *ops = s->p->components->ops;
    const reel_hooks *hooks = s->p->hooks;
    const int32_t n = (int32_t)frames->extent[0];
    REEL_TRY(check_finite(s, frames, first, err));
    REEL_TRY(keep_float_frames(s, frames, first, err));
    reel_tensor u8 = reel_tensor_slice(s->u8, 0, 0, n);
    REEL_TRY(REEL_OP(ops, frames_to_u8, err, .x = *frames, .y = u8));
    REEL_TRY(reel_ops_download(ops, s->host, &u8, err));
    REEL_TRY(reel_dump_host(s->dump, "frames_uint8", REEL_DTYPE_U8, u8.extent, 4, s->host, err));
    if (hooks->frames) REEL_TRY(hooks->frames(hooks->user, s->clip, s->host, first, n, err));
    if (hooks->progress) hooks->progress(hooks->user, REEL_PHASE_DECODE, s->clip, (int32_t)(first + n), (int32_t)s->p->plan->n_frame);
    return hooks->agree ? hooks->agree(hooks->user, err) : REEL_OK;
}

static reel_status push_all(const reel_pipeline *p, reel_vae_session *session, const reel_tensor *latents, reel_error *err)
{
    for (int64_t t = 0; t < p->plan->lat_t; t++) {
        reel_tensor frame = reel_tensor_slice(*latents, 1, t, t + 1); /* [z, 1, h, w] → [z, h, w] */
        frame.n_dim = 3;
        for (int32_t i = 1; i < 3; i++) {
            frame.extent[i] = frame.extent[i + 1];
            frame.stride[i] = frame.stride[i + 1];
        }
        REEL_TRY(reel_vae_decode_push(session, &frame, err));
    }
    return REEL_OK;
}

static reel_status decode_into(const reel_pipeline *p, frame_scope *s, reel_arena *arena, const float *latents, reel_error *err)
{
    reel_components *c = p->components;
    const reel_plan *plan = p->plan;
    reel_tensor device;
    reel_vae_session *session = NULL;
    REEL_TRY(reel_arena_take(arena, REEL_DTYPE_F32, c->model->vae.z_dim, plan->lat_t, plan->lat_h, plan->lat_w, &device, err));
    REEL_TRY(reel_arena_take(arena, REEL_DTYPE_U8, c->model->vae.temporal_factor, plan->px_h, plan->px_w, 3, &s->u8, err));
    REEL_TRY(reel_arena_take(arena, REEL_DTYPE_I32, 1, 0, 0, 0, &s->count, err));
    REEL_TRY(reel_ops_upload(c->ops, &device, latents, err));
    REEL_TRY(reel_vae_decode_begin(c->vae, plan->lat_h, plan->lat_w, take_frames, s, &session, err));
    reel_status status = push_all(p, session, &device, err);
    reel_vae_session_free(&session);
    return status;
}

reel_status reel_stage_decode(const reel_pipeline *p, int32_t clip, const float *latents, reel_dump *dump, reel_error *err)
{
    reel_components *c = p->components;
    const reel_plan *plan = p->plan;
    const size_t a = c->ops->props.alignment_bytes;
    REEL_TRY(reel_components_ensure_vae(c, plan, false, true, err));
    frame_scope scope = {.p = p, .clip = clip, .dump = dump};
    reel_arena arena = {0};
    reel_status status = REEL_OK;
    const size_t session = reel_vae_decode_bytes(&c->model->vae, plan->vae_compute, plan->vae_chunk_frames, plan->lat_h, plan->lat_w, a);
    scope.host = malloc((size_t)(c->model->vae.temporal_factor * plan->px_h * plan->px_w * 3));
    if (!scope.host) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for decoded frames\nremedy: choose a smaller size");
    REEL_TRY_GOTO(reel_arena_init(&arena, c->ops, "decoded frames", reel_stage_decode_bytes(c->model, plan, a) - session, err), cleanup);
    if (p->hooks->progress) p->hooks->progress(p->hooks->user, REEL_PHASE_DECODE, clip, 0, (int32_t)plan->n_frame);
    REEL_TRY_GOTO(decode_into(p, &scope, &arena, latents, err), cleanup);
    REEL_TRY_GOTO(dump_float_frames(&scope, err), cleanup);
cleanup:
    reel_arena_deinit(&arena);
    free(scope.planes);
    free(scope.host);
    return status;
}
