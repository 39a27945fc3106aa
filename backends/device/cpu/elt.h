/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations over rows and elements (elt.c), for the device's table. */
#ifndef REEL_CPU_ELT_H
#define REEL_CPU_ELT_H

#include "backends/device/cpu/kernels.h"

reel_status reel_cpu_op_layer_norm(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_rms_norm(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_rms_sum(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_rms_apply_rope(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_rms_norm_rope(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_channel_norm(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_gate_residual(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_gated_gelu(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_silu(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_modulation(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_patchify(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_unpatchify(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_gather_rows(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_convert(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_combine(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_affine_channels(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_frames_to_u8(reel_stream *stream, const void *args, reel_error *err);
reel_status reel_cpu_op_count_nonfinite(reel_stream *stream, const void *args, reel_error *err);

#endif
