/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests: the option table (reel/params.def) as data, and what is done with it: defaults, setting by name, JSON. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "engine/engine_internal.h"

#define AT(field) offsetof(reel_request, field)
static const reel_field fields[] = {
#define P_INT(field, def, min, max, unit, help) {#field, REEL_FIELD_INT, AT(field), 0, (double)(min), (double)(max), NULL, help},
#define P_U64(field, help) {#field, REEL_FIELD_U64, AT(field), AT(has_##field), 0.0, 0.0, NULL, help},
#define P_REAL(field, def, min, max, unit, help) {#field, REEL_FIELD_REAL, AT(field), 0, min, max, NULL, help},
#define P_ENUM(field, def, values, help) {#field, REEL_FIELD_ENUM, AT(field), 0, 0.0, 0.0, values, help},
#define P_TEXT(field, placeholder, help) {#field, REEL_FIELD_TEXT, AT(field), 0, 0.0, 0.0, NULL, help},
#define P_FLAG(field, help) {#field, REEL_FIELD_FLAG, AT(field), 0, 0.0, 0.0, NULL, help},
#include "reel/params.def"
#undef P_INT
#undef P_U64
#undef P_REAL
#undef P_ENUM
#undef P_TEXT
#undef P_FLAG
};
#undef AT

const reel_field *reel_request_fields(int32_t *n)
{
    *n = (int32_t)REEL_COUNT(fields);
    return fields;
}

REEL_API void reel_request_init(reel_request *request)
{
    *request = (reel_request){
        .bytes = sizeof *request,
#define P_INT(field, def, min, max, unit, help) .field = (def),
#define P_U64(field, help) .field = 0,
#define P_REAL(field, def, min, max, unit, help) .field = (double)(def),
#define P_ENUM(field, def, values, help) .field = (def),
#define P_TEXT(field, placeholder, help) .field = NULL,
#define P_FLAG(field, help) .field = false,
#include "reel/params.def"
#undef P_INT
#undef P_U64
#undef P_REAL
#undef P_ENUM
#undef P_TEXT
#undef P_FLAG
    };
}

/* "guidance-scale" and "guidance_scale" are the same name. */
static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        if ((*a == '-' ? '_' : *a) != (*b == '-' ? '_' : *b)) return false;
    }
    return *a == *b;
}

static const reel_field *find_field(const char *name)
{
    for (size_t i = 0; i < REEL_COUNT(fields); i++) {
        if (same_name(fields[i].name, name)) return &fields[i];
    }
    return NULL;
}

static reel_status unknown_field(const char *name, reel_error *err)
{
    const char *list[REEL_COUNT(fields)];
    for (size_t i = 0; i < REEL_COUNT(fields); i++) list[i] = fields[i].name;
    const char *near = reel_word_nearest(name, list, REEL_COUNT(fields));
    return REEL_FAIL(err, REEL_E_ARGUMENT, "unknown setting\ngiven: \"%.80s\"\nallowed: the settings in docs/options.md\nremedy: %s%s%s",
                     name, near ? "did you mean \"" : "see `reel generate --help`", near ? near : "", near ? "\"?" : "");
}

static reel_status bad_number(const reel_field *f, const char *value, reel_error *err)
{
    if (f->type == REEL_FIELD_REAL) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "%s is not a number in its range\ngiven: \"%.80s\"\nallowed: a finite number, %g to %g\nremedy: correct %s",
                         f->name, value, f->min, f->max, f->name);
    }
    if (f->type == REEL_FIELD_U64) {
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "%s is not a whole number in its range\ngiven: \"%.80s\"\nallowed: 0 to 18446744073709551615, or a negative number "
            "down to -9223372036854775808 (taken modulo 2^64)\nremedy: correct %s",
            f->name, value, f->name);
    }
    return REEL_FAIL(err, REEL_E_ARGUMENT,
                     "%s is not a whole number in its range\ngiven: \"%.80s\"\nallowed: %.0f to %.0f\nremedy: correct %s", f->name, value,
                     f->min, f->max, f->name);
}

static bool starts_number(const char *value)
{
    return isdigit((unsigned char)value[0]) || ((value[0] == '-' || value[0] == '+') && isdigit((unsigned char)value[1]));
}

static reel_status set_int(const reel_field *f, const char *value, void *at, reel_error *err)
{
    char *end = NULL;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (!starts_number(value) || errno != 0 || *end != '\0' || (double)n < f->min || (double)n > f->max) return bad_number(f, value, err);
    *(int64_t *)at = n;
    return REEL_OK;
}

static reel_status set_u64(const reel_field *f, const char *value, void *at, bool *has, reel_error *err)
{
    char *end = NULL;
    errno = 0;
    uint64_t n = value[0] == '-' ? (uint64_t)strtoll(value, &end, 10) : strtoull(value, &end, 10);
    if (!starts_number(value) || errno != 0 || *end != '\0') return bad_number(f, value, err);
    *(uint64_t *)at = n;
    *has = true;
    return REEL_OK;
}

static reel_status set_real(const reel_field *f, const char *value, void *at, reel_error *err)
{
    char *end = NULL;
    errno = 0;
    double n = strtod(value, &end);
    bool is_plain = value[0] != '\0' && strspn(value, "0123456789+-.eE") == strlen(value);
    if (!is_plain || *end != '\0' || !(n >= f->min && n <= f->max)) return bad_number(f, value, err);
    *(double *)at = n;
    return REEL_OK;
}

/* Points at the table's own copy of the word, so that the caller's text need not live. */
static reel_status set_enum(const reel_field *f, const char *value, void *at, reel_error *err)
{
    static const char *const words[] = {"480p", "720p", "auto", "f32", "bf16", "mapped", "packed"};
    const size_t n = strlen(value);
    for (const char *v = f->values; v; v = strchr(v, '|') ? strchr(v, '|') + 1 : NULL) {
        if (n == 0 || strncmp(v, value, n) != 0 || (v[n] != '|' && v[n] != '\0')) continue;
        for (size_t i = 0; i < REEL_COUNT(words); i++) {
            if (strcmp(words[i], value) == 0) {
                *(const char **)at = words[i];
                return REEL_OK;
            }
        }
    }
    return REEL_FAIL(err, REEL_E_ARGUMENT, "unknown value for %s\ngiven: \"%.80s\"\nallowed: %s\nremedy: correct %s", f->name, value,
                     f->values, f->name);
}

static reel_status set_flag(const reel_field *f, const char *value, void *at, reel_error *err)
{
    const bool yes = !value || strcmp(value, "true") == 0, no = value && strcmp(value, "false") == 0;
    if (!yes && !no) {
        return REEL_FAIL(err, REEL_E_ARGUMENT, "%s is a switch\ngiven: \"%.80s\"\nallowed: true or false\nremedy: correct %s", f->name,
                         value, f->name);
    }
    *(bool *)at = yes;
    return REEL_OK;
}

REEL_API reel_status reel_request_set(reel_request *request, const char *name, const char *value, reel_error *err)
{
    const reel_field *f = find_field(name);
    if (!f) return unknown_field(name, err);
    char *base = (char *)request;
    if (!value && f->type != REEL_FIELD_FLAG) return bad_number(f, "", err);
    switch (f->type) {
    case REEL_FIELD_INT: return set_int(f, value, base + f->offset, err);
    case REEL_FIELD_U64: return set_u64(f, value, base + f->offset, (bool *)(base + f->offset_has), err);
    case REEL_FIELD_REAL: return set_real(f, value, base + f->offset, err);
    case REEL_FIELD_ENUM: return set_enum(f, value, base + f->offset, err);
    case REEL_FIELD_TEXT: *(const char **)(base + f->offset) = value; return REEL_OK;
    case REEL_FIELD_FLAG: return set_flag(f, value, base + f->offset, err);
    }
    return REEL_FAIL(err, REEL_E_INTERNAL, "a field of no known type\nremedy: report this as a fault of reel");
}

static json_t *field_json(const reel_request *request, const reel_field *f)
{
    const char *at = (const char *)request + f->offset;
    switch (f->type) {
    case REEL_FIELD_INT: return json_integer(*(const int64_t *)at);
    case REEL_FIELD_REAL: return isnan(*(const double *)at) ? json_null() : json_real(*(const double *)at);
    case REEL_FIELD_FLAG: return json_boolean(*(const bool *)at);
    case REEL_FIELD_ENUM: {
        const char *word = *(const char *const *)at; /* "" stands for "not chosen", and is no word that can be set again */
        return word && word[0] ? json_string(word) : json_null();
    }
    case REEL_FIELD_TEXT: return *(const char *const *)at ? json_string(*(const char *const *)at) : json_null();
    case REEL_FIELD_U64: {
        if (!*(const bool *)((const char *)request + f->offset_has)) return json_null();
        char text[32]; /* JSON integers end at 2^63: seeds are strings */
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)*(const uint64_t *)at);
        return json_string(text);
    }
    }
    return json_null();
}

reel_status reel_request_to_json(const reel_request *request, json_t **out, reel_error *err)
{
    json_t *o = json_object();
    for (size_t i = 0; o && i < REEL_COUNT(fields); i++) {
        json_t *v = field_json(request, &fields[i]);
        if (!v || (!json_is_null(v) && json_object_set(o, fields[i].name, v) != 0)) {
            json_decref(v);
            json_decref(o);
            return REEL_FAIL(err, REEL_E_ARGUMENT,
                             "a setting cannot be stored\ngiven: %s is not UTF-8, or memory is short\nremedy: correct %s", fields[i].name,
                             fields[i].name);
        }
        json_decref(v);
    }
    *out = o;
    return o ? REEL_OK : REEL_FAIL(err, REEL_E_MEMORY, "out of memory for the settings\nremedy: close other programs");
}

static reel_status check_field(const reel_request *q, const reel_field *f, reel_error *err)
{
    const char *at = (const char *)q + f->offset;
    char text[64];
    if (f->type == REEL_FIELD_INT) {
        const int64_t n = *(const int64_t *)at;
        const bool is_default = n == 0 || n == -1; /* "the model's own" */
        if ((double)n >= f->min && (double)n <= f->max) return REEL_OK;
        if (is_default && f->min > 0 && strcmp(f->name, "clips") != 0) return REEL_OK;
        (void)snprintf(text, sizeof text, "%lld", (long long)n);
        return bad_number(f, text, err);
    }
    if (f->type == REEL_FIELD_REAL) {
        const double n = *(const double *)at;
        if (isnan(n) || (n >= f->min && n <= f->max)) return REEL_OK;
        (void)snprintf(text, sizeof text, "%g", n);
        return bad_number(f, text, err);
    }
    return REEL_OK;
}

reel_status reel_request_check(const reel_request *q, reel_error *err)
{
    if (q->bytes != sizeof *q) {
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "a request of another version of reel\ngiven: %u bytes\nallowed: %zu\nremedy: call reel_request_init, and build against "
            "the library's own headers",
            q->bytes, sizeof *q);
    }
    if (q->n_prompt < 1 || !q->prompt) {
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "there is no prompt\ngiven: nothing\nallowed: one or more texts; \"\" makes a clip of no subject\nremedy: give --prompt "
            "or --prompt-file");
    }
    if (q->n_prompt > 10000 || (int64_t)q->n_prompt * q->clips > 100000) {
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "too many clips at once\ngiven: %d prompts, %lld clips each\nallowed: 10000 prompts, 100000 clips\nremedy: split the "
            "job",
            (int)q->n_prompt, (long long)q->clips);
    }
    for (size_t i = 0; i < REEL_COUNT(fields); i++) REEL_TRY(check_field(q, &fields[i], err));
    return REEL_OK;
}
