/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU device's entry in the table of built-in plug-ins. */
#include "backends/device/cpu/plugin.h"
#include "backends/device/cpu/device.h"

/* Any machine can run it; a device with an accelerator scores higher. */
static int32_t cpu_score(void)
{
    return 10;
}

const reel_plugin reel_plugin_cpu = {
    .size = sizeof(reel_plugin),
    .abi = REEL_PLUGIN_ABI,
    .kind = REEL_PLUGIN_DEVICE,
    .name = "cpu",
    .version = REEL_VERSION_TEXT,
    .score = cpu_score,
    .device = &reel_cpu_vt,
};
