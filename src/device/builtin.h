/* SPDX-License-Identifier: Apache-2.0
 *
 * The static table of devices in this build, NULL at its end. Private to src/device. */
#ifndef REEL_DEVICE_BUILTIN_H
#define REEL_DEVICE_BUILTIN_H

#include "reel-plugin/device.h"

extern const reel_plugin *const reel_builtin_plugins[];

#endif
