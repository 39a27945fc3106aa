/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints that are not stored: tests/reference lists names, dtypes and shapes in a fixture's metadata, the values come from hashes
 * of the names (common/hashed.h) and are laid out as safetensors bytes in memory. */
#ifndef REEL_TESTS_MADE_STORE_H
#define REEL_TESTS_MADE_STORE_H

#include "weights/weights.h"

/* Weights that the fixture's metadata "weights" lists; *bytes is what the store borrows (free it after closing the store). */
reel_store *made_store(const reel_store *fixture, uint8_t **bytes);
/* Number `index` behind the word `key` in the fixture's metadata "config". */
double made_number(const reel_store *fixture, const char *key, int32_t index);
int32_t made_integer(const reel_store *fixture, const char *key, int32_t index);
/* The bf16 error of the library that made the fixture. */
double made_bf16_error(const reel_store *fixture);

/* Runs `each` on every file that fits the pattern and returns how many there were. */
int32_t made_for_each(const char *pattern, void (*each)(void *user, const reel_store *fixture, const char *name), void *user);
/* A pattern of files with a prefix in the folder that the environment variable REEL_TEST_DATA names, made by tests/reference/true_sizes.py: they are
 * too large to be made for every run. Skips the test, saying so, when it is not set; call it before anything is opened. */
void made_true_sizes(const char *prefix, char *pattern, size_t room);

#endif
