/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a job, one clip at a time: names from a pattern, the clip through a media writer, the side file with all settings.
 *
 * A clip becomes visible when it is whole. An abandoned job leaves the clips that were finished and nothing else. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_internal.h"

struct reel_clip_output {
    const reel_request *request;
    const reel_plan *plan;
    reel_media_options options;
    reel_writer *writer;
    char path[REEL_PATH_MAX];
    char *settings;
};

/* Start and end of the %d or %0Nd in a path. */
static bool find_pattern(const char *path, const char **begin, const char **end)
{
    for (const char *p = strchr(path, '%'); p; p = strchr(p + 1, '%')) {
        const char *q = p + 1;
        while (isdigit((unsigned char)*q)) q++;
        if (*q == 'd' && q - p <= 3) {
            *begin = p;
            *end = q + 1;
            return true;
        }
    }
    return false;
}

bool reel_has_pattern(const char *path)
{
    const char *a, *b;
    return find_pattern(path, &a, &b);
}

reel_status reel_expand_pattern(const char *path, int32_t index, char *out, size_t out_bytes, reel_error *err)
{
    const char *a = NULL, *b = NULL;
    int n;
    if (!find_pattern(path, &a, &b)) {
        n = snprintf(out, out_bytes, "%s", path);
    } else {
        const int width = (int)strtol(a + 1, NULL, 10); /* at most two digits; none are 0 */
        n = snprintf(out, out_bytes, "%.*s%0*d%s", (int)(a - path), path, width, (int)index, b);
    }
    if (n < 0 || (size_t)n >= out_bytes) {
        return REEL_FAIL(err, REEL_E_ARGUMENT, "an output path is too long\ngiven: %zu bytes\nallowed: %zu\nremedy: use a shorter path",
                         strlen(path), out_bytes - 1);
    }
    return REEL_OK;
}

/* NAME.json beside the clip. */
static reel_status sidecar_path(const char *clip, char *out, size_t out_bytes, reel_error *err)
{
    const char *slash = strrchr(clip, '/'), *dot = strrchr(clip, '.');
    int n = dot && (!slash || dot > slash + 1) ? (int)(dot - clip) : (int)strlen(clip);
    while (n > 1 && clip[n - 1] == '/') n--;
    if ((size_t)snprintf(out, out_bytes, "%.*s.json", n, clip) >= out_bytes) {
        return REEL_FAIL(err, REEL_E_ARGUMENT, "the name of the side file is too long\ngiven: %s\nremedy: use a shorter path", clip);
    }
    return REEL_OK;
}

/* Before the work starts: a side file that cannot be written would otherwise fail a clip that is already there. */
static reel_status check_sidecar(const reel_request *q, const char *clip, reel_error *err)
{
    char path[REEL_PATH_MAX];
    if (!q->sidecar || strcmp(clip, "-") == 0) return REEL_OK;
    REEL_TRY(sidecar_path(clip, path, sizeof path, err));
    if (reel_path_is_dir(path)) {
        return REEL_FAIL(err, REEL_E_IO,
                         "the side file cannot be written\ngiven: --sidecar, and %s is a folder\nremedy: choose another name with -o",
                         path);
    }
    if (q->no_clobber && reel_path_is_file(path)) {
        return REEL_FAIL(err, REEL_E_IO,
                         "the output exists and may not be replaced\ngiven: %s with --no-clobber\nremedy: choose another name or leave out "
                         "--no-clobber",
                         path);
    }
    return REEL_OK;
}

static reel_status check_names(const reel_request *q, const reel_plan *p, reel_error *err)
{
    const int32_t n = p->n_prompt * p->n_clip;
    reel_media_format format;
    REEL_TRY(reel_media_format_of(q->output, &format, err));
    if (n <= 1) return REEL_OK;
    if (strcmp(q->output, "-") == 0) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "several clips cannot go to standard output\ngiven: -o -, %d clips\nallowed: one clip\nremedy: -o clip-%%03d.y4m",
                         (int)n);
    }
    const char *begin = NULL, *end = NULL;
    if (find_pattern(q->output, &begin, &end) && reel_has_pattern(end)) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "a name with two places for the clip's number\ngiven: -o %s\nallowed: one %%d or %%0Nd, such as "
                         "clip-%%03d.mp4\nremedy: correct -o",
                         q->output);
    }
    if (!reel_has_pattern(q->output) || (format == REEL_MEDIA_PNG && q->output[strlen(q->output) - 1] != '/')) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "several clips need a name with a number in it\ngiven: -o %s, %d clips\nallowed: one %%d or %%0Nd, such as "
                         "clip-%%03d.mp4 (for PNG frames a folder: clip-%%03d/)\nremedy: correct -o",
                         q->output, (int)n);
    }
    return REEL_OK;
}

reel_status reel_clip_output_new(const reel_request *request, const reel_plan *plan, reel_clip_output **out, reel_error *err)
{
    reel_clip_output *o = calloc(1, sizeof *o);
    if (!o) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for the output\nremedy: close other programs");
    o->request = request;
    o->plan = plan;
    o->options = (reel_media_options){.width = (int32_t)plan->px_w,
                                      .height = (int32_t)plan->px_h,
                                      .fps = plan->fps,
                                      .crf = (int32_t)request->crf,
                                      .n_thread = plan->encoder_threads,
                                      .no_clobber = request->no_clobber};
    reel_status status = REEL_OK;
    for (int32_t i = 0; request->output && i < plan->n_prompt * plan->n_clip; i++) {
        if (i == 0) REEL_TRY_GOTO(check_names(request, plan, err), cleanup);
        const bool is_single = plan->n_prompt * plan->n_clip == 1;
        if (is_single) {
            (void)snprintf(o->path, sizeof o->path, "%s", request->output);
        } else {
            REEL_TRY_GOTO(reel_expand_pattern(request->output, i, o->path, sizeof o->path, err), cleanup);
        }
        REEL_TRY_GOTO(reel_media_check(o->path, &o->options, err), cleanup);
        REEL_TRY_GOTO(check_sidecar(request, o->path, err), cleanup);
    }
    *out = o;
    return REEL_OK;
cleanup:
    reel_clip_output_free(&o);
    return status;
}

void reel_clip_output_free(reel_clip_output **output)
{
    if (!*output) return;
    if ((*output)->writer) reel_writer_abandon(&(*output)->writer);
    free((*output)->settings);
    free(*output);
    *output = NULL;
}

reel_status reel_clip_output_begin(reel_clip_output *o, int32_t clip, const char *settings, reel_error *err)
{
    if (!o->request->output) return REEL_OK;
    free(o->settings);
    o->settings = strdup(settings);
    if (!o->settings) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for the clip's settings\nremedy: close other programs");
    if (o->plan->n_prompt * o->plan->n_clip == 1) {
        (void)snprintf(o->path, sizeof o->path, "%s", o->request->output);
    } else {
        REEL_TRY(reel_expand_pattern(o->request->output, clip, o->path, sizeof o->path, err));
    }
    o->options.comment = o->settings;
    return reel_writer_open(o->path, &o->options, &o->writer, err);
}

reel_status reel_clip_output_frames(reel_clip_output *o, const uint8_t *rgb, int32_t n, reel_error *err)
{
    return o->writer ? reel_writer_frames(o->writer, rgb, n, err) : REEL_OK;
}

static reel_status write_sidecar(const reel_clip_output *o, reel_error *err)
{
    char path[REEL_PATH_MAX];
    REEL_TRY(sidecar_path(o->path, path, sizeof path, err));
    return reel_write_file(path, o->settings, strlen(o->settings), o->request->no_clobber, err);
}

reel_status reel_clip_output_end(reel_clip_output *o, reel_error *err)
{
    if (!o->writer) return REEL_OK;
    REEL_TRY(reel_writer_finish(&o->writer, err));
    if (o->request->sidecar && strcmp(o->path, "-") != 0) REEL_TRY(write_sidecar(o, err));
    return REEL_OK;
}

const char *reel_clip_output_path(const reel_clip_output *o)
{
    return o->request->output ? o->path : "";
}
