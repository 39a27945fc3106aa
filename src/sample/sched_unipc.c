/* SPDX-License-Identifier: Apache-2.0
 *
 * UniPC as diffusers' UniPCMultistepScheduler does it for Wan: flow sigmas, B(h) = e^h − 1 ("bh2"), data prediction, order 1 or 2.
 *
 * m = x − σ·v estimates the clean latents at the predicted x. The corrector then replaces x, going again from the sample of the step
 * before with the new estimate at hand, and the predictor goes on to the next level. Three estimates are alive at a time and rotate through
 * three slots; X_LAST keeps the corrected sample. Orders: 1 at the first step (nothing known yet) and at the last (it ends at
 * σ = 0, where the result is m itself and a correction would have no effect). */
#include <math.h>

#include "sample/sched.h"

static void grid(reel_schedule *schedule, double flow_shift)
{
    int32_t n = schedule->n_step;
    double stride = (1.0 / 1000.0 - 1.0) / (double)n;
    for (int32_t i = 0; i < n; i++) {
        double sigma = reel_sched_shift(flow_shift, (double)i * stride + 1.0);
        if (i == 0 && fabs(sigma - 1.0) < 1e-6) sigma -= 1e-6; /* ln(1 − σ) must be finite */
        schedule->step[i].sigma = (float)sigma;
        schedule->step[i].timestep = (float)trunc(sigma * 1000.0);
    }
}

static reel_slot estimate_slot(int32_t i)
{
    static const reel_slot slot[3] = {REEL_SLOT_M0, REEL_SLOT_M1, REEL_SLOT_M2};
    return slot[i % 3];
}

/* Order of the predictor of step i, which is also that of the corrector of step i + 1. */
static int32_t order_of(const reel_schedule *schedule, int32_t i, int32_t order)
{
    int32_t left = schedule->n_step - i, known = i + 1;
    int32_t p = order < left ? order : left;
    return p < known ? p : known;
}

/* X_LAST = the sample at σ_i, gone again from that at σ_(i−1) with the estimate of step i at hand; i ≥ 1. */
static void correct(reel_schedule *schedule, int32_t i, int32_t order)
{
    double from = reel_sched_sigma(schedule, i - 1), to = reel_sched_sigma(schedule, i);
    double h = reel_sched_lambda(schedule, i) - reel_sched_lambda(schedule, i - 1), phi = expm1(-h), k = (1.0 - to) * phi;
    double slope = 0.0, change = 0.5; /* factors of m1 − m0 and of the new estimate − m0 */
    if (order == 2) {
        double rk = (reel_sched_lambda(schedule, i - 2) - reel_sched_lambda(schedule, i - 1)) / h;
        double phi_2 = phi / -h - 1.0, phi_3 = phi_2 / -h - 0.5;
        double b1 = phi_2 / phi, b2 = 2.0 * phi_3 / phi, rho = (b1 - b2) / (1.0 - rk);
        slope = rho / rk;
        change = b1 - rho;
    }
    reel_solver_op *op = reel_sched_op(&schedule->step[i], REEL_SLOT_X_LAST);
    reel_sched_term(op, REEL_SLOT_X_LAST, to / from);
    reel_sched_term(op, estimate_slot(i - 1), -k * (1.0 - slope - change));
    if (order == 2) reel_sched_term(op, estimate_slot(i - 2), -k * slope);
    reel_sched_term(op, estimate_slot(i), -k * change);
}

/* X = the sample at σ_(i+1), gone from X_LAST at σ_i; not for the last step. */
static void predict(reel_schedule *schedule, int32_t i, int32_t order)
{
    double from = reel_sched_sigma(schedule, i), to = reel_sched_sigma(schedule, i + 1);
    double h = reel_sched_lambda(schedule, i + 1) - reel_sched_lambda(schedule, i), k = (1.0 - to) * expm1(-h), slope = 0.0;
    if (order == 2) slope = 0.5 * h / (reel_sched_lambda(schedule, i - 1) - reel_sched_lambda(schedule, i));
    reel_solver_op *op = reel_sched_op(&schedule->step[i], REEL_SLOT_X);
    reel_sched_term(op, REEL_SLOT_X_LAST, to / from);
    reel_sched_term(op, estimate_slot(i), -k * (1.0 - slope));
    if (order == 2) reel_sched_term(op, estimate_slot(i - 1), -k * slope);
}

static void steps(reel_schedule *schedule, int32_t order)
{
    int32_t n = schedule->n_step;
    for (int32_t i = 0; i < n; i++) {
        reel_solver_step *step = &schedule->step[i];
        reel_solver_op *op = reel_sched_op(step, estimate_slot(i));
        reel_sched_term(op, REEL_SLOT_X, 1.0);
        reel_sched_term(op, REEL_SLOT_V, -reel_sched_sigma(schedule, i));
        if (i == n - 1) {
            reel_sched_term(reel_sched_op(step, REEL_SLOT_X), estimate_slot(i), 1.0);
            continue;
        }
        if (i > 0) {
            correct(schedule, i, order_of(schedule, i - 1, order));
        } else {
            reel_sched_term(reel_sched_op(step, REEL_SLOT_X_LAST), REEL_SLOT_X, 1.0);
        }
        predict(schedule, i, order_of(schedule, i, order));
    }
}

const reel_sched reel_sched_unipc = {.name = "unipc", .sigma_end = 1.0, .grid = grid, .steps = steps};
