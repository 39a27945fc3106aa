/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening one shared object as a plug-in. Private to src/device. */
#ifndef REEL_DEVICE_LOADER_H
#define REEL_DEVICE_LOADER_H

#include <stddef.h>

#include "base/check.h"
#include "reel-plugin/device.h"

enum { REEL_LOADER_REASON_MAX = 512 };

/* Paths of the plug-ins in a folder, by name; each and the array are freed with free(). */
reel_status reel_loader_list(const char *dir, char ***out, int32_t *n, reel_error *err);
/* The plug-in of a file and the handle to give back to reel_loader_close, or NULL with the reason. */
const reel_plugin *reel_loader_open(const char *path, void **handle, char *reason, size_t reason_bytes);
void reel_loader_close(void *handle);

#endif
