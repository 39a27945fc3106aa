/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions, for the device's table. */
#ifndef REEL_CPU_CONV_H
#define REEL_CPU_CONV_H

#include "backends/device/cpu/pack.h"

reel_status reel_cpu_op_conv3d(reel_stream *stream, const void *args, reel_error *err);

#endif
