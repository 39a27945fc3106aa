/* SPDX-License-Identifier: Apache-2.0
 *
 * The decoder: one latent frame in, pixel frames out, depth first.
 *
 * A level hands its frames to the next one a few at a time (the plan's chunk_frames), so only that many exist at full resolution. Upsampling
 * in time doubles the frames of every latent but the first, which passes unchanged and does not enter the time convolution's history.
 * Source: diffusers 0.42 AutoencoderKLWan._decode, WanDecoder3d, WanResample. */
#include "vae/session.h"

reel_status reel_vae_decode_begin(reel_vae *vae, int64_t lat_h, int64_t lat_w, reel_vae_sink sink, void *user, reel_vae_session **out,
                                  reel_error *err)
{
    reel_vae_session *session = NULL;
    REEL_TRY(reel_vae_session_new(vae, &vae->decoder, lat_h, lat_w, &session, err));
    session->sink = sink;
    session->user = user;
    *out = session;
    return REEL_OK;
}

/* norm, SiLU, conv_out, sink */
static reel_status finish(reel_vae_session *session, int32_t frames, reel_error *err)
{
    reel_weights *weights = session->vae->weights;
    int32_t region_index = session->half->region_ends, index;
    reel_vae_level *l = &session->net.level[session->net.n_level - 1];
    reel_vae_chain *chain = reel_vae_level_chain(l, 2 * l->n_res, &index);
    reel_tensor x = reel_vae_level_x(session, session->net.n_level - 1, frames);
    reel_tensor y = reel_tensor_dense(session->base + session->net.y_offset, REEL_DTYPE_F32, frames, l->h, l->w, session->net.c_last);
    reel_region region;
    REEL_TRY(reel_vae_chain_reserve(session, chain, index, frames, err));
    reel_tensor current = reel_vae_chain_current(session, chain, index, frames);
    reel_vae_window window = reel_vae_chain_window(session, chain, index, frames);
    REEL_TRY(reel_weights_acquire(weights, region_index, &region, err));
    reel_status status = reel_vae_norm(session, &x, &region.vector[ENDS_NORM], REEL_ACTIVATION_SILU, &current, err);
    if (status == REEL_OK) status = reel_vae_causal_conv(session, &window, &region, ENDS_OUT_W, NULL, &y, err);
    reel_weights_release(weights, region_index);
    REEL_TRY(status);
    reel_vae_chain_advance(chain, index, frames);
    REEL_TRY(session->sink(session->user, &y, session->n_frame, 0, err));
    session->n_frame += frames;
    return REEL_OK;
}

/* x [frames] → x [2·frames]: the time convolution gives 2·C channels, the first C are the even frames, the others the odd ones. */
static reel_status double_frames(reel_vae_session *session, int32_t level, int32_t frames, const reel_region *region, reel_error *err)
{
    const reel_ops *ops = session->vae->ops;
    reel_vae_level *l = &session->net.level[level];
    int32_t index;
    reel_vae_chain *chain = reel_vae_level_chain(l, 2 * l->n_res, &index);
    reel_tensor x = reel_vae_level_x(session, level, frames);
    REEL_TRY(reel_vae_chain_reserve(session, chain, index, frames, err));
    reel_tensor current = reel_vae_chain_current(session, chain, index, frames);
    REEL_TRY(ops->vt->copy(ops->stream, current.data, x.data, reel_tensor_bytes(&x), err));
    reel_vae_window window = reel_vae_chain_window(session, chain, index, frames);
    reel_tensor wide = reel_vae_at(session, session->net.y_offset, frames, l->h, l->w, 2 * l->c);
    REEL_TRY(reel_vae_causal_conv(session, &window, region, RESAMPLE_TIME_W, NULL, &wide, err));
    reel_vae_chain_advance(chain, index, frames);

    int64_t area = l->h * l->w;
    reel_tensor from = reel_tensor_dense(wide.data, wide.dtype, frames, area, 2, l->c);
    reel_tensor to = reel_tensor_dense(x.data, x.dtype, frames, 2, area, l->c);
    int64_t swap = from.stride[1];
    from.extent[1] = 2;
    from.extent[2] = area;
    from.stride[1] = from.stride[2];
    from.stride[2] = swap;
    REEL_TRY(REEL_OP(ops, convert, err, .x = from, .y = to));
    return REEL_OK;
}

/* Frames [begin, begin + frames) of a level's x, each pixel doubled both ways, through a 3×3 convolution into the next level's input. */
static reel_status enlarge(reel_vae_session *session, int32_t level, int32_t begin, int32_t frames, const reel_region *region,
                           reel_error *err)
{
    reel_tensor all = reel_vae_level_x(session, level, begin + frames);
    reel_tensor x = reel_tensor_slice(all, 0, begin, begin + frames);
    reel_tensor y = reel_vae_level_input(session, level + 1, frames);
    reel_tensor bias = reel_tensor_dense(region->vector[RESAMPLE_B].data, REEL_DTYPE_F32, session->net.level[level].c_next, 0, 0, 0);
    REEL_TRY(REEL_OP(session->vae->ops, conv3d, err, .x = x, .w = region->weight[RESAMPLE_W], .bias = bias, .y = y, .pad = {1, 1, 1, 1},
                     .stride = {1, 1, 1}, .upsample2 = 1));
    return REEL_OK;
}

static reel_status run_from(reel_vae_session *session, int32_t level, int32_t frames, reel_error *err)
{
    reel_weights *weights = session->vae->weights;
    const reel_vae_level *l = &session->net.level[level];
    REEL_TRY(reel_vae_run_level(session, level, frames, err));
    if (level == session->net.n_level - 1) {
        REEL_TRY(finish(session, frames, err));
        return REEL_OK;
    }
    int32_t region_index = session->half->region_resample[level];
    reel_region region;
    if (l->resample == REEL_VAE_UP_3D && session->n_pushed > 0) {
        REEL_TRY(reel_weights_acquire(weights, region_index, &region, err));
        reel_status status = double_frames(session, level, frames, &region, err);
        reel_weights_release(weights, region_index);
        REEL_TRY(status);
        frames *= 2;
    }
    int32_t step = session->net.level[level + 1].frames;
    for (int32_t begin = 0; begin < frames; begin += step) {
        int32_t n = frames - begin < step ? frames - begin : step;
        REEL_TRY(reel_weights_acquire(weights, region_index, &region, err));
        reel_status status = enlarge(session, level, begin, n, &region, err);
        reel_weights_release(weights, region_index);
        REEL_TRY(status);
        REEL_TRY(run_from(session, level + 1, n, err));
    }
    return REEL_OK;
}

/* The latent frame, rounded to the compute dtype after denormalisation z / (1/std) + mean, through post_quant_conv and conv_in. */
static reel_status start(reel_vae_session *session, const reel_tensor *latent, bool is_raw, const reel_region *region, reel_error *err)
{
    const reel_vae *vae = session->vae;
    reel_vae_chain *chain = &session->net.first;
    reel_tensor z = reel_vae_at(session, session->net.y_offset, 1, chain->h, chain->w, chain->c);
    reel_tensor from = {.data = latent->data,
                        .dtype = latent->dtype,
                        .n_dim = 3,
                        .extent = {latent->extent[1], latent->extent[2], latent->extent[0]},
                        .stride = {latent->stride[1], latent->stride[2], latent->stride[0]}};
    reel_tensor to = reel_tensor_dense(z.data, z.dtype, chain->h, chain->w, chain->c, 0);
    if (is_raw)
        REEL_TRY(REEL_OP(vae->ops, convert, err, .x = from, .y = to));
    else
        REEL_TRY(REEL_OP(vae->ops, affine_channels, err, .x = from, .div = vae->scale, .add = vae->mean, .y = to, .channel_dim = 2));
    REEL_TRY(reel_vae_chain_reserve(session, chain, 0, 1, err));
    reel_tensor current = reel_vae_chain_current(session, chain, 0, 1);
    REEL_TRY(reel_vae_pointwise(session, &z, region, ENDS_QUANT_W, &current, err));
    reel_vae_window window = reel_vae_chain_window(session, chain, 0, 1);
    reel_tensor y = reel_vae_level_input(session, 0, 1);
    REEL_TRY(reel_vae_causal_conv(session, &window, region, ENDS_IN_W, NULL, &y, err));
    reel_vae_chain_advance(chain, 0, 1);
    return REEL_OK;
}

static reel_status push(reel_vae_session *session, const reel_tensor *latent, bool is_raw, reel_error *err)
{
    const reel_vae_net *net = &session->net;
    reel_weights *weights = session->vae->weights;
    reel_region region;
    bool is_good = !net->is_encoder && !session->is_failed && latent->n_dim == 3 && latent->dtype == REEL_DTYPE_F32 &&
                   latent->extent[0] == net->z && latent->extent[1] == net->first.h && latent->extent[2] == net->first.w;
    if (!is_good)
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "this latent frame does not fit the decoding session\ngiven: %s, %d dimensions [%lld, %lld, %lld]%s\n"
            "allowed: F32 [%d, %lld, %lld] on a decoding session that has not failed\nremedy: begin a session of the latents' size",
            reel_dtype_name(latent->dtype), (int)latent->n_dim, (long long)latent->extent[0], (long long)latent->extent[1],
            (long long)latent->extent[2], session->is_failed ? ", after a failed push" : "", (int)net->z, (long long)net->first.h,
            (long long)net->first.w);
    session->is_failed = true;
    REEL_TRY(reel_weights_acquire(weights, session->half->region_ends, &region, err));
    reel_status status = start(session, latent, is_raw, &region, err);
    reel_weights_release(weights, session->half->region_ends);
    REEL_TRY(status);
    REEL_TRY(run_from(session, 0, 1, err));
    session->n_pushed++;
    session->is_failed = false;
    return REEL_OK;
}

reel_status reel_vae_decode_push(reel_vae_session *session, const reel_tensor *latent, reel_error *err)
{
    return push(session, latent, false, err);
}

reel_status reel_vae_decode_push_raw(reel_vae_session *session, const reel_tensor *latent, reel_error *err)
{
    return push(session, latent, true, err);
}
