/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON for people. Plans, models and devices come from the library as JSON; this shows any of them: plain values as "key: value", lists of
 * objects as tables, bytes with units. Nothing is left out, so the text never knows less than the JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/cli.h"

enum { CELL_MAX = 512, COLUMN_MAX = 16, LIST_INLINE_MAX = 100 };

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* "weights_bytes" → "weights", "estimate_s" → "estimate"; underscores become blanks. */
static void title_of(const char *key, char *out, size_t out_bytes)
{
    (void)snprintf(out, out_bytes, "%s", key);
    if (ends_with(out, "_bytes")) out[strlen(out) - 6] = '\0';
    if (ends_with(out, "_s") && strlen(out) > 2) out[strlen(out) - 2] = '\0';
    for (char *p = out; *p; p++) *p = *p == '_' ? ' ' : *p;
}

static void bytes_text(double n, char *out, size_t out_bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;
    while (n >= 1024.0 && i + 1 < REEL_COUNT(units)) {
        n /= 1024.0;
        i++;
    }
    (void)snprintf(out, out_bytes, i == 0 ? "%.0f %s" : "%.1f %s", n, units[i]);
}

static void seconds_text(double s, char *out, size_t out_bytes)
{
    if (s >= 120.0) {
        (void)cli_time_text(s, out, out_bytes);
    } else {
        (void)snprintf(out, out_bytes, s >= 10.0 ? "%.1f s" : "%.3g s", s);
    }
}

static bool is_plain(const json_t *value)
{
    return !json_is_object(value) && !json_is_array(value);
}

static void plain_text(const char *key, const json_t *value, char *out, size_t out_bytes)
{
    if (json_is_string(value)) {
        (void)snprintf(out, out_bytes, "%s", json_string_value(value));
    } else if (json_is_boolean(value)) {
        (void)snprintf(out, out_bytes, "%s", json_is_true(value) ? "yes" : "no");
    } else if (json_is_null(value)) {
        (void)snprintf(out, out_bytes, "-");
    } else if (key && ends_with(key, "bytes")) {
        bytes_text(json_number_value(value), out, out_bytes);
    } else if (key && ends_with(key, "_s")) {
        seconds_text(json_number_value(value), out, out_bytes);
    } else if (json_is_integer(value)) {
        (void)snprintf(out, out_bytes, "%lld", (long long)json_integer_value(value));
    } else {
        (void)snprintf(out, out_bytes, "%.6g", json_number_value(value));
    }
}

/* "[a, b, c]" without brackets; false when it holds more than plain values or is long. */
static bool inline_list(const char *key, const json_t *list, char *out, size_t out_bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < json_array_size(list); i++) {
        char cell[CELL_MAX];
        const json_t *value = json_array_get(list, i);
        if (!is_plain(value)) return false;
        plain_text(key, value, cell, sizeof cell);
        int n = snprintf(out + used, out_bytes - used, "%s%s", i ? ", " : "", cell);
        if (n < 0 || (size_t)n >= out_bytes - used || used + (size_t)n > LIST_INLINE_MAX) return false;
        used += (size_t)n;
    }
    if (used == 0) (void)snprintf(out, out_bytes, "none");
    return true;
}

/* Columns of a list of objects; 0 when it is no table: an entry is no object, or holds more than plain values and short lists. */
static size_t table_columns(const json_t *list, const char **columns)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *row = json_array_get(list, i);
        if (!json_is_object(row)) return 0;
        for (void *at = json_object_iter(row); at; at = json_object_iter_next(row, at)) {
            char cell[CELL_MAX];
            const char *key = json_object_iter_key(at);
            const json_t *value = json_object_iter_value(at);
            size_t k = 0;
            if (json_is_object(value) || (json_is_array(value) && !inline_list(key, value, cell, sizeof cell))) return 0;
            while (k < n && strcmp(columns[k], key) != 0) k++;
            if (k < n) continue;
            if (n == COLUMN_MAX) return 0;
            columns[n++] = key;
        }
    }
    return n;
}

static void cell_text(const json_t *row, const char *key, char *out, size_t out_bytes)
{
    const json_t *value = json_object_get(row, key);
    if (!value) {
        out[0] = '\0';
    } else if (json_is_array(value)) {
        (void)inline_list(key, value, out, out_bytes);
    } else {
        plain_text(key, value, out, out_bytes);
    }
}

/* Columns on a terminal: every byte that does not continue a character. */
static int32_t width_of(const char *text)
{
    int32_t n = 0;
    for (const char *p = text; *p; p++) n += ((unsigned char)*p & 0xC0U) != 0x80U;
    return n;
}

static void print_cell(FILE *out, const char *text, int32_t width, bool is_number, bool is_last)
{
    int32_t blanks = width - width_of(text);
    if (is_number) (void)fprintf(out, "%*s", (int)blanks, "");
    (void)fputs(text, out);
    if (!is_number && !is_last) (void)fprintf(out, "%*s", (int)blanks, "");
    if (!is_last) (void)fputs("  ", out);
}

static void print_table(FILE *out, const json_t *list, const char **columns, size_t n_column, int32_t indent)
{
    int32_t width[COLUMN_MAX] = {0};
    bool is_number[COLUMN_MAX];
    char cell[CELL_MAX];
    for (size_t k = 0; k < n_column; k++) {
        is_number[k] = true;
        title_of(columns[k], cell, sizeof cell);
        width[k] = width_of(cell);
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *row = json_array_get(list, i), *value = json_object_get(row, columns[k]);
            cell_text(row, columns[k], cell, sizeof cell);
            if (width_of(cell) > width[k]) width[k] = width_of(cell);
            is_number[k] = is_number[k] && (!value || json_is_number(value) || json_is_null(value));
        }
    }
    (void)fprintf(out, "%*s", (int)indent, "");
    for (size_t k = 0; k < n_column; k++) {
        title_of(columns[k], cell, sizeof cell);
        print_cell(out, cell, width[k], is_number[k], k + 1 == n_column);
    }
    (void)fputc('\n', out);
    for (size_t i = 0; i < json_array_size(list); i++) {
        (void)fprintf(out, "%*s", (int)indent, "");
        for (size_t k = 0; k < n_column; k++) {
            cell_text(json_array_get(list, i), columns[k], cell, sizeof cell);
            print_cell(out, cell, width[k], is_number[k], k + 1 == n_column);
        }
        (void)fputc('\n', out);
    }
}

static void render_object(FILE *out, const json_t *object, int32_t indent);

/* An object of two or more objects with the same keys as a list of rows, each with its own key first; NULL when it is none. */
static json_t *rows_of(const json_t *object)
{
    json_t *source = (json_t *)(uintptr_t)object, *list = json_array(), *first = NULL;
    for (void *at = json_object_iter(source); at && list; at = json_object_iter_next(source, at)) {
        json_t *entry = json_object_iter_value(at), *row = json_object();
        first = first ? first : entry;
        bool same = row && json_is_object(entry) && json_object_size(entry) > 0 && json_object_size(entry) == json_object_size(first);
        for (void *k = same ? json_object_iter(entry) : NULL; k; k = json_object_iter_next(entry, k))
            same = same && json_object_get(first, json_object_iter_key(k));
        if (!same || json_object_set_new(row, "", json_string(json_object_iter_key(at))) != 0 || json_object_update(row, entry) != 0 ||
            json_array_append(list, row) != 0) {
            json_decref(list);
            list = NULL;
        }
        json_decref(row);
    }
    const char *columns[COLUMN_MAX];
    if (list && json_array_size(list) >= 2 && table_columns(list, columns) > 0) return list;
    json_decref(list);
    return NULL;
}

static void render_list(FILE *out, const char *key, const json_t *list, int32_t indent)
{
    const char *columns[COLUMN_MAX];
    size_t n_column = table_columns(list, columns);
    if (n_column > 0) {
        print_table(out, list, columns, n_column, indent);
        return;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        if (json_is_object(value)) {
            render_object(out, value, indent);
            if (i + 1 < json_array_size(list)) (void)fputc('\n', out);
        } else if (json_is_array(value)) {
            render_list(out, key, value, indent + 2);
        } else if (json_is_string(value)) {
            (void)fprintf(out, "%*s- %s\n", (int)indent, "", json_string_value(value));
        } else {
            char cell[CELL_MAX];
            plain_text(key, value, cell, sizeof cell);
            (void)fprintf(out, "%*s- %s\n", (int)indent, "", cell);
        }
    }
}

static void render_object(FILE *out, const json_t *object, int32_t indent)
{
    json_t *source = (json_t *)(uintptr_t)object; /* iterating does not change it */
    for (void *at = json_object_iter(source); at; at = json_object_iter_next(source, at)) {
        char title[CELL_MAX], cell[CELL_MAX];
        const char *key = json_object_iter_key(at);
        const json_t *value = json_object_iter_value(at);
        title_of(key, title, sizeof title);
        (void)fprintf(out, "%*s%s:", (int)indent, "", title);
        if (json_is_object(value)) {
            json_t *rows = rows_of(value);
            (void)fputc('\n', out);
            if (rows) {
                render_list(out, key, rows, indent + 2);
                json_decref(rows);
            } else {
                render_object(out, value, indent + 2);
            }
        } else if (json_is_array(value) && !inline_list(key, value, cell, sizeof cell)) {
            (void)fputc('\n', out);
            render_list(out, key, value, indent + 2);
        } else if (json_is_string(value)) {
            (void)fprintf(out, " %s\n", json_string_value(value));
        } else {
            if (!json_is_array(value)) plain_text(key, value, cell, sizeof cell);
            (void)fprintf(out, " %s\n", cell);
        }
    }
}

void cli_render(FILE *out, const json_t *value)
{
    if (json_is_object(value)) {
        render_object(out, value, 0);
    } else if (json_is_array(value)) {
        render_list(out, "", value, 0);
    }
}

reel_status cli_print_json(const cli_session *session, const char *text, reel_error *err)
{
    if (cli_has(&session->args, "json")) {
        (void)fprintf(stdout, "%s\n", text);
        return REEL_OK;
    }
    json_error_t where;
    json_t *value = json_loads(text, 0, &where);
    if (!value)
        return REEL_FAIL(err, REEL_E_INTERNAL,
                         "the library gave a report that is not JSON\ngiven: %s\nremedy: report this as a fault of reel", where.text);
    cli_render(stdout, value);
    json_decref(value);
    return REEL_OK;
}
