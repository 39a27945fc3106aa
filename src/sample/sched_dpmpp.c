/* SPDX-License-Identifier: Apache-2.0
 *
 * DPM-Solver++ 2M as diffusers' DPMSolverMultistepScheduler does it with use_flow_sigmas: data prediction, midpoint.
 *
 * m = x − σ·v estimates the clean latents. A step goes on from x and m; the second order adds the slope between the last two estimates, which
 * alternate between two slots. The first step is of order 1, and the last too: it ends at σ = 0, where the result is m itself. */
#include <math.h>

#include "sample/sched.h"

static void grid(reel_schedule *schedule, double flow_shift)
{
    int32_t n = schedule->n_step;
    double stride = (1.0 / 1000.0 - 1.0) / (double)n;
    for (int32_t i = 0; i < n; i++) {
        double alpha = i == 0 ? 1.0 / 1000.0 : (double)(n - i) * stride + 1.0; /* the end of an even spacing is set, not computed */
        double sigma = reel_sched_shift(flow_shift, 1.0 - alpha);
        schedule->step[i].sigma = (float)sigma;
        schedule->step[i].timestep = (float)trunc(sigma * 1000.0);
    }
}

static void steps(reel_schedule *schedule, int32_t order)
{
    int32_t n = schedule->n_step;
    for (int32_t i = 0; i < n; i++) {
        reel_solver_step *step = &schedule->step[i];
        reel_slot m0 = i % 2 == 0 ? REEL_SLOT_M0 : REEL_SLOT_M1, m1 = i % 2 == 0 ? REEL_SLOT_M1 : REEL_SLOT_M0;
        reel_solver_op *op = reel_sched_op(step, m0);
        reel_sched_term(op, REEL_SLOT_X, 1.0);
        reel_sched_term(op, REEL_SLOT_V, -reel_sched_sigma(schedule, i));
        op = reel_sched_op(step, REEL_SLOT_X);
        if (i == n - 1) {
            reel_sched_term(op, m0, 1.0);
            continue;
        }
        double next = reel_sched_sigma(schedule, i + 1), h = reel_sched_lambda(schedule, i + 1) - reel_sched_lambda(schedule, i);
        double k = (1.0 - next) * expm1(-h), slope = 0.0;
        if (order == 2 && i > 0) slope = 0.5 * k * h / (reel_sched_lambda(schedule, i) - reel_sched_lambda(schedule, i - 1));
        reel_sched_term(op, REEL_SLOT_X, next / reel_sched_sigma(schedule, i));
        reel_sched_term(op, m0, -k - slope);
        reel_sched_term(op, m1, slope);
    }
}

const reel_sched reel_sched_dpmpp = {.name = "dpm++", .sigma_end = 1.0, .grid = grid, .steps = steps};
