/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampling: noise, schedules and solvers as data. Pure host code; the loop that runs it is in pipeline/.
 *
 * A solver turns (name, steps, shift) into a reel_schedule: timesteps, sigmas, and for every step a short list of linear combinations over
 * named slots (latents, velocity, x0 estimates, last sample). Any device can run them with the `combine` operation, and the state that
 * lives across steps is exactly the slots. */
#ifndef REEL_SAMPLE_SAMPLE_H
#define REEL_SAMPLE_SAMPLE_H

#include <stdint.h>

#include "base/check.h"

typedef enum reel_scheduler {
    REEL_SCHEDULER_UNIPC = 0, /* UniPCMultistepScheduler, bh2, order 2, flow sigmas */
    REEL_SCHEDULER_EULER = 1, /* FlowMatchEulerDiscreteScheduler */
    REEL_SCHEDULER_DPMPP = 2, /* DPMSolverMultistepScheduler, use_flow_sigmas, dpmsolver++ 2M midpoint */
    REEL_SCHEDULER_COUNT = 3
} reel_scheduler;

/* Slots of the solver. X: latents. V: guided velocity of this step (input). The rest is state. */
typedef enum reel_slot {
    REEL_SLOT_X = 0,
    REEL_SLOT_V,
    REEL_SLOT_M0,
    REEL_SLOT_M1,
    REEL_SLOT_M2,
    REEL_SLOT_X_LAST,
    REEL_SLOT_COUNT
} reel_slot;

enum { REEL_STEP_MAX = 1000, REEL_SOLVER_OP_MAX = 4, REEL_SOLVER_TERM_MAX = 6 };

/* dst = Σ coef·slot, in this order, f32. dst may be among the terms. */
typedef struct reel_solver_op {
    reel_slot dst;
    int32_t n_term;
    reel_slot slot[REEL_SOLVER_TERM_MAX];
    float coef[REEL_SOLVER_TERM_MAX];
} reel_solver_op;

typedef struct reel_solver_step {
    float timestep; /* as the transformer gets it: UniPC and DPM++ whole numbers, Euler fractions */
    float sigma;
    int32_t n_op;
    reel_solver_op op[REEL_SOLVER_OP_MAX]; /* after V is known; leaves the next latents in X */
} reel_solver_step;

typedef struct reel_schedule {
    reel_scheduler scheduler;
    int32_t n_step;
    float sigma_last; /* 0 */
    uint32_t slots; /* bit per slot in use */
    reel_solver_step *step; /* n_step entries; freed by reel_schedule_deinit */
} reel_schedule;

/* n_step in [1, REEL_STEP_MAX], flow_shift > 0 finite; solver_order 1 or 2 (UniPC, DPM++). Error REEL_E_ARGUMENT. */
reel_status reel_schedule_init(reel_schedule *out, reel_scheduler scheduler, int32_t n_step, double flow_shift, int32_t solver_order,
                               reel_error *err);
void reel_schedule_deinit(reel_schedule *schedule);

/* The scheduler of a name: ours ("unipc", "euler", "dpm++"), diffusers' class names, ComfyUI's and stable-diffusion.cpp's sampler names.
 * An unknown name is an error that lists ours and suggests the nearest. */
reel_status reel_scheduler_from_name(const char *name, reel_scheduler *out, reel_error *err);
const char *reel_scheduler_name(reel_scheduler scheduler);

/* out[0..n) = torch.randn(n) of a CPU generator seeded with `seed`, bit for bit (f32; x86-64 with AVX2 builds of PyTorch). n ≥ 1. */
void reel_noise_fill(uint64_t seed, float *out, int64_t n);

/* Which expert does step i: 0 transformer, 1 transformer_2. boundary_ratio NaN: always 0. t ≥ boundary·1000 → 0. */
int32_t reel_expert_of(double boundary_ratio, float timestep, int32_t n_train_timesteps);

#endif
