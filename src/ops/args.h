/* SPDX-License-Identifier: Apache-2.0
 *
 * The check of an operation's arguments, done once for every device. Private to src/ops.
 *
 * What an operation takes is data: one row per operand with its kind, its shape in letters and what its strides and memory may be.
 * reel_args_check compares a call with that table; anything that differs is our own mistake (REEL_E_INTERNAL), and the
 * text names the operation and all extents. Devices rely on it and check nothing again. */
#ifndef REEL_OPS_ARGS_H
#define REEL_OPS_ARGS_H

#include <stdbool.h>

#include "base/check.h"
#include "reel-plugin/ops.h"

typedef enum reel_operand_kind {
    REEL_OPERAND_FLOAT, /* f32, bf16, f16 */
    REEL_OPERAND_SOURCE, /* these, F64 and F8 */
    REEL_OPERAND_F32,
    REEL_OPERAND_I32,
    REEL_OPERAND_U8,
    REEL_OPERAND_WEIGHT /* a reel_weight; shape letters: rows taken, columns */
} reel_operand_kind;

enum {
    REEL_OPERAND_OPTIONAL = 1, /* may be absent */
    REEL_OPERAND_OUT = 2, /* written; may lie on an input of the same dtype, extents and strides */
    REEL_OPERAND_APART = 4, /* no output may lie on this input */
    REEL_OPERAND_DENSE = 8, /* no gaps */
    REEL_OPERAND_FREE = 16, /* any strides; otherwise the last dimension is contiguous */
    REEL_OPERAND_TABLE = 32 /* [U, D]; a caller may hand one row as [D] */
};

typedef struct reel_operand {
    const char *name;
    size_t offset; /* within the argument struct */
    reel_operand_kind kind;
    uint32_t flags;
    const char *shape; /* a letter per dimension, equal letters are equal extents; "*C" any dimensions and C; "=" those of the first "=" */
} reel_operand;

/* NULL when the op's own conditions hold, else what is wrong, in words. */
typedef const char *(*reel_args_extra)(const void *args);

typedef struct reel_args_rule {
    const char *op;
    size_t struct_bytes;
    int32_t n_operand;
    const reel_operand *operand;
    reel_args_extra extra; /* NULL: none */
} reel_args_rule;

#define X(name, version, need) extern const reel_args_rule reel_args_##name;
REEL_OP_LIST(X)
#undef X

/* In a copy of a call: a TABLE of one dimension becomes [1, D], and a dense f32 tensor of several dimensions where a vector is wanted (a
 * stored [C, 1, 1, 1]) becomes that vector. Devices then see one form only. */
void reel_args_normalise(const reel_args_rule *rule, void *args);
/* Size field of the struct, before it is copied. */
reel_status reel_args_check_size(const reel_args_rule *rule, const void *args, reel_error *err);
/* Everything else, after reel_args_normalise. */
reel_status reel_args_check(const reel_args_rule *rule, const void *args, reel_error *err);

#endif
