/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of all operations (args.h): what ops.h says in comments, as tables; and the few conditions that letters cannot say.
 *
 * A new operation gets its rows here and a line at the end of the file. */
#include "ops/args.h"

#define OPERAND(op, field, operand_kind, operand_flags, letters)                                                                \
    {                                                                                                                           \
        .name = #field, .offset = offsetof(reel_op_##op, field), .kind = REEL_OPERAND_##operand_kind, .flags = (operand_flags), \
        .shape = (letters)                                                                                                      \
    }

enum {
    OPT = REEL_OPERAND_OPTIONAL,
    OUT = REEL_OPERAND_OUT,
    APART = REEL_OPERAND_APART,
    DENSE = REEL_OPERAND_DENSE,
    FREE = REEL_OPERAND_FREE,
    TABLE = REEL_OPERAND_TABLE
};

static const reel_operand linear_operands[] = {
    OPERAND(linear, x, FLOAT, APART, "MK"),
    OPERAND(linear, w, WEIGHT, 0, "NK"),
    OPERAND(linear, bias, F32, OPT, "N"),
    OPERAND(linear, y, FLOAT, OUT, "MN"),
};

static const reel_operand conv3d_operands[] = {
    OPERAND(conv3d, x, FLOAT, APART | DENSE, "FhwI"), OPERAND(conv3d, w, WEIGHT, 0, "OJ"),    OPERAND(conv3d, bias, F32, OPT, "O"),
    OPERAND(conv3d, residual, FLOAT, OPT, "THWO"),    OPERAND(conv3d, y, FLOAT, OUT, "THWO"),
};

static const reel_operand attention_operands[] = {
    OPERAND(attention, q, FLOAT, 0, "BQHD"),        OPERAND(attention, k, FLOAT, APART, "BKHD"),
    OPERAND(attention, v, FLOAT, APART, "BKHD"),    OPERAND(attention, out, FLOAT, OUT, "BQHD"),
    OPERAND(attention, key_bias, F32, OPT, "K"),    OPERAND(attention, relative_bias, F32, OPT, "HR"),
    OPERAND(attention, lse, F32, OPT | OUT, "BHQ"),
};

static const reel_operand layer_norm_operands[] = {
    OPERAND(layer_norm, x, FLOAT, 0, "SD"),
    OPERAND(layer_norm, scale, F32, OPT | TABLE, "UD"),
    OPERAND(layer_norm, shift, F32, OPT | TABLE, "UD"),
    OPERAND(layer_norm, row_index, I32, OPT, "S"),
    OPERAND(layer_norm, y, FLOAT, OUT, "SD"),
};

static const reel_operand rms_norm_operands[] = {
    OPERAND(rms_norm, x, FLOAT, 0, "SD"),
    OPERAND(rms_norm, weight, F32, 0, "D"),
    OPERAND(rms_norm, y, FLOAT, OUT, "SD"),
};

static const reel_operand rms_sum_operands[] = {
    OPERAND(rms_sum, x, FLOAT, APART, "SD"),
    OPERAND(rms_sum, sum, F32, OUT, "S"),
};

static const reel_operand rms_apply_rope_operands[] = {
    OPERAND(rms_apply_rope, x, FLOAT, 0, "SHD"),   OPERAND(rms_apply_rope, sum, F32, 0, "S"),
    OPERAND(rms_apply_rope, weight, F32, 0, "C"),  OPERAND(rms_apply_rope, rope.table, F32, OPT, "PJ2"),
    OPERAND(rms_apply_rope, y, FLOAT, OUT, "SHD"),
};

static const reel_operand rms_norm_rope_operands[] = {
    OPERAND(rms_norm_rope, x, FLOAT, 0, "SHD"),
    OPERAND(rms_norm_rope, weight, F32, 0, "C"),
    OPERAND(rms_norm_rope, rope.table, F32, OPT, "PJ2"),
    OPERAND(rms_norm_rope, y, FLOAT, OUT, "SHD"),
};

static const reel_operand channel_norm_operands[] = {
    OPERAND(channel_norm, x, FLOAT, 0, "*C"),
    OPERAND(channel_norm, gamma, F32, 0, "C"),
    OPERAND(channel_norm, y, FLOAT, OUT, "*C"),
};

static const reel_operand gate_residual_operands[] = {
    OPERAND(gate_residual, x, FLOAT, 0, "SD"),
    OPERAND(gate_residual, a, FLOAT, 0, "SD"),
    OPERAND(gate_residual, gate, F32, OPT | TABLE, "UD"),
    OPERAND(gate_residual, row_index, I32, OPT, "S"),
    OPERAND(gate_residual, y, FLOAT, OUT, "SD"),
};

static const reel_operand gated_gelu_operands[] = {
    OPERAND(gated_gelu, gate, FLOAT, 0, "SD"),
    OPERAND(gated_gelu, up, FLOAT, 0, "SD"),
    OPERAND(gated_gelu, y, FLOAT, OUT, "SD"),
};

static const reel_operand silu_operands[] = {
    OPERAND(silu, x, FLOAT, 0, "="),
    OPERAND(silu, y, FLOAT, OUT, "="),
};

static const reel_operand modulation_operands[] = {
    OPERAND(modulation, table, F32, 0, "RD"),
    OPERAND(modulation, x, FLOAT, 0, "URD"),
    OPERAND(modulation, y, F32, OUT, "URD"),
};

static const reel_operand patchify_operands[] = {
    OPERAND(patchify, x, FLOAT, APART | FREE, "CThw"),
    OPERAND(patchify, y, FLOAT, OUT, "SP"),
};

static const reel_operand unpatchify_operands[] = {
    OPERAND(unpatchify, x, FLOAT, APART, "SP"),
    OPERAND(unpatchify, y, FLOAT, OUT | FREE, "CThw"),
};

static const reel_operand gather_rows_operands[] = {
    OPERAND(gather_rows, w, WEIGHT, 0, "RD"),
    OPERAND(gather_rows, index, I32, APART, "S"),
    OPERAND(gather_rows, y, FLOAT, OUT, "SD"),
};

static const reel_operand convert_operands[] = {
    OPERAND(convert, x, SOURCE, FREE, "="),
    OPERAND(convert, y, FLOAT, OUT | FREE, "="),
};

static const reel_operand combine_operands[] = {
    OPERAND(combine, x[0], FLOAT, DENSE, "="),       OPERAND(combine, x[1], FLOAT, OPT | DENSE, "="),
    OPERAND(combine, x[2], FLOAT, OPT | DENSE, "="), OPERAND(combine, x[3], FLOAT, OPT | DENSE, "="),
    OPERAND(combine, x[4], FLOAT, OPT | DENSE, "="), OPERAND(combine, x[5], FLOAT, OPT | DENSE, "="),
    OPERAND(combine, y, FLOAT, OUT | DENSE, "="),
};
static_assert(REEL_COMBINE_MAX == 6, "the table lists every x");

static const reel_operand affine_channels_operands[] = {
    OPERAND(affine_channels, x, FLOAT, FREE, "="),       OPERAND(affine_channels, mul, F32, OPT, "C"),
    OPERAND(affine_channels, div, F32, OPT, "C"),        OPERAND(affine_channels, add, F32, OPT, "C"),
    OPERAND(affine_channels, y, FLOAT, OUT | FREE, "="),
};

static const reel_operand frames_to_u8_operands[] = {
    OPERAND(frames_to_u8, x, FLOAT, APART, "FHW3"),
    OPERAND(frames_to_u8, y, U8, OUT, "FHW3"),
};

static const reel_operand count_nonfinite_operands[] = {
    OPERAND(count_nonfinite, x, FLOAT, APART | FREE, "="),
    OPERAND(count_nonfinite, count, I32, OUT, "1"),
};

/* ---- conditions beyond letters ------------------------------------------------------------------------------------------ */

static const char *extra_conv3d(const void *args)
{
    const reel_op_conv3d *a = args;
    const int32_t *k = a->w.kernel;
    if (k[0] < 1 || k[1] < 1 || k[2] < 1 || a->w.n_col != a->x.extent[3] * k[0] * k[1] * k[2])
        return "have a kernel that does not fit the columns of w";
    if (a->n_history < 0 || a->n_history > a->x.extent[0] || a->pad_front < 0) return "have a wrong n_history or pad_front";
    for (int32_t i = 0; i < 3; i++)
        if (a->stride[i] < 1) return "have a stride below 1";
    int64_t pad[4];
    for (int32_t i = 0; i < 4; i++) {
        if (a->pad[i] < 0) return "have a negative pad";
        pad[i] = a->halo >> i & 1U ? 0 : a->pad[i];
    }
    int64_t up = a->upsample2 ? 2 : 1;
    int64_t room[3] = {a->pad_front + a->x.extent[0] - k[0], pad[0] + pad[1] + up * a->x.extent[1] - k[1],
                       pad[2] + pad[3] + up * a->x.extent[2] - k[2]};
    for (int32_t i = 0; i < 3; i++)
        if (room[i] < 0 || a->y.extent[i] != room[i] / a->stride[i] + 1)
            return "have a y whose extents do not follow from x, kernel, pads and strides";
    if (a->valid_rows < 0 || a->valid_rows > a->y.extent[1]) return "have a wrong valid_rows";
    const reel_tensor *y = &a->y;
    if (y->extent[2] > 1 && y->stride[2] != y->extent[3]) return "have a y that is not dense within a frame";
    if (y->extent[1] > 1 && y->stride[1] != y->extent[2] * y->extent[3]) return "have a y that is not dense within a frame";
    return NULL;
}

static const char *extra_attention(const void *args)
{
    const reel_op_attention *a = args;
    if (a->relative_bias.data && a->relative_bias.extent[1] != a->q.extent[1] + a->k.extent[1] - 1)
        return "have a relative_bias whose width is not Sq + Sk − 1";
    return NULL;
}

static const char *check_rope(const reel_rope *r, int64_t n_token, int64_t n_channel)
{
    if (!r->table.data) return NULL;
    if (n_channel % 2 != 0 || r->table.extent[1] != n_channel / 2 || r->table.extent[2] != 2)
        return "have a rope table that does not fit D/2 pairs of two";
    if (r->pair_t < 0 || r->pair_h < 0 || r->pair_t + (int64_t)r->pair_h > n_channel / 2) return "have wrong pair_t and pair_h";
    if (r->grid_h < 1 || r->grid_w < 1 || r->first_token < 0) return "have a wrong grid";
    int64_t n = r->table.extent[0];
    if (r->grid_h > n || r->grid_w > n || (r->first_token + n_token - 1) / r->grid_w / r->grid_h >= n)
        return "have positions beyond the rope table";
    return NULL;
}

static const char *extra_rms_apply_rope(const void *args)
{
    const reel_op_rms_apply_rope *a = args;
    if (a->weight.extent[0] != a->x.extent[1] * a->x.extent[2]) return "have a weight that is not H·D long";
    if (a->n < 1) return "have no channel count n";
    return check_rope(&a->rope, a->x.extent[0], a->x.extent[2]);
}

static const char *extra_rms_norm_rope(const void *args)
{
    const reel_op_rms_norm_rope *a = args;
    if (a->weight.extent[0] != a->x.extent[1] * a->x.extent[2]) return "have a weight that is not H·D long";
    return check_rope(&a->rope, a->x.extent[0], a->x.extent[2]);
}

static const char *extra_channel_norm(const void *args)
{
    const reel_op_channel_norm *a = args;
    return a->act == REEL_ACTIVATION_NONE || a->act == REEL_ACTIVATION_SILU ? NULL : "have an activation other than NONE and SILU";
}

static const char *check_patches(const reel_tensor *latents, const reel_tensor *tokens, int32_t ph, int32_t pw, int64_t first)
{
    const int64_t *e = latents->extent;
    if (ph < 1 || pw < 1 || e[2] % ph != 0 || e[3] % pw != 0) return "have latents that patches do not divide";
    if (tokens->extent[1] != e[0] * ph * pw) return "have tokens whose width is not C·ph·pw";
    if (first < 0 || first + tokens->extent[0] > e[1] * (e[2] / ph) * (e[3] / pw)) return "have tokens beyond the last";
    return NULL;
}

static const char *extra_patchify(const void *args)
{
    const reel_op_patchify *a = args;
    return check_patches(&a->x, &a->y, a->patch_h, a->patch_w, a->first_token);
}

static const char *extra_unpatchify(const void *args)
{
    const reel_op_unpatchify *a = args;
    return check_patches(&a->y, &a->x, a->patch_h, a->patch_w, a->first_token);
}

static const char *extra_combine(const void *args)
{
    const reel_op_combine *a = args;
    if (a->n < 1 || a->n > REEL_COMBINE_MAX) return "have a wrong n";
    for (int32_t i = 0; i < REEL_COMBINE_MAX; i++)
        if (!a->x[i].data != (i >= a->n)) return "have another number of tensors than n says";
    return NULL;
}

static const char *extra_affine_channels(const void *args)
{
    const reel_op_affine_channels *a = args;
    if (a->channel_dim < 0 || a->channel_dim >= a->x.n_dim) return "have a channel_dim that x does not have";
    if (a->mul.data && a->div.data) return "have mul and div at once";
    const reel_tensor *vectors[3] = {&a->mul, &a->div, &a->add};
    for (int32_t i = 0; i < 3; i++)
        if (vectors[i]->data && vectors[i]->extent[0] != a->x.extent[a->channel_dim])
            return "have a vector that is not as long as the channel dimension";
    return NULL;
}

static const char *extra_frames_to_u8(const void *args)
{
    const reel_op_frames_to_u8 *a = args;
    return a->x.extent[3] == 3 ? NULL : "have frames without three channels";
}

static const char *extra_count_nonfinite(const void *args)
{
    const reel_op_count_nonfinite *a = args;
    return a->count.extent[0] == 1 ? NULL : "have a count that is not one number";
}

#define RULE(name, extra_check)                                                                 \
    const reel_args_rule reel_args_##name = {.op = #name,                                       \
                                             .struct_bytes = sizeof(reel_op_##name),            \
                                             .n_operand = (int32_t)REEL_COUNT(name##_operands), \
                                             .operand = name##_operands,                        \
                                             .extra = (extra_check)}

RULE(linear, NULL);
RULE(conv3d, extra_conv3d);
RULE(attention, extra_attention);
RULE(layer_norm, NULL);
RULE(rms_norm, NULL);
RULE(rms_sum, NULL);
RULE(rms_apply_rope, extra_rms_apply_rope);
RULE(rms_norm_rope, extra_rms_norm_rope);
RULE(channel_norm, extra_channel_norm);
RULE(gate_residual, NULL);
RULE(gated_gelu, NULL);
RULE(silu, NULL);
RULE(modulation, NULL);
RULE(patchify, extra_patchify);
RULE(unpatchify, extra_unpatchify);
RULE(gather_rows, NULL);
RULE(convert, NULL);
RULE(combine, extra_combine);
RULE(affine_channels, extra_affine_channels);
RULE(frames_to_u8, extra_frames_to_u8);
RULE(count_nonfinite, extra_count_nonfinite);
