/* SPDX-License-Identifier: Apache-2.0
 *
 * The test bed of operations: one call on host memory by the C reference, the same call on a device, and a comparison that also
 * looks where nothing may have been written.
 *
 * A case builds its arguments from tensors of the bed: inputs hold fresh random numbers and NaN in every gap, outputs hold poison, and each
 * lies between guard bytes. bed_check runs reference and device from the same start and compares outputs within a tolerance and
 * every other byte exactly. Failures are printed with the seed and counted; the bed goes on. */
#ifndef REEL_TESTS_OPS_BED_H
#define REEL_TESTS_OPS_BED_H

#include <stdbool.h>

#include "device/device.h"
#include "ops/args.h"
#include "ops/ops.h"
#include "ops/ref/ref.h"

enum { BED_BLOCK_MAX = 32, BED_GUARD = 64 };

typedef enum bed_layout {
    BED_DENSE, /* no gaps */
    BED_ROWS, /* last dimension contiguous, gaps between rows and planes */
    BED_FREE /* dimensions in any order in memory, with gaps */
} bed_layout;

/* Device and stream, with the operations bound. */
typedef struct bed_device {
    char label[96];
    reel_registry *registry;
    const reel_device_vt *vt;
    reel_device *device;
    reel_stream *stream;
    reel_ops ops;
} bed_device;

typedef struct bed_block {
    uint8_t *host; /* start of every run; guards before and behind */
    uint8_t *expect; /* after the reference */
    uint8_t *got; /* after the device */
    uint8_t *kept; /* by bed_keep */
    uint8_t *device;
    size_t bytes; /* without guards */
} bed_block;

typedef struct bed {
    bed_device *dev;
    uint64_t seed, random;
    bed_block block[BED_BLOCK_MAX];
    int32_t n_block;
    reel_low_rank low_rank[2], low_rank_at[3][2];
    const reel_attn_impl *attention; /* runs instead of the operation `attention` when set */
    bool is_packed; /* linear weights go through weight_pack where the device has it */
    reel_packed *packed[BED_BLOCK_MAX]; /* freed at the end of a run */
    int32_t n_packed;
    double least_rms; /* errors count against at least this size: sums that happen to cancel */
    bed_device *twin[3]; /* devices that must give the same bits as dev; n_twin of them */
    int32_t n_twin;
    int32_t n_check, n_fail;
    double worst; /* largest error as a part of its tolerance */
    char worst_at[240];
} bed;

/* Bounds by dtype of the output: relative L2, and the largest difference as a part of the root mean square. To either, one step of a 16-bit
 * output is added in one element of four times the root mean square: any result may lie next to the middle of two neighbours. */
typedef struct bed_bound {
    double l2, most;
} bed_bound;
typedef struct bed_tolerance {
    bed_bound f32, bf16, f16;
} bed_tolerance;

/* One rounding on either side, sums in f32 of a few hundred terms: 2^-24 ≈ 6e-8 each. A 16-bit output differs where a value lies next to
 * the middle of two neighbours: one step (2^-8, 2^-11 of a value of up to 20 times the root mean square) in a few elements. */
static const bed_tolerance bed_rounding REEL_UNUSED = {{1e-6, 1e-5}, {1e-3, 1.2e-1}, {2e-4, 1.6e-2}};

/* Drops all blocks; every case starts with it. */
void bed_clear(bed *b);
double bed_uniform(bed *b); /* [0, 1) */
double bed_normal(bed *b);
int64_t bed_range(bed *b, int64_t low, int64_t high); /* both included */

/* Extents of 0 end the list. Inputs are normal (F8: any finite value). */
reel_tensor bed_input(bed *b, reel_dtype dtype, bed_layout layout, int64_t e0, int64_t e1, int64_t e2, int64_t e3);
reel_tensor bed_output(bed *b, reel_dtype dtype, bed_layout layout, int64_t e0, int64_t e1, int64_t e2, int64_t e3);
reel_tensor bed_indices(bed *b, int64_t n, int64_t limit); /* i32, each in [0, limit) */
/* n_row × n_col (kernel NULL: a linear), all rows; rows lie apart by a gap when it is no convolution and layout is not DENSE. */
reel_weight bed_weight(bed *b, reel_dtype dtype, bed_layout layout, int64_t n_row, int64_t n_col, const int32_t *kernel);
/* Sets an element of an input from a double. */
void bed_set(const reel_tensor *t, int64_t offset, double value);

typedef reel_status (*bed_call)(const reel_ops *ops, const void *args, reel_error *err);
typedef struct bed_op {
    const char *name;
    const reel_args_rule *rule;
    reel_op_fn reference;
    bed_call call;
    bool is_must;
} bed_op;
const bed_op *bed_find_op(const char *name);
/* The i-th operation of REEL_OP_LIST; NULL behind the last. */
const bed_op *bed_op_at(int32_t i);

/* args points at the operation's struct, its tensors in bed memory. */
void bed_check(bed *b, const char *op, const void *args, bed_tolerance tolerance, const char *format, ...) REEL_PRINTF(5, 6);
/* The same on the device alone, for several calls in a row: begin puts all blocks on the device as they stand on the host, end
 * fetches them into block[].got. False when the device refused (counted and printed). */
bool bed_begin(bed *b);
bool bed_enqueue(bed *b, const char *op, const void *args, const char *what);
bool bed_end(bed *b);
bool bed_run(bed *b, const char *op, const void *args, const char *what); /* all three */
/* Keeps every block as the last run left it, and compares another run with that: equal bits, or a failure. */
void bed_keep(bed *b);
void bed_same(bed *b, const char *op, const char *what);
/* Compares one tensor only, within a relative L2. */
void bed_near(bed *b, const reel_tensor *t, double l2, const char *op, const char *what);
void bed_fail(bed *b, const char *format, ...) REEL_PRINTF(2, 3);

/* Every float dtype; REEL_DTYPE_NONE ends the list. */
extern const reel_dtype bed_floats[4];

/* runner.c: calls fn for every device that this machine has, each in a process of its own; prints the seed, which REEL_TEST_SEED
 * fixes. Returns an exit code: 0 when fn returned 0 on all of at least n_min devices. argv[1] runs one device by its number. */
typedef int (*bed_device_fn)(bed_device *dev, uint64_t seed);
int bed_run_devices(int argc, char **argv, bed_device_fn fn, int32_t n_min);

/* devices.c: configurations to run, by number, until bed_device_open says there is none. */
typedef enum bed_opened { BED_OPENED, BED_NOT_HERE, BED_NO_MORE } bed_opened;
bed_opened bed_device_open(int32_t index, bed_device *out);
void bed_device_close(bed_device *dev);
/* The CPU device with so many threads, at the instruction set of props.isa. */
void bed_device_open_cpu(const char *isa_max, int32_t n_thread, bed_device *out);
/* A table whose operations are the C references, as operations of the device's own; on host memory. Needs the registry that holds the template. */
const reel_device_vt *reference_vt(const reel_registry *registry);

/* deferred.c: a table that wraps a device of another table. */
const reel_device_vt *deferred_vt(const reel_device_vt *inner, bool is_host_memory);

/* cases/<op>.c */
#define X(name, version, need) void case_##name(bed *b);
REEL_OP_LIST(X)
#undef X

#endif
