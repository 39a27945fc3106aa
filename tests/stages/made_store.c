/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints made from names (made_store.h). The rules for values are those of tests/reference/stages.py. */
#include "made_store.h"

#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/env.h"
#include "common/hashed.h"
#include "stage_bed.h"

/* One entry of the list: "name:dtype:e0,e1,…;". */
typedef struct listed {
    char name[128], dtype[8], shape[64];
    int64_t n, n_row;
} listed;

static const char *next_listed(const char *at, listed *out)
{
    int used = 0;
    if (sscanf(at, "%127[^:]:%7[^:]:%63[^;];%n", out->name, out->dtype, out->shape, &used) != 3) return NULL;
    out->n = 1;
    out->n_row = 0;
    for (char *s = out->shape; *s;) {
        const int64_t e = strtoll(s, &s, 10);
        if (out->n_row == 0) out->n_row = e;
        out->n *= e;
        if (*s == ',') s++;
    }
    return at + used;
}

static size_t listed_bytes(const listed *l)
{
    return (size_t)l->n * (strcmp(l->dtype, "F32") == 0 ? 4 : 2);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* What a hashed value is multiplied with, and what is added. */
static void rule(const listed *l, float *scale, float *add)
{
    *add = 0.0F;
    if (strstr(l->name, "norm") && ends_with(l->name, ".weight")) {
        *scale = 0.25F;
        *add = 1.0F;
    } else if (ends_with(l->name, ".bias")) {
        *scale = 0.1F;
    } else if (ends_with(l->name, "scale_shift_table")) {
        *scale = 0.5F;
    } else if (ends_with(l->name, "relative_attention_bias.weight")) {
        *scale = 2.0F;
    } else if (strcmp(l->name, "shared.weight") == 0) {
        *scale = 1.0F;
    } else {
        *scale = sqrtf(3.0F / (float)(l->n / l->n_row));
        if (ends_with(l->name, "SelfAttention.q.weight")) *scale *= 0.25F;
    }
}

static void make_weight(const listed *l, uint8_t *out)
{
    float scale, add, *v = malloc((size_t)l->n * sizeof *v);
    assert_non_null(v);
    hashed_values(l->name, v, l->n);
    rule(l, &scale, &add);
    for (int64_t i = 0; i < l->n; i++) {
        const float value = v[i] * scale + add;
        const uint16_t half = l->dtype[0] == 'B' ? reel_bf16_from_f32(value) : reel_f16_from_f32(value);
        if (strcmp(l->dtype, "F32") == 0) {
            memcpy(out + 4 * i, &value, 4);
        } else {
            memcpy(out + 2 * i, &half, 2);
        }
    }
    free(v);
}

/* Header of a safetensors file of what the list names, padded to 8 bytes; *data: bytes of all tensors. */
static char *make_header(const char *list, size_t *bytes, size_t *data)
{
    listed l;
    size_t used = 1, room = 16;
    for (const char *at = list; (at = next_listed(at, &l));) room += 256 + sizeof l;
    char *header = malloc(room);
    assert_non_null(header);
    header[0] = '{';
    *data = 0;
    for (const char *at = list; (at = next_listed(at, &l));) {
        const size_t end = *data + listed_bytes(&l);
        used +=
            (size_t)snprintf(header + used, room - used, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", used > 1 ? "," : "", l.name, l.dtype);
        used += (size_t)snprintf(header + used, room - used, "%s],\"data_offsets\":[%zu,%zu]}", l.shape, *data, end);
        *data = end;
    }
    header[used++] = '}';
    while (used % 8 != 0) header[used++] = ' ';
    *bytes = used;
    return header;
}

reel_store *made_store(const reel_store *fixture, uint8_t **bytes)
{
    const char *list = reel_store_metadata(fixture, "weights");
    assert_non_null(list);
    size_t n_header = 0, n_data = 0;
    char *header = make_header(list, &n_header, &n_data);
    uint8_t *file = malloc(8 + n_header + n_data);
    assert_non_null(file);
    for (int32_t i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)n_header >> (8 * i));
    memcpy(file + 8, header, n_header);
    free(header);
    listed l;
    uint8_t *out = file + 8 + n_header;
    for (const char *at = list; (at = next_listed(at, &l)); out += listed_bytes(&l)) make_weight(&l, out);
    reel_store *store = NULL;
    GOOD(reel_store_parse(file, 8 + n_header + n_data, "made", &store, &stage_fault));
    *bytes = file;
    return store;
}

double made_number(const reel_store *fixture, const char *key, int32_t index)
{
    const char *text = reel_store_metadata(fixture, "config");
    const size_t n = strlen(key);
    assert_non_null(text);
    for (const char *at = text; (at = strstr(at, key)); at++) {
        if ((at > text && at[-1] != ' ') || at[n] != ' ') continue;
        char *s = NULL;
        double value = strtod(at + n, &s);
        for (int32_t i = 0; i < index; i++) value = strtod(s, &s);
        return value;
    }
    fail_msg("the fixture's config has no %s", key);
    return 0.0;
}

int32_t made_integer(const reel_store *fixture, const char *key, int32_t index)
{
    return (int32_t)made_number(fixture, key, index);
}

double made_bf16_error(const reel_store *fixture)
{
    const char *text = reel_store_metadata(fixture, "bf16");
    assert_non_null(text);
    const double value = strtod(text, NULL);
    assert_true(value > 1e-4 && value < 0.1);
    return value;
}

int32_t made_for_each(const char *pattern, void (*each)(void *user, const reel_store *fixture, const char *name), void *user)
{
    glob_t found;
    const int rc = glob(pattern, 0, NULL, &found);
    if (rc == GLOB_NOMATCH) return 0;
    assert_int_equal(rc, 0);
    const int32_t n = (int32_t)found.gl_pathc;
    for (int32_t i = 0; i < n; i++) {
        reel_store *fixture = NULL;
        GOOD(reel_store_open_file(found.gl_pathv[i], &fixture, &stage_fault));
        each(user, fixture, strrchr(found.gl_pathv[i], '/') + 1);
        reel_store_close(&fixture);
    }
    globfree(&found);
    return n;
}

void made_true_sizes(const char *prefix, char *pattern, size_t room)
{
    const char *folder = reel_env("REEL_TEST_DATA");
    if (!folder) {
        print_message(
            "REEL_TEST_DATA is not set: true sizes (gigabytes of weights) are no part of this run, see tests/reference/true_sizes.py\n");
        skip();
    }
    (void)snprintf(pattern, room, "%s/%s*.safetensors", folder, prefix);
}
