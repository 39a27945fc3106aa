/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of the CPU device: instruction sets, threads, and the table of kernels that instruction sets fill.
 *
 * Kernels are picked at run time: reel_cpu_open detects what the processor and the system offer, lowers it to options.isa_max, and each
 * <part>.c fills its function pointers from the best isa/<name>/ file that may run. One parallel_for serves everything: OpenMP, or
 * plain threads in builds for the thread sanitizer. Work is split by output, never by reduction, so results do not depend on the
 * number of threads. */
#ifndef REEL_CPU_CPU_H
#define REEL_CPU_CPU_H

#include <stdbool.h>

#include "base/check.h"
#include "reel-plugin/device.h"
#include "reel-plugin/tensor_util.h"

/* Ordered: a higher one includes those below. */
typedef enum reel_cpu_isa {
    REEL_CPU_ISA_BASE = 0, /* C only */
    REEL_CPU_ISA_AVX2 = 1, /* AVX2, FMA, F16C */
    REEL_CPU_ISA_AVX512 = 2, /* AVX-512 F, BW, VL, DQ */
    REEL_CPU_ISA_AVX512_BF16 = 3, /* and BF16 */
    REEL_CPU_ISA_AMX = 4 /* and AMX-TILE, AMX-BF16 (used by oneDNN) */
} reel_cpu_isa;

/* What this processor and operating system can run. Asks the kernel for the AMX tiles, which a process must do once. */
reel_cpu_isa reel_cpu_detect(void);
const char *reel_cpu_isa_name(reel_cpu_isa isa);
/* The level of a name ("avx2", …); false for an unknown one. */
bool reel_cpu_isa_parse(const char *name, reel_cpu_isa *out);

/* The device object that reel_device points at. */
struct reel_device {
    reel_host host;
    reel_cpu_isa isa;
    int32_t n_thread;
    /* scratch of one call at a time, grown on first use, per thread and shared */
    void *scratch;
    size_t scratch_bytes;
    void *pool; /* plain threads, NULL with OpenMP */
    void *onednn; /* state of the oneDNN file, NULL without it */
    char cpu_name[64];
};

/* Streams run everything at once. */
struct reel_stream {
    reel_device *device;
};

/* Threads: one per core that this process may use when n_thread is 0. Starts the pool in builds without OpenMP. */
reel_status reel_cpu_threads_open(reel_device *device, int32_t n_thread, reel_error *err);
void reel_cpu_threads_close(reel_device *device);

/* body(context, begin, end, thread) over [0, n) in at most n_thread contiguous pieces; thread < n_thread. Nested calls run on the caller. */
typedef void (*reel_cpu_body)(void *context, int64_t begin, int64_t end, int32_t thread);
void reel_cpu_parallel_for(const reel_device *device, int64_t n, void *context, reel_cpu_body body);
/* The same, pieces of `grain` items handed out one after another to whichever thread is free (for uneven work). */
void reel_cpu_parallel_dynamic(const reel_device *device, int64_t n, int64_t grain, void *context, reel_cpu_body body);

/* At least `bytes` of 64-byte aligned scratch, valid until the next call; NULL when out of memory. */
void *reel_cpu_scratch(reel_device *device, size_t bytes);

/* attn.c: implementations best first, NULL at the end; the operation takes the first that accepts. */
const reel_attn_impl *const *reel_cpu_attention_list(reel_device *device);
reel_status reel_cpu_op_attention(reel_stream *stream, const void *args, reel_error *err);

#endif
