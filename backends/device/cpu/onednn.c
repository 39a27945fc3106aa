/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of oneDNN that are the same in its 2.x and 3.x C APIs: version, and the process-wide instruction-set level. */
#include "backends/device/cpu/onednn.h"

#include <stdio.h>

#if defined(REEL_WITH_ONEDNN)
#include <oneapi/dnnl/dnnl.h>

static dnnl_cpu_isa_t dnnl_isa(reel_cpu_isa isa)
{
    switch (isa) {
    case REEL_CPU_ISA_BASE: return dnnl_cpu_isa_sse41;
    case REEL_CPU_ISA_AVX2: return dnnl_cpu_isa_avx2;
    case REEL_CPU_ISA_AVX512: return dnnl_cpu_isa_avx512_core;
    case REEL_CPU_ISA_AVX512_BF16: return dnnl_cpu_isa_avx512_core_bf16;
    case REEL_CPU_ISA_AMX: return dnnl_cpu_isa_avx512_core_amx;
    }
    return dnnl_cpu_isa_sse41;
}

/* oneDNN takes a new level until somebody first reads it; reading it here at once makes "first device" mean the same whether
 * or not that device has computed something. */
reel_status reel_cpu_onednn_open(reel_device *device, reel_error *err)
{
    dnnl_cpu_isa_t wanted = dnnl_isa(device->isa);
    (void)dnnl_set_max_cpu_isa(wanted);
    dnnl_cpu_isa_t got = dnnl_get_effective_cpu_isa();
    if (got == wanted) return REEL_OK;
    reel_cpu_isa has = REEL_CPU_ISA_BASE;
    for (int i = REEL_CPU_ISA_AVX2; i <= REEL_CPU_ISA_AMX; i++) {
        if (dnnl_isa((reel_cpu_isa)i) == got) has = (reel_cpu_isa)i;
    }
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "oneDNN keeps one instruction-set level for the whole process, and it has been set already\n"
                     "given: level %s\nallowed: %s, as the process began with\n"
                     "remedy: open every device of a process with the same isa_max, or use a second process",
                     reel_cpu_isa_name(device->isa), reel_cpu_isa_name(has));
}

void reel_cpu_onednn_version(char *out, size_t out_bytes)
{
    const dnnl_version_t *v = dnnl_version();
    (void)snprintf(out, out_bytes, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
}

#else

reel_status reel_cpu_onednn_open(reel_device *device, reel_error *err)
{
    (void)device, (void)err;
    return REEL_OK;
}

void reel_cpu_onednn_version(char *out, size_t out_bytes)
{
    (void)snprintf(out, out_bytes, "built without oneDNN");
}

#endif

void reel_cpu_onednn_close(reel_device *device)
{
    (void)device;
}
