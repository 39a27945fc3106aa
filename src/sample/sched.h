/* SPDX-License-Identifier: Apache-2.0
 *
 * What a scheduler is inside sample/: a grid of noise levels, and the linear combinations of every step.
 *
 * schedule.c owns the table of schedulers, allocates, calls `grid`, checks that the levels fall, then calls `steps`. One scheduler is one
 * sched_*.c file; nothing else in the project knows their formulas. Coefficients are computed in double from the float levels
 * (the reference does it in float; the two differ by a few 1e-7 of a latent) and rounded once. */
#ifndef REEL_SAMPLE_SCHED_H
#define REEL_SAMPLE_SCHED_H

#include "sample/sample.h"

typedef struct reel_sched {
    const char *name;
    double sigma_end; /* levels must lie below: at 1 and beyond, ln(1 − σ) is not finite; Euler takes what float makes of 1 */
    /* Writes step[i].sigma and step[i].timestep for all n_step steps. */
    void (*grid)(reel_schedule *schedule, double flow_shift);
    /* Writes step[i].op for all steps; order is 1 or 2. */
    void (*steps)(reel_schedule *schedule, int32_t order);
} reel_sched;

extern const reel_sched reel_sched_unipc;
extern const reel_sched reel_sched_euler;
extern const reel_sched reel_sched_dpmpp;

/* s·σ / (1 + (s − 1)·σ), in this order of operations. */
double reel_sched_shift(double flow_shift, double sigma);
/* Noise level of step i; sigma_last for i = n_step. */
double reel_sched_sigma(const reel_schedule *schedule, int32_t i);
/* ln(1 − σ) − ln σ of step i: the log signal-to-noise ratio, halved. */
double reel_sched_lambda(const reel_schedule *schedule, int32_t i);

/* Starts the next operation of a step, then adds its terms. A zero coefficient is left out: 0·∞ must not reach the sum. */
reel_solver_op *reel_sched_op(reel_solver_step *step, reel_slot dst);
void reel_sched_term(reel_solver_op *op, reel_slot slot, double coef);

#endif
