/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices that this build holds. A back end that is linked in has its line here; all others come as files (loader.c). */
#include "device/builtin.h"

extern const reel_plugin reel_plugin_cpu;

const reel_plugin *const reel_builtin_plugins[] = {&reel_plugin_cpu, NULL};
