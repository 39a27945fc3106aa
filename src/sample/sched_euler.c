/* SPDX-License-Identifier: Apache-2.0
 *
 * Flow-match Euler as diffusers' FlowMatchEulerDiscreteScheduler does it: x += (σ_next − σ)·v.
 *
 * Its grid is evenly spaced between the largest and the smallest level of a training table that is already shifted, and is shifted once
 * more; timesteps are 1000·σ with their fractions. */
#include "sample/sched.h"

enum { TRAIN_STEPS = 1000 };

/* One entry of the training table, in float as the reference keeps it. The operations are rounded one by one. */
static double table_sigma(double flow_shift, float timestep)
{
    float s = (float)flow_shift, s1 = (float)(flow_shift - 1.0), sigma = timestep / (float)TRAIN_STEPS;
    float top = s * sigma, low = s1 * sigma;
    low = 1.0F + low;
    return (double)(top / low);
}

static void grid(reel_schedule *schedule, double flow_shift)
{
    int32_t n = schedule->n_step;
    double first = table_sigma(flow_shift, (float)TRAIN_STEPS) * TRAIN_STEPS, last = table_sigma(flow_shift, 1.0F) * TRAIN_STEPS;
    double stride = n > 1 ? (last - first) / (double)(n - 1) : 0.0;
    for (int32_t i = 0; i < n; i++) {
        double t = i > 0 && i == n - 1 ? last : (double)i * stride + first;
        float sigma = (float)reel_sched_shift(flow_shift, t / TRAIN_STEPS);
        schedule->step[i].sigma = sigma;
        schedule->step[i].timestep = sigma * (float)TRAIN_STEPS;
    }
}

static void steps(reel_schedule *schedule, int32_t order)
{
    (void)order; /* Euler has one order only */
    for (int32_t i = 0; i < schedule->n_step; i++) {
        float here = schedule->step[i].sigma, next = i + 1 < schedule->n_step ? schedule->step[i + 1].sigma : schedule->sigma_last;
        reel_solver_op *op = reel_sched_op(&schedule->step[i], REEL_SLOT_X);
        reel_sched_term(op, REEL_SLOT_X, 1.0);
        reel_sched_term(op, REEL_SLOT_V, (double)(next - here)); /* the reference subtracts in float */
    }
}

const reel_sched reel_sched_euler = {.name = "euler", .sigma_end = 1.0001, .grid = grid, .steps = steps};
