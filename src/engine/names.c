/* SPDX-License-Identifier: Apache-2.0
 *
 * The nearest known name to a mistyped one, by edit distance (insert, delete, replace, swap of neighbours). */
#include <string.h>

#include "engine/engine_internal.h"

enum { WORD_MAX = 64 };

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return a == b || ((a == '-' || a == '_') && (b == '-' || b == '_'));
}

static int32_t distance(const char *a, const char *b)
{
    const int32_t n = (int32_t)strlen(a), m = (int32_t)strlen(b);
    if (n >= WORD_MAX || m >= WORD_MAX) return WORD_MAX;
    int32_t row[3][WORD_MAX + 1];
    for (int32_t j = 0; j <= m; j++) row[0][j] = j;
    for (int32_t i = 1; i <= n; i++) {
        int32_t *now = row[i % 3], *before = row[(i + 2) % 3], *two = row[(i + 1) % 3];
        now[0] = i;
        for (int32_t j = 1; j <= m; j++) {
            now[j] = least(least(now[j - 1], before[j]) + 1, before[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1])) now[j] = least(now[j], two[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

const char *reel_nearest(const char *word, const char *const *list, int32_t n)
{
    const char *best = NULL;
    int32_t best_distance = WORD_MAX;
    for (int32_t i = 0; i < n; i++) {
        int32_t d = distance(word, list[i]);
        if (d < best_distance) {
            best_distance = d;
            best = list[i];
        }
    }
    const int32_t allowed = (int32_t)strlen(word) / 3 + 1;
    return best_distance <= allowed ? best : NULL;
}
