/* SPDX-License-Identifier: Apache-2.0
 *
 * The bed of stage tests (stage_bed.h). */
#include "stage_bed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/env.h"
#include "device/device.h"

reel_error stage_fault;
static const reel_device_vt *real;

static reel_status poisoned_buffer(reel_device *device, size_t bytes, void **out, reel_error *err)
{
    REEL_TRY(real->buffer_new(device, bytes, out, err));
    memset(*out, 0xFF, bytes);
    return REEL_OK;
}

static reel_op_fn no_op(reel_device *device, const char *name, uint32_t version)
{
    (void)device;
    (void)name;
    (void)version;
    return NULL;
}

void stage_bed_open(stage_bed *bed, bool with_references)
{
    reel_registry *registry = NULL;
    const reel_plugin *plugin = NULL;
    const reel_host host = {.size = sizeof host};
    const reel_device_options options = {.size = sizeof options, .n_thread = 2, .isa_max = reel_env("REEL_TEST_ISA")};
    GOOD(reel_registry_open(NULL, NULL, &registry, &stage_fault));
    GOOD(reel_registry_find(registry, "cpu", &plugin, &stage_fault));
    *bed = (stage_bed){.vt = *plugin->device};
    real = plugin->device;
    reel_registry_close(&registry); /* built in: its table stays */
    bed->vt.buffer_new = poisoned_buffer;
    if (with_references) {
        bed->vt.op = no_op;
        bed->vt.weight_pack = NULL;
    }
    GOOD(bed->vt.open(&host, &options, &bed->device, &stage_fault));
    GOOD(bed->vt.stream_new(bed->device, &bed->stream, &stage_fault));
    GOOD(reel_ops_bind(&bed->vt, bed->device, bed->stream, NULL, &bed->ops, &stage_fault));
}

void stage_bed_close(stage_bed *bed)
{
    reel_ops_unbind(&bed->ops);
    bed->vt.stream_free(bed->stream);
    bed->vt.close(bed->device);
}

double stage_error(const float *a, const float *b, int64_t n)
{
    double difference = 0.0, norm = 0.0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(a[i])) return INFINITY;
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        norm += (double)b[i] * b[i];
    }
    return sqrt(difference / norm);
}

float *stage_download(const stage_bed *bed, const reel_tensor *t)
{
    const int64_t n = reel_tensor_count(t);
    float *host = malloc(sizeof *host * (size_t)n);
    uint16_t *half = malloc(sizeof *half * (size_t)n);
    assert_true(host && half && reel_tensor_is_dense(t));
    GOOD(reel_ops_download(&bed->ops, t->dtype == REEL_DTYPE_F32 ? (void *)host : half, t, &stage_fault));
    for (int64_t i = 0; t->dtype == REEL_DTYPE_BF16 && i < n; i++) host[i] = reel_f32_from_bf16(half[i]);
    free(half);
    return host;
}

float *stage_load(const reel_store *store, const char *name, int64_t *n)
{
    const reel_stored *t = reel_store_find(store, name);
    if (!t) fail_msg("the recording has no %s", name);
    *n = 1;
    for (int32_t i = 0; i < t->n_dim; i++) *n *= t->extent[i];
    float *out = malloc(sizeof *out * (size_t)*n);
    assert_non_null(out);
    for (int64_t i = 0; i < *n; i++) {
        uint16_t half;
        int32_t whole;
        if (t->dtype == REEL_DTYPE_F32) memcpy(&out[i], t->data + 4 * i, 4);
        if (t->dtype == REEL_DTYPE_U8) out[i] = t->data[i];
        if (t->dtype == REEL_DTYPE_I32) {
            memcpy(&whole, t->data + 4 * i, 4);
            out[i] = (float)whole;
        }
        if (t->dtype == REEL_DTYPE_BF16) {
            memcpy(&half, t->data + 2 * i, 2);
            out[i] = reel_f32_from_bf16(half);
        }
    }
    return out;
}

reel_store *stage_recording(const char *file)
{
    char path[1024];
    reel_store *store = NULL;
    (void)snprintf(path, sizeof path, "%s/tests/fixtures/wan-tiny-t2v/%s", REEL_SOURCE_DIR, file);
    GOOD(reel_store_open_file(path, &store, &stage_fault));
    return store;
}

reel_store *stage_model_store(const char *folder, const char *stem)
{
    char path[1024];
    reel_store *store = NULL;
    (void)snprintf(path, sizeof path, "%s/models/wan-tiny-t2v/%s", REEL_SOURCE_DIR, folder);
    GOOD(reel_store_open(path, stem, &store, &stage_fault));
    return store;
}
