/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices that tests/ops runs: the template (references), the CPU at each instruction set, and both behind the deferred device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bed.h"

typedef enum wrapping { PLAIN, DEFERRED, DEFERRED_REMOTE } wrapping;

/* plugin "reference": the template with all references as operations of its own, which then go through the queue of the deferred device. */
typedef struct configuration {
    const char *plugin, *isa_max;
    int32_t n_thread;
    wrapping wrapping;
} configuration;

/* Thread numbers differ so that splits of work differ; results must not (test_invariance.c). */
static const configuration configurations[] = {
    {"template", NULL, 1, PLAIN},     {"reference", NULL, 1, DEFERRED}, {"reference", NULL, 1, DEFERRED_REMOTE},
    {"cpu", "base", 1, PLAIN},        {"cpu", "avx2", 3, PLAIN},        {"cpu", "avx512", 2, PLAIN},
    {"cpu", "avx512-bf16", 2, PLAIN}, {"cpu", "amx", 2, PLAIN},         {"cpu", NULL, 2, DEFERRED},
};

static reel_op_fn reference_op(reel_device *device, const char *name, uint32_t version)
{
    (void)device;
    return version == 1 ? reel_ref_op(name) : NULL;
}

static reel_device_vt reference_table;

const reel_device_vt *reference_vt(const reel_registry *registry)
{
    const reel_plugin *plugin = NULL;
    if (reel_registry_find(registry, "template", &plugin, NULL) != REEL_OK) abort();
    reference_table = *plugin->device;
    reference_table.op = reference_op;
    return &reference_table;
}

static void must(reel_status status, const reel_error *err)
{
    if (status == REEL_OK) return;
    (void)fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static void print_log(void *user, int level, const char *text)
{
    (void)user;
    (void)fprintf(stderr, "  log %d: %s\n", level, text);
}

static const reel_device_vt *table_of(const configuration *c, const reel_registry *registry)
{
    reel_error err = {.code = REEL_OK};
    const reel_plugin *plugin = NULL;
    const reel_device_vt *vt = NULL;
    if (strcmp(c->plugin, "reference") == 0) {
        vt = reference_vt(registry);
    } else {
        must(reel_registry_find(registry, c->plugin, &plugin, &err), &err);
        vt = plugin->device;
    }
    return c->wrapping == PLAIN ? vt : deferred_vt(vt, c->wrapping == DEFERRED);
}

static void open_configuration(const configuration *c, bed_device *out)
{
    static const char *const words[] = {[PLAIN] = "", [DEFERRED] = "deferred ", [DEFERRED_REMOTE] = "deferred, no host memory, "};
    reel_error err = {.code = REEL_OK};
    *out = (bed_device){.registry = NULL};
    must(reel_registry_open(REEL_BINARY_DIR "/plugins", NULL, &out->registry, &err), &err);
    out->vt = table_of(c, out->registry);
    reel_device_options options = {.size = sizeof options, .n_thread = c->n_thread, .isa_max = c->isa_max};
    must(out->vt->open(NULL, &options, &out->device, &err), &err);
    must(out->vt->stream_new(out->device, &out->stream, &err), &err);
    reel_log log = {.write = print_log};
    must(reel_ops_bind(out->vt, out->device, out->stream, &log, &out->ops, &err), &err);
    (void)snprintf(out->label, sizeof out->label, "%s%s %.32s, %d threads", words[c->wrapping], c->plugin, out->ops.props.isa,
                   out->ops.props.n_thread);
}

bed_opened bed_device_open(int32_t index, bed_device *out)
{
    if (index < 0 || (size_t)index >= REEL_COUNT(configurations)) return BED_NO_MORE;
    const configuration *c = &configurations[index];
    open_configuration(c, out);
    if (!c->isa_max || strcmp(out->ops.props.isa, c->isa_max) == 0) return BED_OPENED;
    (void)printf("not on this machine: %s at %s (it has %s)\n", c->plugin, c->isa_max, out->ops.props.isa);
    bed_device_close(out);
    return BED_NOT_HERE;
}

void bed_device_open_cpu(const char *isa_max, int32_t n_thread, bed_device *out)
{
    open_configuration(&(const configuration){"cpu", isa_max, n_thread, PLAIN}, out);
}

void bed_device_close(bed_device *dev)
{
    reel_ops_unbind(&dev->ops);
    dev->vt->stream_free(dev->stream);
    dev->vt->close(dev->device);
    reel_registry_close(&dev->registry);
}
