/* SPDX-License-Identifier: Apache-2.0
 *
 * Binding, the check of arguments, arenas and copies (src/ops). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bed.h"

enum { TEMPLATE = 0 }; /* the first configuration */

static int open_template(void **state)
{
    static bed_device dev;
    if (bed_device_open(TEMPLATE, &dev) != BED_OPENED) return -1;
    *state = &dev;
    return 0;
}

static int close_template(void **state)
{
    bed_device_close(*state);
    return 0;
}

/* ---- binding ------------------------------------------------------------------------------------------------------------- */

typedef struct kept_log {
    char text[1024];
    int n;
} kept_log;

static void keep(void *user, int level, const char *text)
{
    kept_log *k = user;
    (void)level;
    (void)strncpy(k->text, text, sizeof k->text - 1);
    k->n++;
}

static void references_and_compositions_are_named_once(void **state)
{
    bed_device *dev = *state;
    kept_log kept = {.n = 0};
    reel_log log = {.write = keep, .user = &kept};
    reel_ops ops;
    assert_int_equal(reel_ops_bind(dev->vt, dev->device, dev->stream, &log, &ops, NULL), REEL_OK);
    assert_int_equal(kept.n, 1);
    assert_non_null(strstr(kept.text, "linear, conv3d, attention"));
    assert_non_null(strstr(kept.text, "composed of other operations: rms_norm_rope"));
    assert_null(strstr(kept.text, "silu")); /* the template has its own */
    assert_ptr_equal(ops.linear, reel_ref_op("linear"));
    assert_ptr_not_equal(ops.silu, reel_ref_op("silu"));
    assert_null(ops.rms_norm_rope);
    assert_non_null(ops.compose_scratch);
    reel_ops_unbind(&ops);
    assert_null(ops.compose_scratch);
    assert_null(reel_ref_op("no_such_operation"));
}

static void missing_operation_fails_where_the_host_cannot_help(void **state)
{
    bed_device *dev = *state;
    const reel_device_vt *vt = deferred_vt(dev->vt, false);
    reel_device_options options = {.size = sizeof options};
    reel_device *device = NULL;
    reel_stream *stream = NULL;
    reel_error err = {.code = REEL_OK};
    reel_ops ops = {.vt = NULL};
    assert_int_equal(vt->open(NULL, &options, &device, &err), REEL_OK);
    assert_int_equal(vt->stream_new(device, &stream, &err), REEL_OK);
    assert_int_equal(reel_ops_bind(vt, device, stream, NULL, &ops, &err), REEL_E_UNSUPPORTED);
    assert_null(ops.vt);
    assert_non_null(strstr(err.text, "linear"));
    assert_non_null(strstr(err.text, "remedy"));
    vt->stream_free(stream);
    vt->close(device);
}

static reel_op_fn op_of_version_2_only(reel_device *device, const char *name, uint32_t version)
{
    (void)device;
    return version == 2 ? reel_ref_op(name) : NULL;
}

/* A device that has other versions only has none of ours. */
static void version_is_part_of_the_name(void **state)
{
    bed_device *dev = *state;
    reel_device_vt vt = *dev->vt;
    vt.op = op_of_version_2_only;
    reel_ops ops;
    assert_int_equal(reel_ops_bind(&vt, dev->device, dev->stream, NULL, &ops, NULL), REEL_OK);
    assert_ptr_equal(ops.silu, reel_ref_op("silu"));
    assert_null(ops.rms_norm_rope);
    reel_ops_unbind(&ops);
}

static void attention_is_found_by_name(void **state)
{
    bed_device *dev = *state;
    assert_null(reel_ops_find_attention(&dev->ops, "flash"));
}

/* ---- arguments ----------------------------------------------------------------------------------------------------------- */

#define EXPECT_REFUSED(call, words)                                                                                           \
    do {                                                                                                                      \
        reel_error err = {.code = REEL_OK};                                                                                   \
        assert_int_equal((call), REEL_E_INTERNAL);                                                                            \
        if (!strstr(err.text, words) || !strstr(err.text, "remedy")) fail_msg("\"%s\" does not say \"%s\"", err.text, words); \
    } while (0)

static float storage[8192];

static reel_tensor f32(int64_t offset, int64_t e0, int64_t e1, int64_t e2, int64_t e3)
{
    return reel_tensor_dense(storage + offset, REEL_DTYPE_F32, e0, e1, e2, e3);
}

static void wrong_arguments_are_refused_by_name_and_extents(void **state)
{
    const reel_ops *ops = &((bed_device *)*state)->ops;
    reel_tensor x = f32(0, 3, 5, 0, 0), y = f32(100, 3, 5, 0, 0), strided = y, other = f32(100, 3, 4, 0, 0), none = {.data = NULL},
                big = f32(0, 3, 5, 2, 0);
    strided.stride[1] = 2, strided.stride[0] = 10;
    EXPECT_REFUSED(REEL_OP(ops, silu, &err, .x = x, .y = other), "operation silu: y differs in its extents");
    EXPECT_REFUSED(REEL_OP(ops, silu, &err, .x = x, .y = other), "x F32 [3, 5]");
    EXPECT_REFUSED(REEL_OP(ops, silu, &err, .x = x, .y = big), "y differs in its extents");
    EXPECT_REFUSED(REEL_OP(ops, silu, &err, .x = x, .y = none), "y is absent");
    EXPECT_REFUSED(REEL_OP(ops, silu, &err, .x = x, .y = strided), "not contiguous");
    EXPECT_REFUSED(reel_ops_silu(ops, &(reel_op_silu){.size = 8, .x = x, .y = y}, &err), "wrong size");
    EXPECT_REFUSED(reel_ops_silu(ops, NULL, &err), "wrong size");
    reel_tensor i32 = x, zero = x, deep = x;
    i32.dtype = REEL_DTYPE_I32;
    zero.extent[0] = 0;
    deep.n_dim = 7;
    EXPECT_REFUSED(REEL_OP(ops, silu, &err, .x = i32, .y = y), "x has a dtype");
    EXPECT_REFUSED(REEL_OP(ops, silu, &err, .x = zero, .y = zero), "extent below 1");
    EXPECT_REFUSED(REEL_OP(ops, silu, &err, .x = deep, .y = y), "number of dimensions");
    EXPECT_REFUSED(REEL_OP(ops, rms_norm, &err, .x = x, .y = y, .weight = f32(0, 4, 0, 0, 0)), "weight differs in an extent");
    EXPECT_REFUSED(REEL_OP(ops, combine, &err, .n = 2, .x = {x}, .y = y), "another number of tensors");
    EXPECT_REFUSED(REEL_OP(ops, channel_norm, &err, .x = x, .y = y, .gamma = f32(0, 5, 0, 0, 0), .act = REEL_ACTIVATION_GELU_TANH),
                   "activation");
    EXPECT_REFUSED(REEL_OP(ops, affine_channels, &err, .x = x, .y = y, .mul = f32(0, 5, 0, 0, 0), .channel_dim = 2), "channel_dim");
    EXPECT_REFUSED(REEL_OP(ops, patchify, &err, .x = f32(0, 2, 1, 5, 4), .y = f32(100, 2, 8, 0, 0), .patch_h = 2, .patch_w = 2), "patches");
}

static void wrong_aliases_are_refused(void **state)
{
    const reel_ops *ops = &((bed_device *)*state)->ops;
    reel_tensor x = f32(0, 4, 4, 0, 0), half = x, turned = x;
    reel_weight w = {.size = sizeof w,
                     .dtype = REEL_DTYPE_F32,
                     .block_elements = 1,
                     .block_bytes = 4,
                     .n_row = 4,
                     .n_col = 4,
                     .row_stride_bytes = 16,
                     .row_end = 4,
                     .data = storage + 100};
    EXPECT_REFUSED(REEL_OP(ops, linear, &err, .x = x, .w = w, .y = x), "must not alias");
    half.dtype = REEL_DTYPE_BF16;
    EXPECT_REFUSED(REEL_OP(ops, convert, &err, .x = x, .y = half), "another dtype");
    turned.stride[0] = 1, turned.stride[1] = 4;
    EXPECT_REFUSED(REEL_OP(ops, convert, &err, .x = x, .y = turned), "other strides");
    w.row_end = 5;
    EXPECT_REFUSED(REEL_OP(ops, linear, &err, .x = x, .w = w, .y = f32(50, 4, 5, 0, 0)), "row range");
    w.row_end = 3;
    EXPECT_REFUSED(REEL_OP(ops, linear, &err, .x = x, .w = w, .y = f32(50, 4, 4, 0, 0)), "y differs in an extent");
    assert_int_equal(REEL_OP(ops, linear, NULL, .x = x, .w = w, .y = f32(50, 4, 3, 0, 0)), REEL_OK);
}

static void conv_extents_must_follow(void **state)
{
    const reel_ops *ops = &((bed_device *)*state)->ops;
    reel_weight w = {.size = sizeof w,
                     .dtype = REEL_DTYPE_F32,
                     .block_elements = 1,
                     .block_bytes = 4,
                     .n_row = 2,
                     .n_col = 27,
                     .row_stride_bytes = 108,
                     .row_end = 2,
                     .kernel = {3, 3, 3},
                     .data = storage};
    reel_op_conv3d a = {.size = sizeof a,
                        .x = f32(100, 3, 4, 5, 1),
                        .w = w,
                        .y = f32(400, 1, 4, 5, 2),
                        .n_history = 2,
                        .pad = {1, 1, 1, 1},
                        .stride = {1, 1, 1}};
    assert_int_equal(reel_ops_conv3d(ops, &a, NULL), REEL_OK);
    a.halo = 1; /* top comes from the neighbour: one row less */
    EXPECT_REFUSED(reel_ops_conv3d(ops, &a, &err), "do not follow");
    a.halo = 0, a.pad_front = 1;
    EXPECT_REFUSED(reel_ops_conv3d(ops, &a, &err), "do not follow");
    a.pad_front = 0, a.valid_rows = 5;
    EXPECT_REFUSED(reel_ops_conv3d(ops, &a, &err), "valid_rows");
    a.valid_rows = 0, a.stride[1] = 0;
    EXPECT_REFUSED(reel_ops_conv3d(ops, &a, &err), "stride below 1");
    a.stride[1] = 1, a.w.kernel[2] = 2;
    EXPECT_REFUSED(reel_ops_conv3d(ops, &a, &err), "kernel 3 3 2");
}

static void rope_positions_must_exist(void **state)
{
    const reel_ops *ops = &((bed_device *)*state)->ops;
    reel_op_rms_norm_rope a = {.size = sizeof a, .x = f32(0, 6, 1, 4, 0), .y = f32(100, 6, 1, 4, 0), .weight = f32(200, 4, 0, 0, 0)};
    a.rope = (reel_rope){.table = f32(300, 3, 2, 2, 0), .grid_h = 1, .grid_w = 2, .pair_t = 1, .pair_h = 1};
    assert_int_equal(reel_ops_rms_norm_rope(ops, &a, NULL), REEL_OK); /* frames 0, 1, 2 */
    a.rope.first_token = 1; /* and 3 */
    EXPECT_REFUSED(reel_ops_rms_norm_rope(ops, &a, &err), "beyond the rope table");
    a.rope.first_token = 0, a.rope.pair_h = 2;
    EXPECT_REFUSED(reel_ops_rms_norm_rope(ops, &a, &err), "pair_t");
}

/* Norm weights as the loader hands them: a vector for a one-row table, [C, 1, 1, 1] for a vector. */
static void stored_shapes_stand_for_vectors(void **state)
{
    const reel_ops *ops = &((bed_device *)*state)->ops;
    for (int32_t i = 0; i < 1000; i++) storage[i] = (float)(i % 17) - 8.0F;
    reel_tensor x = f32(0, 3, 5, 0, 0), a = f32(4000, 3, 5, 0, 0), b = f32(5000, 3, 5, 0, 0);
    assert_int_equal(REEL_OP(ops, layer_norm, NULL, .x = x, .y = a, .scale = f32(100, 5, 0, 0, 0), .eps = 1e-6F), REEL_OK);
    assert_int_equal(REEL_OP(ops, layer_norm, NULL, .x = x, .y = b, .scale = f32(100, 1, 5, 0, 0), .eps = 1e-6F), REEL_OK);
    assert_memory_equal(a.data, b.data, 15 * sizeof(float));
    assert_int_equal(REEL_OP(ops, channel_norm, NULL, .x = x, .y = a, .gamma = f32(100, 5, 0, 0, 0)), REEL_OK);
    assert_int_equal(REEL_OP(ops, channel_norm, NULL, .x = x, .y = b, .gamma = f32(100, 5, 1, 1, 1)), REEL_OK);
    assert_memory_equal(a.data, b.data, 15 * sizeof(float));
}

/* More tokens than the scratch of a composition holds at once: the pieces must meet. */
static void composition_goes_through_in_pieces(void **state)
{
    bed b = {.dev = *state, .seed = 7, .random = 7};
    int64_t n = 3 * (int64_t)(b.dev->ops.compose_scratch_bytes / sizeof(float)) / 2 + 5;
    reel_op_rms_norm_rope a = {.size = sizeof a, .eps = 1e-6F, .x = bed_input(&b, REEL_DTYPE_BF16, BED_DENSE, n, 1, 4, 0)};
    a.weight = bed_input(&b, REEL_DTYPE_F32, BED_DENSE, 4, 0, 0, 0);
    a.rope = (reel_rope){.table = bed_input(&b, REEL_DTYPE_F32, BED_DENSE, 1024, 2, 2, 0),
                         .first_token = 11,
                         .grid_h = 8,
                         .grid_w = 32,
                         .pair_t = 1,
                         .pair_h = 0};
    a.y = bed_output(&b, REEL_DTYPE_F32, BED_DENSE, n, 1, 4, 0);
    bed_check(&b, "rms_norm_rope", &a, bed_rounding, "%lld tokens", (long long)n);
    bed_clear(&b);
    assert_int_equal(b.n_fail, 0);
}

/* ---- arenas and copies --------------------------------------------------------------------------------------------------- */

static void arena_gives_what_the_plan_stated_and_no_more(void **state)
{
    const reel_ops *ops = &((bed_device *)*state)->ops;
    size_t alignment = ops->props.alignment_bytes;
    assert_int_equal(reel_arena_need(64, REEL_DTYPE_BF16, 1), 64);
    assert_int_equal(reel_arena_need(64, REEL_DTYPE_BF16, 32), 64);
    assert_int_equal(reel_arena_need(64, REEL_DTYPE_F32, 33), 192);
    assert_int_equal(reel_arena_need(1, REEL_DTYPE_U8, 5), 5);
    size_t a_bytes = reel_arena_need(alignment, REEL_DTYPE_F32, 15), b_bytes = reel_arena_need(alignment, REEL_DTYPE_BF16, 7);
    reel_arena arena;
    reel_tensor a, b, c = {.n_dim = 42};
    reel_error err = {.code = REEL_OK};
    assert_int_equal(reel_arena_init(&arena, ops, "step", a_bytes + b_bytes, &err), REEL_OK);
    assert_int_equal(reel_arena_take(&arena, REEL_DTYPE_F32, 3, 5, 0, 0, &a, &err), REEL_OK);
    assert_int_equal(reel_arena_take(&arena, REEL_DTYPE_BF16, 7, 0, 0, 0, &b, &err), REEL_OK);
    assert_int_equal((uintptr_t)b.data % alignment, 0);
    assert_ptr_equal(b.data, (char *)a.data + a_bytes);
    assert_int_equal(a.n_dim, 2);
    assert_int_equal(a.stride[0], 5);
    assert_int_equal(reel_arena_take(&arena, REEL_DTYPE_U8, 1, 0, 0, 0, &c, &err), REEL_E_INTERNAL);
    assert_non_null(strstr(err.text, "\"step\" is full"));
    assert_int_equal(c.n_dim, 42);
    reel_arena_rewind(&arena, a_bytes);
    assert_int_equal(reel_arena_take(&arena, REEL_DTYPE_BF16, 6, 0, 0, 0, &c, &err), REEL_OK);
    assert_ptr_equal(c.data, b.data);
    assert_int_equal(arena.high, a_bytes + b_bytes);
    assert_int_equal(reel_arena_take(&arena, REEL_DTYPE_F32, 0, 0, 0, 0, &c, &err), REEL_E_INTERNAL);
    assert_int_equal(reel_arena_take(&arena, REEL_DTYPE_F32, INT64_MAX / 2, 9, 0, 0, &c, &err), REEL_E_INTERNAL);
    assert_int_equal(reel_arena_take(&arena, REEL_DTYPE_F32, -1, 0, 0, 0, &c, &err), REEL_E_INTERNAL);
    reel_arena_deinit(&arena);
    reel_arena_deinit(&arena); /* safe twice */
}

static void upload_and_download_wait(void **state)
{
    const reel_ops *ops = &((bed_device *)*state)->ops;
    reel_arena arena;
    reel_tensor t;
    reel_error err = {.code = REEL_OK};
    float in[6] = {1, 2, 3, 4, 5, 6}, out[6] = {0};
    assert_int_equal(reel_arena_init(&arena, ops, "test", 64, NULL), REEL_OK);
    assert_int_equal(reel_arena_take(&arena, REEL_DTYPE_F32, 2, 3, 0, 0, &t, NULL), REEL_OK);
    assert_int_equal(reel_ops_upload(ops, &t, in, NULL), REEL_OK);
    assert_int_equal(reel_ops_download(ops, out, &t, NULL), REEL_OK);
    assert_memory_equal(in, out, sizeof in);
    reel_tensor column = t;
    column.extent[1] = 2;
    assert_int_equal(reel_ops_download(ops, out, &column, &err), REEL_E_INTERNAL);
    assert_non_null(strstr(err.text, "dense"));
    reel_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_and_compositions_are_named_once),
        cmocka_unit_test(missing_operation_fails_where_the_host_cannot_help),
        cmocka_unit_test(version_is_part_of_the_name),
        cmocka_unit_test(attention_is_found_by_name),
        cmocka_unit_test(wrong_arguments_are_refused_by_name_and_extents),
        cmocka_unit_test(wrong_aliases_are_refused),
        cmocka_unit_test(conv_extents_must_follow),
        cmocka_unit_test(rope_positions_must_exist),
        cmocka_unit_test(stored_shapes_stand_for_vectors),
        cmocka_unit_test(composition_goes_through_in_pieces),
        cmocka_unit_test(arena_gives_what_the_plan_stated_and_no_more),
        cmocka_unit_test(upload_and_download_wait),
    };
    return cmocka_run_group_tests(tests, open_template, close_template);
}
