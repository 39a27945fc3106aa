/* SPDX-License-Identifier: Apache-2.0
 *
 * y = act(x·Wᵀ + bias), with weights as stored, packed, quantised to 16 bits, cut to a row range, and with low-rank additions.
 *
 * The product itself is oneDNN's where it is bit-equal for every number of rows and threads (its AVX-512 kernels), and our own panels
 * elsewhere (oneDNN's AVX2 product sums in an order that depends on the number of rows). Around it, three things are staged through
 * bounded scratch when they must be: weights of another dtype, a panel of output columns at a time; inputs of another dtype, a block
 * of rows at a time; and outputs that need more than oneDNN's epilogue. Nothing depends on how the rows of a call were cut. */
#include "backends/device/cpu/device.h"
#include "backends/device/cpu/onednn.h"
#include "backends/device/cpu/pack.h"

enum {
    TILE_ROWS = 96, /* rows of our own product's tile: with K = 256 at a time, a block of x stays in the second-level cache */
    TILE_PANELS = 4,
    TILE_K = 256,
    PANEL_BYTES = 16 << 20, /* widened weights at a time: a few panels stay in the third-level cache */
    BLOCK_BYTES = 8 << 20, /* staged rows at a time */
    STAGED_COLUMNS = 1024, /* with blocks of 2,048 rows: their weights are read from memory a few times only */
    COLUMN_STEP = 64,
};

/* One call, and how it is cut. */
typedef struct plan {
    reel_device *device;
    const reel_cpu_kernels *kernels;
    const reel_op_linear *op;
    const reel_packed *packed;
    reel_dtype compute;
    bool uses_dnn, widens_x, widens_w, rounds, stages_y;
    int64_t m, n, k;
    int64_t n_step, m_step; /* columns of y and rows at a time */
    int64_t add_stride; /* of rows of low-rank additions: whole panels */
    int64_t rank_max;
    /* sections of scratch */
    char *w, *x;
    float *x32, *y32, *add, *a, *b, *t, *tile;
} plan;

static int64_t round_up(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

static int64_t clamp(int64_t n, int64_t low, int64_t high)
{
    return n < low ? low : n > high ? high : n;
}

/* ---- our own product --------------------------------------------------------------------------------------------------------- */

typedef struct product_job {
    const plan *p;
    const float *x, *w; /* w: packed panels of this range of columns */
    int64_t x_stride, m, n, k, n_tile; /* n_tile: tiles side by side */
    const float *bias;
    reel_activation act;
    char *y;
    int64_t y_stride;
    reel_dtype y_dtype;
} product_job;

static void product_body(void *context, int64_t begin, int64_t end, int32_t thread)
{
    const product_job *job = context;
    const reel_cpu_gemm_kernels *gemm = &job->p->kernels->gemm;
    int64_t width = (int64_t)TILE_PANELS * gemm->panel;
    float *tile = job->p->tile + thread * (int64_t)TILE_ROWS * width;
    for (int64_t i = begin; i < end; i++) {
        int64_t row = i / job->n_tile * TILE_ROWS, col = i % job->n_tile * width;
        int64_t m = clamp(job->m - row, 0, TILE_ROWS), n = clamp(job->n - col, 0, width);
        for (int64_t k = 0; k < job->k; k += TILE_K) {
            int64_t depth = clamp(job->k - k, 0, TILE_K);
            for (int64_t c = 0; c < n; c += gemm->panel) {
                const float *panel = job->w + (col + c) * job->k + k * gemm->panel;
                const float *x = job->x + row * job->x_stride + k;
                if (k == 0) {
                    gemm->product(x, job->x_stride, m, depth, panel, tile + c, width);
                } else {
                    job->p->kernels->conv.product(x, job->x_stride, m, depth, panel, tile + c, width);
                }
            }
        }
        size_t bytes = reel_dtype_bytes(job->y_dtype);
        for (int64_t r = 0; r < m; r++) {
            job->p->kernels->finish(job->y + (size_t)((row + r) * job->y_stride + col) * bytes, job->y_dtype, tile + r * width,
                                    job->bias ? job->bias + col : NULL, NULL, REEL_DTYPE_F32, job->act, n);
        }
    }
}

static void run_product(product_job *job)
{
    int64_t width = (int64_t)TILE_PANELS * job->p->kernels->gemm.panel;
    job->n_tile = (job->n + width - 1) / width;
    int64_t n_tile_row = (job->m + TILE_ROWS - 1) / TILE_ROWS;
    reel_cpu_parallel_dynamic(job->p->device, n_tile_row * job->n_tile, 1, job, product_body);
}

typedef struct pack_job {
    const reel_cpu_kernels *kernels;
    const reel_weight *w;
    int64_t row;
    bool rounds;
    float *out;
} pack_job;

static void pack_body(void *context, int64_t begin, int64_t end, int32_t thread)
{
    (void)thread;
    const pack_job *job = context;
    int64_t panel = job->kernels->gemm.panel;
    for (int64_t i = begin; i < end; i++) {
        job->kernels->gemm.pack(job->w, job->row + i * panel, job->rounds, job->out + i * panel * job->w->n_col);
    }
}

/* Rows [row, row + n) of w, widened, as panels. */
void reel_cpu_pack_panels(const reel_device *device, const reel_weight *w, int64_t row, int64_t n, bool rounds, float *out)
{
    pack_job job = {.kernels = reel_cpu_kernels_get(device), .w = w, .row = row, .rounds = rounds, .out = out};
    int64_t panel = job.kernels->gemm.panel;
    reel_cpu_parallel_for(device, (n + panel - 1) / panel, &job, pack_body);
}

/* ---- one product of a block of rows with a range of columns ------------------------------------------------------------------------- */

typedef struct block {
    int64_t row, m, col, n;
    const char *x; /* rows of dtype compute */
    int64_t x_stride;
    const char *w; /* as the product wants it */
    const float *bias;
    reel_activation act;
    char *y;
    int64_t y_stride;
    reel_dtype y_dtype;
} block;

#if defined(REEL_WITH_ONEDNN)
static reel_dnn_spec dnn_spec(const plan *p, const block *b)
{
    reel_dnn_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.x_dtype = (int32_t)p->compute;
    spec.y_dtype = (int32_t)b->y_dtype;
    spec.has_bias = b->bias ? 1 : 0;
    spec.layout = p->packed ? p->packed->layout : REEL_DNN_PLAIN;
    spec.m = b->m;
    spec.n = b->n;
    spec.k = p->k;
    spec.x_stride = b->m == 1 ? p->k : b->x_stride;
    spec.y_stride = b->m == 1 ? b->n : b->y_stride;
    if (!p->packed) spec.w_stride = p->k;
    return spec;
}
#endif

static reel_status multiply(const plan *p, const block *b, reel_error *err)
{
#if defined(REEL_WITH_ONEDNN)
    if (p->uses_dnn) {
        reel_dnn_spec spec = dnn_spec(p, b);
        return reel_dnn_run(p->device, &spec, b->x, b->w, b->bias, b->y, err);
    }
#endif
    (void)err;
    product_job job = {.p = p,
                       .x = (const float *)(const void *)b->x,
                       .w = (const float *)(const void *)b->w,
                       .x_stride = b->x_stride,
                       .m = b->m,
                       .n = b->n,
                       .k = p->k,
                       .bias = b->bias,
                       .act = b->act,
                       .y = b->y,
                       .y_stride = b->y_stride,
                       .y_dtype = b->y_dtype};
    run_product(&job);
    return REEL_OK;
}

/* ---- staging ------------------------------------------------------------------------------------------------------------------- */

typedef struct convert_job {
    const reel_cpu_kernels *kernels;
    const char *x;
    reel_dtype x_dtype, out_dtype;
    int64_t x_stride_bytes, n;
    bool rounds;
    char *out; /* dense */
} convert_job;

static void convert_body(void *context, int64_t begin, int64_t end, int32_t thread)
{
    (void)thread;
    const convert_job *job = context;
    float wide[REEL_CPU_BLOCK];
    uint16_t half[REEL_CPU_BLOCK];
    size_t in_bytes = reel_dtype_bytes(job->x_dtype), out_bytes = reel_dtype_bytes(job->out_dtype);
    for (int64_t r = begin; r < end; r++) {
        for (int64_t i = 0; i < job->n; i += REEL_CPU_BLOCK) {
            int64_t n = clamp(job->n - i, 0, REEL_CPU_BLOCK);
            const char *in = job->x + r * job->x_stride_bytes + (size_t)i * in_bytes;
            char *out = job->out + (size_t)(r * job->n + i) * out_bytes;
            if (job->out_dtype == REEL_DTYPE_F32 && !job->rounds) {
                job->kernels->to_f32((float *)(void *)out, in, job->x_dtype, n);
                continue;
            }
            job->kernels->to_f32(wide, in, job->x_dtype, n);
            if (job->out_dtype == REEL_DTYPE_BF16) {
                job->kernels->from_f32(out, REEL_DTYPE_BF16, wide, n);
            } else {
                job->kernels->from_f32(half, REEL_DTYPE_BF16, wide, n);
                job->kernels->to_f32((float *)(void *)out, half, REEL_DTYPE_BF16, n);
            }
        }
    }
}

void reel_cpu_widen_rows(const reel_device *device, const reel_weight *w, int64_t first, int64_t n, reel_dtype dtype, bool rounds,
                         void *out)
{
    convert_job job = {.kernels = reel_cpu_kernels_get(device),
                       .x = (const char *)w->data + first * w->row_stride_bytes,
                       .x_dtype = w->dtype,
                       .out_dtype = dtype,
                       .x_stride_bytes = w->row_stride_bytes,
                       .n = w->n_col,
                       .rounds = rounds,
                       .out = out};
    reel_cpu_parallel_for(device, n, &job, convert_body);
}

static void widen_x(const plan *p, int64_t row, int64_t m, reel_dtype dtype, void *out)
{
    const reel_tensor *x = &p->op->x;
    int64_t bytes = (int64_t)reel_dtype_bytes(x->dtype);
    convert_job job = {.kernels = p->kernels,
                       .x = (const char *)x->data + row * x->stride[0] * bytes,
                       .x_dtype = x->dtype,
                       .out_dtype = dtype,
                       .x_stride_bytes = x->stride[0] * bytes,
                       .n = p->k,
                       .out = out};
    reel_cpu_parallel_for(p->device, m, &job, convert_body);
}

/* add (+)= scale·(x·Aᵀ)·Bᵀ for one entry; both products in f32. */
static void add_low_rank(const plan *p, const reel_low_rank *lr, const block *b, bool adds)
{
    int64_t panel = p->kernels->gemm.panel, wide = round_up(lr->rank, panel), row = p->op->w.row_begin + b->col;
    int64_t bytes = (int64_t)reel_dtype_bytes(lr->dtype);
    reel_weight a = {
        .dtype = lr->dtype, .n_row = lr->rank, .n_col = p->k, .row_stride_bytes = p->k * bytes, .row_end = lr->rank, .data = lr->a};
    reel_weight rows = {.dtype = lr->dtype,
                        .n_row = p->op->w.n_row,
                        .n_col = lr->rank,
                        .row_stride_bytes = lr->rank * bytes,
                        .row_end = row + b->n,
                        .data = lr->b};
    reel_cpu_pack_panels(p->device, &a, 0, lr->rank, false, p->a);
    reel_cpu_pack_panels(p->device, &rows, row, b->n, false, p->b);
    product_job inner = {.p = p,
                         .x = p->x32,
                         .w = p->a,
                         .x_stride = p->k,
                         .m = b->m,
                         .n = lr->rank,
                         .k = p->k,
                         .y = (char *)p->t,
                         .y_stride = wide,
                         .y_dtype = REEL_DTYPE_F32};
    if (!p->x32) {
        inner.x = (const float *)(const void *)b->x;
        inner.x_stride = b->x_stride;
    }
    run_product(&inner);
    for (int64_t i = 0; i < b->m; i++) {
        for (int64_t r = 0; r < lr->rank; r++) p->t[i * wide + r] *= lr->scale;
    }
    for (int64_t c = 0; c < b->n; c += panel) {
        const float *w = p->b + c * lr->rank;
        if (adds) {
            p->kernels->conv.product(p->t, wide, b->m, lr->rank, w, p->add + c, p->add_stride);
        } else {
            p->kernels->gemm.product(p->t, wide, b->m, lr->rank, w, p->add + c, p->add_stride);
        }
    }
}

typedef struct finish_job {
    const plan *p;
    const block *b;
} finish_job;

static void finish_body(void *context, int64_t begin, int64_t end, int32_t thread)
{
    (void)thread;
    const finish_job *job = context;
    const plan *p = job->p;
    const reel_tensor *y = &p->op->y;
    const float *bias = p->op->bias.data;
    for (int64_t r = begin; r < end; r++) {
        char *out = (char *)y->data + (size_t)((job->b->row + r) * y->stride[0] + job->b->col) * reel_dtype_bytes(y->dtype);
        p->kernels->finish(out, y->dtype, p->y32 + r * job->b->n, bias ? bias + job->b->col : NULL,
                           p->add ? p->add + r * p->add_stride : NULL, REEL_DTYPE_F32, p->op->act, job->b->n);
    }
}

/* ---- the call ------------------------------------------------------------------------------------------------------------------- */

static reel_status run_block(const plan *p, block b, reel_error *err)
{
    const reel_op_linear *op = p->op;
    size_t x_bytes = reel_dtype_bytes(op->x.dtype);
    b.x = (const char *)op->x.data + (size_t)(b.row * op->x.stride[0]) * x_bytes;
    b.x_stride = op->x.stride[0];
    if (p->widens_x) {
        widen_x(p, b.row, b.m, p->compute, p->x);
        b.x = p->x;
        b.x_stride = p->k;
    }
    if (!p->stages_y) {
        b.bias = op->bias.data ? (const float *)op->bias.data + b.col : NULL;
        b.act = op->act;
        b.y = (char *)op->y.data + (size_t)(b.row * op->y.stride[0] + b.col) * reel_dtype_bytes(op->y.dtype);
        b.y_stride = op->y.stride[0];
        b.y_dtype = op->y.dtype;
        return multiply(p, &b, err);
    }
    b.y = (char *)p->y32;
    b.y_stride = b.n;
    b.y_dtype = REEL_DTYPE_F32;
    REEL_TRY(multiply(p, &b, err));
    if (p->x32) widen_x(p, b.row, b.m, REEL_DTYPE_F32, p->x32);
    for (int32_t i = 0; i < op->w.n_low_rank; i++) add_low_rank(p, &op->w.low_rank[i], &b, i > 0);
    finish_job job = {.p = p, .b = &b};
    reel_cpu_parallel_for(p->device, b.m, &job, finish_body);
    return REEL_OK;
}

/* The weights of columns [col, col + n), as the product wants them. */
static const char *prepare_weights(const plan *p, int64_t col, int64_t n)
{
    const reel_weight *w = &p->op->w;
    if (p->packed && p->uses_dnn) return p->packed->whole.data;
    if (p->packed)
        return (const char *)p->packed->whole.data + (size_t)((w->row_begin - p->packed->row_begin + col) * p->k) * sizeof(float);
    int64_t row = w->row_begin + col;
    if (!p->uses_dnn) {
        reel_weight part = *w;
        part.row_end = row + n;
        reel_cpu_pack_panels(p->device, &part, row, n, p->rounds, (float *)(void *)p->w);
        return p->w;
    }
    if (!p->widens_w) return (const char *)w->data + row * w->row_stride_bytes;
    reel_cpu_widen_rows(p->device, w, row, n, p->compute, p->rounds, p->w);
    return p->w;
}

static reel_status run_plan(const plan *p, reel_error *err)
{
    for (int64_t col = 0; col < p->n; col += p->n_step) {
        block b = {.col = col, .n = clamp(p->n - col, 0, p->n_step)};
        b.w = prepare_weights(p, col, b.n);
        for (b.row = 0; b.row < p->m; b.row += p->m_step) {
            b.m = clamp(p->m - b.row, 0, p->m_step);
            REEL_TRY(run_block(p, b, err));
        }
    }
    return REEL_OK;
}

/* From the stride alone, so that one row goes the way of many. */
static bool is_dense_rows(const reel_tensor *t)
{
    return t->stride[0] == t->extent[1];
}

/* Columns and rows at a time. */
static void plan_cut(plan *p)
{
    int64_t k_bytes = p->k * (int64_t)reel_dtype_bytes(p->compute);
    p->n_step = p->widens_w ? clamp(PANEL_BYTES / k_bytes / COLUMN_STEP * COLUMN_STEP, COLUMN_STEP, p->n) : p->n;
    if (p->n_step > p->n) p->n_step = p->n;
    if (p->n_step < p->n && p->uses_dnn) p->stages_y = true; /* a part of y's columns is not dense */
    if (p->uses_dnn && p->stages_y && !p->packed) p->n_step = clamp(p->n_step, 1, STAGED_COLUMNS);
    p->m_step = p->m;
    if (p->widens_x || p->stages_y) {
        int64_t widest = p->stages_y ? p->n_step : 1;
        if ((p->widens_x || p->rank_max > 0) && widest < p->k) widest = p->k;
        p->m_step = clamp(BLOCK_BYTES / (widest * (int64_t)sizeof(float)) / 16 * 16, 16, p->m);
        if (p->m_step > p->m) p->m_step = p->m;
    }
    p->add_stride = round_up(p->n_step, p->kernels->gemm.panel);
}

/* Which path: from dtypes and the weight's shape; rows only bound the staging. oneDNN's product wants dense x and y. */
static void plan_path(plan *p, bool uses_dnn)
{
    const reel_op_linear *op = p->op;
    p->uses_dnn = uses_dnn;
    p->m = op->x.extent[0];
    p->k = op->w.n_col;
    p->n = op->w.row_end - op->w.row_begin;
    p->compute = uses_dnn ? reel_cpu_compute_dtype(p->device, op->x.dtype) : REEL_DTYPE_F32;
    p->rounds = op->x.dtype == REEL_DTYPE_BF16 && op->w.dtype != REEL_DTYPE_BF16;
    p->packed = reel_cpu_packed_for(&op->w, p->compute, p->rounds);
    if (p->packed && (p->packed->kind == REEL_PACKED_DNN) != uses_dnn) p->packed = NULL;
    p->widens_x = op->x.dtype != p->compute || (uses_dnn && !is_dense_rows(&op->x));
    bool is_dense_w = op->w.row_stride_bytes == p->k * (int64_t)reel_dtype_bytes(op->w.dtype);
    p->widens_w = !p->packed && (!uses_dnn || op->w.dtype != p->compute || p->rounds || !is_dense_w);
    bool writes = !uses_dnn || op->y.dtype == REEL_DTYPE_F32 || (op->y.dtype == REEL_DTYPE_BF16 && p->compute == REEL_DTYPE_BF16);
    p->stages_y = op->w.n_low_rank > 0 || !writes || (uses_dnn && op->act != REEL_ACTIVATION_NONE) || (uses_dnn && !is_dense_rows(&op->y));
    for (int32_t i = 0; i < op->w.n_low_rank; i++) {
        if (op->w.low_rank[i].rank > p->rank_max) p->rank_max = op->w.low_rank[i].rank;
    }
    plan_cut(p);
}

#if defined(REEL_WITH_ONEDNN)
/* Whether every shape of the plan gets oneDNN's "brg" kernels, the ones that are bit-equal for all numbers of rows and threads. */
static reel_status dnn_serves(const plan *p, bool *out, reel_error *err)
{
    *out = true;
    for (int i = 0; i < 4; i++) {
        block b = {.m = i & 1 ? p->m % p->m_step : p->m_step, .n = i & 2 ? p->n % p->n_step : p->n_step};
        if (b.m == 0 || b.n == 0) continue;
        b.bias = p->stages_y ? NULL : p->op->bias.data;
        b.act = p->stages_y ? REEL_ACTIVATION_NONE : p->op->act;
        b.x_stride = p->k;
        b.y_stride = b.n;
        b.y_dtype = p->stages_y ? REEL_DTYPE_F32 : p->op->y.dtype;
        reel_dnn_spec spec = dnn_spec(p, &b);
        const char *name = "";
        REEL_TRY(reel_dnn_name(p->device, &spec, &name, err));
        if (strncmp(name, "brg", 3) != 0) *out = false;
    }
    return REEL_OK;
}
#endif

static reel_status plan_scratch(plan *p, reel_error *err)
{
    int64_t panel = p->kernels->gemm.panel, wide_rank = round_up(p->rank_max, panel);
    bool has_low_rank = p->op->w.n_low_rank > 0;
    int64_t f32 = (int64_t)sizeof(float), element = (int64_t)reel_dtype_bytes(p->compute);
    int64_t sections[] = {
        p->widens_w ? round_up(p->n_step, panel) * p->k * element : 0,
        p->widens_x ? p->m_step * p->k * element : 0,
        has_low_rank && p->compute != REEL_DTYPE_F32 ? p->m_step * p->k * f32 : 0,
        p->stages_y ? p->m_step * p->n_step * f32 : 0,
        has_low_rank ? p->m_step * p->add_stride * f32 : 0,
        has_low_rank ? wide_rank * p->k * f32 : 0,
        has_low_rank ? p->add_stride * p->rank_max * f32 : 0,
        has_low_rank ? p->m_step * wide_rank * f32 : 0,
        !p->uses_dnn || has_low_rank ? p->device->n_thread * (int64_t)TILE_ROWS * TILE_PANELS * panel * f32 : 0,
    };
    char *place[REEL_COUNT(sections)];
    size_t total = 0;
    for (size_t i = 0; i < REEL_COUNT(sections); i++) total += (size_t)round_up(sections[i], 64);
    char *scratch = reel_cpu_scratch(p->device, total ? total : 64);
    if (!scratch)
        return REEL_FAIL(err, REEL_E_MEMORY, "no memory for a matrix product\ngiven: %zu bytes\nremedy: close other programs", total);
    for (size_t i = 0; i < REEL_COUNT(sections); i++) {
        place[i] = sections[i] ? scratch : NULL;
        scratch += round_up(sections[i], 64);
    }
    p->w = place[0];
    p->x = place[1];
    p->x32 = (float *)(void *)place[2];
    p->y32 = (float *)(void *)place[3];
    p->add = (float *)(void *)place[4];
    p->a = (float *)(void *)place[5];
    p->b = (float *)(void *)place[6];
    p->t = (float *)(void *)place[7];
    p->tile = (float *)(void *)place[8];
    return REEL_OK;
}

reel_status reel_cpu_op_linear(reel_stream *stream, const void *args, reel_error *err)
{
    plan p = {.device = stream->device, .kernels = reel_cpu_kernels_get(stream->device), .op = args};
    bool uses_dnn = false;
#if defined(REEL_WITH_ONEDNN)
    if (p.device->isa >= REEL_CPU_ISA_AVX512) {
        plan_path(&p, true);
        REEL_TRY(dnn_serves(&p, &uses_dnn, err));
    }
#endif
    if (!uses_dnn) plan_path(&p, false);
    REEL_TRY(plan_scratch(&p, err));
    return run_plan(&p, err);
}
