/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals that end a job. The handler only stores a number; the engine stops after the current operation and removes what is half made.
 * The flag is the program's one variable outside functions: a handler has no other way to reach it. */
#include <signal.h>
#include <string.h>

#include "apps/cli/cli.h"

static volatile int signal_flag;

static void remember(int number)
{
    if (signal_flag == 0) signal_flag = number;
}

void cli_signals_install(void)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = remember;
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < REEL_COUNT(ending); i++) {
        struct sigaction before;
        /* `nohup` and shells that start jobs in the background hand down ignored signals; they stay ignored */
        if (sigaction(ending[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN) continue;
        (void)sigaction(ending[i], &action, NULL);
    }
    action.sa_handler = SIG_IGN; /* a reader that goes away is a failed write, with its message */
    (void)sigaction(SIGPIPE, &action, NULL);
}

const volatile int *cli_signals_flag(void)
{
    return &signal_flag;
}
