/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration files: a JSON object of the options' keys. What the command line says wins; unknown keys and contradictions are errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/options.h"
#include "base/json.h"

static reel_status keep(cli_args *args, char *text, reel_error *err)
{
    char **grown = text ? realloc(args->kept, sizeof *grown * ((size_t)args->n_kept + 1)) : NULL;
    if (!grown) {
        free(text);
        return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for the settings of a file\nremedy: close other programs");
    }
    args->kept = grown;
    args->kept[args->n_kept++] = text;
    return REEL_OK;
}

static reel_status wrong_value(const char *key, const json_t *value, const char *allowed, const char *path, reel_error *err)
{
    return REEL_FAIL(err, REEL_E_ARGUMENT,
                     "a setting has the wrong type\ngiven: \"%.60s\" in %s is %s\nallowed: %s\nremedy: correct the file", key, path,
                     reel_json_type_name(value), allowed);
}

static reel_status add_value(cli_args *args, const cli_option *option, const json_t *value, const char *path, reel_error *err)
{
    if (option->kind == CLI_KIND_FLAG) {
        if (!json_is_boolean(value)) return wrong_value(option->key, value, "true or false", path, err);
        return json_is_true(value) ? cli_add(args, option, NULL, true, err) : REEL_OK;
    }
    bool is_number = option->kind == CLI_KIND_INT || option->kind == CLI_KIND_REAL || option->kind == CLI_KIND_U64;
    char *text = NULL;
    if (json_is_string(value)) {
        if (strlen(json_string_value(value)) != json_string_length(value))
            return wrong_value(option->key, value, "text without zero characters", path, err);
        text = strdup(json_string_value(value));
    } else if (is_number && json_is_number(value)) {
        text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    } else {
        return wrong_value(option->key, value, is_number ? "a number (seeds above 2^63 in quotes)" : "a string", path, err);
    }
    REEL_TRY(keep(args, text, err));
    return cli_add(args, option, text, true, err);
}

static reel_status find_key(const cli_args *args, const char *key, const char *path, const cli_option **out, reel_error *err)
{
    char near_flag[CLI_FLAG_MAX];
    static const char *const no_keys[] = {"config", "help", "from"};
    const cli_option *option = cli_option_find(args->command, key, strlen(key));
    for (size_t i = 0; option && i < REEL_COUNT(no_keys); i++) {
        if (strcmp(option->key, no_keys[i]) != 0) continue;
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "a setting that a file may not hold\ngiven: \"%.60s\" in %s\nallowed: the keys that docs/options.md lists, save config, "
            "from and help\nremedy: give it on the command line",
            key, path);
    }
    if (option) {
        *out = option;
        return REEL_OK;
    }
    const char *near_name = cli_option_nearest(args->command, key, near_flag);
    return REEL_FAIL(err, REEL_E_ARGUMENT,
                     "unknown setting\ngiven: \"%.60s\" in %s\nallowed: the keys that docs/options.md lists\nremedy: %s%s%s", key, path,
                     near_name ? "did you mean \"" : "drop it", near_name ? near_name + 2 : "", near_name ? "\"?" : "");
}

/* What was on the command line, and its rivals, shadow the file. */
static bool is_shadowed(const cli_args *args, const cli_option *option)
{
    const cli_option *rival = cli_rival(args, option);
    for (int32_t i = 0; i < args->n_given; i++) {
        if (!args->given[i].from_config && (args->given[i].option == option || args->given[i].option == rival)) return true;
    }
    return false;
}

static reel_status add_all(cli_args *args, const json_t *root, const char *path, reel_error *err)
{
    for (void *at = json_object_iter((json_t *)(uintptr_t)root); at; at = json_object_iter_next((json_t *)(uintptr_t)root, at)) {
        const cli_option *option = NULL;
        const char *key = json_object_iter_key(at);
        const json_t *value = json_object_iter_value(at);
        REEL_TRY(find_key(args, key, path, &option, err));
        if (is_shadowed(args, option) || json_is_null(value)) continue;
        if (!option->repeats || !json_is_array(value)) {
            REEL_TRY(add_value(args, option, value, path, err));
            continue;
        }
        for (size_t i = 0; i < json_array_size(value); i++) REEL_TRY(add_value(args, option, json_array_get(value, i), path, err));
    }
    return REEL_OK;
}

reel_status cli_config_parse(cli_args *args, const char *text, size_t n, const char *path, reel_error *err)
{
    reel_json json;
    REEL_TRY(reel_json_parse(text, n, path, REEL_E_ARGUMENT, &json, err));
    reel_status status = add_all(args, json.root, path, err);
    reel_json_deinit(&json);
    return status;
}

reel_status cli_config_read(cli_args *args, const char *path, reel_error *err)
{
    reel_json json;
    REEL_TRY(reel_json_load(path, REEL_E_ARGUMENT, &json, err));
    reel_status status = add_all(args, json.root, path, err);
    reel_json_deinit(&json);
    return status;
}
