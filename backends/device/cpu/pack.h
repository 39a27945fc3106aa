/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in the device's own layout: what a reel_packed holds. */
#ifndef REEL_CPU_PACK_H
#define REEL_CPU_PACK_H

#include "backends/device/cpu/kernels.h"

typedef enum reel_packed_kind {
    REEL_PACKED_PANELS = 0, /* our f32 panels (kernels.h), for products */
    REEL_PACKED_DNN = 1, /* a layout of oneDNN's, for products */
    REEL_PACKED_CONV = 2 /* panels of convolution kernels, below */
} reel_packed_kind;

/* One convolution kernel: [panels][kt][kh][kw·I][panel], zeroes beyond the last output channel; bf16 in pairs of kw·I. */
typedef struct reel_packed_part {
    void *data;
    size_t bytes;
} reel_packed_part;

struct reel_packed {
    reel_packed_kind kind;
    reel_dtype dtype; /* of the packed elements */
    bool rounds; /* each was rounded to bf16 first, for bf16 inputs */
    int64_t row_begin, row_end;
    int32_t layout; /* oneDNN's */
    int32_t panel; /* convolutions: output channels of a panel */
    bool is_dot; /* few output channels: [kt][kh][O][kw·I], for products whose lanes run over k; panel is O */
    reel_packed_part whole;
    /* 1×3×3 convolutions: the four 2×2 kernels of an upsampled picture's even and odd rows and columns */
    reel_packed_part parity[4];
};

/* The dtype that products with inputs of `x` compute in. */
reel_dtype reel_cpu_compute_dtype(const reel_device *device, reel_dtype x);
/* The same for convolutions: bf16 kernels take channels in pairs. */
reel_dtype reel_cpu_conv_dtype(const reel_device *device, reel_dtype x, int64_t n_in);
/* The packed form when it serves this call, else NULL. */
const reel_packed *reel_cpu_packed_for(const reel_weight *w, reel_dtype compute, bool rounds);
/* Rows [first, first + n) of a matrix as `dtype`, dense; bf16 inputs want their weights rounded to bf16 even where they compute in f32. */
void reel_cpu_widen_rows(const reel_device *device, const reel_weight *w, int64_t first, int64_t n, reel_dtype dtype, bool rounds,
                         void *out);
/* Rows [row, row + n) of w as panels, zeroes beyond row_end. */
void reel_cpu_pack_panels(const reel_device *device, const reel_weight *w, int64_t row, int64_t n, bool rounds, float *out);

#endif
