/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules against diffusers: levels and timesteps exactly, coefficients through toy runs, at every number of steps from 1 to 100. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/nearest.h"
#include "common/fixture.h"
#include "sample/sample.h"

enum { TOY = 4 };

static void make(reel_schedule *schedule, reel_scheduler scheduler, int32_t n_step, double shift, int32_t order)
{
    reel_error err;
    if (reel_schedule_init(schedule, scheduler, n_step, shift, order, &err) != REEL_OK) fail_msg("%s", err.text);
    assert_int_equal(schedule->n_step, n_step);
    assert_true(schedule->sigma_last == 0.0F);
}

/* Runs the operations of one step as a device would, on slots that were NaN until written. */
static void run_step(const reel_schedule *schedule, int32_t i, float slot[REEL_SLOT_COUNT][TOY])
{
    const reel_solver_step *step = &schedule->step[i];
    assert_in_range(step->n_op, 1, REEL_SOLVER_OP_MAX);
    for (int32_t k = 0; k < step->n_op; k++) {
        const reel_solver_op *op = &step->op[k];
        assert_in_range(op->n_term, 1, REEL_SOLVER_TERM_MAX);
        assert_true(schedule->slots & (1U << op->dst));
        for (int j = 0; j < TOY; j++) {
            float sum = 0.0F;
            for (int32_t t = 0; t < op->n_term; t++) {
                assert_true(schedule->slots & (1U << op->slot[t]));
                sum += op->coef[t] * slot[op->slot[t]][j];
            }
            slot[op->dst][j] = sum;
        }
    }
}

static void toy_begin(float slot[REEL_SLOT_COUNT][TOY])
{
    static const float start[TOY] = {1.0F, -0.5F, 2.0F, 0.25F};
    for (int s = 0; s < REEL_SLOT_COUNT; s++) {
        for (int j = 0; j < TOY; j++) slot[s][j] = NAN;
    }
    memcpy(slot[REEL_SLOT_X], start, sizeof start);
}

static void toy_step(const reel_schedule *schedule, int32_t i, float slot[REEL_SLOT_COUNT][TOY])
{
    static const float a[TOY] = {0.5F, -1.0F, 0.125F, 2.0F};
    for (int j = 0; j < TOY; j++) {
        slot[REEL_SLOT_V][j] = 0.25F * slot[REEL_SLOT_X][j] + a[j] * cosf(3.0F * schedule->step[i].timestep / 1000.0F) - 0.75F;
    }
    run_step(schedule, i, slot);
}

/* Toy runs of all step counts. Tolerance 6e-6 absolute for |x| < 3, about 25 units of the last place after 100 steps: the reference computes its
 * coefficients in float, we in double; the largest difference seen was 4.3e-6. */
static void check_toys(const fixture *f, const char *name, reel_scheduler scheduler, double shift, int32_t order)
{
    char key[64];
    snprintf(key, sizeof key, "%s_toy_order_%d_shift_%g", name, (int)order, shift);
    size_t n;
    const float *want = fixture_get(f, key, "F32", &n);
    assert_int_equal(n, 100 * 2 * TOY);
    double worst = 0.0;
    for (int32_t n_step = 1; n_step <= 100; n_step++, want += 2 * TOY) {
        reel_schedule schedule;
        make(&schedule, scheduler, n_step, shift, order);
        float slot[REEL_SLOT_COUNT][TOY];
        double sum[TOY] = {0};
        toy_begin(slot);
        for (int32_t i = 0; i < n_step; i++) {
            toy_step(&schedule, i, slot);
            for (int j = 0; j < TOY; j++) sum[j] += (double)slot[REEL_SLOT_X][j];
        }
        for (int j = 0; j < TOY; j++) {
            double off = fabs((double)slot[REEL_SLOT_X][j] - (double)want[j]), off_sum = fabs(sum[j] - (double)want[TOY + j]) / n_step;
            if (off > worst) worst = off;
            if (!(off <= 6e-6) || !(off_sum <= 6e-6)) {
                fail_msg("%s, %d steps, value %d: %.8g, reference %.8g; mean off by %.3g", key, (int)n_step, j,
                         (double)slot[REEL_SLOT_X][j], (double)want[j], off_sum);
            }
        }
        reel_schedule_deinit(&schedule);
    }
    print_message("%s: off by at most %.3g\n", key, worst);
}

static void check_grids(const fixture *f, const char *name, reel_scheduler scheduler, double shift)
{
    char key[64];
    size_t n_sigma, n_timestep;
    snprintf(key, sizeof key, "%s_sigmas_shift_%g", name, shift);
    const float *sigmas = fixture_get(f, key, "F32", &n_sigma);
    snprintf(key, sizeof key, "%s_timesteps_shift_%g", name, shift);
    bool fractions = scheduler == REEL_SCHEDULER_EULER;
    const void *timesteps = fixture_get(f, key, fractions ? "F32" : "I16", &n_timestep);
    assert_int_equal(n_sigma, 5050);
    assert_int_equal(n_timestep, 5050);
    size_t at = 0;
    for (int32_t n_step = 1; n_step <= 100; n_step++) {
        reel_schedule schedule;
        make(&schedule, scheduler, n_step, shift, 2);
        for (int32_t i = 0; i < n_step; i++, at++) {
            float timestep = fractions ? ((const float *)timesteps)[at] : (float)((const int16_t *)timesteps)[at];
            if (schedule.step[i].sigma != sigmas[at] || schedule.step[i].timestep != timestep) {
                fail_msg("%s, %d steps, step %d: level %.9g (%.9g), timestep %.9g (%.9g)", key, (int)n_step, (int)i,
                         (double)schedule.step[i].sigma, (double)sigmas[at], (double)schedule.step[i].timestep, (double)timestep);
            }
        }
        reel_schedule_deinit(&schedule);
    }
}

static void test_reference(void **state)
{
    (void)state;
    static const double full[] = {3.0}, toy_only[] = {0.37, 1.0, 5.0, 8.0, 12.0};
    fixture f = fixture_open("tests/fixtures/schedules/schedules.safetensors");
    for (int s = 0; s < REEL_SCHEDULER_COUNT; s++) {
        reel_scheduler scheduler = (reel_scheduler)s;
        const char *name = reel_scheduler_name(scheduler);
        for (size_t i = 0; i < REEL_COUNT(full); i++) check_grids(&f, name, scheduler, full[i]);
        for (int32_t order = scheduler == REEL_SCHEDULER_EULER ? 2 : 1; order <= 2; order++) {
            for (size_t i = 0; i < REEL_COUNT(full); i++) check_toys(&f, name, scheduler, full[i], order);
            for (size_t i = 0; i < REEL_COUNT(toy_only); i++) check_toys(&f, name, scheduler, toy_only[i], order);
        }
    }
    fixture_close(&f);
}

static void test_recorded(void **state)
{
    (void)state;
    static const int32_t steps[] = {4, 8, 20, 25, 50};
    static const int shifts[] = {3, 5, 12};
    fixture f = fixture_open("tests/fixtures/wan-tiny-t2v/schedules.safetensors");
    for (size_t a = 0; a < REEL_COUNT(steps); a++) {
        for (size_t b = 0; b < REEL_COUNT(shifts); b++) {
            char key[64];
            size_t n;
            snprintf(key, sizeof key, "timesteps_%d_shift_%d", (int)steps[a], shifts[b]);
            const int32_t *timesteps = fixture_get(&f, key, "I32", &n);
            assert_int_equal(n, steps[a]);
            snprintf(key, sizeof key, "sigmas_%d_shift_%d", (int)steps[a], shifts[b]);
            const float *sigmas = fixture_get(&f, key, "F32", &n);
            assert_int_equal(n, steps[a] + 1);
            reel_schedule schedule;
            make(&schedule, REEL_SCHEDULER_UNIPC, steps[a], shifts[b], 2);
            for (int32_t i = 0; i < steps[a]; i++) {
                assert_true(schedule.step[i].timestep == (float)timesteps[i]);
                assert_true(schedule.step[i].sigma == sigmas[i]);
            }
            reel_schedule_deinit(&schedule);
        }
    }
    fixture_close(&f);
}

/* Lists and trajectories printed in the numerical specification of the model family. */
static void test_printed(void **state)
{
    (void)state;
    static const int list_5[] = {999, 923, 818, 667, 429},
                     list_20[] = {999, 993, 986, 978, 969, 960, 949, 937, 923, 907, 889, 867, 842, 812, 774, 728, 667, 586, 473, 300};
    static const double unipc[5][TOY] = {{1.0764325, -0.5088024, 2.0287123, 0.4548860},
                                         {1.1738399, -0.5123053, 2.0658183, 0.7105975},
                                         {1.2903204, -0.4795082, 2.1126556, 0.9904884},
                                         {1.4041680, -0.3095276, 2.1676290, 1.1675059},
                                         {1.5154663, 0.1664200, 2.2420232, 1.1237181}};
    static const double euler[TOY] = {1.6030515, 0.0188693, 2.2657611, 1.4547253},
                        dpmpp[TOY] = {1.5245804, 0.1513448, 2.2445118, 1.1579671};
    reel_schedule schedule;
    float slot[REEL_SLOT_COUNT][TOY];
    make(&schedule, REEL_SCHEDULER_UNIPC, 20, 8.0, 2);
    for (int i = 0; i < 20; i++) assert_true(schedule.step[i].timestep == (float)list_20[i]);
    reel_schedule_deinit(&schedule);

    make(&schedule, REEL_SCHEDULER_UNIPC, 5, 3.0, 2);
    toy_begin(slot);
    for (int i = 0; i < 5; i++) {
        assert_true(schedule.step[i].timestep == (float)list_5[i]);
        toy_step(&schedule, i, slot);
        for (int j = 0; j < TOY; j++) assert_true(fabs((double)slot[REEL_SLOT_X][j] - unipc[i][j]) < 2e-6); /* see check_toys */
    }
    reel_schedule_deinit(&schedule);
    for (int s = REEL_SCHEDULER_EULER; s <= REEL_SCHEDULER_DPMPP; s++) {
        make(&schedule, (reel_scheduler)s, 5, 3.0, 2);
        toy_begin(slot);
        for (int i = 0; i < 5; i++) toy_step(&schedule, i, slot);
        const double *want = s == REEL_SCHEDULER_EULER ? euler : dpmpp;
        for (int j = 0; j < TOY; j++) assert_true(fabs((double)slot[REEL_SLOT_X][j] - want[j]) < 2e-6);
        reel_schedule_deinit(&schedule);
    }
}

static void expect_error(reel_status want, int32_t n_step, double shift, int32_t order, const char *word)
{
    reel_schedule untouched = {.n_step = -77};
    reel_error err;
    assert_int_equal(reel_schedule_init(&untouched, REEL_SCHEDULER_UNIPC, n_step, shift, order, &err), want);
    assert_int_equal(untouched.n_step, -77);
    if (!strstr(err.text, word) || !strstr(err.text, "remedy: ")) fail_msg("the text does not say %s: %s", word, err.text);
}

static void test_bad_input(void **state)
{
    (void)state;
    expect_error(REEL_E_ARGUMENT, 0, 5.0, 2, "1 to 1000");
    expect_error(REEL_E_ARGUMENT, -3, 5.0, 2, "given: -3");
    expect_error(REEL_E_ARGUMENT, 1001, 5.0, 2, "given: 1001");
    expect_error(REEL_E_ARGUMENT, 20, 0.0, 2, "given: 0");
    expect_error(REEL_E_ARGUMENT, 20, -1.0, 2, "given: -1");
    expect_error(REEL_E_ARGUMENT, 20, NAN, 2, "nan");
    expect_error(REEL_E_ARGUMENT, 20, INFINITY, 2, "inf");
    expect_error(REEL_E_UNSUPPORTED, 20, 5.0, 3, "1 or 2");
    expect_error(REEL_E_UNSUPPORTED, 20, 5.0, 0, "1 or 2");
    expect_error(REEL_E_ARGUMENT, 1000, 1000.0, 2, "does not fall"); /* 0.999999 meets shift(0.999001) in float */
    expect_error(REEL_E_ARGUMENT, 20, 1e300, 2, "does not fall");
    expect_error(REEL_E_ARGUMENT, 20, 1e-300, 2, "does not fall");
}

/* Whatever is accepted has finite coefficients, and the last x is the last estimate. */
static void test_all_finite(void **state)
{
    (void)state;
    static const double shifts[] = {0.01, 0.5, 1.0, 5.0, 40.0, 1000.0};
    static const int32_t steps[] = {1, 2, 3, 101, 255, 997, 1000};
    int accepted = 0;
    for (int s = 0; s < REEL_SCHEDULER_COUNT; s++) {
        for (size_t k = 0; k < REEL_COUNT(shifts) * REEL_COUNT(steps); k++) {
            reel_schedule schedule;
            int32_t n_step = steps[k % REEL_COUNT(steps)];
            if (reel_schedule_init(&schedule, (reel_scheduler)s, n_step, shifts[k / REEL_COUNT(steps)], 2, NULL) != REEL_OK) continue;
            accepted++;
            float slot[REEL_SLOT_COUNT][TOY];
            toy_begin(slot);
            for (int32_t i = 0; i < n_step; i++) {
                toy_step(&schedule, i, slot);
                for (int j = 0; j < TOY; j++) assert_true(fabsf(slot[REEL_SLOT_X][j]) < 10.0F);
            }
            reel_schedule_deinit(&schedule);
        }
    }
    assert_int_equal(accepted, 124); /* of 126: UniPC refuses 997 and 1000 steps at shift 1000, where two levels meet in float */
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        reel_scheduler want;
    } good[] = {{"unipc", REEL_SCHEDULER_UNIPC},
                {"UniPCMultistepScheduler", REEL_SCHEDULER_UNIPC},
                {"uni_pc", REEL_SCHEDULER_UNIPC},
                {"uni_pc_bh2", REEL_SCHEDULER_UNIPC},
                {"UniPC", REEL_SCHEDULER_UNIPC},
                {"euler", REEL_SCHEDULER_EULER},
                {"Euler", REEL_SCHEDULER_EULER},
                {"FlowMatchEulerDiscreteScheduler", REEL_SCHEDULER_EULER},
                {"dpm++", REEL_SCHEDULER_DPMPP},
                {"dpmpp_2m", REEL_SCHEDULER_DPMPP},
                {"dpm++2m", REEL_SCHEDULER_DPMPP},
                {"DPM++ 2M", REEL_SCHEDULER_DPMPP},
                {"DPMSolverMultistepScheduler", REEL_SCHEDULER_DPMPP}};
    for (size_t i = 0; i < REEL_COUNT(good); i++) {
        reel_scheduler got = REEL_SCHEDULER_COUNT;
        assert_int_equal(reel_scheduler_from_name(good[i].name, &got, NULL), REEL_OK);
        assert_int_equal(got, good[i].want);
    }
    static const char *const strange[] = {"euler_a",   "dpmpp_sde", "dpmpp_2m_sde",           "lcm",
                                          "dpm++2mv2", "heun",      "EulerDiscreteScheduler", "tcd"};
    reel_error err;
    for (size_t i = 0; i < REEL_COUNT(strange); i++) {
        reel_scheduler got = REEL_SCHEDULER_COUNT;
        assert_int_equal(reel_scheduler_from_name(strange[i], &got, &err), REEL_E_UNSUPPORTED);
        assert_int_equal(got, REEL_SCHEDULER_COUNT);
        assert_non_null(strstr(err.text, strange[i]));
        assert_non_null(strstr(err.text, "remedy: the nearest is "));
    }
    static const char *const typos[][2] = {
        {"unipcc", "did you mean unipc"}, {"eular", "did you mean euler"},
        {"dpm+", "did you mean dpm++"},   {"DPMSolverMultistepSchedule", "did you mean DPMSolverMultistepScheduler"},
        {"zzzzzzzz", "use unipc"},        {"", "use unipc"}};
    for (size_t i = 0; i < REEL_COUNT(typos); i++) {
        reel_scheduler got = REEL_SCHEDULER_COUNT;
        assert_int_equal(reel_scheduler_from_name(typos[i][0], &got, &err), REEL_E_ARGUMENT);
        if (!strstr(err.text, typos[i][1])) fail_msg("%s: %s", typos[i][0], err.text);
    }
}

static void test_experts(void **state)
{
    (void)state;
    assert_int_equal(reel_expert_of(NAN, 1.0F, 1000), 0);
    assert_int_equal(reel_expert_of(0.875, 875.0F, 1000), 0);
    assert_int_equal(reel_expert_of(0.875, 874.0F, 1000), 1);
    assert_int_equal(reel_expert_of(0.9, 900.0F, 1000), 0);
    assert_int_equal(reel_expert_of(0.0, 0.0F, 1000), 0);
    assert_int_equal(reel_expert_of(1.0, 999.0F, 1000), 1);
    /* steps of the high-noise expert at 0.875 and 0.9: shift 3, 40 steps: 13, 11; shift 5, 50 steps: 21, 18; shift 12, 40 steps: 26, 23 */
    static const struct {
        double shift;
        int32_t steps, at_875, at_900;
    } cases[] = {{3.0, 40, 13, 11}, {5.0, 40, 17, 15}, {5.0, 50, 21, 18}, {12.0, 40, 26, 23}};
    for (size_t c = 0; c < REEL_COUNT(cases); c++) {
        reel_schedule schedule;
        make(&schedule, REEL_SCHEDULER_UNIPC, cases[c].steps, cases[c].shift, 2);
        int32_t high_875 = 0, high_900 = 0;
        for (int32_t i = 0; i < schedule.n_step; i++) {
            high_875 += reel_expert_of(0.875, schedule.step[i].timestep, 1000) == 0;
            high_900 += reel_expert_of(0.9, schedule.step[i].timestep, 1000) == 0;
        }
        assert_int_equal(high_875, cases[c].at_875);
        assert_int_equal(high_900, cases[c].at_900);
        reel_schedule_deinit(&schedule);
    }
}

static void test_nearest(void **state)
{
    (void)state;
    static const char *const words[] = {"guidance-scale", "guidance-scale-2", "seed", "size", "steps", "negative-prompt"};
    assert_int_equal(reel_word_distance("seed", "seed"), 0);
    assert_int_equal(reel_word_distance("sede", "seed"), 1);
    assert_int_equal(reel_word_distance("", "abc"), 3);
    assert_int_equal(reel_word_distance("kitten", "sitting"), 3);
    assert_string_equal(reel_word_nearest("sedd", words, REEL_COUNT(words)), "seed");
    assert_string_equal(reel_word_nearest("guidence-scale", words, REEL_COUNT(words)), "guidance-scale");
    assert_string_equal(reel_word_nearest("negative", words, REEL_COUNT(words)), "negative-prompt");
    assert_null(reel_word_nearest("qqqqqq", words, REEL_COUNT(words)));
    assert_null(reel_word_nearest("", words, REEL_COUNT(words)));
    char huge[300];
    memset(huge, 's', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_null(reel_word_nearest(huge, words, REEL_COUNT(words)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_recorded),   cmocka_unit_test(test_printed),
        cmocka_unit_test(test_bad_input), cmocka_unit_test(test_all_finite), cmocka_unit_test(test_names),
        cmocka_unit_test(test_experts),   cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
