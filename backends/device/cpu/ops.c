/* SPDX-License-Identifier: Apache-2.0
 *
 * Which operations this device offers on this processor. Without AVX2 (or on another processor family) only attention is its own: the C
 * references of the engine do the rest. */
#include "backends/device/cpu/device.h"
#include "backends/device/cpu/elt.h"
#include "backends/device/cpu/kernels.h"

const reel_cpu_kernels *reel_cpu_kernels_get(const reel_device *device)
{
#if defined(__x86_64__)
    if (device->isa >= REEL_CPU_ISA_AVX512) return &reel_cpu_kernels_avx512;
    if (device->isa >= REEL_CPU_ISA_AVX2) return &reel_cpu_kernels_avx2;
#else
    (void)device;
#endif
    return NULL;
}

const reel_cpu_conv_kernels *reel_cpu_conv_kernels_get(const reel_device *device, reel_dtype dtype)
{
#if defined(__x86_64__)
    if (dtype == REEL_DTYPE_BF16) return &reel_cpu_conv_avx512bf16;
#else
    (void)dtype;
#endif
    return &reel_cpu_kernels_get(device)->conv;
}

static const struct {
    const char *name;
    reel_op_fn fn;
    bool any_isa;
} operations[] = {
    {"linear", reel_cpu_op_linear, false},
    {"conv3d", reel_cpu_op_conv3d, false},
    {"attention", reel_cpu_op_attention, true},
    {"layer_norm", reel_cpu_op_layer_norm, false},
    {"rms_norm", reel_cpu_op_rms_norm, false},
    {"rms_sum", reel_cpu_op_rms_sum, false},
    {"rms_apply_rope", reel_cpu_op_rms_apply_rope, false},
    {"rms_norm_rope", reel_cpu_op_rms_norm_rope, false},
    {"channel_norm", reel_cpu_op_channel_norm, false},
    {"gate_residual", reel_cpu_op_gate_residual, false},
    {"gated_gelu", reel_cpu_op_gated_gelu, false},
    {"silu", reel_cpu_op_silu, false},
    {"modulation", reel_cpu_op_modulation, false},
    {"patchify", reel_cpu_op_patchify, false},
    {"unpatchify", reel_cpu_op_unpatchify, false},
    {"gather_rows", reel_cpu_op_gather_rows, false},
    {"convert", reel_cpu_op_convert, false},
    {"combine", reel_cpu_op_combine, false},
    {"affine_channels", reel_cpu_op_affine_channels, false},
    {"frames_to_u8", reel_cpu_op_frames_to_u8, false},
    {"count_nonfinite", reel_cpu_op_count_nonfinite, false},
};

reel_op_fn reel_cpu_op(reel_device *device, const char *name, uint32_t version)
{
    bool has_kernels = reel_cpu_kernels_get(device) != NULL;
    for (size_t i = 0; i < REEL_COUNT(operations) && version == 1; i++) {
        if (strcmp(operations[i].name, name) != 0) continue;
        return has_kernels || operations[i].any_isa ? operations[i].fn : NULL;
    }
    return NULL;
}

bool reel_cpu_has_fast_bf16(const reel_device *device)
{
#if defined(REEL_WITH_ONEDNN)
    return device->isa >= REEL_CPU_ISA_AVX512_BF16;
#else
    (void)device;
    return false;
#endif
}
