/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the buffers of a session lie, and so how many bytes it takes (net.h, vae.h). Pure: no device, no weights.
 *
 * What counts: at full resolution the histories of the Wan2.1 decoder are 14 frames of 96 channels (2 for each of 7 convolutions); they
 * are inherent, and all else is kept small beside them: one frame of x, one of y, and REEL_VAE_SLACK free slots. More slots mean
 * fewer moves of histories: a move of all of them every slots / frames passes. */
#include "vae/net.h"

/* Free slots of a chain, in passes. Moving the histories of a 96-channel level costs about 7 % of its convolutions' time when it happens
 * every pass, half of that with two. */
enum { VAE_SLACK_PASSES = 2 };

typedef struct layout_walk {
    reel_vae_net *net;
    size_t used;
} layout_walk;

size_t reel_vae_net_need(const reel_vae_net *net, reel_dtype dtype, int64_t n_element)
{
    return reel_arena_need(net->alignment, dtype, n_element);
}

static size_t take(layout_walk *walk, reel_dtype dtype, int64_t n_element)
{
    size_t offset = walk->used;
    walk->used += reel_vae_net_need(walk->net, dtype, n_element);
    return offset;
}

static void place_chain(layout_walk *walk, reel_vae_chain *chain, int32_t n_conv, int32_t n_history, int32_t n_free)
{
    int64_t n = chain->h * chain->w * chain->c;
    chain->n_conv = n_conv;
    chain->n_history = n_history;
    chain->n_slot = n_conv * n_history + n_free;
    chain->frame_bytes = (size_t)n * reel_dtype_bytes(walk->net->compute);
    chain->offset = take(walk, walk->net->compute, n * chain->n_slot);
    for (int32_t i = 0; i < n_conv; i++) {
        chain->slot[i] = n_history * (n_conv - 1 - i);
        chain->seen[i] = 0;
    }
}

static void place_level_chains(layout_walk *walk, reel_vae_level *level, bool is_last)
{
    bool has_entry = level->c_in != level->c;
    bool has_tail = is_last || level->resample == REEL_VAE_UP_3D;
    int32_t n_free = VAE_SLACK_PASSES * level->frames;
    level->entry = (reel_vae_chain){.h = level->h, .w = level->w, .c = level->c_in};
    level->body = (reel_vae_chain){.h = level->h, .w = level->w, .c = level->c};
    level->time = (reel_vae_chain){.h = level->h / 2, .w = level->w / 2, .c = level->c};
    if (has_entry) place_chain(walk, &level->entry, 1, REEL_VAE_HISTORY, n_free);
    place_chain(walk, &level->body, 2 * level->n_res - (has_entry ? 1 : 0) + (has_tail ? 1 : 0), REEL_VAE_HISTORY, n_free);
    if (level->resample == REEL_VAE_DOWN_3D) place_chain(walk, &level->time, 1, 1, 2);
}

/* Frames of x: what passes at once, or what the level hands on. */
static int64_t x_elements(const reel_vae_level *level)
{
    return (level->resample == REEL_VAE_UP_3D ? 2 : 1) * level->frames * level->h * level->w * level->c;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The most that level i puts into y at one time, short-lived x not counted. */
static size_t y_need(const reel_vae_net *net, int32_t i)
{
    const reel_vae_level *level = &net->level[i];
    int64_t area = level->h * level->w, pass = level->frames * area;
    size_t need = reel_vae_net_need(net, net->compute, pass * level->c);
    if (level->c_in != level->c) need = larger(need, reel_vae_net_need(net, net->compute, pass * level->c_in));
    if (level->attention_after >= 0)
        need =
            larger(need, reel_vae_net_need(net, net->compute, pass * level->c) + reel_vae_net_need(net, net->compute, pass * 3 * level->c));
    if (level->resample == REEL_VAE_UP_3D) need = larger(need, reel_vae_net_need(net, net->compute, pass * 2 * level->c));
    bool is_last = i == net->n_level - 1;
    if (is_last && !net->is_encoder) need = larger(need, reel_vae_net_need(net, REEL_DTYPE_F32, pass * net->c_last));
    if (is_last && net->is_encoder)
        need = larger(need, reel_vae_net_need(net, net->compute, area * net->c_last) +
                                2 * reel_vae_net_need(net, REEL_DTYPE_F32, area * net->c_last));
    if (i == 0 && !net->is_encoder) need = larger(need, reel_vae_net_need(net, net->compute, area * net->c_first));
    return need;
}

/* x of a level that hands its frames on at once shares y's region, unless the level before does so: the two meet in the resampling. */
static void place_x(layout_walk *walk)
{
    reel_vae_net *net = walk->net;
    size_t y_bytes = 0;
    for (int32_t i = 0; i < net->n_level; i++) {
        reel_vae_level *level = &net->level[i];
        bool is_kept = level->resample == REEL_VAE_UP_3D || level->resample == REEL_VAE_RESAMPLE_NONE;
        level->is_x_short_lived = !is_kept && (i == 0 || !net->level[i - 1].is_x_short_lived);
        if (!level->is_x_short_lived) level->x_offset = take(walk, net->compute, x_elements(level));
    }
    for (int32_t i = 0; i < net->n_level; i++) {
        const reel_vae_level *level = &net->level[i];
        size_t x = level->is_x_short_lived ? reel_vae_net_need(net, net->compute, x_elements(level)) : 0;
        size_t before = 0;
        if (i > 0 && net->level[i - 1].is_x_short_lived) before = reel_vae_net_need(net, net->compute, x_elements(&net->level[i - 1]));
        y_bytes = larger(y_bytes, y_need(net, i) + x);
        if (level->c_in != level->c)
            y_bytes = larger(y_bytes, before + reel_vae_net_need(net, net->compute, level->frames * level->h * level->w * level->c_in));
        y_bytes = larger(y_bytes, before);
    }
    net->y_bytes = y_bytes;
    net->y_offset = walk->used;
    walk->used += y_bytes;
    for (int32_t i = 0; i < net->n_level; i++) {
        reel_vae_level *level = &net->level[i];
        if (level->is_x_short_lived) level->x_offset = net->y_offset + y_bytes - reel_vae_net_need(net, net->compute, x_elements(level));
    }
}

void reel_vae_net_layout(reel_vae_net *net, reel_dtype compute, int32_t chunk_frames, int64_t h, int64_t w, size_t alignment)
{
    layout_walk walk = {.net = net};
    int32_t available = 1;
    net->compute = compute;
    net->alignment = alignment > 0 ? alignment : 1;
    net->first = (reel_vae_chain){.h = h, .w = w, .c = net->c_first};
    place_chain(&walk, &net->first, 1, REEL_VAE_HISTORY, VAE_SLACK_PASSES);
    for (int32_t i = 0; i < net->n_level; i++) {
        reel_vae_level *level = &net->level[i];
        level->h = h;
        level->w = w;
        level->frames = net->is_encoder ? REEL_VAE_ENCODE_FRAMES : available < chunk_frames ? available : chunk_frames;
        place_level_chains(&walk, level, i == net->n_level - 1);
        if (level->resample == REEL_VAE_UP_3D) available *= 2;
        h = net->is_encoder ? h / 2 : h * 2;
        w = net->is_encoder ? w / 2 : w * 2;
    }
    place_x(&walk);
    net->bytes = walk.used;
}

size_t reel_vae_decode_bytes(const reel_vae_config *config, reel_dtype compute, int32_t chunk_frames, int64_t lat_h, int64_t lat_w,
                             size_t alignment)
{
    reel_vae_net net;
    if (reel_vae_net_init(config, false, &net, NULL) != REEL_OK || !reel_vae_net_fits(&net, lat_h, lat_w)) return 0;
    reel_vae_net_layout(&net, compute, chunk_frames, lat_h, lat_w, alignment);
    return net.bytes;
}

size_t reel_vae_encode_bytes(const reel_vae_config *config, reel_dtype compute, int64_t px_h, int64_t px_w, size_t alignment)
{
    reel_vae_net net;
    if (reel_vae_net_init(config, true, &net, NULL) != REEL_OK || !reel_vae_net_fits(&net, px_h, px_w)) return 0;
    reel_vae_net_layout(&net, compute, REEL_VAE_ENCODE_FRAMES, px_h, px_w, alignment);
    return net.bytes;
}
