/* SPDX-License-Identifier: Apache-2.0
 *
 * What stage tests share: a device with poisoned memory, recorded tensors, and errors between two tensors. */
#ifndef REEL_TESTS_STAGE_BED_H
#define REEL_TESTS_STAGE_BED_H

#include "ops/ops.h"
#include "weights/weights.h"

typedef struct stage_bed {
    reel_device_vt vt;
    reel_device *device;
    reel_stream *stream;
    reel_ops ops;
} stage_bed;

/* The CPU device; its buffers are filled with NaN when they are made. with_references: the C references instead of its own operations. The
 * environment variable REEL_TEST_ISA ("avx2", "avx512") lowers the instruction sets, oneDNN's too; cmake/tests.cmake runs stages again with it. */
void stage_bed_open(stage_bed *bed, bool with_references);
void stage_bed_close(stage_bed *bed);

/* Relative L2 ‖a − b‖ / ‖b‖ in double; infinite when a holds a value that is not finite. */
double stage_error(const float *a, const float *b, int64_t n);
/* Device tensor as dense f32 host memory (free it). */
float *stage_download(const stage_bed *bed, const reel_tensor *t);
/* A tensor of a store as f32 (free it); *n its elements. Fails the test when it is not there. */
float *stage_load(const reel_store *store, const char *name, int64_t *n);
reel_store *stage_recording(const char *file); /* below tests/fixtures/wan-tiny-t2v */
reel_store *stage_model_store(const char *folder, const char *stem); /* below models/wan-tiny-t2v */

extern reel_error stage_fault; /* tests are one thread */
#define GOOD(call)                                                                                   \
    do {                                                                                             \
        if ((call) != REEL_OK) fail_msg("%s: %s\n(%s)", #call, stage_fault.text, stage_fault.trace); \
    } while (0)

#endif
