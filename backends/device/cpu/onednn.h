/* SPDX-License-Identifier: Apache-2.0
 *
 * The small face of oneDNN that the CPU device uses.
 *
 * A reel_dnn_spec says one product as plain numbers; it is also the key under which its primitive is kept, so
 * nothing is created or allocated once a shape has been seen. onednn_v2.c and onednn_v3.c create primitives through the two C APIs (the
 * version at compile time picks one); everything else is in onednn.c. One thread per device at a time, as everywhere. */
#ifndef REEL_CPU_ONEDNN_H
#define REEL_CPU_ONEDNN_H

#include "backends/device/cpu/cpu.h"

/* Lowers oneDNN to the device's instruction set. oneDNN keeps that level for the whole process and from its first use on, so the
 * first device of a process decides: another level is refused with REEL_E_UNSUPPORTED. */
reel_status reel_cpu_onednn_open(reel_device *device, reel_error *err);
void reel_cpu_onednn_close(reel_device *device);
/* "oneDNN 2.6.3", or that this build has none. */
void reel_cpu_onednn_version(char *out, size_t out_bytes);

enum { REEL_DNN_PLAIN = -1 }; /* layout of a weight as stored */

/* One product. All fields are compared byte by byte: start from zero. */
typedef struct reel_dnn_spec {
    int32_t x_dtype, y_dtype; /* F32 or BF16; the weight has x's; f32 x needs f32 y */
    int32_t has_bias;
    int32_t layout; /* of the weight: REEL_DNN_PLAIN or from reel_dnn_layout_any */
    /* x [m, k], y [m, n], elements between rows; w_stride for plain weights [n][k] */
    int64_t m, n, k, x_stride, w_stride, y_stride;
} reel_dnn_spec;

/* Runs the primitive of a spec, which is made on first use and kept; oneDNN's scratchpad is the device's. bias NULL unless has_bias. */
reel_status reel_dnn_run(reel_device *device, const reel_dnn_spec *spec, const void *x, const void *w, const float *bias, void *y,
                         reel_error *err);

/* oneDNN's favourite weight layout for a spec (its own layout field is ignored), and its bytes. */
reel_status reel_dnn_layout_any(reel_device *device, const reel_dnn_spec *spec, int32_t *layout, size_t *bytes, reel_error *err);
/* Writes plain rows of dtype F32 or BF16, w_stride apart, into a layout. */
reel_status reel_dnn_pack(reel_device *device, const reel_dnn_spec *spec, const void *w, reel_dtype w_dtype, int32_t layout, void *out,
                          reel_error *err);
/* Name of the implementation that oneDNN chooses for a spec ("brg:avx512_core"), for tests and benchmarks. */
reel_status reel_dnn_name(reel_device *device, const reel_dnn_spec *spec, const char **out, reel_error *err);

#endif
