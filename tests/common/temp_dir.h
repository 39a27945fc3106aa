/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder for the files of one test, removed with all that lies in it. Any fault ends the running test. */
#ifndef REEL_TESTS_TEMP_DIR_H
#define REEL_TESTS_TEMP_DIR_H

#include <stddef.h>

/* A new empty folder; hand it to temp_dir_free. */
char *temp_dir_new(void);
void temp_dir_free(char *dir);
/* "dir/name" in a buffer that lives until the fourth call after this one. */
const char *temp_path(const char *dir, const char *name);
/* Makes dir/name, with the folders that name mentions. */
void temp_write(const char *dir, const char *name, const void *data, size_t n);
/* How many entries the folder has. */
int temp_count(const char *dir);

#endif
