/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes schedules: the table of schedulers, what they share, and the check that noise falls from step to step. */
#include <math.h>
#include <stdlib.h>

#include "sample/sched.h"

static const reel_sched *const schedulers[REEL_SCHEDULER_COUNT] = {
    [REEL_SCHEDULER_UNIPC] = &reel_sched_unipc,
    [REEL_SCHEDULER_EULER] = &reel_sched_euler,
    [REEL_SCHEDULER_DPMPP] = &reel_sched_dpmpp,
};

double reel_sched_shift(double flow_shift, double sigma)
{
    return flow_shift * sigma / (1.0 + (flow_shift - 1.0) * sigma);
}

double reel_sched_sigma(const reel_schedule *schedule, int32_t i)
{
    return (double)(i < schedule->n_step ? schedule->step[i].sigma : schedule->sigma_last);
}

double reel_sched_lambda(const reel_schedule *schedule, int32_t i)
{
    double sigma = reel_sched_sigma(schedule, i);
    return log1p(-sigma) - log(sigma);
}

reel_solver_op *reel_sched_op(reel_solver_step *step, reel_slot dst)
{
    assert(step->n_op < REEL_SOLVER_OP_MAX);
    reel_solver_op *op = &step->op[step->n_op++];
    *op = (reel_solver_op){.dst = dst};
    return op;
}

void reel_sched_term(reel_solver_op *op, reel_slot slot, double coef)
{
    if (coef == 0.0) return;
    assert(op->n_term < REEL_SOLVER_TERM_MAX);
    op->slot[op->n_term] = slot;
    op->coef[op->n_term++] = (float)coef;
}

/* Equal neighbours would make a step of no length and divide by it; with a strong shift and many steps the first two meet. */
static reel_status check_levels(const reel_schedule *schedule, double flow_shift, reel_error *err)
{
    for (int32_t i = 0; i < schedule->n_step; i++) {
        double here = reel_sched_sigma(schedule, i), next = reel_sched_sigma(schedule, i + 1);
        if (here > next && here < schedulers[schedule->scheduler]->sigma_end) continue;
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "the noise schedule does not fall from step to step\ngiven: flow_shift %g with %d steps: step %d has level %.9g, the next "
            "%.9g\nallowed: a shift and a number of steps whose levels differ in 32-bit floats\nremedy: take fewer steps, or a "
            "flow_shift nearer to 1",
            flow_shift, (int)schedule->n_step, (int)i, here, next);
    }
    return REEL_OK;
}

static uint32_t slots_of(const reel_schedule *schedule)
{
    uint32_t slots = (1U << REEL_SLOT_X) | (1U << REEL_SLOT_V);
    for (int32_t i = 0; i < schedule->n_step; i++) {
        const reel_solver_step *step = &schedule->step[i];
        for (int32_t k = 0; k < step->n_op; k++) {
            slots |= 1U << step->op[k].dst;
            for (int32_t t = 0; t < step->op[k].n_term; t++) slots |= 1U << step->op[k].slot[t];
        }
    }
    return slots;
}

reel_status reel_schedule_init(reel_schedule *out, reel_scheduler scheduler, int32_t n_step, double flow_shift, int32_t solver_order,
                               reel_error *err)
{
    if ((int32_t)scheduler < 0 || scheduler >= REEL_SCHEDULER_COUNT) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "no such scheduler\ngiven: number %d\nallowed: 0 to %d\nremedy: name it unipc, euler or dpm++", (int)scheduler,
                         REEL_SCHEDULER_COUNT - 1);
    }
    if (n_step < 1 || n_step > REEL_STEP_MAX) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "the number of steps is out of range\ngiven: %d\nallowed: 1 to %d\nremedy: 20 to 50 steps suit most models",
                         (int)n_step, REEL_STEP_MAX);
    }
    if (!isfinite(flow_shift) || !(flow_shift > 0.0)) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "the shift of the noise schedule is out of range\ngiven: %g\nallowed: a finite number above 0\nremedy: "
                         "3 suits 480p, 5 suits 720p, 12 suits A14B",
                         flow_shift);
    }
    if (solver_order < 1 || solver_order > 2) {
        return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                         "the solver's order is not available\ngiven: %d\nallowed: 1 or 2\nremedy: set solver_order to 2 in the "
                         "model's scheduler config",
                         (int)solver_order);
    }
    reel_schedule schedule = {.scheduler = scheduler, .n_step = n_step};
    schedule.step = calloc((size_t)n_step, sizeof *schedule.step);
    if (!schedule.step) return REEL_FAIL(err, REEL_E_MEMORY, "no memory for a schedule\ngiven: %d steps\nremedy: free memory", (int)n_step);
    schedulers[scheduler]->grid(&schedule, flow_shift);
    reel_status status = check_levels(&schedule, flow_shift, err);
    if (status != REEL_OK) {
        free(schedule.step);
        return status;
    }
    schedulers[scheduler]->steps(&schedule, solver_order);
    schedule.slots = slots_of(&schedule);
    *out = schedule;
    return REEL_OK;
}

void reel_schedule_deinit(reel_schedule *schedule)
{
    free(schedule->step);
    *schedule = (reel_schedule){0};
}

const char *reel_scheduler_name(reel_scheduler scheduler)
{
    assert((int32_t)scheduler >= 0 && scheduler < REEL_SCHEDULER_COUNT);
    return schedulers[scheduler]->name;
}
