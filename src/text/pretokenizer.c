/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of text/pretokenizer.h, as the tokenizers library takes them. */
#include "text/pretokenizer.h"

#include <string.h>

static reel_status damaged(const char *path, const char *what, reel_error *err)
{
    return REEL_FAIL(err, REEL_E_MODEL, "a pre-tokenizer is wrong\ngiven: \"pre_tokenizer\" in %s, %s\nremedy: fetch the file again", path,
                     what);
}

static reel_status read_prepend(reel_pre_step *step, const reel_json *object, reel_error *err)
{
    const char *scheme = NULL;
    bool adds = true;
    REEL_TRY(reel_json_opt_string(object, "prepend_scheme", &scheme, err));
    REEL_TRY(reel_json_opt_bool(object, "add_prefix_space", &adds, err));
    if (!scheme || strcmp(scheme, "always") == 0)
        step->prepend = REEL_PREPEND_ALWAYS;
    else if (strcmp(scheme, "first") == 0)
        step->prepend = REEL_PREPEND_FIRST;
    else if (strcmp(scheme, "never") == 0)
        step->prepend = REEL_PREPEND_NEVER;
    else
        return damaged(object->path, "its \"prepend_scheme\" is none of always, first, never", err);
    if (!adds && step->prepend != REEL_PREPEND_NEVER)
        return damaged(object->path, "\"add_prefix_space\" contradicts \"prepend_scheme\"", err);
    return REEL_OK;
}

static reel_status init_metaspace(reel_pre_step *step, const json_t *value, const char *path, reel_error *err)
{
    const reel_json object = {.root = (json_t *)value, .path = path, .fault = REEL_E_MODEL};
    const char *mark = NULL;
    size_t at = 0;
    uint32_t c = 0;
    *step = (reel_pre_step){.is_metaspace = true, .splits = true};
    REEL_TRY(reel_json_opt_string(&object, "replacement", &mark, err));
    if (!mark || !reel_utf8_next(mark, strlen(mark), &at, &c) || at != strlen(mark))
        return damaged(path, "its \"replacement\" is not one character", err);
    memcpy(step->mark, mark, at + 1);
    REEL_TRY(reel_json_opt_bool(&object, "split", &step->splits, err));
    return read_prepend(step, &object, err);
}

static reel_status init_any(reel_pretokenizer *pre, const json_t *value, int depth, const char *path, reel_error *err)
{
    if (!value || json_is_null(value)) return REEL_OK;
    const json_t *type = json_object_get(value, "type"), *list = json_object_get(value, "pretokenizers");
    const char *name = json_string_value(type);
    if (!name) return damaged(path, "it has no type", err);
    if (strcmp(name, "Sequence") == 0) {
        if (!json_is_array(list) || depth >= 4) return damaged(path, "its list is no array, or nested more than 4 deep", err);
        for (size_t i = 0; i < json_array_size(list); i++) REEL_TRY(init_any(pre, json_array_get(list, i), depth + 1, path, err));
        return REEL_OK;
    }
    if (pre->n == REEL_PRE_STEPS_MAX) return damaged(path, "it has more than 4 steps", err);
    reel_pre_step *step = &pre->step[pre->n++];
    if (strcmp(name, "Metaspace") == 0) return init_metaspace(step, value, path, err);
    if (strcmp(name, "WhitespaceSplit") == 0) {
        *step = (reel_pre_step){.is_metaspace = false};
        return REEL_OK;
    }
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "a tokenizer cuts text in a way that reel does not know\ngiven: \"%.80s\" in %s\nallowed: Sequence, Metaspace, "
                     "WhitespaceSplit\nremedy: use a tokenizer of a Wan model",
                     name, path);
}

reel_status reel_pretokenizer_init(reel_pretokenizer *pre, const json_t *value, const char *path, reel_error *err)
{
    return init_any(pre, value, 0, path, err);
}

typedef struct walk {
    const reel_pretokenizer *pre;
    reel_word_fn *each;
    void *user;
} walk;

static reel_status run(const walk *w, int32_t step, const char *text, size_t n, size_t lead, reel_error *err);

static reel_status mark_blanks(const reel_pre_step *step, const char *text, size_t n, size_t lead, reel_buf *out, reel_error *err)
{
    size_t n_mark = strlen(step->mark);
    bool has_mark = (n > 0 && text[0] == ' ') || (n >= n_mark && memcmp(text, step->mark, n_mark) == 0);
    bool adds = step->prepend == REEL_PREPEND_ALWAYS || (step->prepend == REEL_PREPEND_FIRST && lead > 0);
    if (adds && !has_mark) REEL_TRY(reel_buf_append(out, step->mark, n_mark, err));
    for (size_t at = 0; at < n;) {
        const char *blank = memchr(text + at, ' ', n - at);
        size_t plain = blank ? (size_t)(blank - text) - at : n - at;
        REEL_TRY(reel_buf_append(out, text + at, plain, err));
        if (blank) REEL_TRY(reel_buf_append(out, step->mark, n_mark, err));
        at += plain + (blank ? 1 : 0);
    }
    return REEL_OK;
}

static reel_status run_metaspace(const walk *w, int32_t index, const char *text, size_t n, size_t lead, reel_error *err)
{
    const reel_pre_step *step = &w->pre->step[index];
    size_t n_mark = strlen(step->mark), from = 0;
    reel_buf marked = {0};
    reel_status status = mark_blanks(step, text, n, lead, &marked, err);
    for (size_t at = 1; status == REEL_OK && step->splits && at + n_mark <= marked.n; at++) {
        if (memcmp(marked.data + at, step->mark, n_mark) != 0) continue;
        status = run(w, index + 1, marked.data + from, at - from, from == 0 ? lead : 0, err);
        from = at;
    }
    if (status == REEL_OK && from < marked.n) status = run(w, index + 1, marked.data + from, marked.n - from, from == 0 ? lead : 0, err);
    reel_buf_deinit(&marked);
    return status;
}

static reel_status run_whitespace(const walk *w, int32_t index, const char *text, size_t n, size_t lead, reel_error *err)
{
    size_t from = 0;
    for (size_t at = 0; at < n;) {
        size_t end = at;
        uint32_t c = 0;
        if (!reel_utf8_next(text, n, &at, &c)) at++;
        if (!reel_char_is_white(c)) continue;
        if (end > from) REEL_TRY(run(w, index + 1, text + from, end - from, lead > from ? lead - from : 0, err));
        from = at;
    }
    return n > from ? run(w, index + 1, text + from, n - from, lead > from ? lead - from : 0, err) : REEL_OK;
}

static reel_status run(const walk *w, int32_t step, const char *text, size_t n, size_t lead, reel_error *err)
{
    if (step == w->pre->n) return w->each(w->user, text, n, err);
    return w->pre->step[step].is_metaspace ? run_metaspace(w, step, text, n, lead, err) : run_whitespace(w, step, text, n, lead, err);
}

reel_status reel_pretokenize(const reel_pretokenizer *pre, const char *text, size_t n, size_t lead, reel_word_fn *each, void *user,
                             reel_error *err)
{
    const walk w = {.pre = pre, .each = each, .user = user};
    return n == 0 ? REEL_OK : run(&w, 0, text, n, lead, err);
}
