/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows of convolution inputs that wander through one buffer (net.h: reel_vae_chain). */
#include "vae/session.h"

static char *slot_at(const reel_vae_session *session, const reel_vae_chain *chain, int64_t slot)
{
    return session->base + chain->offset + (size_t)slot * chain->frame_bytes;
}

/* Moves every history back to its first place. Lowest first and frame by frame: a target never covers a frame that is still to be moved. */
static reel_status move_back(reel_vae_session *session, reel_vae_chain *chain, reel_error *err)
{
    const reel_ops *ops = session->vae->ops;
    for (int32_t i = chain->n_conv - 1; i >= 0; i--) {
        int32_t home = chain->n_history * (chain->n_conv - 1 - i);
        for (int32_t f = chain->n_history - chain->seen[i]; f < chain->n_history && chain->slot[i] != home; f++)
            REEL_TRY(ops->vt->copy(ops->stream, slot_at(session, chain, home + f), slot_at(session, chain, chain->slot[i] + f),
                                   chain->frame_bytes, err));
        chain->slot[i] = home;
    }
    return REEL_OK;
}

reel_status reel_vae_chain_reserve(reel_vae_session *session, reel_vae_chain *chain, int32_t index, int32_t frames, reel_error *err)
{
    int32_t need = chain->n_history + frames;
    if (index == 0 && chain->slot[0] + need > chain->n_slot) REEL_TRY(move_back(session, chain, err));
    assert(chain->slot[index] + need <= (index == 0 ? chain->n_slot : chain->slot[index - 1]));
    return REEL_OK;
}

static reel_tensor frames_at(const reel_vae_session *session, const reel_vae_chain *chain, int64_t slot, int64_t frames)
{
    return reel_tensor_dense(slot_at(session, chain, slot), session->net.compute, frames, chain->h, chain->w, chain->c);
}

reel_tensor reel_vae_chain_current(const reel_vae_session *session, const reel_vae_chain *chain, int32_t index, int32_t frames)
{
    return frames_at(session, chain, chain->slot[index] + chain->n_history, frames);
}

reel_vae_window reel_vae_chain_window(const reel_vae_session *session, const reel_vae_chain *chain, int32_t index, int32_t frames)
{
    int32_t seen = chain->seen[index], missing = chain->n_history - seen;
    return (reel_vae_window){
        .x = frames_at(session, chain, chain->slot[index] + missing, seen + frames), .n_history = seen, .pad_front = missing};
}

void reel_vae_chain_advance(reel_vae_chain *chain, int32_t index, int32_t frames)
{
    chain->slot[index] += frames;
    chain->seen[index] += frames;
    if (chain->seen[index] > chain->n_history) chain->seen[index] = chain->n_history;
}

reel_tensor reel_vae_chain_history(const reel_vae_session *session, const reel_vae_chain *chain, int32_t index)
{
    int32_t seen = chain->seen[index];
    if (seen == 0) return (reel_tensor){.data = NULL};
    return frames_at(session, chain, chain->slot[index] + chain->n_history - seen, seen);
}
