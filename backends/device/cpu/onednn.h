/* SPDX-License-Identifier: Apache-2.0
 *
 * The small face of oneDNN that the CPU device uses; onednn_v2.c and onednn_v3.c implement it for the two C APIs, and the library's
 * version at compile time picks one. */
#ifndef REEL_CPU_ONEDNN_H
#define REEL_CPU_ONEDNN_H

#include "backends/device/cpu/cpu.h"

/* Lowers oneDNN to the device's instruction set. oneDNN keeps that level for the whole process and from its first use on, so the
 * first device of a process decides: another level is refused with REEL_E_UNSUPPORTED. */
reel_status reel_cpu_onednn_open(reel_device *device, reel_error *err);
void reel_cpu_onednn_close(reel_device *device);
/* "oneDNN 2.6.3", or that this build has none. */
void reel_cpu_onednn_version(char *out, size_t out_bytes);

#endif
