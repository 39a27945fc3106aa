/* SPDX-License-Identifier: Apache-2.0
 *
 * Files: whole reads, read-only mappings, and outputs that appear whole or not at all.
 *
 * A reel_output is written under a temporary name in the target's own folder and renamed by reel_output_commit; until then an
 * existing file stays as it is, and reel_output_abandon leaves nothing behind. Errors carry the path and the system's reason. */
#ifndef REEL_BASE_FILE_H
#define REEL_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* A read-only mapping of a whole file. */
typedef struct reel_mapping {
    const uint8_t *data;
    size_t bytes;
} reel_mapping;

reel_status reel_map_file(const char *path, reel_mapping *out, reel_error *err);
void reel_unmap_file(reel_mapping *mapping);

/* Reads a whole file of at most max bytes into *out (appended). */
reel_status reel_read_file(const char *path, size_t max, reel_buf *out, reel_error *err);

bool reel_path_is_dir(const char *path);
bool reel_path_is_file(const char *path);
/* "dir/name" into out, or an error when it does not fit. */
reel_status reel_path_join(char *out, size_t out_bytes, const char *dir, const char *name, reel_error *err);

enum { REEL_PATH_MAX = 4096 };

typedef struct reel_output {
    char path[REEL_PATH_MAX];
    char temporary[REEL_PATH_MAX];
    bool no_clobber;
    bool is_open;
} reel_output;

/* Reserves a temporary file beside path (its ending is kept, so that writers that look at it still work). With no_clobber an
 * existing path is an error now and at commit. */
reel_status reel_output_begin(reel_output *out, const char *path, bool no_clobber, reel_error *err);
/* Flushes the temporary file to disk and renames it to path. On error nothing is left behind. */
reel_status reel_output_commit(reel_output *out, reel_error *err);
/* Removes the temporary file. Safe on a zeroed or committed output. */
void reel_output_abandon(reel_output *out);
/* begin, write, commit in one call. */
reel_status reel_write_file(const char *path, const void *data, size_t bytes, bool no_clobber, reel_error *err);

#endif
