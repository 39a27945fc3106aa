/* SPDX-License-Identifier: Apache-2.0
 *
 * Last step of planning: bytes by phase, what is kept from phase to phase, whether it fits, and what would if it does not.
 *
 * Mapped files are not counted in a phase's total: their pages belong to the page cache and the system may drop them at any time. `peak` is
 * what the process needs beyond them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/plan.h"

/* FLOP per second and thread for the time estimate, about three quarters of what a server processor of 2024 was measured at (bf16 420, f32 225 in
 * the transformer with AVX512-BF16); processors with narrower units are slower in proportion. */
static double rate_of(const reel_plan *p, reel_dtype dtype)
{
    const double f32 = strstr(p->isa, "avx512") || strstr(p->isa, "amx") ? 150e9 : strstr(p->isa, "avx2") ? 45e9 : 2e9;
    const bool has_bf16 = strstr(p->isa, "bf16") || strstr(p->isa, "amx");
    return dtype == REEL_DTYPE_BF16 && has_bf16 ? 2.0 * f32 : f32;
}

static void add_phase(reel_plan *p, const char *name, uint64_t weights, uint64_t arena, uint64_t other, double flop, reel_dtype dtype)
{
    reel_plan_phase *f = &p->phase[p->n_phase++];
    *f = (reel_plan_phase){.weights_bytes = weights, .arena_bytes = arena, .other_bytes = other, .total_bytes = weights + arena + other};
    (void)snprintf(f->name, sizeof f->name, "%s", name);
    f->estimate_s = flop / (rate_of(p, dtype) * (p->n_thread > 0 ? p->n_thread : 1));
    if (f->total_bytes > p->peak_bytes) p->peak_bytes = f->total_bytes;
}

static uint64_t dit_copies(const reel_plan_bytes *b)
{
    return b->copied[REEL_COMPONENT_TRANSFORMER] + b->copied[REEL_COMPONENT_TRANSFORMER_2];
}

static void fill_phases(reel_plan *p, const reel_model *m, const reel_plan_bytes *b)
{
    const uint64_t base = b->process + b->device_scratch, vae = b->copied[REEL_COMPONENT_VAE];
    const bool keep = p->residency == REEL_RESIDENCY_KEEP;
    const double forwards = (double)p->n_step * (p->is_guided ? 2.0 : 1.0), clips = (double)p->n_prompt * p->n_clip;
    p->n_phase = 0;
    p->peak_bytes = 0;
    add_phase(p, "text", b->copied[REEL_COMPONENT_TEXT_ENCODER], b->text_arena, base,
              reel_plan_text_flop(&m->text, p->max_token) * p->n_prompt, p->text_compute);
    add_phase(p, "denoise", dit_copies(b) + (keep ? vae : 0), b->context_arena + b->dit_arena + b->latents_arena, base,
              clips * forwards * reel_plan_dit_flop(&m->dit[0], p->n_token, p->max_token), p->dit_compute);
    add_phase(p, "decode", vae + (keep ? dit_copies(b) : 0), b->latents_arena + b->decode_arena + (keep ? b->context_arena : 0),
              base + b->encoder, clips * reel_plan_decode_flop(&m->vae, p->lat_t, p->lat_h, p->lat_w), p->vae_compute);
}

static double gib(uint64_t bytes)
{
    return (double)bytes / (double)((uint64_t)1 << 30);
}

/* Fewer frames of the same size that would fit while denoising, by scaling what grows with tokens; 0 when none do. */
static int64_t frames_that_fit(const reel_plan *p, const reel_plan_bytes *b, uint64_t available)
{
    uint64_t fixed = b->process + b->device_scratch + dit_copies(b) + b->context_arena;
    if (fixed >= available || p->lat_t < 2) return 0;
    double part = (double)(available - fixed) / (double)(b->dit_arena + b->latents_arena);
    int64_t lat_t = (int64_t)floor((double)p->lat_t * part);
    if (lat_t < 1 || lat_t >= p->lat_t) return 0;
    return (lat_t - 1) * ((p->n_frame - 1) / (p->lat_t - 1)) + 1;
}

/* A size of the same shape that would fit in every phase, by scaling what grows with the area; 0 when none does. A twentieth is left as margin,
 * since parts of the arenas do not shrink. */
static int64_t size_that_fits(const reel_plan *p, const reel_model *m, const reel_plan_bytes *b, uint64_t available, int64_t *height)
{
    const int64_t multiple = reel_model_size_multiple(m);
    double part = 1.0;
    for (int32_t i = 0; i < p->n_phase; i++) {
        const reel_plan_phase *f = &p->phase[i];
        const uint64_t fixed = f->weights_bytes + b->process + b->device_scratch, grows = f->total_bytes - fixed;
        if (strcmp(f->name, "text") == 0 || f->total_bytes <= available) continue;
        if (fixed >= available) return 0;
        part = fmin(part, 0.95 * (double)(available - fixed) / (double)grows);
    }
    const int64_t w = (int64_t)((double)p->px_w * sqrt(part)) / multiple * multiple;
    *height = (int64_t)((double)p->px_h * sqrt(part)) / multiple * multiple;
    return w > 0 && *height > 0 && part < 1.0 ? w : 0;
}

static reel_status refuse(const reel_plan *p, const reel_model *m, const reel_plan_bytes *b, uint64_t available, reel_error *err)
{
    const reel_plan_phase *worst = &p->phase[0];
    for (int32_t i = 1; i < p->n_phase; i++) {
        if (p->phase[i].total_bytes > worst->total_bytes) worst = &p->phase[i];
    }
    char remedy[400] = "";
    size_t n = 0;
    uint64_t saved = p->is_packed ? worst->weights_bytes : 0;
    if (saved > 0 && worst->total_bytes - saved <= available) {
        n += (size_t)snprintf(remedy + n, sizeof remedy - n, "--weights mapped needs at least %.2f GiB; ", gib(worst->total_bytes - saved));
    }
    int64_t frames = strcmp(worst->name, "denoise") == 0 ? frames_that_fit(p, b, available) : 0;
    if (frames > 0) n += (size_t)snprintf(remedy + n, sizeof remedy - n, "--frames %lld fits; ", (long long)frames);
    int64_t h = 0, w = size_that_fits(p, m, b, available, &h);
    if (w > 0) n += (size_t)snprintf(remedy + n, sizeof remedy - n, "--size %lldx%lld should fit; ", (long long)w, (long long)h);
    (void)snprintf(remedy + n, sizeof remedy - n, "%sa smaller --size, or a machine with more memory", n > 0 ? "or " : "choose ");
    return REEL_FAIL(err, REEL_E_MEMORY,
                     "not enough memory for this clip\ngiven: %lldx%lld, %lld frames need %.2f GiB in the phase \"%s\"\nallowed: %.2f GiB "
                     "are free\nremedy: %s",
                     (long long)p->px_w, (long long)p->px_h, (long long)p->n_frame, gib(worst->total_bytes), worst->name, gib(available),
                     remedy);
}

static uint64_t mix(uint64_t h, const void *data, size_t n)
{
    const unsigned char *c = data;
    for (size_t i = 0; i < n; i++) h = (h ^ c[i]) * 1099511628211ULL; /* FNV-1a */
    return h;
}

uint64_t reel_plan_hash(const reel_plan *p)
{
    const int64_t whole[] = {p->version,      p->px_w,        p->px_h,      p->n_frame,         p->lat_t,     p->lat_h,
                             p->lat_w,        p->max_token,   p->n_step,    p->solver_order,    p->is_guided, p->dit_compute,
                             p->text_compute, p->vae_compute, p->is_packed, p->encoder_threads, p->n_rank,    p->n_exchange};
    const double real[] = {p->fps, p->flow_shift, isnan(p->boundary_ratio) ? -1.0 : p->boundary_ratio, p->guidance[0], p->guidance[1]};
    uint64_t h = mix(mix(14695981039346656037ULL, whole, sizeof whole), real, sizeof real);
    h = mix(h, p->scheduler, strlen(p->scheduler) + 1);
    h = mix(h, p->device, strlen(p->device) + 1);
    h = mix(h, p->cache, strlen(p->cache) + 1);
    for (int32_t u = 0; u < REEL_USE_COUNT; u++) h = mix(h, p->attention[u], strlen(p->attention[u]) + 1);
    return h;
}

reel_status reel_plan_fit(reel_plan *plan, const reel_model *model, const reel_plan_bytes *bytes, uint64_t available, reel_error *err)
{
    plan->available_bytes = available;
    plan->stored_bytes = 0;
    for (int32_t i = 0; i < REEL_COMPONENT_COUNT; i++) plan->stored_bytes += bytes->stored[i];
    const bool is_single = (int64_t)plan->n_prompt * plan->n_clip <= 1;
    plan->residency = is_single ? REEL_RESIDENCY_SEQUENCE : REEL_RESIDENCY_KEEP;
    fill_phases(plan, model, bytes);
    if (plan->peak_bytes > available && !is_single) {
        plan->residency = REEL_RESIDENCY_SEQUENCE;
        fill_phases(plan, model, bytes);
        if (plan->peak_bytes <= available) reel_plan_note(plan, "memory is short: all clips are denoised before the first is decoded");
    }
    plan->hash = reel_plan_hash(plan);
    if (plan->peak_bytes > available) return refuse(plan, model, bytes, available, err);
    return REEL_OK;
}
