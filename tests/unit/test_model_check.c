/* SPDX-License-Identifier: Apache-2.0
 *
 * Files against configs: what is missing, of another shape or not to be computed with is named, all of it for a description, the first for opening. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/check_model.h"

static reel_error err;
static reel_model model;

typedef struct text {
    char *data;
    size_t n, capacity;
    int change_at; /* the how-manieth tensor is changed */
    const char *how;
    int n_seen;
    size_t bytes;
} text;

static void add(text *t, const char *s)
{
    const size_t n = strlen(s);
    while (t->n + n + 1 > t->capacity) {
        t->capacity = 2 * t->capacity + 4096;
        t->data = realloc(t->data, t->capacity);
        assert_non_null(t->data);
    }
    memcpy(t->data + t->n, s, n + 1);
    t->n += n;
}

/* A header entry for each tensor that the config demands, one of them changed. */
static reel_status entry(void *user, const reel_tensor_spec *spec, reel_error *e)
{
    (void)e;
    text *t = user;
    char buffer[512];
    const bool changed = t->n_seen++ == t->change_at;
    if (t->change_at == -2 || (changed && strcmp(t->how, "missing") == 0)) return REEL_OK;
    const bool is_bool = changed && strcmp(t->how, "dtype") == 0;
    size_t bytes = is_bool ? 1 : 2;
    int n = snprintf(buffer, sizeof buffer, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->n > 1 ? "," : "", spec->name,
                     is_bool ? "BOOL" : "BF16");
    for (int32_t i = 0; i < spec->n_dim; i++) {
        const int64_t x = spec->extent[i] + (changed && i == 0 && strcmp(t->how, "shape") == 0);
        n += snprintf(buffer + n, sizeof buffer - (size_t)n, "%s%lld", i ? "," : "", (long long)x);
        bytes *= (size_t)x;
    }
    if (changed && strcmp(t->how, "rank") == 0) n += snprintf(buffer + n, sizeof buffer - (size_t)n, ",1");
    (void)snprintf(buffer + n, sizeof buffer - (size_t)n, "],\"data_offsets\":[%zu,%zu]}", t->bytes, t->bytes + bytes);
    t->bytes += bytes;
    add(t, buffer);
    return REEL_OK;
}

/* The store borrows *block. */
static reel_store *make(reel_component component, int change_at, const char *how, uint8_t **block)
{
    text t = {.change_at = change_at, .how = how};
    add(&t, "{");
    assert_int_equal(reel_model_tensors(&model, component, entry, &t, &err), REEL_OK);
    add(&t, "}");
    *block = calloc(1, 8 + t.n + t.bytes);
    assert_non_null(*block);
    for (int i = 0; i < 8; i++) (*block)[i] = (uint8_t)(t.n >> (8 * i));
    memcpy(*block + 8, t.data, t.n);
    reel_store *store = NULL;
    if (reel_store_parse(*block, 8 + t.n + t.bytes, "made", &store, &err) != REEL_OK) fail_msg("%s", err.text);
    free(t.data);
    return store;
}

typedef struct heard {
    int n;
    char first[512], last[512];
} heard;

static void hear(void *user, const char *problem)
{
    heard *h = user;
    if (h->n++ == 0) (void)snprintf(h->first, sizeof h->first, "%s", problem);
    (void)snprintf(h->last, sizeof h->last, "%s", problem);
}

static void expect_one(reel_component component, int at, const char *how, const char *wanted)
{
    uint8_t *block = NULL;
    reel_store *store = make(component, at, how, &block);
    heard h = {0};
    reel_check_component_all(&model, component, store, hear, &h);
    assert_int_equal(h.n, 1);
    if (!strstr(h.first, wanted)) fail_msg("\"%s\" is not in: %s", wanted, h.first);
    assert_int_equal(reel_check_component(&model, component, store, &err), REEL_E_MODEL);
    if (!strstr(err.text, wanted) || strstr(err.text, "more problem")) fail_msg("%s", err.text);
    reel_store_close(&store);
    free(block);
}

static void test_one_fault(void **state)
{
    (void)state;
    /* first tensor of the transformer: patch_embedding.weight [256, 16, 1, 2, 2] */
    expect_one(REEL_COMPONENT_TRANSFORMER, 0, "missing", "transformer: no tensor \"patch_embedding.weight\" [256, 16, 1, 2, 2]");
    expect_one(REEL_COMPONENT_TRANSFORMER_2, 0, "shape",
               "transformer_2: \"patch_embedding.weight\" is [257, 16, 1, 2, 2], the config demands [256, 16, 1, 2, 2]");
    expect_one(REEL_COMPONENT_TRANSFORMER, 0, "rank", "is [256, 16, 1, 2, 2, 1], the config demands [256, 16, 1, 2, 2]");
    expect_one(REEL_COMPONENT_TRANSFORMER, 0, "dtype", "\"patch_embedding.weight\" is BOOL");
    for (int c = 0; c < REEL_COMPONENT_COUNT; c++) {
        expect_one((reel_component)c, 20, "missing", "no tensor");
        expect_one((reel_component)c, 21, "shape", "the config demands");
    }
}

static void test_all_good(void **state)
{
    (void)state;
    for (int c = 0; c < REEL_COMPONENT_COUNT; c++) {
        uint8_t *block = NULL;
        reel_store *store = make((reel_component)c, -1, "", &block);
        heard h = {0};
        reel_check_component_all(&model, (reel_component)c, store, hear, &h);
        assert_int_equal(h.n, 0);
        assert_int_equal(reel_check_component(&model, (reel_component)c, store, &err), REEL_OK);
        reel_store_close(&store);
        free(block);
    }
}

static void test_all_missing(void **state)
{
    (void)state;
    uint8_t *block = NULL;
    reel_store *store = make(REEL_COMPONENT_VAE, -2, "", &block);
    heard h = {0};
    reel_check_component_all(&model, REEL_COMPONENT_VAE, store, hear, &h);
    assert_int_equal(h.n, 21);
    assert_string_equal(h.last, "vae: 174 more problems");
    assert_int_equal(reel_check_component(&model, REEL_COMPONENT_VAE, store, &err), REEL_E_MODEL);
    assert_non_null(strstr(err.text, "(and 193 more problems)"));
    reel_store_close(&store);
    free(block);
}

static int setup(void **state)
{
    (void)state;
    return reel_model_open(REEL_SOURCE_DIR "/models/wan-tiny-t2v", &model, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_fault), cmocka_unit_test(test_all_good),
                                       cmocka_unit_test(test_all_missing)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
