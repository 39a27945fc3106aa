/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU's attention implementations as a list with reasons, best first. Which one runs is the plan's choice; the operation `attention` takes the
 * first that accepts. */
#include <stdio.h>

#include "backends/device/cpu/attn.h"

static int32_t refuse(char *reason, size_t bytes, const char *format, const char *what)
{
    (void)snprintf(reason, bytes, format, what);
    return 0;
}

#if defined(__x86_64__)
static int32_t takes_bf16(reel_device *device, const reel_attn_shape *shape, char *reason, size_t bytes)
{
    if (device->isa < REEL_CPU_ISA_AVX512_BF16)
        return refuse(reason, bytes, "needs AVX512-BF16, in use is %s", reel_cpu_isa_name(device->isa));
    if (shape->dtype != REEL_DTYPE_BF16) return refuse(reason, bytes, "computes in bf16, asked for is %s", reel_dtype_name(shape->dtype));
    return 1;
}

static int32_t takes_avx512(reel_device *device, const reel_attn_shape *shape, char *reason, size_t bytes)
{
    (void)shape;
    return device->isa >= REEL_CPU_ISA_AVX512 ? 1 : refuse(reason, bytes, "needs AVX-512, in use is %s", reel_cpu_isa_name(device->isa));
}

static int32_t takes_avx2(reel_device *device, const reel_attn_shape *shape, char *reason, size_t bytes)
{
    (void)shape;
    return device->isa >= REEL_CPU_ISA_AVX2 ? 1 : refuse(reason, bytes, "needs AVX2 and FMA, in use is %s", reel_cpu_isa_name(device->isa));
}

static reel_status run_bf16(reel_stream *stream, const void *args, reel_error *err)
{
    return reel_cpu_attention_flash(stream->device, &reel_attn_avx512bf16, args, err);
}

static reel_status run_avx512(reel_stream *stream, const void *args, reel_error *err)
{
    return reel_cpu_attention_flash(stream->device, &reel_attn_avx512, args, err);
}

static reel_status run_avx2(reel_stream *stream, const void *args, reel_error *err)
{
    return reel_cpu_attention_flash(stream->device, &reel_attn_avx2, args, err);
}

static const reel_attn_impl flash_bf16 = {.size = sizeof flash_bf16,
                                          .name = "flash-avx512-bf16",
                                          .summary = "bf16 products with f32 sums, f32 softmax",
                                          .supports = takes_bf16,
                                          .run = run_bf16};
static const reel_attn_impl flash_avx512 = {.size = sizeof flash_avx512,
                                            .name = "flash-avx512",
                                            .summary = "f32 arithmetic, any input dtype",
                                            .supports = takes_avx512,
                                            .run = run_avx512};
static const reel_attn_impl flash_avx2 = {
    .size = sizeof flash_avx2, .name = "flash-avx2", .summary = "f32 arithmetic, any input dtype", .supports = takes_avx2, .run = run_avx2};
#endif

static int32_t takes_all(reel_device *device, const reel_attn_shape *shape, char *reason, size_t bytes)
{
    (void)device;
    (void)shape;
    (void)reason;
    (void)bytes;
    return 1;
}

static reel_status run_plain(reel_stream *stream, const void *args, reel_error *err)
{
    return reel_cpu_attention_plain(stream->device, args, err);
}

static const reel_attn_impl plain = {.size = sizeof plain,
                                     .name = "reference",
                                     .summary = "plain C, one query at a time: slow, for checking",
                                     .supports = takes_all,
                                     .run = run_plain};

static const reel_attn_impl *const implementations[] = {
#if defined(__x86_64__)
    &flash_bf16, &flash_avx512, &flash_avx2,
#endif
    &plain, NULL};

const reel_attn_impl *const *reel_cpu_attention_list(reel_device *device)
{
    (void)device;
    return implementations;
}

reel_status reel_cpu_op_attention(reel_stream *stream, const void *args, reel_error *err)
{
    const reel_op_attention *o = args;
    const reel_attn_shape shape = {.size = sizeof shape,
                                   .dtype = o->q.dtype,
                                   .head_dim = (int32_t)o->q.extent[3],
                                   .n_head = (int32_t)o->q.extent[2],
                                   .has_key_bias = o->key_bias.data != NULL,
                                   .has_relative_bias = o->relative_bias.data != NULL,
                                   .wants_lse = o->lse.data != NULL};
    char reason[128];
    for (const reel_attn_impl *const *i = implementations; *i; i++) {
        if ((*i)->supports(stream->device, &shape, reason, sizeof reason)) return (*i)->run(stream, args, err);
    }
    return REEL_FAIL(err, REEL_E_INTERNAL,
                     "no attention takes the shape\nremedy: report this as a fault of reel"); /* `reference` takes all */
}
