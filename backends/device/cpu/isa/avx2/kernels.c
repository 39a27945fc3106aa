/* SPDX-License-Identifier: Apache-2.0
 *
 * Our own kernels for AVX2, FMA and F16C: the templates, eight floats wide. */
#include "backends/device/cpu/isa/row_tmpl.h"

#include "backends/device/cpu/isa/gemm_tmpl.h"

#define REEL_CPU_TABLE reel_cpu_kernels_avx2
#include "backends/device/cpu/isa/table_tmpl.h"
