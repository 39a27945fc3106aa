/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the CPU device, attention apart, share: the table of operations and the packing of weights. */
#ifndef REEL_CPU_DEVICE_H
#define REEL_CPU_DEVICE_H

#include "backends/device/cpu/cpu.h"

/* Upper bound of what operations allocate for themselves: panels of converted weights, a few row blocks, oneDNN's scratchpads. */
#define REEL_CPU_SCRATCH_MAX ((size_t)96 << 20)

extern const reel_device_vt reel_cpu_vt;

/* ops.c: the operation of that name and version, NULL where the C reference is to run. */
reel_op_fn reel_cpu_op(reel_device *device, const char *name, uint32_t version);
/* bf16 products run at twice the speed of f32 (AVX512-BF16 or AMX, with oneDNN). */
bool reel_cpu_has_fast_bf16(const reel_device *device);

/* linear.c, conv.c */
reel_status reel_cpu_op_linear(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_conv3d(reel_stream *stream, const void *args, reel_error *err);

/* pack.c */
reel_status reel_cpu_weight_pack(reel_device *device, const reel_weight *weight, reel_dtype compute, reel_packed **out, size_t *bytes,
                                 reel_error *err);
void reel_cpu_weight_free(reel_device *device, reel_packed *packed);

#endif
