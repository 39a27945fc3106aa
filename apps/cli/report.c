/* SPDX-License-Identifier: Apache-2.0
 *
 * How errors are printed, and the last check of standard output. */
#include <errno.h>
#include <string.h>

#include "apps/cli/cli.h"

void cli_report(const reel_error *err, bool with_trace)
{
    const char *line = err->text;
    bool is_first = true;
    while (*line) {
        size_t n = strcspn(line, "\n");
        (void)fprintf(stderr, "%s%.*s\n", is_first ? "reel: error: " : "  ", (int)n, line);
        is_first = false;
        line += n;
        line += *line == '\n';
    }
    if (is_first) (void)fprintf(stderr, "reel: error: %s\n", reel_status_text(err->code));
    if (with_trace && err->trace[0]) (void)fprintf(stderr, "  trace: %s\n", err->trace);
}

void cli_print_wrote(const cli_session *session)
{
    const char *output = cli_value(&session->args, "output");
    if (!session->progress.is_quiet && output && strcmp(output, "-") != 0) (void)fprintf(stderr, "wrote %s\n", output);
}

reel_status cli_flush(reel_error *err)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return REEL_OK;
    return REEL_FAIL(err, REEL_E_IO, "standard output could not be written\ngiven: %s\nremedy: check where it goes",
                     errno ? strerror(errno) : "a failed write");
}
