/* SPDX-License-Identifier: Apache-2.0
 *
 * What the processor and the operating system can run, asked once per device.
 *
 * A feature counts when the processor has it (CPUID) and the system saves its registers (XGETBV); AMX also needs the kernel's
 * permission, which a process asks for once. */
#include "backends/device/cpu/cpu.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static const char *const isa_names[] = {
    [REEL_CPU_ISA_BASE] = "base",     [REEL_CPU_ISA_AVX2] = "avx2",
    [REEL_CPU_ISA_AVX512] = "avx512", [REEL_CPU_ISA_AVX512_BF16] = "avx512-bf16",
    [REEL_CPU_ISA_AMX] = "amx",
};

const char *reel_cpu_isa_name(reel_cpu_isa isa)
{
    return (size_t)isa < REEL_COUNT(isa_names) ? isa_names[isa] : "unknown";
}

bool reel_cpu_isa_parse(const char *name, reel_cpu_isa *out)
{
    for (size_t i = 0; i < REEL_COUNT(isa_names); i++) {
        if (strcmp(name, isa_names[i]) != 0) continue;
        *out = (reel_cpu_isa)i;
        return true;
    }
    return false;
}

#if defined(__x86_64__)

static uint64_t xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Linux gives the 8 KiB of tile registers only to processes that ask (arch_prctl ARCH_REQ_XCOMP_PERM, component 18). */
static bool request_amx(void)
{
    enum { ARCH_REQ_XCOMP_PERM_ = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM_, XFEATURE_XTILEDATA) == 0;
}

static bool has(uint32_t word, int bit)
{
    return (word >> bit & 1U) != 0;
}

reel_cpu_isa reel_cpu_detect(void)
{
    uint32_t a, b, c, d, b7, c7, d7, a71 = 0, unused;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return REEL_CPU_ISA_BASE;
    bool fma = has(c, 12), osxsave = has(c, 27), avx = has(c, 28), f16c = has(c, 29);
    if (!osxsave || !avx || !fma || !f16c || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) return REEL_CPU_ISA_BASE;
    if (a >= 1) (void)__get_cpuid_count(7, 1, &a71, &unused, &unused, &unused);
    uint64_t saved = xcr0();
    if ((saved & 0x6U) != 0x6U || !has(b7, 5) || !has(b7, 8)) return REEL_CPU_ISA_BASE; /* ymm; AVX2, BMI2 */
    bool zmm = (saved & 0xE6U) == 0xE6U;
    if (!zmm || !has(b7, 16) || !has(b7, 17) || !has(b7, 30) || !has(b7, 31)) return REEL_CPU_ISA_AVX2; /* F, DQ, BW, VL */
    if (!has(a71, 5)) return REEL_CPU_ISA_AVX512;
    bool tiles = (saved & 0x60000U) == 0x60000U && has(d7, 22) && has(d7, 24); /* AMX-BF16, AMX-TILE */
    return tiles && request_amx() ? REEL_CPU_ISA_AMX : REEL_CPU_ISA_AVX512_BF16;
}

#else

reel_cpu_isa reel_cpu_detect(void)
{
    return REEL_CPU_ISA_BASE;
}

#endif
