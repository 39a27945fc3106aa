/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the safetensors fixtures of tests without the project's own reader: a failing reader must not hide in its own tests. Any fault ends the
 * running test. */
#ifndef REEL_TESTS_FIXTURE_H
#define REEL_TESTS_FIXTURE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fixture {
    json_t *header;
    uint8_t *bytes; /* the whole file */
    size_t data_begin, n;
} fixture;

/* relative: below the source folder, e.g. "tests/fixtures/…". */
fixture fixture_open(const char *relative);
void fixture_close(fixture *f);
/* The data of a tensor, whose dtype must be the one given ("F32", "I32", …); *count gets its number of elements. Aligned for its dtype. */
const void *fixture_get(const fixture *f, const char *name, const char *dtype, size_t *count);

#endif
