/* SPDX-License-Identifier: Apache-2.0
 *
 * Which operations this device offers on this processor. */
#include "backends/device/cpu/device.h"

#include <string.h>

reel_op_fn reel_cpu_op(reel_device *device, const char *name, uint32_t version)
{
    (void)device;
    if (version != 1) return NULL;
    if (strcmp(name, "attention") == 0) return reel_cpu_op_attention;
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
