/* SPDX-License-Identifier: Apache-2.0
 *
 * The known word nearest to a mistyped one, for error texts ("remedy: did you mean …"). */
#ifndef REEL_BASE_NEAREST_H
#define REEL_BASE_NEAREST_H

#include <stddef.h>
#include <stdint.h>

/* Edits (insert, delete, replace, swap neighbours; letter case is free) that make b of a, in bytes. Words beyond 63 bytes count as far away. */
int32_t reel_word_distance(const char *a, const char *b);
/* The nearest of n words, or NULL when none is near: at most a third of the longer word's bytes may change, or one is the other's beginning. */
const char *reel_word_nearest(const char *word, const char *const *words, size_t n);

#endif
