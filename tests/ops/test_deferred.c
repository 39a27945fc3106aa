/* SPDX-License-Identifier: Apache-2.0
 *
 * Queue semantics, shown on the device that puts everything off: what was handed over may be thrown away, nothing is there before the
 * host has waited, an event waits for what came before it alone, and a reference on such a device waits for the queue first. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bed.h"

enum { N = 37 };

typedef struct rig {
    reel_registry *registry;
    const reel_device_vt *vt;
    reel_device *device;
    reel_stream *stream;
    reel_ops ops;
    reel_arena arena;
    reel_tensor x, y, z;
} rig;

/* The reference operations behind the queue; has_operations false: the template's one operation, the rest by dispatch. */
static rig open_rig(bool is_host_memory, bool has_operations)
{
    rig r = {.vt = NULL};
    const reel_plugin *plugin = NULL;
    reel_device_options options = {.size = sizeof options};
    assert_int_equal(reel_registry_open(REEL_BINARY_DIR "/plugins", NULL, &r.registry, NULL), REEL_OK);
    assert_int_equal(reel_registry_find(r.registry, "template", &plugin, NULL), REEL_OK);
    r.vt = deferred_vt(has_operations ? reference_vt(r.registry) : plugin->device, is_host_memory);
    assert_int_equal(r.vt->open(NULL, &options, &r.device, NULL), REEL_OK);
    assert_int_equal(r.vt->stream_new(r.device, &r.stream, NULL), REEL_OK);
    assert_int_equal(reel_ops_bind(r.vt, r.device, r.stream, NULL, &r.ops, NULL), REEL_OK);
    return r;
}

static void take_tensors(rig *r)
{
    assert_int_equal(reel_arena_init(&r->arena, &r->ops, "test", 4096, NULL), REEL_OK);
    assert_int_equal(reel_arena_take(&r->arena, REEL_DTYPE_F32, 1, N, 0, 0, &r->x, NULL), REEL_OK);
    assert_int_equal(reel_arena_take(&r->arena, REEL_DTYPE_F32, 1, N, 0, 0, &r->y, NULL), REEL_OK);
    assert_int_equal(reel_arena_take(&r->arena, REEL_DTYPE_F32, 1, N, 0, 0, &r->z, NULL), REEL_OK);
}

static void close_rig(rig *r)
{
    reel_arena_deinit(&r->arena);
    reel_ops_unbind(&r->ops);
    r->vt->stream_free(r->stream);
    r->vt->close(r->device);
    reel_registry_close(&r->registry);
}

/* y = coefficient·x, queued; the argument struct is wiped at once. */
static void queue_scaled(rig *r, reel_tensor x, float coefficient, reel_tensor y)
{
    reel_op_combine a = {.size = sizeof a, .n = 1, .x = {x}, .coef = {coefficient}, .y = y};
    assert_int_equal(reel_ops_combine(&r->ops, &a, NULL), REEL_OK);
    memset(&a, 0xFF, sizeof a);
}

static void fill(float *values, float first)
{
    for (int32_t i = 0; i < N; i++) values[i] = first + (float)i;
}

static void assert_all(const float *values, float first, float factor)
{
    for (int32_t i = 0; i < N; i++)
        if (values[i] != factor * (first + (float)i))
            fail_msg("element %d is %g, not %g", (int)i, (double)values[i], (double)(factor * (first + (float)i)));
}

static void assert_poison(const float *values)
{
    for (int32_t i = 0; i < N; i++) assert_true(isnan(values[i]));
}

static void nothing_is_there_before_the_wait(void **state)
{
    (void)state;
    rig r = open_rig(true, true);
    take_tensors(&r);
    float in[N], out[N];
    fill(in, 1.0F);
    fill(out, 9.0F);
    assert_int_equal(r.vt->upload(r.stream, r.x.data, in, sizeof in, NULL), REEL_OK);
    memset(in, 0, sizeof in); /* host memory of an upload may be reused at once */
    queue_scaled(&r, r.x, 2.0F, r.y);
    queue_scaled(&r, r.y, 3.0F, r.y); /* in place, behind the first */
    assert_int_equal(r.vt->download(r.stream, out, r.y.data, sizeof out, NULL), REEL_OK);
    assert_poison(r.x.data);
    assert_poison(r.y.data);
    assert_poison(out);
    assert_int_equal(reel_ops_sync(&r.ops, NULL), REEL_OK);
    assert_all(out, 1.0F, 6.0F);
    assert_all(r.y.data, 1.0F, 6.0F); /* host memory: readable after the wait */
    close_rig(&r);
}

static void an_event_waits_for_what_came_before_it(void **state)
{
    (void)state;
    rig r = open_rig(true, true);
    take_tensors(&r);
    float in[N];
    reel_event *event = NULL;
    fill(in, 5.0F);
    assert_int_equal(r.vt->event_new(r.stream, &event, NULL), REEL_OK);
    assert_int_equal(r.vt->upload(r.stream, r.x.data, in, sizeof in, NULL), REEL_OK);
    queue_scaled(&r, r.x, 2.0F, r.y);
    assert_int_equal(r.vt->event_record(event, NULL), REEL_OK);
    queue_scaled(&r, r.y, 2.0F, r.z);
    assert_int_equal(r.vt->event_sync(event, NULL), REEL_OK);
    assert_all(r.x.data, 5.0F, 1.0F);
    assert_all(r.y.data, 5.0F, 2.0F);
    assert_poison(r.z.data);
    assert_int_equal(r.vt->event_sync(event, NULL), REEL_OK); /* waiting again runs nothing more */
    assert_poison(r.z.data);
    assert_int_equal(reel_ops_sync(&r.ops, NULL), REEL_OK);
    assert_all(r.z.data, 5.0F, 4.0F);
    r.vt->event_free(event);
    close_rig(&r);
}

static void the_host_may_write_after_a_wait_and_not_before(void **state)
{
    (void)state;
    rig r = open_rig(true, true);
    take_tensors(&r);
    fill(r.x.data, 1.0F); /* nothing is queued: the host writes directly */
    queue_scaled(&r, r.x, 2.0F, r.y);
    fill(r.x.data, 100.0F); /* too early: the queued operation must not see it, and it is lost */
    assert_int_equal(reel_ops_sync(&r.ops, NULL), REEL_OK);
    assert_all(r.y.data, 1.0F, 2.0F);
    assert_all(r.x.data, 1.0F, 1.0F);
    fill(r.x.data, 100.0F);
    queue_scaled(&r, r.x, 1.0F, r.y);
    assert_int_equal(reel_ops_sync(&r.ops, NULL), REEL_OK);
    assert_all(r.y.data, 100.0F, 1.0F);
    close_rig(&r);
}

static void copies_and_fills_keep_their_place(void **state)
{
    (void)state;
    rig r = open_rig(true, true);
    take_tensors(&r);
    float in[N], zero[N] = {0};
    fill(in, 2.0F);
    assert_int_equal(r.vt->upload(r.stream, r.x.data, in, sizeof in, NULL), REEL_OK);
    assert_int_equal(r.vt->copy(r.stream, r.y.data, r.x.data, sizeof in, NULL), REEL_OK);
    assert_int_equal(r.vt->fill(r.stream, r.x.data, 0, sizeof in, NULL), REEL_OK);
    assert_poison(r.y.data);
    assert_int_equal(reel_ops_sync(&r.ops, NULL), REEL_OK);
    assert_all(r.y.data, 2.0F, 1.0F);
    assert_memory_equal(r.x.data, zero, sizeof zero);
    close_rig(&r);
}

/* The template has only silu: combine runs as a reference, on the host, and must find what silu was still to write. */
static void a_reference_waits_for_the_queue(void **state)
{
    (void)state;
    rig r = open_rig(true, false);
    take_tensors(&r);
    assert_ptr_equal(r.ops.combine, reel_ref_op("combine"));
    assert_ptr_not_equal(r.ops.silu, reel_ref_op("silu"));
    float in[N];
    fill(in, -9.0F);
    assert_int_equal(r.vt->upload(r.stream, r.x.data, in, sizeof in, NULL), REEL_OK);
    assert_int_equal(REEL_OP(&r.ops, silu, NULL, .x = r.x, .y = r.y), REEL_OK);
    assert_poison(r.y.data);
    queue_scaled(&r, r.y, 2.0F, r.z); /* runs now */
    assert_int_equal(REEL_OP(&r.ops, silu, NULL, .x = r.z, .y = r.z), REEL_OK);
    assert_int_equal(reel_ops_sync(&r.ops, NULL), REEL_OK);
    for (int32_t i = 0; i < N; i++) {
        double v = (double)in[i], s = 2.0 * v / (1.0 + exp(-v)), want = s / (1.0 + exp(-s));
        assert_true(fabs((double)((float *)r.z.data)[i] - want) <= 1e-5 * (1.0 + fabs(want))); /* two f32 exponentials */
    }
    close_rig(&r);
}

/* Memory that the host cannot reach stays poison; only copies get at it. */
static void remote_memory_is_reached_by_copies_only(void **state)
{
    (void)state;
    rig r = open_rig(false, true);
    take_tensors(&r);
    float in[N], out[N];
    fill(in, 3.0F);
    assert_int_equal(reel_ops_upload(&r.ops, &r.x, in, NULL), REEL_OK);
    queue_scaled(&r, r.x, 4.0F, r.y);
    assert_int_equal(reel_ops_sync(&r.ops, NULL), REEL_OK);
    assert_poison(r.x.data);
    assert_poison(r.y.data);
    assert_int_equal(reel_ops_download(&r.ops, out, &r.y, NULL), REEL_OK);
    assert_all(out, 3.0F, 4.0F);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_there_before_the_wait),
        cmocka_unit_test(an_event_waits_for_what_came_before_it),
        cmocka_unit_test(the_host_may_write_after_a_wait_and_not_before),
        cmocka_unit_test(copies_and_fills_keep_their_place),
        cmocka_unit_test(a_reference_waits_for_the_queue),
        cmocka_unit_test(remote_memory_is_reached_by_copies_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
