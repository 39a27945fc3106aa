/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations over rows and elements: norms, gates, activations, conversions, data movement. Each splits its rows over threads and
 * hands them to the instruction set's kernel; what only moves data or runs once a step is plain C here.
 *
 * The engine has checked the arguments (src/ops). */
#include "backends/device/cpu/elt.h"

#include <math.h>

/* ---- one row kernel over all rows ------------------------------------------------------------------------------------------- */

typedef void (*row_kernel)(const void *op, int64_t begin, int64_t end, float *row);

typedef struct row_job {
    row_kernel run;
    const void *op;
    float *rows; /* n_thread buffers */
    int64_t row_floats;
} row_job;

static void row_body(void *context, int64_t begin, int64_t end, int32_t thread)
{
    const row_job *job = context;
    job->run(job->op, begin, end, job->rows + thread * job->row_floats);
}

/* A buffer of row_floats a thread, each on its own cache lines. */
static float *thread_rows(reel_device *device, int64_t *row_floats)
{
    *row_floats = (*row_floats + 63) / 64 * 64 + 64;
    return reel_cpu_scratch(device, (size_t)device->n_thread * (size_t)*row_floats * sizeof(float));
}

static reel_status no_scratch(reel_error *err)
{
    return REEL_FAIL(err, REEL_E_MEMORY, "no memory for an operation's row buffers\nremedy: close other programs");
}

static reel_status run_rows(reel_stream *stream, int64_t n_row, int64_t row_floats, const void *op, row_kernel run, reel_error *err)
{
    row_job job = {.run = run, .op = op, .row_floats = row_floats};
    job.rows = thread_rows(stream->device, &job.row_floats);
    if (!job.rows) return no_scratch(err);
    reel_cpu_parallel_for(stream->device, n_row, &job, row_body);
    return REEL_OK;
}

/* A typed kernel behind the untyped signature, and the operation that calls it. */
#define ROW_OP(name, kernel, rows, floats)                                                  \
    static void name##_rows(const void *op, int64_t begin, int64_t end, float *row)         \
    {                                                                                       \
        const name##_call *call = op;                                                       \
        call->run(call->op, begin, end, row);                                               \
    }                                                                                       \
    reel_status reel_cpu_op_##name(reel_stream *stream, const void *args, reel_error *err)  \
    {                                                                                       \
        const reel_op_##name *op = args;                                                    \
        name##_call call = {.run = reel_cpu_kernels_get(stream->device)->kernel, .op = op}; \
        return run_rows(stream, (rows), (floats), &call, name##_rows, err);                 \
    }
#define ROW_CALL(name)                                                                 \
    typedef struct name##_call {                                                       \
        void (*run)(const reel_op_##name *op, int64_t begin, int64_t end, float *row); \
        const reel_op_##name *op;                                                      \
    } name##_call

/* Rows of all dimensions but the last. */
static int64_t outer_count(const reel_tensor *t)
{
    int64_t n = 1;
    for (int32_t i = 0; i + 1 < t->n_dim; i++) n *= t->extent[i];
    return n;
}

ROW_CALL(layer_norm);
ROW_CALL(rms_norm);
ROW_CALL(rms_sum);
ROW_CALL(rms_apply_rope);
ROW_CALL(channel_norm);
ROW_CALL(gate_residual);
ROW_CALL(gated_gelu);
ROW_OP(layer_norm, layer_norm, op->x.extent[0], op->x.extent[1])
ROW_OP(rms_norm, rms_norm, op->x.extent[0], op->x.extent[1])
ROW_OP(rms_sum, rms_sum, op->x.extent[0], op->x.extent[1])
ROW_OP(rms_apply_rope, rms_rope, op->x.extent[0], (op->x.extent[1] + 1) * op->x.extent[2])
ROW_OP(channel_norm, channel_norm, outer_count(&op->x), op->x.extent[op->x.n_dim - 1])
ROW_OP(gate_residual, gate_residual, op->x.extent[0], 2 * REEL_CPU_BLOCK)
ROW_OP(gated_gelu, gated_gelu, op->gate.extent[0], 2 * REEL_CPU_BLOCK)

/* Both halves of a QK norm at once: the sum is the row's own. */
reel_status reel_cpu_op_rms_norm_rope(reel_stream *stream, const void *args, reel_error *err)
{
    const reel_op_rms_norm_rope *op = args;
    reel_op_rms_apply_rope whole = {.size = sizeof whole,
                                    .x = op->x,
                                    .weight = op->weight,
                                    .y = op->y,
                                    .n = op->x.extent[1] * op->x.extent[2],
                                    .eps = op->eps,
                                    .rope = op->rope};
    return reel_cpu_op_rms_apply_rope(stream, &whole, err);
}

/* ---- dense combinations ------------------------------------------------------------------------------------------------------ */

typedef struct combine_call {
    const reel_cpu_kernels *kernels;
    const reel_op_combine *op;
    int64_t n;
} combine_call;

static void combine_rows(const void *op, int64_t begin, int64_t end, float *row)
{
    const combine_call *call = op;
    int64_t last = end * REEL_CPU_BLOCK < call->n ? end * REEL_CPU_BLOCK : call->n;
    call->kernels->combine(call->op, begin * REEL_CPU_BLOCK, last, row);
}

reel_status reel_cpu_op_combine(reel_stream *stream, const void *args, reel_error *err)
{
    const reel_op_combine *op = args;
    combine_call call = {.kernels = reel_cpu_kernels_get(stream->device), .op = op, .n = reel_tensor_count(&op->y)};
    int64_t n_block = (call.n + REEL_CPU_BLOCK - 1) / REEL_CPU_BLOCK;
    return run_rows(stream, n_block, (REEL_COMBINE_MAX + 1) * REEL_CPU_BLOCK, &call, combine_rows, err);
}

/* ---- runs of elements of strided tensors --------------------------------------------------------------------------------------- */

/* Two tensors of equal extents as rows of their last dimensions, merged as far as both are dense. A row is cut into blocks. */
typedef struct run_list {
    reel_tensor x, y;
    int64_t row, n_row, n_block; /* elements of a row, rows, blocks of a row */
} run_list;

static void drop_dim(reel_tensor *t, int32_t i)
{
    for (int32_t d = i; d + 1 < t->n_dim; d++) {
        t->extent[d] = t->extent[d + 1];
        t->stride[d] = t->stride[d + 1];
    }
    t->n_dim--;
}

static void merge_dims(reel_tensor *x, reel_tensor *y)
{
    for (int32_t i = x->n_dim - 2; i >= 0; i--) {
        bool is_last = i + 2 == x->n_dim; /* the last dimension keeps its strides: kernels rely on them */
        if (x->extent[i + 1] == 1 && !is_last) {
            drop_dim(x, i + 1);
            drop_dim(y, i + 1);
        } else if (x->extent[i] == 1) {
            drop_dim(x, i);
            drop_dim(y, i);
        } else if (x->stride[i] == x->extent[i + 1] * x->stride[i + 1] && y->stride[i] == y->extent[i + 1] * y->stride[i + 1]) {
            int64_t n = x->extent[i] * x->extent[i + 1];
            drop_dim(x, i);
            drop_dim(y, i);
            x->extent[i] = y->extent[i] = n;
        }
    }
}

static run_list run_list_of(const reel_tensor *x, const reel_tensor *y)
{
    run_list list = {.x = *x, .y = *y};
    merge_dims(&list.x, &list.y);
    int32_t last = list.x.n_dim - 1;
    list.row = last >= 0 ? list.x.extent[last] : 1;
    list.n_row = outer_count(&list.x);
    list.n_block = (list.row + REEL_CPU_BLOCK - 1) / REEL_CPU_BLOCK;
    return list;
}

/* Offsets of block `index` in x and y, and its length. */
static int64_t run_at(const run_list *list, int64_t index, int64_t *x_at, int64_t *y_at)
{
    int64_t block = index % list->n_block, rest = index / list->n_block;
    int32_t last = list->x.n_dim - 1;
    *x_at = *y_at = 0;
    if (last >= 0) {
        *x_at = block * REEL_CPU_BLOCK * list->x.stride[last];
        *y_at = block * REEL_CPU_BLOCK * list->y.stride[last];
    }
    for (int32_t i = last - 1; i >= 0; i--) {
        *x_at += rest % list->x.extent[i] * list->x.stride[i];
        *y_at += rest % list->y.extent[i] * list->y.stride[i];
        rest /= list->x.extent[i];
    }
    int64_t left = list->row - block * REEL_CPU_BLOCK;
    return left < REEL_CPU_BLOCK ? left : REEL_CPU_BLOCK;
}

typedef struct run_call {
    const reel_cpu_kernels *kernels;
    const void *op;
    run_list list;
} run_call;

static char *element(const reel_tensor *t, int64_t i)
{
    return (char *)t->data + (size_t)i * reel_dtype_bytes(t->dtype);
}

/* out[i] = element i of a run with any stride, widened. */
static void gather(const reel_cpu_kernels *kernels, const reel_tensor *t, int64_t first, int64_t stride, int64_t n, float *out)
{
    bool is_float = t->dtype == REEL_DTYPE_F32 || t->dtype == REEL_DTYPE_BF16 || t->dtype == REEL_DTYPE_F16;
    if (stride == 1 && is_float) {
        kernels->to_f32(out, element(t, first), t->dtype, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const void *p = element(t, first + i * stride);
        switch (t->dtype) {
        case REEL_DTYPE_F32: out[i] = *(const float *)p; break;
        case REEL_DTYPE_BF16: out[i] = reel_f32_from_bf16(*(const uint16_t *)p); break;
        case REEL_DTYPE_F16: out[i] = reel_f32_from_f16(*(const uint16_t *)p); break;
        case REEL_DTYPE_F64: out[i] = (float)*(const double *)p; break;
        case REEL_DTYPE_F8_E4M3: out[i] = reel_f32_from_e4m3(*(const uint8_t *)p); break;
        case REEL_DTYPE_F8_E5M2: out[i] = reel_f32_from_e5m2(*(const uint8_t *)p); break;
        default: out[i] = NAN; break;
        }
    }
}

static void scatter(const reel_cpu_kernels *kernels, const reel_tensor *t, int64_t first, int64_t stride, int64_t n, const float *in)
{
    if (stride == 1) {
        kernels->from_f32(element(t, first), t->dtype, in, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        void *p = element(t, first + i * stride);
        if (t->dtype == REEL_DTYPE_F32) *(float *)p = in[i];
        if (t->dtype == REEL_DTYPE_BF16) *(uint16_t *)p = reel_bf16_from_f32(in[i]);
        if (t->dtype == REEL_DTYPE_F16) *(uint16_t *)p = reel_f16_from_f32(in[i]);
    }
}

static int64_t last_stride(const reel_tensor *t)
{
    return t->n_dim > 0 ? t->stride[t->n_dim - 1] : 1;
}

static reel_status run_runs(reel_stream *stream, const reel_tensor *x, const reel_tensor *y, const void *op, row_kernel run,
                            reel_error *err)
{
    run_call call = {.kernels = reel_cpu_kernels_get(stream->device), .op = op, .list = run_list_of(x, y)};
    return run_rows(stream, call.list.n_row * call.list.n_block, 3 * REEL_CPU_BLOCK, &call, run, err);
}

static void convert_runs(const void *op, int64_t begin, int64_t end, float *row)
{
    const run_call *call = op;
    const run_list *list = &call->list;
    for (int64_t r = begin; r < end; r++) {
        int64_t x_at, y_at, n = run_at(list, r, &x_at, &y_at);
        if (list->x.dtype == list->y.dtype && last_stride(&list->x) == 1 && last_stride(&list->y) == 1) {
            if (list->x.data != list->y.data)
                memcpy(element(&list->y, y_at), element(&list->x, x_at), (size_t)n * reel_dtype_bytes(list->x.dtype));
            continue;
        }
        gather(call->kernels, &list->x, x_at, last_stride(&list->x), n, row);
        scatter(call->kernels, &list->y, y_at, last_stride(&list->y), n, row);
    }
}

reel_status reel_cpu_op_convert(reel_stream *stream, const void *args, reel_error *err)
{
    const reel_op_convert *op = args;
    return run_runs(stream, &op->x, &op->y, op, convert_runs, err);
}

static void silu_runs(const void *op, int64_t begin, int64_t end, float *row)
{
    const run_call *call = op;
    const run_list *list = &call->list;
    for (int64_t r = begin; r < end; r++) {
        int64_t x_at, y_at, n = run_at(list, r, &x_at, &y_at);
        call->kernels->silu(element(&list->y, y_at), list->y.dtype, element(&list->x, x_at), list->x.dtype, n, row);
    }
}

reel_status reel_cpu_op_silu(reel_stream *stream, const void *args, reel_error *err)
{
    const reel_op_silu *op = args;
    return run_runs(stream, &op->x, &op->y, op, silu_runs, err);
}

static void frame_runs(const void *op, int64_t begin, int64_t end, float *row)
{
    const run_call *call = op;
    const run_list *list = &call->list;
    for (int64_t r = begin; r < end; r++) {
        int64_t x_at, y_at, n = run_at(list, r, &x_at, &y_at);
        call->kernels->frame_u8((uint8_t *)element(&list->y, y_at), element(&list->x, x_at), list->x.dtype, n, row);
    }
}

reel_status reel_cpu_op_frames_to_u8(reel_stream *stream, const void *args, reel_error *err)
{
    const reel_op_frames_to_u8 *op = args;
    return run_runs(stream, &op->x, &op->y, op, frame_runs, err);
}

/* ---- channel-wise affine maps -------------------------------------------------------------------------------------------------- */

typedef struct affine_call {
    const reel_cpu_kernels *kernels;
    const reel_op_affine_channels *op;
    int64_t n_inner; /* elements of the last dimension */
} affine_call;

static float vector_at(const reel_tensor *t, int64_t c, float absent)
{
    return t->data ? ((const float *)t->data)[c * t->stride[0]] : absent;
}

static void affine_rows(const void *context, int64_t begin, int64_t end, float *row)
{
    const affine_call *call = context;
    const reel_op_affine_channels *op = call->op;
    int32_t last = op->x.n_dim - 1;
    for (int64_t s = begin; s < end; s++) {
        int64_t x_at = 0, y_at = 0, rest = s, c = 0;
        for (int32_t i = last - 1; i >= 0; i--) {
            int64_t index = rest % op->x.extent[i];
            rest /= op->x.extent[i];
            x_at += index * op->x.stride[i];
            y_at += index * op->y.stride[i];
            if (i == op->channel_dim) c = index;
        }
        for (int64_t b = 0; b < call->n_inner; b += REEL_CPU_BLOCK) {
            int64_t m = call->n_inner - b < REEL_CPU_BLOCK ? call->n_inner - b : REEL_CPU_BLOCK;
            gather(call->kernels, &op->x, x_at + b * op->x.stride[last], op->x.stride[last], m, row);
            for (int64_t i = 0; i < m; i++) {
                int64_t channel = op->channel_dim == last ? b + i : c;
                float v = op->div.data ? row[i] / vector_at(&op->div, channel, 1.0F) : row[i] * vector_at(&op->mul, channel, 1.0F);
                row[i] = v + vector_at(&op->add, channel, 0.0F);
            }
            scatter(call->kernels, &op->y, y_at + b * op->y.stride[last], op->y.stride[last], m, row);
        }
    }
}

reel_status reel_cpu_op_affine_channels(reel_stream *stream, const void *args, reel_error *err)
{
    const reel_op_affine_channels *op = args;
    affine_call call = {.kernels = reel_cpu_kernels_get(stream->device), .op = op, .n_inner = op->x.extent[op->x.n_dim - 1]};
    return run_rows(stream, outer_count(&op->x), REEL_CPU_BLOCK, &call, affine_rows, err);
}

/* ---- counting ---------------------------------------------------------------------------------------------------------------- */

typedef struct count_job {
    run_call call;
    int64_t *count; /* one a thread, 64 bytes apart */
} count_job;

static void count_body(void *context, int64_t begin, int64_t end, int32_t thread)
{
    count_job *job = context;
    const run_list *list = &job->call.list;
    float row[REEL_CPU_BLOCK];
    for (int64_t r = begin; r < end; r++) {
        int64_t x_at, y_at, n = run_at(list, r, &x_at, &y_at);
        if (last_stride(&list->x) == 1) {
            job->count[thread * 8] += job->call.kernels->count_nonfinite(element(&list->x, x_at), list->x.dtype, n);
            continue;
        }
        gather(job->call.kernels, &list->x, x_at, last_stride(&list->x), n, row);
        job->count[thread * 8] += job->call.kernels->count_nonfinite(row, REEL_DTYPE_F32, n);
    }
}

reel_status reel_cpu_op_count_nonfinite(reel_stream *stream, const void *args, reel_error *err)
{
    const reel_op_count_nonfinite *op = args;
    reel_device *device = stream->device;
    count_job job = {.call = {.kernels = reel_cpu_kernels_get(device), .list = run_list_of(&op->x, &op->x)}};
    size_t bytes = (size_t)device->n_thread * 8 * sizeof(int64_t);
    job.count = reel_cpu_scratch(device, bytes);
    if (!job.count) return no_scratch(err);
    memset(job.count, 0, bytes);
    reel_cpu_parallel_for(device, job.call.list.n_row * job.call.list.n_block, &job, count_body);
    int64_t total = 0;
    for (int32_t t = 0; t < device->n_thread; t++) total += job.count[t * 8];
    *(int32_t *)op->count.data = total < INT32_MAX ? (int32_t)total : INT32_MAX;
    return REEL_OK;
}

/* ---- data movement --------------------------------------------------------------------------------------------------------------- */

reel_status reel_cpu_op_modulation(reel_stream *stream, const void *args, reel_error *err)
{
    (void)err;
    const reel_op_modulation *op = args;
    const reel_cpu_kernels *kernels = reel_cpu_kernels_get(stream->device);
    int64_t n_row = op->y.extent[1], n = op->y.extent[2];
    for (int64_t u = 0; u < op->y.extent[0]; u++) {
        for (int64_t r = 0; r < n_row; r++) {
            float *y = (float *)op->y.data + u * op->y.stride[0] + r * op->y.stride[1];
            const float *table = (const float *)op->table.data + r * op->table.stride[0];
            kernels->finish(y, REEL_DTYPE_F32, table, NULL, element(&op->x, u * op->x.stride[0] + r * op->x.stride[1]), op->x.dtype,
                            REEL_ACTIVATION_NONE, n);
        }
    }
    return REEL_OK;
}

typedef struct patch_call {
    const reel_cpu_kernels *kernels;
    const reel_tensor *latents, *tokens;
    int32_t patch_h, patch_w;
    int64_t first_token;
    bool to_tokens;
} patch_call;

/* One token: to_tokens reads the latents in the order (c, dy, dx); the way back is (dy, dx, c). */
static void patch_rows(const void *context, int64_t begin, int64_t end, float *row)
{
    const patch_call *call = context;
    const reel_tensor *l = call->latents;
    int64_t n_channel = l->extent[0], grid_h = l->extent[2] / call->patch_h, grid_w = l->extent[3] / call->patch_w;
    int64_t area = (int64_t)call->patch_h * call->patch_w;
    for (int64_t s = begin; s < end; s++) {
        int64_t g = call->first_token + s, x = g % grid_w * call->patch_w, y = g / grid_w % grid_h * call->patch_h, t = g / grid_w / grid_h;
        int64_t corner = t * l->stride[1] + y * l->stride[2] + x * l->stride[3];
        if (!call->to_tokens) gather(call->kernels, call->tokens, s * call->tokens->stride[0], 1, n_channel * area, row);
        for (int64_t c = 0; c < n_channel; c++) {
            for (int64_t dy = 0; dy < call->patch_h; dy++) {
                int64_t line = corner + c * l->stride[0] + dy * l->stride[2], inner = dy * call->patch_w;
                for (int64_t dx = 0; dx < call->patch_w; dx++) {
                    int64_t at = line + dx * l->stride[3];
                    if (call->to_tokens) {
                        gather(call->kernels, l, at, 0, 1, row + c * area + inner + dx);
                    } else {
                        scatter(call->kernels, l, at, 0, 1, row + (inner + dx) * n_channel + c);
                    }
                }
            }
        }
        if (call->to_tokens) scatter(call->kernels, call->tokens, s * call->tokens->stride[0], 1, n_channel * area, row);
    }
}

reel_status reel_cpu_op_patchify(reel_stream *stream, const void *args, reel_error *err)
{
    const reel_op_patchify *op = args;
    patch_call call = {.kernels = reel_cpu_kernels_get(stream->device),
                       .latents = &op->x,
                       .tokens = &op->y,
                       .patch_h = op->patch_h,
                       .patch_w = op->patch_w,
                       .first_token = op->first_token,
                       .to_tokens = true};
    return run_rows(stream, op->y.extent[0], op->y.extent[1], &call, patch_rows, err);
}

reel_status reel_cpu_op_unpatchify(reel_stream *stream, const void *args, reel_error *err)
{
    const reel_op_unpatchify *op = args;
    patch_call call = {.kernels = reel_cpu_kernels_get(stream->device),
                       .latents = &op->y,
                       .tokens = &op->x,
                       .patch_h = op->patch_h,
                       .patch_w = op->patch_w,
                       .first_token = op->first_token,
                       .to_tokens = false};
    return run_rows(stream, op->x.extent[0], op->x.extent[1], &call, patch_rows, err);
}

static void gather_rows_body(const void *context, int64_t begin, int64_t end, float *row)
{
    const run_call *call = context;
    const reel_op_gather_rows *op = call->op;
    int64_t n = op->w.n_col;
    for (int64_t s = begin; s < end; s++) {
        int64_t index = ((const int32_t *)op->index.data)[s * op->index.stride[0]];
        reel_tensor line = {.data = (char *)(uintptr_t)op->w.data + index * op->w.row_stride_bytes, .dtype = op->w.dtype};
        for (int64_t b = 0; b < n; b += REEL_CPU_BLOCK) {
            int64_t m = n - b < REEL_CPU_BLOCK ? n - b : REEL_CPU_BLOCK;
            gather(call->kernels, &line, b, 1, m, row);
            scatter(call->kernels, &op->y, s * op->y.stride[0] + b, 1, m, row);
        }
    }
}

reel_status reel_cpu_op_gather_rows(reel_stream *stream, const void *args, reel_error *err)
{
    const reel_op_gather_rows *op = args;
    run_call call = {.kernels = reel_cpu_kernels_get(stream->device), .op = op};
    return run_rows(stream, op->index.extent[0], REEL_CPU_BLOCK, &call, gather_rows_body, err);
}
