/* SPDX-License-Identifier: Apache-2.0
 *
 * The comparison of engine/check_model.h. */
#include "engine/check_model.h"

#include <stdio.h>
#include <string.h>

#include "reel-plugin/tensor_util.h"

enum { PROBLEMS_MAX = 20, PROBLEM_BYTES = 512 };

typedef struct check {
    const reel_store *store;
    const char *component;
    int32_t n_problem;
    char first[PROBLEM_BYTES];
    void (*fn)(void *user, const char *text); /* NULL: only count */
    void *user;
} check;

static void shape_text(const int64_t *extent, int32_t n_dim, char *out, size_t bytes)
{
    size_t n = (size_t)snprintf(out, bytes, "[");
    for (int32_t i = 0; i < n_dim && n < bytes; i++)
        n += (size_t)snprintf(out + n, bytes - n, "%s%lld", i ? ", " : "", (long long)extent[i]);
    if (n < bytes) (void)snprintf(out + n, bytes - n, "]");
}

static void report(check *c, const char *text)
{
    if (c->n_problem++ == 0) (void)snprintf(c->first, sizeof c->first, "%s", text);
    if (c->fn && c->n_problem <= PROBLEMS_MAX) c->fn(c->user, text);
}

static bool is_float(reel_dtype dtype)
{
    switch (dtype) {
    case REEL_DTYPE_F32:
    case REEL_DTYPE_F64:
    case REEL_DTYPE_F16:
    case REEL_DTYPE_BF16:
    case REEL_DTYPE_F8_E4M3:
    case REEL_DTYPE_F8_E5M2: return true;
    default: return false;
    }
}

static reel_status compare(void *user, const reel_tensor_spec *spec, reel_error *err)
{
    (void)err;
    check *c = user;
    char text[PROBLEM_BYTES], want[96], have[96];
    const reel_stored *t = reel_store_find(c->store, spec->name);
    shape_text(spec->extent, spec->n_dim, want, sizeof want);
    if (!t) {
        (void)snprintf(text, sizeof text, "%s: no tensor \"%s\" %s", c->component, spec->name, want);
        report(c, text);
        return REEL_OK;
    }
    if (t->n_dim != spec->n_dim || memcmp(t->extent, spec->extent, sizeof *t->extent * (size_t)t->n_dim) != 0) {
        shape_text(t->extent, t->n_dim, have, sizeof have);
        (void)snprintf(text, sizeof text, "%s: \"%s\" is %s, the config demands %s", c->component, spec->name, have, want);
        report(c, text);
    }
    if (!is_float(t->dtype)) {
        (void)snprintf(text, sizeof text, "%s: \"%s\" is %s, which cannot be computed with", c->component, spec->name, t->dtype_name);
        report(c, text);
    }
    return REEL_OK;
}

reel_status reel_check_component(const reel_model *model, reel_component component, const reel_store *store, reel_error *err)
{
    check c = {.store = store, .component = reel_component_folder(component)};
    REEL_TRY(reel_model_tensors(model, component, compare, &c, err));
    if (c.n_problem == 0) return REEL_OK;
    char more[64] = "";
    if (c.n_problem > 1) (void)snprintf(more, sizeof more, " (and %d more problems)", (int)c.n_problem - 1);
    return REEL_FAIL(err, REEL_E_MODEL,
                     "the model's files do not agree with its configs\ngiven: %s%s\nallowed: every tensor that the configs demand, in its "
                     "shape\nremedy: fetch the model again; "
                     "`reel inspect` lists every problem",
                     c.first, more);
}

void reel_check_component_all(const reel_model *model, reel_component component, const reel_store *store,
                              void (*fn)(void *user, const char *text), void *user)
{
    check c = {.store = store, .component = reel_component_folder(component), .fn = fn, .user = user};
    reel_error err = {0};
    if (reel_model_tensors(model, component, compare, &c, &err) != REEL_OK) {
        fn(user, err.text);
        return;
    }
    if (c.n_problem > PROBLEMS_MAX) {
        char text[128];
        (void)snprintf(text, sizeof text, "%s: %d more problems", c.component, (int)c.n_problem - PROBLEMS_MAX);
        fn(user, text);
    }
}
