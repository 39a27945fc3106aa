/* SPDX-License-Identifier: Apache-2.0
 *
 * The same bits however work is split: all case lists with 1, 2 and 3 threads, and operations in pieces of rows, queries and frames
 * against the same operations whole. Pieces of picture rows (a convolution spread over devices) only come close. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bed.h"

enum { N_PIECE = 3 };

typedef struct rig {
    bed_device *dev;
    bed_device twin[N_PIECE];
    int32_t n_twin;
    uint64_t seed;
} rig;

static bed new_bed(const rig *r, uint64_t add)
{
    return (bed){.dev = r->dev, .seed = r->seed, .random = r->seed + add};
}

/* ---- threads ------------------------------------------------------------------------------------------------------------- */

static void thread_numbers_change_no_bit(void **state)
{
    static void (*const lists[])(bed *) = {
#define X(op, version, need) case_##op,
        REEL_OP_LIST(X)
#undef X
    };
    rig *r = *state;
    int32_t n_check = 0, n_fail = 0;
    for (size_t i = 0; i < REEL_COUNT(lists); i++) {
        bed b = new_bed(r, i);
        for (b.n_twin = 0; b.n_twin < r->n_twin; b.n_twin++) b.twin[b.n_twin] = &r->twin[b.n_twin];
        lists[i](&b);
        bed_clear(&b);
        n_check += b.n_check;
        n_fail += b.n_fail;
    }
    print_message("  %d calls on %d more devices\n", n_check, r->n_twin);
    assert_int_equal(n_fail, 0);
}

/* ---- pieces -------------------------------------------------------------------------------------------------------------- */

/* Cuts 0 = cut[0] < … < cut[3] = n. */
static void draw_cuts(bed *b, int64_t n, int64_t cut[N_PIECE + 1])
{
    cut[0] = 0;
    cut[1] = bed_range(b, 1, n - 2);
    cut[2] = bed_range(b, cut[1] + 1, n - 1);
    cut[3] = n;
}

/* Makes the arguments of one piece [begin, end) out of those of the whole. */
typedef void (*cut_fn)(const void *whole, int64_t begin, int64_t end, void *piece);

/* The whole on each thread number, then in pieces: one set of bits. */
static void whole_and_pieces(bed *b, const char *op, const void *whole, int64_t n, cut_fn cut_piece, const char *what)
{
    union {
#define X(name, version, need) reel_op_##name name;
        REEL_OP_LIST(X)
#undef X
    } piece;
    b->n_check++;
    if (!bed_run(b, op, whole, what)) return;
    bed_keep(b);
    for (int32_t round = 0; round < 3; round++) {
        int64_t cut[N_PIECE + 1];
        draw_cuts(b, n, cut);
        bool is_good = bed_begin(b);
        for (int32_t i = 0; i < N_PIECE && is_good; i++) {
            cut_piece(whole, cut[i], cut[i + 1], &piece);
            is_good = bed_enqueue(b, op, &piece, what);
        }
        if (bed_end(b) && is_good) bed_same(b, op, what);
    }
}

#define CUT(op) static void cut_##op(const void *whole, int64_t begin, int64_t end, void *piece)
#define COPY(op)                                   \
    reel_op_##op a = *(const reel_op_##op *)whole; \
    reel_tensor *const sliced[] = {&a.x, &a.y};    \
    for (size_t i = 0; i < REEL_COUNT(sliced); i++) *sliced[i] = reel_tensor_slice(*sliced[i], 0, begin, end)

CUT(linear)
{
    COPY(linear);
    *(reel_op_linear *)piece = a;
}

CUT(layer_norm)
{
    COPY(layer_norm);
    if (a.row_index.data) a.row_index = reel_tensor_slice(a.row_index, 0, begin, end);
    *(reel_op_layer_norm *)piece = a;
}

CUT(rms_norm)
{
    COPY(rms_norm);
    *(reel_op_rms_norm *)piece = a;
}

CUT(rms_norm_rope)
{
    COPY(rms_norm_rope);
    a.rope.first_token += begin;
    *(reel_op_rms_norm_rope *)piece = a;
}

CUT(channel_norm)
{
    COPY(channel_norm);
    *(reel_op_channel_norm *)piece = a;
}

CUT(gate_residual)
{
    COPY(gate_residual);
    a.a = reel_tensor_slice(a.a, 0, begin, end);
    if (a.row_index.data) a.row_index = reel_tensor_slice(a.row_index, 0, begin, end);
    *(reel_op_gate_residual *)piece = a;
}

/* Queries [begin, end): the relative bias of score (q, k) lies at k − q + Sq − 1, so a piece takes its own stretch of it. */
CUT(attention)
{
    reel_op_attention a = *(const reel_op_attention *)whole;
    int64_t n_query = a.q.extent[1], n_key = a.k.extent[1];
    a.q = reel_tensor_slice(a.q, 1, begin, end);
    a.out = reel_tensor_slice(a.out, 1, begin, end);
    if (a.lse.data) a.lse = reel_tensor_slice(a.lse, 2, begin, end);
    if (a.relative_bias.data) a.relative_bias = reel_tensor_slice(a.relative_bias, 1, n_query - end, n_query - begin + n_key - 1);
    *(reel_op_attention *)piece = a;
}

static void linear_in_pieces(bed *b, reel_dtype dtype, int64_t m, int64_t k, int64_t n)
{
    for (int32_t is_packed = 0; is_packed < 2; is_packed++) {
        bed_clear(b);
        b->is_packed = is_packed != 0;
        reel_op_linear a = {
            .size = sizeof a, .x = bed_input(b, dtype, BED_ROWS, m, k, 0, 0), .w = bed_weight(b, REEL_DTYPE_BF16, BED_DENSE, n, k, NULL)};
        a.bias = bed_input(b, REEL_DTYPE_F32, BED_DENSE, n, 0, 0, 0);
        a.act = REEL_ACTIVATION_GELU_TANH;
        a.y = bed_output(b, dtype, BED_DENSE, m, n, 0, 0);
        whole_and_pieces(b, "linear", &a, m, cut_linear, is_packed ? "rows, packed" : "rows");
    }
}

static void norms_in_pieces(bed *b, reel_dtype dtype)
{
    int64_t s = bed_range(b, 20, 90), d = bed_range(b, 3, 400);
    bed_clear(b);
    reel_op_layer_norm l = {.size = sizeof l, .eps = 1e-6F, .one_plus = 1, .x = bed_input(b, dtype, BED_ROWS, s, d, 0, 0)};
    l.scale = bed_input(b, REEL_DTYPE_F32, BED_DENSE, 3, d, 0, 0);
    l.shift = bed_input(b, REEL_DTYPE_F32, BED_DENSE, 3, d, 0, 0);
    l.row_index = bed_indices(b, s, 3);
    l.y = bed_output(b, dtype, BED_DENSE, s, d, 0, 0);
    whole_and_pieces(b, "layer_norm", &l, s, cut_layer_norm, "rows");
    reel_op_rms_norm m = {.size = sizeof m, .eps = 1e-6F, .x = l.x, .y = l.y, .weight = reel_tensor_slice(l.scale, 0, 0, 1)};
    m.weight.n_dim = 1, m.weight.extent[0] = d, m.weight.stride[0] = 1;
    whole_and_pieces(b, "rms_norm", &m, s, cut_rms_norm, "rows");
    reel_op_channel_norm c = {.size = sizeof c, .act = REEL_ACTIVATION_SILU, .x = l.x, .y = l.y, .gamma = m.weight};
    whole_and_pieces(b, "channel_norm", &c, s, cut_channel_norm, "rows");
    reel_op_gate_residual g = {
        .size = sizeof g, .x = l.x, .a = bed_input(b, dtype, BED_DENSE, s, d, 0, 0), .gate = l.scale, .row_index = l.row_index, .y = l.y};
    whole_and_pieces(b, "gate_residual", &g, s, cut_gate_residual, "rows");
}

static void rotation_in_pieces(bed *b, reel_dtype dtype)
{
    int64_t s = bed_range(b, 20, 60), h = bed_range(b, 1, 5);
    bed_clear(b);
    reel_op_rms_norm_rope a = {.size = sizeof a, .eps = 1e-6F, .x = bed_input(b, dtype, BED_DENSE, s, h, 64, 0)};
    a.weight = bed_input(b, REEL_DTYPE_F32, BED_DENSE, h * 64, 0, 0, 0);
    a.rope = (reel_rope){.table = bed_input(b, REEL_DTYPE_F32, BED_DENSE, 64, 32, 2, 0),
                         .first_token = 3,
                         .grid_h = 3,
                         .grid_w = 5,
                         .pair_t = 12,
                         .pair_h = 10};
    a.y = bed_output(b, dtype, BED_DENSE, s, h, 64, 0);
    whole_and_pieces(b, "rms_norm_rope", &a, s, cut_rms_norm_rope, "tokens");
}

static void attention_in_pieces(bed *b, reel_dtype dtype, int64_t d)
{
    int64_t n_query = bed_range(b, 40, 150), n_key = bed_range(b, 1, 200), h = bed_range(b, 1, 3);
    bed_clear(b);
    reel_op_attention a = {.size = sizeof a, .scale = 0.11F, .q = bed_input(b, dtype, BED_DENSE, 1, n_query, h, d)};
    a.k = bed_input(b, dtype, BED_DENSE, 1, n_key, h, d);
    a.v = bed_input(b, dtype, BED_DENSE, 1, n_key, h, d);
    a.out = bed_output(b, dtype, BED_DENSE, 1, n_query, h, d);
    if (bed_range(b, 0, 1)) a.key_bias = bed_input(b, REEL_DTYPE_F32, BED_DENSE, n_key, 0, 0, 0);
    if (bed_range(b, 0, 1)) a.relative_bias = bed_input(b, REEL_DTYPE_F32, BED_ROWS, h, n_query + n_key - 1, 0, 0);
    if (bed_range(b, 0, 1)) a.lse = bed_output(b, REEL_DTYPE_F32, BED_DENSE, 1, h, n_query, 0);
    reel_attn_shape shape = {.size = sizeof shape, .dtype = dtype, .head_dim = (int32_t)d, .n_head = (int32_t)h};
    shape.has_key_bias = a.key_bias.data != NULL;
    shape.has_relative_bias = a.relative_bias.data != NULL;
    shape.wants_lse = a.lse.data != NULL;
    const reel_attn_impl *const *list = b->dev->vt->attention(b->dev->device);
    for (int32_t i = -1; i < 0 || list[i]; i++) {
        char reason[128], what[200];
        b->attention = i < 0 ? NULL : list[i];
        if (b->attention && !b->attention->supports(b->dev->device, &shape, reason, sizeof reason)) continue;
        (void)snprintf(what, sizeof what, "queries, %s, %s, D %d, q %d, k %d, biases %d %d",
                       b->attention ? b->attention->name : "(operation)", reel_dtype_name(dtype), (int)d, (int)n_query, (int)n_key,
                       shape.has_key_bias, shape.has_relative_bias);
        whole_and_pieces(b, "attention", &a, n_query, cut_attention, what);
    }
    b->attention = NULL;
}

/* ---- convolutions: pieces need their own inputs, so they are made by hand -------------------------------------------------------- */

typedef struct conv {
    reel_op_conv3d whole;
    int64_t t, h, w, c, o;
} conv;

static conv new_conv(bed *b, reel_dtype dtype, int64_t c, int64_t o)
{
    static const int32_t kernel[3] = {3, 3, 3};
    conv v = {.t = bed_range(b, 3, 6), .h = bed_range(b, 6, 12), .w = bed_range(b, 3, 9), .c = c, .o = o};
    reel_op_conv3d a = {.size = sizeof a, .pad_front = 2, .pad = {1, 1, 1, 1}, .stride = {1, 1, 1}};
    a.x = bed_input(b, dtype, BED_DENSE, v.t, v.h, v.w, c);
    a.w = bed_weight(b, REEL_DTYPE_F32, BED_DENSE, o, c * 27, kernel);
    a.bias = bed_input(b, REEL_DTYPE_F32, BED_DENSE, o, 0, 0, 0);
    a.y = bed_output(b, dtype, BED_DENSE, v.t, v.h, v.w, o);
    v.whole = a;
    return v;
}

/* Frames [begin, end), the two before them as history. */
CUT(frames)
{
    reel_op_conv3d a = *(const reel_op_conv3d *)whole;
    a.n_history = begin < 2 ? (int32_t)begin : 2;
    a.pad_front = 2 - a.n_history;
    a.x = reel_tensor_slice(a.x, 0, begin - a.n_history, end);
    a.y = reel_tensor_slice(a.y, 0, begin, end);
    *(reel_op_conv3d *)piece = a;
}

/* Rows [begin, end) of all frames as a dense input of their own, with a row of each neighbour. */
static reel_op_conv3d rows_piece(bed *b, const conv *v, int64_t begin, int64_t end)
{
    reel_op_conv3d a = v->whole;
    int64_t first = begin > 0 ? begin - 1 : 0, last = end < v->h ? end + 1 : v->h;
    size_t row_bytes = (size_t)(v->w * v->c) * reel_dtype_bytes(a.x.dtype);
    a.halo = (begin > 0 ? 1U : 0U) | (end < v->h ? 2U : 0U);
    a.x = bed_input(b, a.x.dtype, BED_DENSE, v->t, last - first, v->w, v->c);
    for (int64_t t = 0; t < v->t; t++)
        memcpy((char *)a.x.data + (size_t)(t * (last - first)) * row_bytes,
               (const char *)v->whole.x.data + (size_t)(t * v->h + first) * row_bytes, (size_t)(last - first) * row_bytes);
    a.y = reel_tensor_slice(a.y, 1, begin, end);
    return a;
}

static void conv_in_row_pieces(bed *b, reel_dtype dtype, int64_t c, int64_t o)
{
    bed_clear(b);
    conv v = new_conv(b, dtype, c, o);
    reel_op_conv3d piece[N_PIECE];
    int64_t cut[N_PIECE + 1];
    draw_cuts(b, v.h, cut);
    for (int32_t i = 0; i < N_PIECE; i++) piece[i] = rows_piece(b, &v, cut[i], cut[i + 1]);
    char what[200];
    (void)snprintf(what, sizeof what, "picture rows, %s, %d frames of %d×%d, %d to %d channels, cut at %d and %d", reel_dtype_name(dtype),
                   (int)v.t, (int)v.h, (int)v.w, (int)c, (int)o, (int)cut[1], (int)cut[2]);
    /* oneDNN picks the blocking of a convolution by the picture's size, so sums are ordered otherwise: f32 rounding, then that of y */
    const double bound = dtype == REEL_DTYPE_F32 ? 1e-6 : dtype == REEL_DTYPE_F16 ? 2e-4 : 1e-3;
    b->n_check++;
    if (!bed_run(b, "conv3d", &v.whole, what)) return;
    bed_keep(b);
    bool is_good = bed_begin(b);
    for (int32_t i = 0; i < N_PIECE && is_good; i++) is_good = bed_enqueue(b, "conv3d", &piece[i], what);
    if (bed_end(b) && is_good) bed_near(b, &v.whole.y, bound, "conv3d", what);
}

static void pieces_change_no_bit(void **state)
{
    const rig *r = *state;
    static const int64_t channels[][2] = {{3, 16}, {16, 17}, {96, 3}, {32, 48}};
    bed b = new_bed(r, 1000);
    for (const reel_dtype *dtype = bed_floats; *dtype; dtype++) {
        linear_in_pieces(&b, *dtype, 67, 33, 129);
        linear_in_pieces(&b, *dtype, 200, 256, 96);
        linear_in_pieces(&b, *dtype, 300, 5, 7);
        for (int32_t i = 0; i < 4; i++) norms_in_pieces(&b, *dtype);
        for (int32_t i = 0; i < 3; i++) rotation_in_pieces(&b, *dtype);
        for (int32_t i = 0; i < 4; i++) attention_in_pieces(&b, *dtype, (const int64_t[4]){64, 128, 40, 3}[i]);
        for (size_t i = 0; i < REEL_COUNT(channels); i++) {
            conv_in_row_pieces(&b, *dtype, channels[i][0], channels[i][1]);
            bed_clear(&b);
            conv v = new_conv(&b, *dtype, channels[i][0], channels[i][1]);
            whole_and_pieces(&b, "conv3d", &v.whole, v.t, cut_frames, "frames");
        }
    }
    bed_clear(&b);
    print_message("  %d calls whole and in pieces\n", b.n_check);
    assert_int_equal(b.n_fail, 0);
}

static int run_device(bed_device *dev, uint64_t seed)
{
    rig r = {.dev = dev, .seed = seed};
    bool has_threads = strcmp(dev->ops.props.kind, "cpu") == 0;
    for (int32_t n = 1; has_threads && n <= N_PIECE; n++)
        if (n != dev->ops.props.n_thread) bed_device_open_cpu(dev->ops.props.isa, n, &r.twin[r.n_twin++]);
    const struct CMUnitTest tests[] = {
        {.name = "pieces change no bit", .test_func = pieces_change_no_bit, .initial_state = &r},
        {.name = "thread numbers change no bit", .test_func = thread_numbers_change_no_bit, .initial_state = &r},
    };
    int n_failed = _cmocka_run_group_tests(dev->label, tests, has_threads ? 2 : 1, NULL, NULL);
    while (r.n_twin > 0) bed_device_close(&r.twin[--r.n_twin]);
    return n_failed;
}

int main(int argc, char **argv)
{
    return bed_run_devices(argc, argv, run_device, 5);
}
