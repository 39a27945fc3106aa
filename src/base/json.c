/* SPDX-License-Identifier: Apache-2.0
 *
 * Typed, strict access to JSON documents (base/json.h). */
#include "base/json.h"

#include <float.h>
#include <math.h>

#include "base/file.h"

const char *reel_json_type_name(const json_t *value)
{
    if (!value) return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "a whole number";
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "true or false";
    case JSON_NULL: return "null";
    }
    return "something unknown";
}

reel_status reel_json_parse(const char *bytes, size_t n, const char *path, reel_status fault, reel_json *out, reel_error *err)
{
    json_error_t where;
    json_t *root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &where);
    if (!root) {
        return REEL_FAIL(err, fault, "not valid JSON: %s\ngiven: %s, line %d, column %d\nremedy: correct the file or fetch it again",
                         where.text, path, where.line, where.column);
    }
    if (!json_is_object(root)) {
        const char *found = reel_json_type_name(root);
        json_decref(root);
        return REEL_FAIL(err, fault,
                         "a JSON document has the wrong form\ngiven: %s holds %s\nallowed: an object\nremedy: correct the file or "
                         "fetch it again",
                         path, found);
    }
    *out = (reel_json){.root = root, .path = path, .fault = fault};
    return REEL_OK;
}

reel_status reel_json_load(const char *path, reel_status fault, reel_json *out, reel_error *err)
{
    reel_buf buf = {0};
    reel_status status = reel_read_file(path, (size_t)64 << 20, &buf, err);
    if (status == REEL_OK) status = reel_json_parse(buf.data ? buf.data : "", buf.n, path, fault, out, err);
    reel_buf_deinit(&buf);
    return status;
}

void reel_json_deinit(reel_json *json)
{
    json_decref(json->root);
    *json = (reel_json){0};
}

bool reel_json_has(const reel_json *json, const char *key)
{
    const json_t *v = json_object_get(json->root, key);
    return v && !json_is_null(v);
}

static reel_status wrong_type(const reel_json *json, const char *key, const json_t *v, const char *wanted, reel_error *err)
{
    return REEL_FAIL(err, json->fault,
                     "a value has the wrong type\ngiven: \"%s\" in %s is %s\nallowed: %s\nremedy: correct the file or fetch it "
                     "again",
                     key, json->path, reel_json_type_name(v), wanted);
}

reel_status reel_json_opt_int(const reel_json *json, const char *key, int64_t min, int64_t max, int64_t *out, reel_error *err)
{
    const json_t *v = json_object_get(json->root, key);
    if (!v || json_is_null(v)) return REEL_OK;
    if (!json_is_integer(v)) return wrong_type(json, key, v, "a whole number", err);
    int64_t n = json_integer_value(v);
    if (n < min || n > max) {
        return REEL_FAIL(err, json->fault,
                         "a value is out of range\ngiven: \"%s\" in %s is %lld\nallowed: %lld to %lld\nremedy: correct the file "
                         "or fetch it again",
                         key, json->path, (long long)n, (long long)min, (long long)max);
    }
    *out = n;
    return REEL_OK;
}

reel_status reel_json_int(const reel_json *json, const char *key, int64_t min, int64_t max, int64_t *out, reel_error *err)
{
    if (!reel_json_has(json, key)) {
        return REEL_FAIL(err, json->fault,
                         "a value is missing\ngiven: %s has no \"%s\"\nallowed: a whole number, %lld to %lld\nremedy: correct the "
                         "file or fetch it again",
                         json->path, key, (long long)min, (long long)max);
    }
    return reel_json_opt_int(json, key, min, max, out, err);
}

reel_status reel_json_opt_double(const reel_json *json, const char *key, double min, double max, double *out, reel_error *err)
{
    const json_t *v = json_object_get(json->root, key);
    if (!v || json_is_null(v)) return REEL_OK;
    if (!json_is_number(v)) return wrong_type(json, key, v, "a number", err);
    double n = json_number_value(v);
    if (!(n >= min && n <= max)) {
        return REEL_FAIL(err, json->fault,
                         "a value is out of range\ngiven: \"%s\" in %s is %g\nallowed: %g to %g\nremedy: correct the file or "
                         "fetch it again",
                         key, json->path, n, min, max);
    }
    *out = n;
    return REEL_OK;
}

reel_status reel_json_opt_bool(const reel_json *json, const char *key, bool *out, reel_error *err)
{
    const json_t *v = json_object_get(json->root, key);
    if (!v || json_is_null(v)) return REEL_OK;
    if (!json_is_boolean(v)) return wrong_type(json, key, v, "true or false", err);
    *out = json_is_true(v);
    return REEL_OK;
}

reel_status reel_json_opt_string(const reel_json *json, const char *key, const char **out, reel_error *err)
{
    const json_t *v = json_object_get(json->root, key);
    if (!v || json_is_null(v)) return REEL_OK;
    if (!json_is_string(v)) return wrong_type(json, key, v, "a string", err);
    *out = json_string_value(v);
    return REEL_OK;
}

reel_status reel_json_doubles(const reel_json *json, const char *key, int32_t n, double *out, reel_error *err)
{
    const json_t *v = json_object_get(json->root, key);
    if (!json_is_array(v)) return wrong_type(json, key, v, "an array of numbers", err);
    if (json_array_size(v) != (size_t)n) {
        return REEL_FAIL(err, json->fault,
                         "an array has the wrong length\ngiven: \"%s\" in %s has %zu values\nallowed: %d\nremedy: correct the file "
                         "or fetch it again",
                         key, json->path, json_array_size(v), (int)n);
    }
    for (int32_t i = 0; i < n; i++) {
        const json_t *x = json_array_get(v, (size_t)i);
        if (!json_is_number(x) || !isfinite(json_number_value(x))) return wrong_type(json, key, x, "an array of finite numbers", err);
        out[i] = json_number_value(x);
    }
    return REEL_OK;
}
