/* SPDX-License-Identifier: Apache-2.0
 *
 * Edit distance with swaps over three rows, for suggesting a name. */
#include "base/nearest.h"

#include <string.h>

enum { WORD_MAX = 63, FAR_AWAY = 1000 };

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

int32_t reel_word_distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    if (na > WORD_MAX || nb > WORD_MAX) return FAR_AWAY;
    int32_t row[3][WORD_MAX + 1];
    for (size_t j = 0; j <= nb; j++) row[0][j] = (int32_t)j;
    for (size_t i = 1; i <= na; i++) {
        int32_t *here = row[i % 3], *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
        here[0] = (int32_t)i;
        for (size_t j = 1; j <= nb; j++) {
            int same = lower(a[i - 1]) == lower(b[j - 1]);
            here[j] = least(least(up[j] + 1, here[j - 1] + 1), up[j - 1] + !same);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
                here[j] = least(here[j], up2[j - 2] + 1);
        }
    }
    return row[na % 3][nb];
}

static int begins(const char *word, const char *with)
{
    size_t n = strlen(with);
    for (size_t i = 0; i < n; i++) {
        if (lower(word[i]) != lower(with[i])) return 0;
    }
    return n > 1;
}

const char *reel_word_nearest(const char *word, const char *const *words, size_t n)
{
    const char *best = NULL;
    int32_t best_distance = FAR_AWAY;
    size_t n_word = strlen(word);
    for (size_t i = 0; i < n; i++) {
        size_t n_other = strlen(words[i]), longer = n_word > n_other ? n_word : n_other;
        int32_t distance = reel_word_distance(word, words[i]);
        if (distance > (int32_t)(longer < 6 ? 2 : longer / 3)) {
            /* far by count, yet one continues the other: "neg" for "negative-prompt" */
            if (!(n_word > 0 && n_other > 0 && (begins(words[i], word) || begins(word, words[i])))) continue;
            distance = FAR_AWAY - 1;
        }
        if (distance < best_distance) {
            best = words[i];
            best_distance = distance;
        }
    }
    return best;
}
