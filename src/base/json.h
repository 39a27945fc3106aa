/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading JSON strictly with positions in errors: typed getters over Jansson that say which file and key is wrong.
 *
 * A getter fails with REEL_E_MODEL (or the status given at load) naming file, key, the type found and the type wanted. "opt" getters
 * leave *out alone when the key is absent or null. Duplicate keys are errors. */
#ifndef REEL_BASE_JSON_H
#define REEL_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

typedef struct reel_json {
    json_t *root;
    const char *path; /* for messages; borrowed */
    reel_status fault; /* status that getters report */
} reel_json;

/* Parses bytes; the root must be an object. path names the source in messages and must outlive *out. */
reel_status reel_json_parse(const char *bytes, size_t n, const char *path, reel_status fault, reel_json *out, reel_error *err);
/* Reads and parses a file of at most 64 MiB. */
reel_status reel_json_load(const char *path, reel_status fault, reel_json *out, reel_error *err);
void reel_json_deinit(reel_json *json);

reel_status reel_json_int(const reel_json *json, const char *key, int64_t min, int64_t max, int64_t *out, reel_error *err);
reel_status reel_json_opt_int(const reel_json *json, const char *key, int64_t min, int64_t max, int64_t *out, reel_error *err);
reel_status reel_json_opt_double(const reel_json *json, const char *key, double min, double max, double *out, reel_error *err);
reel_status reel_json_opt_bool(const reel_json *json, const char *key, bool *out, reel_error *err);
/* *out is borrowed from the document; NULL stays when absent. */
reel_status reel_json_opt_string(const reel_json *json, const char *key, const char **out, reel_error *err);
/* An array of exactly n numbers. */
reel_status reel_json_doubles(const reel_json *json, const char *key, int32_t n, double *out, reel_error *err);
/* The value at key is present and not null. */
bool reel_json_has(const reel_json *json, const char *key);
/* "an object", "a string", … for messages. */
const char *reel_json_type_name(const json_t *value);

#endif
