/* SPDX-License-Identifier: Apache-2.0
 *
 * The built-in entry of the CPU device, named by the engine's table of built-ins. */
#ifndef REEL_CPU_PLUGIN_H
#define REEL_CPU_PLUGIN_H

#include "reel-plugin/device.h"

extern const reel_plugin reel_plugin_cpu;

#endif
