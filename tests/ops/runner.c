/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a function once per device (bed.h). Each device has a process of its own, because oneDNN takes its instruction set once per process. A
 * level that the processor lacks is named in the output. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "bed.h"

enum { EXIT_NOT_HERE = 77, EXIT_NO_MORE = 78 };

static int run_one(int32_t index, uint64_t seed, bed_device_fn fn)
{
    bed_device dev;
    bed_opened opened = bed_device_open(index, &dev);
    if (opened != BED_OPENED) return opened == BED_NOT_HERE ? EXIT_NOT_HERE : EXIT_NO_MORE;
    int n_failed = fn(&dev, seed);
    bed_device_close(&dev);
    return n_failed == 0 ? 0 : 1;
}

/* The child's exit code; 1 when it died. */
static int run_in_child(int32_t index, uint64_t seed, bed_device_fn fn)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) exit(run_one(index, seed, fn));
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return 1;
    if (!WIFEXITED(status)) (void)fprintf(stderr, "device %d died of signal %d\n", index, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int bed_run_devices(int argc, char **argv, bed_device_fn fn, int32_t n_min)
{
    const char *text = reel_env("REEL_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL) * 1000U + (uint64_t)getpid();
    (void)printf("REEL_TEST_SEED=%llu\n", (unsigned long long)seed);
    if (argc > 1) return run_one((int32_t)strtol(argv[1], NULL, 10), seed, fn);
    int32_t n_failed = 0, n_passed = 0;
    for (int32_t i = 0;; i++) {
        int code = run_in_child(i, seed, fn);
        if (code == EXIT_NO_MORE) break;
        if (code == 0)
            n_passed++;
        else if (code != EXIT_NOT_HERE)
            n_failed++;
    }
    (void)printf("%d devices passed, %d failed\n", n_passed, n_failed);
    return n_failed == 0 && n_passed >= n_min ? 0 : 1;
}
