/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights in the device's own layout. */
#include "backends/device/cpu/device.h"

reel_status reel_cpu_weight_pack(reel_device *device, const reel_weight *weight, reel_dtype compute, reel_packed **out, size_t *bytes,
                                 reel_error *err)
{
    (void)device, (void)weight, (void)compute, (void)err;
    *out = NULL;
    *bytes = 0;
    return REEL_OK;
}

void reel_cpu_weight_free(reel_device *device, reel_packed *packed)
{
    (void)device, (void)packed;
}
