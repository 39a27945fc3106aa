/* SPDX-License-Identifier: Apache-2.0
 *
 * The encoder: pixel frames in, one latent frame out, one pixel frame at a time through all levels.
 *
 * Downsampling in time collects two frames behind the last one of the pair before and makes one of the three; the very first frame passes
 * unchanged. So nothing but single frames exists outside the histories. Source: diffusers 0.42 AutoencoderKLWan._encode, WanEncoder3d. */
#include <stdlib.h>

#include "vae/session.h"

/* Where the moments of the current push go. */
typedef struct moments {
    const reel_tensor *mean, *logvar;
} moments;

reel_status reel_vae_encode_begin(reel_vae *vae, int64_t px_h, int64_t px_w, reel_vae_session **out, reel_error *err)
{
    REEL_TRY(reel_vae_session_new(vae, &vae->encoder, px_h, px_w, out, err));
    return REEL_OK;
}

/* The log-variance is clamped to −30…20 on the host: it is small, and only those who sample ask for it. */
static reel_status clamp_logvar(const reel_ops *ops, const reel_tensor *dense, reel_error *err)
{
    reel_status status = REEL_OK;
    int64_t n = reel_tensor_count(dense);
    float *host = malloc((size_t)n * sizeof *host);
    if (!host) return REEL_FAIL(err, REEL_E_MEMORY, "no memory for the log-variance of a latent frame\nremedy: close other programs");
    REEL_TRY_GOTO(reel_ops_download(ops, host, dense, err), cleanup);
    for (int64_t i = 0; i < n; i++) host[i] = host[i] < -30.0F ? -30.0F : host[i] > 20.0F ? 20.0F : host[i];
    REEL_TRY_GOTO(reel_ops_upload(ops, dense, host, err), cleanup);
cleanup:
    free(host);
    return status;
}

/* Channels [begin, begin + z) of [h, w, 2·z] as [z, h, w]. */
static reel_tensor channels_first(const reel_tensor *t, int64_t begin, int64_t z)
{
    reel_tensor all = {.data = t->data,
                       .dtype = t->dtype,
                       .n_dim = 3,
                       .extent = {t->extent[3], t->extent[1], t->extent[2]},
                       .stride = {t->stride[3], t->stride[1], t->stride[2]}};
    return reel_tensor_slice(all, 0, begin, begin + z);
}

/* norm, SiLU, conv_out, quant_conv, and the split into mean and log-variance */
static reel_status finish(reel_vae_session *session, const moments *out, const reel_region *region, reel_error *err)
{
    const reel_ops *ops = session->vae->ops;
    reel_vae_net *net = &session->net;
    reel_vae_level *l = &net->level[net->n_level - 1];
    int32_t index;
    reel_vae_chain *chain = reel_vae_level_chain(l, 2 * l->n_res, &index);
    reel_tensor x = reel_vae_level_x(session, net->n_level - 1, 1);
    REEL_TRY(reel_vae_chain_reserve(session, chain, index, 1, err));
    reel_tensor current = reel_vae_chain_current(session, chain, index, 1);
    reel_vae_window window = reel_vae_chain_window(session, chain, index, 1);
    REEL_TRY(reel_vae_norm(session, &x, &region->vector[ENDS_NORM], REEL_ACTIVATION_SILU, &current, err));

    int64_t n = l->h * l->w * net->c_last;
    size_t second = net->y_offset + reel_vae_net_need(net, net->compute, n), third = second + reel_vae_net_need(net, REEL_DTYPE_F32, n);
    reel_tensor raw = reel_vae_at(session, net->y_offset, 1, l->h, l->w, net->c_last);
    reel_tensor both = reel_tensor_dense(session->base + second, REEL_DTYPE_F32, 1, l->h, l->w, net->c_last);
    REEL_TRY(reel_vae_causal_conv(session, &window, region, ENDS_OUT_W, NULL, &raw, err));
    reel_vae_chain_advance(chain, index, 1);
    REEL_TRY(reel_vae_pointwise(session, &raw, region, ENDS_QUANT_W, &both, err));
    REEL_TRY(REEL_OP(ops, convert, err, .x = channels_first(&both, 0, net->z), .y = *out->mean));
    if (!out->logvar || !out->logvar->data) return REEL_OK;
    reel_tensor dense = reel_tensor_dense(session->base + third, REEL_DTYPE_F32, net->z, l->h, l->w, 0);
    REEL_TRY(REEL_OP(ops, convert, err, .x = channels_first(&both, net->z, net->z), .y = dense));
    REEL_TRY(clamp_logvar(ops, &dense, err));
    REEL_TRY(REEL_OP(ops, convert, err, .x = dense, .y = *out->logvar));
    return REEL_OK;
}

/* Per frame a 3×3 convolution of stride 2, one row of zeros below and one column right. */
static reel_status shrink(const reel_vae_session *session, const reel_tensor *x, const reel_region *region, const reel_tensor *y,
                          reel_error *err)
{
    reel_tensor bias = reel_tensor_dense(region->vector[RESAMPLE_B].data, REEL_DTYPE_F32, y->extent[3], 0, 0, 0);
    REEL_TRY(REEL_OP(session->vae->ops, conv3d, err, .x = *x, .w = region->weight[RESAMPLE_W], .bias = bias, .y = *y, .pad = {0, 1, 0, 1},
                     .stride = {1, 2, 2}));
    return REEL_OK;
}

/* *is_ready: the next level has an input now. n_held counts the frames that wait for their partner. */
static reel_status downsample(reel_vae_session *session, int32_t level, const reel_region *region, bool *is_ready, reel_error *err)
{
    const reel_ops *ops = session->vae->ops;
    reel_vae_level *l = &session->net.level[level];
    reel_vae_chain *chain = &l->time;
    reel_tensor x = reel_vae_level_x(session, level, 1), next = reel_vae_level_input(session, level + 1, 1);
    if (l->resample == REEL_VAE_DOWN_2D) {
        REEL_TRY(shrink(session, &x, region, &next, err));
        *is_ready = true;
        return REEL_OK;
    }
    if (l->n_held == 0) REEL_TRY(reel_vae_chain_reserve(session, chain, 0, 2, err));
    reel_tensor both = reel_vae_chain_current(session, chain, 0, 2);
    reel_tensor current = reel_tensor_slice(both, 0, l->n_held, l->n_held + 1);
    REEL_TRY(shrink(session, &x, region, &current, err));
    if (chain->seen[0] == 0) {
        REEL_TRY(ops->vt->copy(ops->stream, next.data, current.data, chain->frame_bytes, err));
        reel_vae_chain_advance(chain, 0, 1);
        *is_ready = true;
        return REEL_OK;
    }
    l->n_held++;
    *is_ready = l->n_held == 2;
    if (!*is_ready) return REEL_OK;
    reel_vae_window window = reel_vae_chain_window(session, chain, 0, 2);
    reel_tensor bias = reel_tensor_dense(region->vector[RESAMPLE_TIME_B].data, REEL_DTYPE_F32, l->c, 0, 0, 0);
    REEL_TRY(REEL_OP(ops, conv3d, err, .x = window.x, .w = region->weight[RESAMPLE_TIME_W], .bias = bias, .y = next, .n_history = 1,
                     .stride = {2, 1, 1}));
    reel_vae_chain_advance(chain, 0, 2);
    l->n_held = 0;
    return REEL_OK;
}

/* One frame through the levels as far as it goes; *is_done: a latent frame was written. */
static reel_status run_levels(reel_vae_session *session, const moments *out, bool *is_done, reel_error *err)
{
    reel_weights *weights = session->vae->weights;
    const reel_vae_half *half = session->half;
    reel_region region;
    *is_done = false;
    for (int32_t i = 0; i < session->net.n_level; i++) {
        REEL_TRY(reel_vae_run_level(session, i, 1, err));
        bool is_last = i == session->net.n_level - 1, is_ready = true;
        int32_t region_index = is_last ? half->region_ends : half->region_resample[i];
        REEL_TRY(reel_weights_acquire(weights, region_index, &region, err));
        reel_status status = is_last ? finish(session, out, &region, err) : downsample(session, i, &region, &is_ready, err);
        reel_weights_release(weights, region_index);
        REEL_TRY(status);
        if (!is_ready) return REEL_OK;
    }
    *is_done = true;
    return REEL_OK;
}

/* A frame of pixels into conv_in. */
static reel_status start(reel_vae_session *session, const reel_tensor *frame, reel_error *err)
{
    reel_weights *weights = session->vae->weights;
    reel_vae_chain *chain = &session->net.first;
    reel_region region;
    REEL_TRY(reel_vae_chain_reserve(session, chain, 0, 1, err));
    reel_tensor current = reel_vae_chain_current(session, chain, 0, 1), y = reel_vae_level_input(session, 0, 1);
    REEL_TRY(REEL_OP(session->vae->ops, convert, err, .x = *frame, .y = current));
    reel_vae_window window = reel_vae_chain_window(session, chain, 0, 1);
    REEL_TRY(reel_weights_acquire(weights, session->half->region_ends, &region, err));
    reel_status status = reel_vae_causal_conv(session, &window, &region, ENDS_IN_W, NULL, &y, err);
    reel_weights_release(weights, session->half->region_ends);
    REEL_TRY(status);
    reel_vae_chain_advance(chain, 0, 1);
    return REEL_OK;
}

static bool is_moment(const reel_vae_net *net, const reel_tensor *t)
{
    const reel_vae_level *l = &net->level[net->n_level - 1];
    return t->data && t->dtype == REEL_DTYPE_F32 && t->n_dim == 3 && t->extent[0] == net->z && t->extent[1] == l->h && t->extent[2] == l->w;
}

reel_status reel_vae_encode_push(reel_vae_session *session, const reel_tensor *frames, const reel_tensor *mean, const reel_tensor *logvar,
                                 reel_error *err)
{
    const reel_vae_net *net = &session->net;
    const reel_vae_level *last = &net->level[net->n_level - 1];
    int64_t wanted = session->n_pushed == 0 ? 1 : net->temporal_factor;
    bool is_good = net->is_encoder && !session->is_failed && frames->n_dim == 4 && frames->dtype == REEL_DTYPE_F32 &&
                   frames->extent[0] == wanted && frames->extent[1] == net->first.h && frames->extent[2] == net->first.w &&
                   frames->extent[3] == net->c_first && is_moment(net, mean) && (!logvar || !logvar->data || is_moment(net, logvar));
    if (!is_good)
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "these frames or moments do not fit the encoding session\ngiven: frames %s [%lld, %lld, %lld, %lld]%s\n"
            "allowed: frames F32 [%lld, %lld, %lld, %d] and moments F32 [%d, %lld, %lld] on an encoding session that has not failed\n"
            "remedy: begin a session of the frames' size; push 1 frame, then %d at a time",
            reel_dtype_name(frames->dtype), (long long)frames->extent[0], (long long)frames->extent[1], (long long)frames->extent[2],
            (long long)frames->extent[3], session->is_failed ? ", after a failed push" : "", (long long)wanted, (long long)net->first.h,
            (long long)net->first.w, (int)net->c_first, (int)net->z, (long long)last->h, (long long)last->w, (int)net->temporal_factor);
    session->is_failed = true;
    const moments out = {.mean = mean, .logvar = logvar};
    bool is_done = false;
    for (int64_t i = 0; i < wanted; i++) {
        reel_tensor frame = reel_tensor_slice(*frames, 0, i, i + 1);
        assert(!is_done);
        REEL_TRY(start(session, &frame, err));
        REEL_TRY(run_levels(session, &out, &is_done, err));
    }
    assert(is_done);
    session->n_pushed++;
    session->is_failed = false;
    return REEL_OK;
}
