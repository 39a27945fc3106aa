/* SPDX-License-Identifier: Apache-2.0
 *
 * Every operation on every device against the C references: the case lists of tests/ops/cases, each with fresh random inputs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bed.h"

enum { N_OP_MAX = 64 };

typedef struct job {
    bed_device *dev;
    const char *name;
    void (*cases)(bed *b);
    uint64_t seed;
} job;

static void run_cases(void **state)
{
    const job *j = *state;
    bed b = {.dev = j->dev, .seed = j->seed, .random = j->seed};
    j->cases(&b);
    bed_clear(&b);
    print_message("  %s: %d calls compared, worst %.2f of its bound (%s)\n", j->name, b.n_check, b.worst, b.worst_at);
    assert_true(b.n_check > 0);
    assert_int_equal(b.n_fail, 0);
}

static const job jobs[] = {
#define X(op, version, need) {NULL, #op, case_##op, 0},
    REEL_OP_LIST(X)
#undef X
};

static int run_device(bed_device *dev, uint64_t seed)
{
    job mine[N_OP_MAX];
    struct CMUnitTest tests[N_OP_MAX];
    for (size_t i = 0; i < REEL_COUNT(jobs); i++) {
        mine[i] = jobs[i];
        mine[i].dev = dev;
        mine[i].seed = seed + i;
        tests[i] = (struct CMUnitTest){.name = mine[i].name, .test_func = run_cases, .initial_state = &mine[i]};
    }
    return _cmocka_run_group_tests(dev->label, tests, REEL_COUNT(jobs), NULL, NULL);
}

int main(int argc, char **argv)
{
    if (argc > 2) cmocka_set_test_filter(argv[2]);
    return bed_run_devices(argc, argv, run_device, 5);
}
