/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of text/normalizer.h, as the tokenizers library takes them. */
#include "text/normalizer.h"

#include <stdlib.h>
#include <string.h>

/* A map is asked for a whole cluster (letter and marks) shorter than this; the characters of a longer one are asked for one by one. */
enum { CLUSTER_BYTES = 6 };

static int sextet(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Base64 with padding. out holds 3 bytes for every 4 characters; false when it is malformed. */
static bool decode_base64(const char *text, size_t n, uint8_t *out, size_t *made)
{
    *made = 0;
    if (n % 4 != 0) return false;
    for (size_t i = 0; i < n; i += 4) {
        size_t pad = i + 4 < n ? 0 : (size_t)(text[i + 3] == '=') + (size_t)(text[i + 3] == '=' && text[i + 2] == '=');
        uint32_t word = 0;
        for (size_t j = 0; j < 4; j++) {
            int value = j >= 4 - pad ? 0 : sextet(text[i + j]);
            if (value < 0) return false;
            word = word << 6 | (uint32_t)value;
        }
        for (size_t j = 0; j < 3 - pad; j++) out[(*made)++] = (uint8_t)(word >> (16 - 8 * j));
    }
    return true;
}

static reel_status init_map(reel_normal_step *step, const json_t *value, const char *path, reel_error *err)
{
    const json_t *map = json_object_get(value, "precompiled_charsmap");
    if (!json_is_string(map)) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "a normaliser has no map\ngiven: \"precompiled_charsmap\" in %s is %s\nallowed: a string\n"
                         "remedy: fetch the file again",
                         path, reel_json_type_name(map));
    }
    size_t n = json_string_length(map), made = 0;
    uint8_t *bytes = malloc(n + 1);
    if (!bytes) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a map of %zu bytes\nremedy: close other programs", n);
    reel_status status = REEL_OK;
    if (!decode_base64(json_string_value(map), n, bytes, &made)) {
        status = REEL_FAIL(err, REEL_E_MODEL,
                           "a normaliser's map is damaged\ngiven: \"precompiled_charsmap\" in %s is not base64\nremedy: fetch the file "
                           "again",
                           path);
    } else {
        status = reel_charsmap_init(&step->map, bytes, made, path, err);
    }
    free(bytes);
    return status;
}

static reel_status need_string(const json_t *value, const char *key, const char *path, reel_buf *out, reel_error *err)
{
    const json_t *text = json_object_get(value, key);
    if (!json_is_string(text)) {
        return REEL_FAIL(err, REEL_E_MODEL,
                         "a normaliser lacks a text\ngiven: \"%s\" in %s is %s\nallowed: a string\nremedy: fetch the file again", key, path,
                         reel_json_type_name(text));
    }
    return reel_buf_append(out, json_string_value(text), json_string_length(text), err);
}

static reel_status init_replace(reel_normal_step *step, const json_t *value, const char *path, reel_error *err)
{
    const json_t *pattern = json_object_get(value, "pattern"), *regex = json_object_get(pattern, "Regex");
    REEL_TRY(need_string(value, "content", path, &step->content, err));
    if (json_is_string(regex)) {
        if (strcmp(json_string_value(regex), " {2,}") != 0) {
            return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                             "a normaliser replaces by a pattern that reel does not know\ngiven: \"%.80s\" in %s\nallowed: \" {2,}\", or "
                             "a plain text\nremedy: use a tokenizer of a Wan model",
                             json_string_value(regex), path);
        }
        step->kind = REEL_NORMAL_BLANKS;
        return REEL_OK;
    }
    REEL_TRY(need_string(pattern, "String", path, &step->pattern, err));
    if (step->pattern.n == 0) {
        return REEL_FAIL(err, REEL_E_MODEL, "a normaliser replaces an empty text\ngiven: %s\nremedy: fetch the file again", path);
    }
    return REEL_OK;
}

static reel_status init_strip(reel_normal_step *step, const json_t *value, const char *path, reel_error *err)
{
    const reel_json object = {.root = (json_t *)value, .path = path, .fault = REEL_E_MODEL};
    REEL_TRY(reel_json_opt_bool(&object, "strip_left", &step->left, err));
    return reel_json_opt_bool(&object, "strip_right", &step->right, err);
}

static reel_status init_one(reel_normalizer *normalizer, const json_t *value, const char *type, const char *path, reel_error *err)
{
    static const struct {
        const char *type;
        reel_normal_kind kind;
        reel_form form;
    } kinds[] = {
        {"Precompiled", REEL_NORMAL_MAP, 0},        {"Strip", REEL_NORMAL_STRIP, 0},
        {"Replace", REEL_NORMAL_REPLACE, 0},        {"Prepend", REEL_NORMAL_PREPEND, 0},
        {"NFC", REEL_NORMAL_FORM, REEL_FORM_NFC},   {"NFD", REEL_NORMAL_FORM, REEL_FORM_NFD},
        {"NFKC", REEL_NORMAL_FORM, REEL_FORM_NFKC}, {"NFKD", REEL_NORMAL_FORM, REEL_FORM_NFKD},
    };
    for (size_t i = 0; i < REEL_COUNT(kinds); i++) {
        if (strcmp(type, kinds[i].type) != 0) continue;
        if (normalizer->n == REEL_NORMAL_STEPS_MAX) {
            return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                             "a normaliser has too many steps\ngiven: %s\nallowed: %d\nremedy: use a tokenizer of a Wan model", path,
                             REEL_NORMAL_STEPS_MAX);
        }
        reel_normal_step *step = &normalizer->step[normalizer->n++];
        *step = (reel_normal_step){.kind = kinds[i].kind, .form = kinds[i].form};
        if (step->kind == REEL_NORMAL_MAP) return init_map(step, value, path, err);
        if (step->kind == REEL_NORMAL_STRIP) return init_strip(step, value, path, err);
        if (step->kind == REEL_NORMAL_REPLACE) return init_replace(step, value, path, err);
        if (step->kind == REEL_NORMAL_PREPEND) return need_string(value, "prepend", path, &step->content, err);
        return REEL_OK;
    }
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "a tokenizer normalises in a way that reel does not know\ngiven: \"%.80s\" in %s\nallowed: Sequence, Precompiled, "
                     "Strip, Replace, Prepend, NFC, NFD, NFKC, NFKD\nremedy: use a tokenizer of a Wan model",
                     type, path);
}

static reel_status init_any(reel_normalizer *normalizer, const json_t *value, int depth, const char *path, reel_error *err)
{
    if (!value || json_is_null(value)) return REEL_OK;
    const json_t *type = json_object_get(value, "type");
    if (!json_is_string(type)) {
        return REEL_FAIL(err, REEL_E_MODEL, "a normaliser has no type\ngiven: \"normalizer\" in %s\nremedy: fetch the file again", path);
    }
    if (strcmp(json_string_value(type), "Sequence") != 0) return init_one(normalizer, value, json_string_value(type), path, err);
    const json_t *list = json_object_get(value, "normalizers");
    if (!json_is_array(list) || depth >= 4) {
        return REEL_FAIL(
            err, REEL_E_MODEL,
            "a list of normalisers is wrong\ngiven: %s\nallowed: an array, nested 4 deep at most\nremedy: fetch the file again", path);
    }
    for (size_t i = 0; i < json_array_size(list); i++) REEL_TRY(init_any(normalizer, json_array_get(list, i), depth + 1, path, err));
    return REEL_OK;
}

reel_status reel_normalizer_init(reel_normalizer *normalizer, const json_t *value, const char *path, reel_error *err)
{
    reel_status status = init_any(normalizer, value, 0, path, err);
    if (status != REEL_OK) reel_normalizer_deinit(normalizer);
    return status;
}

void reel_normalizer_deinit(reel_normalizer *normalizer)
{
    for (int32_t i = 0; i < normalizer->n; i++) {
        reel_charsmap_deinit(&normalizer->step[i].map);
        reel_buf_deinit(&normalizer->step[i].pattern);
        reel_buf_deinit(&normalizer->step[i].content);
    }
    *normalizer = (reel_normalizer){0};
}

/* ---- steps: from text to *out ---------------------------------------------------------------------------------------- */

/* The characters of text one by one. */
static reel_status map_characters(const reel_charsmap *map, const char *text, size_t n, reel_buf *out, reel_error *err)
{
    for (size_t at = 0; at < n;) {
        size_t from = at, matched = 0;
        uint32_t c = 0;
        if (!reel_utf8_next(text, n, &at, &c)) at++;
        const char *to = reel_charsmap_find(map, text + from, at - from, &matched);
        REEL_TRY(reel_buf_append(out, to ? to : text + from, to ? strlen(to) : at - from, err));
    }
    return REEL_OK;
}

static reel_status add_form(reel_form form, const char *text, size_t n, reel_buf *out, reel_error *err)
{
    reel_u32 wide = {0};
    reel_status status = reel_u32_from_utf8(text, n, &wide, err);
    if (status == REEL_OK) status = reel_u32_normalize(&wide, form, err);
    if (status == REEL_OK) status = reel_u32_to_utf8(wide.at, wide.n, out, err);
    reel_u32_deinit(&wide);
    return status;
}

static reel_status changes_in_nfkc(const char *text, size_t n, bool *changes, reel_error *err)
{
    reel_buf plain = {0};
    reel_status status = add_form(REEL_FORM_NFKC, text, n, &plain, err);
    if (status == REEL_OK) *changes = plain.n != n || memcmp(plain.data, text, n) != 0;
    reel_buf_deinit(&plain);
    return status;
}

/* One cluster. Of a short one tokenizers drops what lies behind the key. So do we, but for a mark after a character that NFKC changes
 * (½ with an accent): that one is kept (docs/text-cleaning.md). */
static reel_status map_cluster(const reel_charsmap *map, const char *text, size_t n, reel_buf *out, reel_error *err)
{
    size_t matched = 0;
    const char *to = n < CLUSTER_BYTES ? reel_charsmap_find(map, text, n, &matched) : NULL;
    if (!to) return map_characters(map, text, n, out, err);
    REEL_TRY(reel_buf_append(out, to, strlen(to), err));
    bool keeps = false;
    if (matched < n) REEL_TRY(changes_in_nfkc(text, matched, &keeps, err));
    return keeps ? map_characters(map, text + matched, n - matched, out, err) : REEL_OK;
}

static reel_status run_map(const reel_charsmap *map, const char *text, size_t n, reel_buf *out, size_t *lead, reel_error *err)
{
    reel_u32 ends = {0};
    reel_status status = REEL_OK;
    size_t old_lead = *lead;
    REEL_TRY_GOTO(reel_utf8_clusters(text, n, &ends, err), cleanup);
    *lead = 0;
    for (size_t i = 0, from = 0; i < ends.n; from = ends.at[i++]) {
        REEL_TRY_GOTO(map_cluster(map, text + from, ends.at[i] - from, out, err), cleanup);
        if (from < old_lead) *lead = out->n;
    }
cleanup:
    reel_u32_deinit(&ends);
    return status;
}

static reel_status run_strip(const reel_normal_step *step, const char *text, size_t n, reel_buf *out, size_t *lead, reel_error *err)
{
    size_t first = n, last = 0; /* from the first to behind the last character that is not white */
    for (size_t at = 0; at < n;) {
        size_t from = at;
        uint32_t c = 0;
        if (!reel_utf8_next(text, n, &at, &c)) at++;
        if (reel_char_is_white(c)) continue;
        if (first == n) first = from;
        last = at;
    }
    if (!step->left) first = 0;
    if (!step->right || last < first) last = n;
    *lead = *lead > first ? *lead - first : 0;
    return reel_buf_append(out, text + first, last - first, err);
}

/* Bytes of text that a REPLACE or BLANKS step takes at its beginning. */
static size_t replaced(const reel_normal_step *step, const char *text, size_t n)
{
    if (step->kind == REEL_NORMAL_REPLACE)
        return n >= step->pattern.n && memcmp(text, step->pattern.data, step->pattern.n) == 0 ? step->pattern.n : 0;
    size_t run = 0;
    while (run < n && text[run] == ' ') run++;
    return run >= 2 ? run : 0;
}

static reel_status run_replace(const reel_normal_step *step, const char *text, size_t n, reel_buf *out, size_t *lead, reel_error *err)
{
    size_t old_lead = *lead;
    *lead = 0;
    for (size_t at = 0; at < n;) {
        size_t taken = replaced(step, text + at, n - at);
        REEL_TRY(taken > 0 ? reel_buf_append(out, step->content.data, step->content.n, err) : reel_buf_append(out, text + at, 1, err));
        if (at < old_lead) *lead = out->n;
        at += taken ? taken : 1;
    }
    return REEL_OK;
}

static reel_status run_form(reel_form form, const char *text, size_t n, reel_buf *out, size_t *lead, reel_error *err)
{
    reel_buf first = {0};
    reel_status status = add_form(form, text, *lead, &first, err);
    if (status == REEL_OK) status = add_form(form, text, n, out, err);
    *lead = first.n < out->n ? first.n : out->n;
    reel_buf_deinit(&first);
    return status;
}

static reel_status run_step(const reel_normal_step *step, const reel_buf *from, reel_buf *out, size_t *lead, reel_error *err)
{
    switch (step->kind) {
    case REEL_NORMAL_MAP: return run_map(&step->map, from->data, from->n, out, lead, err);
    case REEL_NORMAL_STRIP: return run_strip(step, from->data, from->n, out, lead, err);
    case REEL_NORMAL_REPLACE:
    case REEL_NORMAL_BLANKS: return run_replace(step, from->data, from->n, out, lead, err);
    case REEL_NORMAL_PREPEND:
        *lead += *lead > 0 ? step->content.n : 0;
        REEL_TRY(reel_buf_append(out, step->content.data, step->content.n, err));
        return reel_buf_append(out, from->data, from->n, err);
    case REEL_NORMAL_FORM: return run_form(step->form, from->data, from->n, out, lead, err);
    }
    return REEL_FAIL(err, REEL_E_INTERNAL, "a normaliser of kind %d\nremedy: report this as a fault of reel", (int)step->kind);
}

reel_status reel_normalize(const reel_normalizer *normalizer, const char *text, size_t n, reel_buf *out, size_t *lead, reel_error *err)
{
    reel_buf spare = {0};
    uint32_t first = 0;
    *lead = 0;
    if (!reel_utf8_next(text, n, lead, &first)) *lead = n > 0 ? 1 : 0;
    reel_buf_clear(out);
    reel_status status = reel_buf_append(out, text, n, err);
    for (int32_t i = 0; i < normalizer->n && status == REEL_OK && out->n > 0; i++) {
        reel_buf_clear(&spare);
        status = run_step(&normalizer->step[i], out, &spare, lead, err);
        reel_buf swap = *out;
        *out = spare;
        spare = swap;
    }
    reel_buf_deinit(&spare);
    return status;
}
