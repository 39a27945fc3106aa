/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress of a job. On a terminal one line is redrawn; otherwise lines at most every two seconds and at the ends of phases; with --json one
 * object a line on standard output. */
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "base/clock.h"

#define LINE_EVERY_S 2.0
enum { BAR_MAX = 30, WIDTH_DEFAULT = 80 };

void cli_progress_init(cli_progress *progress, bool is_json, bool is_quiet, bool is_verbose)
{
    *progress = (cli_progress){
        .is_json = is_json, .is_quiet = is_quiet, .is_verbose = is_verbose, .is_terminal = isatty(STDERR_FILENO) == 1, .clip = -1};
    progress->last_line_s = -LINE_EVERY_S;
}

const char *cli_time_text(double seconds, char *out, size_t out_bytes)
{
    long long s = (long long)(seconds + 0.5);
    if (s >= 3600) {
        (void)snprintf(out, out_bytes, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    } else {
        (void)snprintf(out, out_bytes, "%lld:%02lld", s / 60, s % 60);
    }
    return out;
}

void cli_progress_clear(cli_progress *progress)
{
    if (!progress->has_bar) return;
    (void)fputs("\r\033[K", stderr);
    (void)fflush(stderr);
    progress->has_bar = false;
}

json_t *cli_json_text(const char *text)
{
    json_t *value = json_string(text);
    if (value) return value;
    char copy[REEL_ERROR_TEXT_MAX];
    (void)snprintf(copy, sizeof copy, "%s", text);
    for (char *p = copy; *p; p++) *p = (unsigned char)*p < 0x80U ? *p : '?';
    return json_string(copy);
}

void cli_progress_event(const char *name, json_t *fields)
{
    json_t *event = json_object();
    if (event) {
        (void)json_object_set_new(event, "event", json_string(name));
        if (fields) (void)json_object_update(event, fields);
        bool is_exact = strcmp(name, "done") == 0; /* the record keeps every digit; times need not */
        (void)json_dumpf(event, stdout, JSON_COMPACT | (is_exact ? 0 : JSON_REAL_PRECISION(6)));
        (void)putchar('\n');
        (void)fflush(stdout);
    }
    json_decref(fields);
    json_decref(event);
}

static json_t *known_or_null(double value)
{
    return value >= 0.0 && isfinite(value) ? json_real(value) : json_null();
}

static void show_event(const reel_progress *p)
{
    json_t *fields = json_pack("{s:s,s:i,s:i,s:i,s:i,s:o,s:o,s:o}", "phase", reel_phase_name(p->phase), "clip", (int)p->clip, "clips",
                               (int)p->n_clip, "done", (int)p->done, "total", (int)p->total, "elapsed_s", known_or_null(p->elapsed_s),
                               "step_s", known_or_null(p->step_s > 0.0 ? p->step_s : -1.0), "left_s", known_or_null(p->left_s));
    cli_progress_event("progress", fields);
}

/* "denoise 12/20, 1.31 s a step, 0:11 left" */
static void describe(const reel_progress *p, char *out, size_t out_bytes)
{
    char left[32], clip[48] = "", step[48] = "", rest[64] = "";
    if (p->n_clip > 1) (void)snprintf(clip, sizeof clip, "clip %d/%d: ", (int)p->clip + 1, (int)p->n_clip);
    if (p->phase == REEL_PHASE_DENOISE && p->step_s > 0.0) (void)snprintf(step, sizeof step, ", %.2f s a step", p->step_s);
    if (p->left_s >= 0.0) (void)snprintf(rest, sizeof rest, ", %s left", cli_time_text(p->left_s, left, sizeof left));
    if (p->total > 0) {
        (void)snprintf(out, out_bytes, "%s%s %d/%d%s%s", clip, reel_phase_name(p->phase), (int)p->done, (int)p->total, step, rest);
    } else {
        (void)snprintf(out, out_bytes, "%s%s%s", clip, reel_phase_name(p->phase), rest);
    }
}

int32_t cli_terminal_width(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : WIDTH_DEFAULT;
}

static void show_bar(cli_progress *progress, const reel_progress *p)
{
    char text[160], bar[BAR_MAX + 1];
    describe(p, text, sizeof text);
    int width = cli_terminal_width(), n_bar = width - (int)strlen(text) - 4;
    if (n_bar > BAR_MAX) n_bar = BAR_MAX;
    if (n_bar >= 5 && p->total > 0) {
        int32_t n_full = (int32_t)((int64_t)n_bar * p->done / p->total);
        for (int32_t i = 0; i < n_bar; i++) bar[i] = i < n_full ? '#' : '.';
        bar[n_bar] = '\0';
        (void)fprintf(stderr, "\r\033[K[%s] %s", bar, text);
    } else {
        (void)fprintf(stderr, "\r\033[K%.*s", width - 1, text);
    }
    (void)fflush(stderr);
    progress->has_bar = true;
}

static void show_line(cli_progress *progress, const reel_progress *p)
{
    char text[160];
    double now = reel_clock_s();
    bool is_new = p->phase != progress->phase || p->clip != progress->clip, is_end = p->total > 0 && p->done == p->total;
    if (!is_new && !is_end && now - progress->last_line_s < LINE_EVERY_S) return;
    describe(p, text, sizeof text);
    (void)fprintf(stderr, "%s\n", text);
    progress->last_line_s = now;
}

void cli_progress_show(void *user, const reel_progress *p)
{
    cli_progress *progress = user;
    if (p->message) return; /* it comes through the log as well */
    if (progress->is_json) {
        show_event(p);
    } else if (!progress->is_quiet) {
        if (progress->is_terminal) {
            show_bar(progress, p);
        } else {
            show_line(progress, p);
        }
    }
    progress->phase = p->phase;
    progress->clip = p->clip;
}

void cli_progress_log(void *user, int level, const char *text)
{
    static const char *const names[] = {"error", "warning", "information", "detail"};
    cli_progress *progress = user;
    int32_t shown = level < 0 ? 0 : level > 3 ? 3 : level;
    if (shown > (progress->is_quiet ? 0 : progress->is_verbose ? 3 : 2)) return;
    if (progress->is_json) cli_progress_event("message", json_pack("{s:s,s:o}", "level", names[shown], "text", cli_json_text(text)));
    if (progress->is_json && shown > 1) return;
    cli_progress_clear(progress);
    progress->preview_lines = 0;
    if (shown <= 1) {
        (void)fprintf(stderr, "reel: %s: %s\n", names[shown], text);
    } else {
        (void)fprintf(stderr, "%s\n", text);
    }
}
