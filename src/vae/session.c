/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions: their one block of memory, and the list of what lives in it from one push to the next.
 *
 * The state is the histories of the convolutions and the number of latent frames pushed; all else is scratch. To carry a clip on in
 * another session (resume), copy every tensor of the list and hand over the number. */
#include "vae/session.h"

#include <stdio.h>
#include <stdlib.h>

reel_status reel_vae_session_new(const reel_vae *vae, const reel_vae_half *half, int64_t h, int64_t w, reel_vae_session **out,
                                 reel_error *err)
{
    reel_status status = REEL_OK;
    reel_tensor block;
    if (!half->is_there)
        return REEL_FAIL(err, REEL_E_ARGUMENT, "the autoencoder was opened without its %s\nremedy: ask for both halves when opening it",
                         half == &vae->encoder ? "encoder" : "decoder");
    if (!reel_vae_net_fits(&half->net, h, w))
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "the autoencoder cannot work on pictures of this size\ngiven: %lld rows, %lld columns of %s\n"
                         "allowed: 1 to 131072 pixels a side, at least one latent\nremedy: choose another size",
                         (long long)h, (long long)w, half->net.is_encoder ? "pixels" : "latents");
    reel_vae_session *session = calloc(1, sizeof *session);
    if (!session) return REEL_FAIL(err, REEL_E_MEMORY, "no memory for a session of the autoencoder\nremedy: close other programs");
    session->vae = vae;
    session->half = half;
    session->net = half->net;
    reel_vae_net_layout(&session->net, vae->options.compute, vae->options.chunk_frames, h, w, vae->ops->props.alignment_bytes);
    REEL_TRY_GOTO(reel_arena_init(&session->arena, vae->ops, "autoencoder", session->net.bytes, err), cleanup);
    REEL_TRY_GOTO(reel_arena_take(&session->arena, REEL_DTYPE_U8, (int64_t)session->net.bytes, 0, 0, 0, &block, err), cleanup);
    session->base = block.data;
    *out = session;
    return REEL_OK;
cleanup:
    reel_vae_session_free(&session);
    return status;
}

void reel_vae_session_free(reel_vae_session **session)
{
    if (!*session) return;
    if ((*session)->arena.ops) reel_arena_deinit(&(*session)->arena);
    free(*session);
    *session = NULL;
}

size_t reel_vae_session_bytes(const reel_vae_session *session)
{
    return session->arena.high;
}

reel_tensor reel_vae_at(const reel_vae_session *session, size_t offset, int64_t frames, int64_t h, int64_t w, int64_t c)
{
    return reel_tensor_dense(session->base + offset, session->net.compute, frames, h, w, c);
}

reel_tensor reel_vae_level_x(const reel_vae_session *session, int32_t level, int32_t frames)
{
    const reel_vae_level *l = &session->net.level[level];
    return reel_vae_at(session, l->x_offset, frames, l->h, l->w, l->c);
}

reel_tensor reel_vae_level_input(const reel_vae_session *session, int32_t level, int32_t frames)
{
    const reel_vae_level *l = &session->net.level[level];
    if (l->c_in == l->c) return reel_vae_level_x(session, level, frames);
    return reel_vae_at(session, session->net.y_offset, frames, l->h, l->w, l->c_in);
}

/* ---- state --------------------------------------------------------------------------------------------------------------- */

typedef struct place {
    reel_vae_chain *chain;
    int32_t index;
    int32_t level; /* −1: before all levels */
} place;

/* Convolution number `state` of a session: conv_in, then level by level; name of its module into out. */
static bool find_state(reel_vae_net *net, int32_t state, char out[REEL_VAE_PATH_MAX], place *found)
{
    const char *half = net->is_encoder ? "encoder" : "decoder";
    char path[REEL_VAE_PATH_MAX];
    if (state == 0) {
        (void)snprintf(out, REEL_VAE_PATH_MAX, "%s.conv_in", half);
        *found = (place){.chain = &net->first, .level = -1};
        return true;
    }
    state--;
    for (int32_t i = 0; i < net->n_level; i++) {
        reel_vae_level *l = &net->level[i];
        bool is_last = i == net->n_level - 1;
        int32_t n = 2 * l->n_res + (is_last || l->resample == REEL_VAE_UP_3D || l->resample == REEL_VAE_DOWN_3D ? 1 : 0);
        if (state >= n) {
            state -= n;
            continue;
        }
        *found = (place){.level = i};
        if (state < 2 * l->n_res)
            reel_vae_net_res_path(net, i, state / 2, path);
        else
            reel_vae_net_resample_path(net, i, path);
        if (l->resample == REEL_VAE_DOWN_3D && state == 2 * l->n_res)
            found->chain = &l->time;
        else
            found->chain = reel_vae_level_chain(l, state, &found->index);
        if (state < 2 * l->n_res)
            (void)snprintf(out, REEL_VAE_PATH_MAX, "%.80s.conv%d", path, (int)(state % 2 + 1));
        else if (is_last)
            (void)snprintf(out, REEL_VAE_PATH_MAX, "%s.conv_out", half);
        else
            (void)snprintf(out, REEL_VAE_PATH_MAX, "%.80s.time_conv", path);
        return true;
    }
    return false;
}

int64_t reel_vae_session_pushed(const reel_vae_session *session)
{
    return session->n_pushed;
}

bool reel_vae_session_state(const reel_vae_session *session, int32_t index, char name[REEL_VAE_STATE_NAME_MAX], reel_tensor *out)
{
    place found;
    reel_vae_net *net = (reel_vae_net *)&session->net; /* only read here */
    if (index < 0 || !find_state(net, index, name, &found)) return false;
    *out = reel_vae_chain_history(session, found.chain, found.index);
    return true;
}

/* Frames that a level has had after n pushes. */
static int64_t frames_had(const reel_vae_net *net, int32_t level, int64_t n)
{
    int32_t factor = net->is_encoder ? net->temporal_factor : 1;
    for (int32_t i = 0; i < level; i++) {
        if (net->level[i].resample == REEL_VAE_UP_3D) factor *= 2;
        if (net->level[i].resample == REEL_VAE_DOWN_3D) factor /= 2;
    }
    return n == 0 ? 0 : 1 + (n - 1) * factor;
}

reel_status reel_vae_session_resume(reel_vae_session *session, int64_t n_pushed, reel_error *err)
{
    reel_vae_net *net = &session->net;
    char name[REEL_VAE_PATH_MAX];
    place p;
    if (session->n_pushed != 0 || n_pushed < 0 || session->is_failed)
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "a session can be resumed only before its first frame\ngiven: %lld frames already pushed, %lld to resume at\n"
                         "remedy: begin a new session",
                         (long long)session->n_pushed, (long long)n_pushed);
    for (int32_t i = 0; find_state(net, i, name, &p); i++) {
        const reel_vae_level *l = p.level < 0 ? NULL : &net->level[p.level];
        int64_t had = frames_had(net, p.level < 0 ? 0 : p.level, n_pushed);
        /* upsampling in time begins with the second latent frame */
        if (l && l->resample == REEL_VAE_UP_3D && p.chain == &l->body && p.index == p.chain->n_conv - 1 && had > 0) had--;
        p.chain->seen[p.index] = (int32_t)(had < p.chain->n_history ? had : p.chain->n_history);
    }
    session->n_pushed = n_pushed;
    session->n_frame = frames_had(net, net->n_level - 1, n_pushed);
    return REEL_OK;
}
