/* SPDX-License-Identifier: Apache-2.0
 *
 * Causal 3-D convolution over channels-last frames, through oneDNN, one output frame at a time.
 *
 * Frames of one call never meet in oneDNN's hands: a frame's primitive depends on how many of its input frames lie before the first one, not
 * on the chunk, so chunks of any length give the same bits. History frames are ordinary frames in front of x. Three forms:
 *   direct    whole frames from x to y; a residual is copied to y first and the product added to it
 *   staged    bands of rows through scratch: other dtypes, a residual of another dtype, upsampling of kernels that are not 1×3×3, the first frames
 *             of a clip (zero frames before them)
 *   parity    1×3×3 on a picture upsampled by two: four 2×2 convolutions of the small picture (4/9 of the work), bands woven into y */
#include "backends/device/cpu/conv.h"

#include "backends/device/cpu/device.h"
#include "backends/device/cpu/onednn.h"

#if defined(REEL_WITH_ONEDNN)

enum { BAND_BYTES = 12 << 20 };

/* One call. */
typedef struct conv {
    reel_device *device;
    const reel_cpu_kernels *kernels;
    const reel_op_conv3d *op;
    const reel_packed *packed;
    reel_dtype compute;
    int64_t n_in, n_out, height, width; /* of x */
    int64_t up; /* 2 with upsample2, else 1 */
    int64_t pad[4]; /* with halo sides at 0 */
} conv;

/* The input frames of one output frame: [first, first + n) of x after `missing` zero frames. */
typedef struct frames {
    int64_t first, n, missing;
} frames;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static frames frames_of(const conv *c, int64_t t)
{
    int64_t first = t * c->op->stride[0] - c->op->pad_front, kt = c->op->w.kernel[0];
    int64_t missing = least(most(-first, 0), kt);
    return (frames){.first = first + missing, .n = kt - missing, .missing = missing};
}

static const char *x_frame(const conv *c, int64_t frame, int64_t row)
{
    return (const char *)c->op->x.data + (size_t)((frame * c->height + row) * c->width * c->n_in) * reel_dtype_bytes(c->op->x.dtype);
}

static char *y_row(const conv *c, int64_t t, int64_t row)
{
    const reel_tensor *y = &c->op->y;
    return (char *)y->data + (size_t)(t * y->stride[0] + row * y->stride[1]) * reel_dtype_bytes(y->dtype);
}

static reel_dnn_spec base_spec(const conv *c, frames f, reel_dtype y_dtype)
{
    reel_dnn_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.kind = REEL_DNN_CONV;
    spec.x_dtype = (int32_t)c->compute;
    spec.y_dtype = (int32_t)y_dtype;
    spec.layout = c->packed->whole.layout;
    spec.n_in = c->n_in;
    spec.n_out = c->n_out;
    spec.in[0] = f.n;
    spec.pad_begin[0] = f.missing;
    spec.out[0] = 1;
    for (int i = 0; i < 3; i++) {
        spec.kernel[i] = c->op->w.kernel[i];
        spec.stride[i] = i == 0 ? 1 : c->op->stride[i];
    }
    return spec;
}

/* ---- rows of y ------------------------------------------------------------------------------------------------------------------- */

typedef struct row_copy_job {
    const conv *c;
    int64_t t;
} row_copy_job;

static void residual_body(void *context, int64_t begin, int64_t end, int32_t thread)
{
    (void)thread;
    const row_copy_job *job = context;
    const reel_tensor *r = &job->c->op->residual;
    size_t bytes = reel_dtype_bytes(r->dtype), line = (size_t)(job->c->op->y.extent[2] * job->c->n_out) * bytes;
    for (int64_t i = begin; i < end; i++) {
        const char *from = (const char *)r->data + (size_t)(job->t * r->stride[0] + i * r->stride[1]) * bytes;
        char *to = y_row(job->c, job->t, i);
        if (to != from) memcpy(to, from, line);
    }
}

/* Rows at or beyond valid_rows are written as zero. */
static void clear_invalid(const conv *c, int64_t t)
{
    const reel_op_conv3d *op = c->op;
    if (op->valid_rows == 0) return;
    size_t line = (size_t)(op->y.extent[2] * c->n_out) * reel_dtype_bytes(op->y.dtype);
    for (int64_t i = op->valid_rows; i < op->y.extent[1]; i++) memset(y_row(c, t, i), 0, line);
}

/* ---- direct ---------------------------------------------------------------------------------------------------------------------- */

static reel_status run_direct(const conv *c, int64_t t, frames f, reel_error *err)
{
    const reel_op_conv3d *op = c->op;
    reel_dnn_spec spec = base_spec(c, f, op->y.dtype);
    spec.has_bias = op->bias.data ? 1 : 0;
    spec.adds = op->residual.data ? 1 : 0;
    int64_t in[2] = {c->height, c->width};
    for (int i = 0; i < 2; i++) {
        spec.in[1 + i] = in[i];
        spec.out[1 + i] = op->y.extent[1 + i];
        spec.pad_begin[1 + i] = c->pad[2 * i];
        /* what the last window needs, which strides may leave short of the padding */
        spec.pad_end[1 + i] = most(0, (spec.out[1 + i] - 1) * spec.stride[1 + i] + spec.kernel[1 + i] - in[i] - spec.pad_begin[1 + i]);
    }
    if (op->residual.data) {
        row_copy_job job = {.c = c, .t = t};
        reel_cpu_parallel_for(c->device, op->y.extent[1], &job, residual_body);
    }
    return reel_dnn_run(c->device, &spec, x_frame(c, f.first, 0), c->packed->whole.data, op->bias.data, y_row(c, t, 0), err);
}

/* ---- bands of rows through scratch --------------------------------------------------------------------------------------------------- */

/* Rows [low, low + n) of the (duplicated) picture of frames f, the missing ones as zeros, widened to the compute dtype:
 * out [f.missing + f.n][n][width·up][n_in] */
typedef struct band_job {
    const conv *c;
    frames f;
    int64_t low, n, up;
    char *out;
} band_job;

static void widen_line(const conv *c, const char *in, int64_t n, char *out)
{
    float wide[REEL_CPU_BLOCK];
    size_t in_bytes = reel_dtype_bytes(c->op->x.dtype), out_bytes = reel_dtype_bytes(c->compute);
    if (c->op->x.dtype == c->compute) {
        memcpy(out, in, (size_t)n * in_bytes);
        return;
    }
    for (int64_t i = 0; i < n; i += REEL_CPU_BLOCK) {
        int64_t m = least(n - i, REEL_CPU_BLOCK);
        c->kernels->to_f32(wide, in + (size_t)i * in_bytes, c->op->x.dtype, m);
        c->kernels->from_f32(out + (size_t)i * out_bytes, c->compute, wide, m);
    }
}

static void band_body(void *context, int64_t begin, int64_t end, int32_t thread)
{
    (void)thread;
    const band_job *job = context;
    const conv *c = job->c;
    size_t pixel = (size_t)c->n_in * reel_dtype_bytes(c->compute), source = (size_t)c->n_in * reel_dtype_bytes(c->op->x.dtype);
    for (int64_t i = begin; i < end; i++) {
        char *out = job->out + (size_t)(i * c->width * job->up) * pixel;
        if (i / job->n < job->f.missing) {
            memset(out, 0, (size_t)(c->width * job->up) * pixel);
            continue;
        }
        const char *in = x_frame(c, job->f.first + i / job->n - job->f.missing, (job->low + i % job->n) / job->up);
        if (job->up == 1) {
            widen_line(c, in, c->width * c->n_in, out);
            continue;
        }
        for (int64_t x = 0; x < c->width; x++) {
            widen_line(c, in + (size_t)x * source, c->n_in, out + (size_t)(2 * x) * pixel);
            memcpy(out + (size_t)(2 * x + 1) * pixel, out + (size_t)(2 * x) * pixel, pixel);
        }
    }
}

/* Rows [row, row + n) of frame t of y from f32 rows, residual added. */
typedef struct store_job {
    const conv *c;
    int64_t t, row;
    const float *y32;
} store_job;

static const void *residual_at(const conv *c, int64_t t, int64_t row, int64_t col)
{
    const reel_tensor *r = &c->op->residual;
    if (!r->data) return NULL;
    return (const char *)r->data + (size_t)(t * r->stride[0] + row * r->stride[1] + col * r->stride[2]) * reel_dtype_bytes(r->dtype);
}

static void store_body(void *context, int64_t begin, int64_t end, int32_t thread)
{
    (void)thread;
    const store_job *job = context;
    const conv *c = job->c;
    int64_t line = c->op->y.extent[2] * c->n_out;
    for (int64_t i = begin; i < end; i++) {
        c->kernels->finish(y_row(c, job->t, job->row + i), c->op->y.dtype, job->y32 + i * line, NULL,
                           residual_at(c, job->t, job->row + i, 0), c->op->residual.dtype, REEL_ACTIVATION_NONE, line);
    }
}

static reel_status scratch_for(const conv *c, size_t bytes, char **out, reel_error *err)
{
    *out = reel_cpu_scratch(c->device, bytes);
    if (!*out) return REEL_FAIL(err, REEL_E_MEMORY, "no memory for a convolution\ngiven: %zu bytes\nremedy: close other programs", bytes);
    return REEL_OK;
}

/* y32 = bias, for windows that see nothing but padding. */
static void fill_bias(const conv *c, int64_t n_pixel, float *y32)
{
    for (int64_t i = 0; i < n_pixel * c->n_out; i++) y32[i] = c->op->bias.data ? ((const float *)c->op->bias.data)[i % c->n_out] : 0.0F;
}

static reel_status run_band(const conv *c, int64_t t, frames f, int64_t row, int64_t n, char *scratch, reel_error *err)
{
    const reel_op_conv3d *op = c->op;
    int64_t height = c->height * c->up, width = c->width * c->up;
    reel_dnn_spec spec = base_spec(c, f, REEL_DTYPE_F32);
    int64_t low = row * spec.stride[1] - c->pad[0], high = low + (n - 1) * spec.stride[1] + spec.kernel[1];
    spec.has_bias = op->bias.data ? 1 : 0;
    spec.in[0] += f.missing; /* zeros in scratch: oneDNN takes its slowest form when frames before the first are its own padding */
    spec.pad_begin[0] = 0;
    spec.pad_begin[1] = most(-low, 0);
    spec.pad_end[1] = most(high - height, 0);
    spec.in[1] = least(high, height) - most(low, 0);
    spec.out[1] = n;
    spec.in[2] = width;
    spec.out[2] = op->y.extent[2];
    spec.pad_begin[2] = c->pad[2];
    spec.pad_end[2] = most(0, (spec.out[2] - 1) * spec.stride[2] + spec.kernel[2] - width - c->pad[2]);
    float *y32 = (float *)(void *)scratch;
    char *x = scratch + (size_t)(n * op->y.extent[2] * c->n_out) * sizeof(float) / 64 * 64 + 64;
    if (f.n == 0 || spec.in[1] <= 0) {
        fill_bias(c, n * op->y.extent[2], y32);
    } else {
        band_job job = {.c = c, .f = f, .low = most(low, 0), .n = spec.in[1], .up = c->up, .out = x};
        reel_cpu_parallel_for(c->device, (f.missing + f.n) * job.n, &job, band_body);
        REEL_TRY(reel_dnn_run(c->device, &spec, x, c->packed->whole.data, op->bias.data, y32, err));
    }
    store_job store = {.c = c, .t = t, .row = row, .y32 = y32};
    reel_cpu_parallel_for(c->device, n, &store, store_body);
    return REEL_OK;
}

static reel_status run_staged(const conv *c, int64_t t, frames f, reel_error *err)
{
    const reel_op_conv3d *op = c->op;
    int64_t out_row = op->y.extent[2] * c->n_out * (int64_t)sizeof(float);
    int64_t in_row = op->w.kernel[0] * c->width * c->up * c->n_in * (int64_t)reel_dtype_bytes(c->compute);
    int64_t n = most(1, least(op->y.extent[1], (BAND_BYTES - in_row * op->w.kernel[1]) / (out_row + in_row * op->stride[1])));
    char *scratch;
    REEL_TRY(scratch_for(c, (size_t)(n * out_row + ((n - 1) * op->stride[1] + op->w.kernel[1]) * in_row) + 128, &scratch, err));
    for (int64_t row = 0; row < op->y.extent[1]; row += n) {
        REEL_TRY(run_band(c, t, f, row, least(n, op->y.extent[1] - row), scratch, err));
    }
    return REEL_OK;
}

/* ---- upsampled pictures by parity ------------------------------------------------------------------------------------------------------ */

/* Along one axis: duplicated position c = out + 1 − pad; its small pixel is c / 2 and its parity c % 2. Pixels [begin, end) of parity p. */
typedef struct parity_range {
    int64_t begin, end;
} parity_range;

static parity_range range_of(int64_t n_out, int64_t pad, int parity)
{
    int64_t low = 1 - pad, high = n_out - pad; /* of c, inclusive */
    return (parity_range){.begin = (low - parity + 1) / 2, .end = high - parity < 0 ? 0 : (high - parity) / 2 + 1};
}

typedef struct weave_job {
    const conv *c;
    int64_t t;
    parity_range rows[2], cols[2]; /* of this band */
    const float *part[4];
} weave_job;

static void weave_row(const weave_job *job, int64_t position)
{
    const conv *c = job->c;
    int parity = (int)(position & 1);
    int64_t row = position - 1 + c->pad[0], small = (position >> 1) - job->rows[parity].begin;
    for (int64_t x = 0; x < c->op->y.extent[2]; x++) {
        int64_t at = x + 1 - c->pad[2], p = at & 1, width = job->cols[p].end - job->cols[p].begin;
        const float *from = job->part[parity * 2 + p] + (small * width + (at >> 1) - job->cols[p].begin) * c->n_out;
        char *to = y_row(c, job->t, row) + (size_t)(x * c->n_out) * reel_dtype_bytes(c->op->y.dtype);
        const void *residual = residual_at(c, job->t, row, x);
        if (c->op->y.dtype == REEL_DTYPE_F32 && !residual) {
            memcpy(to, from, (size_t)c->n_out * sizeof(float));
        } else {
            c->kernels->finish(to, c->op->y.dtype, from, NULL, residual, c->op->residual.dtype, REEL_ACTIVATION_NONE, c->n_out);
        }
    }
}

/* Positions 2·begin … of the band, counted from the first row of both parities. */
static void weave_body(void *context, int64_t begin, int64_t end, int32_t thread)
{
    (void)thread;
    const weave_job *job = context;
    int64_t base = 2 * least(job->rows[0].begin, job->rows[1].begin);
    for (int64_t i = begin; i < end; i++) {
        int64_t position = base + i;
        const parity_range *r = &job->rows[position & 1];
        if (position >> 1 >= r->begin && position >> 1 < r->end) weave_row(job, position);
    }
}

/* Small pixels rows × cols of one parity, f32, from widened or stored rows that begin at row x_low of the small picture. */
static reel_status run_parity(const conv *c, int parity, parity_range rows, parity_range cols, const char *x, int64_t x_low, float *out,
                              reel_error *err)
{
    frames f = {.n = 1};
    reel_dnn_spec spec = base_spec(c, f, REEL_DTYPE_F32);
    spec.has_bias = c->op->bias.data ? 1 : 0;
    spec.layout = c->packed->parity[parity].layout;
    int64_t low = rows.begin - 1 + (parity >> 1), high = rows.end + (parity >> 1);
    int64_t left = cols.begin - 1 + (parity & 1), right = cols.end + (parity & 1);
    spec.kernel[1] = spec.kernel[2] = 2;
    spec.pad_begin[1] = most(-low, 0);
    spec.pad_end[1] = most(high - c->height, 0);
    spec.pad_begin[2] = most(-left, 0);
    spec.pad_end[2] = most(right - c->width, 0);
    spec.in[1] = least(high, c->height) - most(low, 0);
    spec.in[2] = c->width;
    spec.out[1] = rows.end - rows.begin;
    spec.out[2] = cols.end - cols.begin;
    x += (size_t)((most(low, 0) - x_low) * c->width * c->n_in) * reel_dtype_bytes(c->compute);
    return reel_dnn_run(c->device, &spec, x, c->packed->parity[parity].data, c->op->bias.data, out, err);
}

static parity_range cut(parity_range r, int64_t begin, int64_t end)
{
    return (parity_range){.begin = most(r.begin, begin), .end = most(most(r.begin, begin), least(r.end, end))};
}

static reel_status run_parity_band(const conv *c, int64_t t, frames f, int64_t begin, int64_t end, char *scratch, reel_error *err)
{
    const reel_op_conv3d *op = c->op;
    weave_job weave = {.c = c, .t = t};
    int64_t low = most(begin - 1, 0), high = least(end + 1, c->height);
    const char *x = x_frame(c, f.first, low);
    if (op->x.dtype != c->compute) {
        band_job job = {.c = c, .f = f, .low = low, .n = high - low, .up = 1, .out = scratch};
        reel_cpu_parallel_for(c->device, job.n, &job, band_body);
        x = scratch;
        scratch += (size_t)((high - low) * c->width * c->n_in) * reel_dtype_bytes(c->compute) / 64 * 64 + 64;
    }
    for (int p = 0; p < 2; p++) {
        weave.rows[p] = cut(range_of(op->y.extent[1], c->pad[0], p), begin, end);
        weave.cols[p] = range_of(op->y.extent[2], c->pad[2], p);
    }
    for (int p = 0; p < 4; p++) {
        parity_range rows = weave.rows[p >> 1], cols = weave.cols[p & 1];
        int64_t n = (rows.end - rows.begin) * (cols.end - cols.begin) * c->n_out;
        weave.part[p] = (const float *)(const void *)scratch;
        if (n > 0) REEL_TRY(run_parity(c, p, rows, cols, x, low, (float *)(void *)scratch, err));
        scratch += n * (int64_t)sizeof(float) / 64 * 64 + 64;
    }
    reel_cpu_parallel_for(c->device, 2 * (end - begin) + 2, &weave, weave_body);
    return REEL_OK;
}

static reel_status run_upsampled(const conv *c, int64_t t, frames f, reel_error *err)
{
    int64_t out_row = 4 * (c->width + 1) * c->n_out * (int64_t)sizeof(float);
    int64_t in_row = c->op->x.dtype != c->compute ? c->width * c->n_in * (int64_t)reel_dtype_bytes(c->compute) : 0;
    int64_t n = most(1, least(c->height, BAND_BYTES / (out_row + in_row)));
    char *scratch;
    REEL_TRY(scratch_for(c, (size_t)((n + 1) * out_row + (n + 2) * in_row) + 5 * 128, &scratch, err));
    for (int64_t row = 0; row < c->height; row += n) {
        REEL_TRY(run_parity_band(c, t, f, row, least(row + n, c->height), scratch, err));
    }
    return REEL_OK;
}

/* ---- the call ---------------------------------------------------------------------------------------------------------------------- */

static bool takes_parity(const conv *c)
{
    const reel_op_conv3d *op = c->op;
    bool fits =
        op->upsample2 && op->w.kernel[0] == 1 && op->w.kernel[1] == 3 && op->w.kernel[2] == 3 && op->stride[1] == 1 && op->stride[2] == 1;
    for (int i = 0; i < 4; i++) fits = fits && c->pad[i] <= 1;
    return fits && c->height > 1 && c->width > 1;
}

static bool takes_direct(const conv *c)
{
    const reel_op_conv3d *op = c->op;
    bool writes = op->y.dtype == REEL_DTYPE_F32 || op->y.dtype == c->compute;
    const reel_tensor *r = &op->residual;
    bool adds = !r->data || (r->dtype == op->y.dtype && (r->extent[1] == 1 || r->stride[1] == r->extent[2] * r->extent[3]) &&
                             (r->extent[2] == 1 || r->stride[2] == r->extent[3]));
    return !op->upsample2 && op->x.dtype == c->compute && writes && adds;
}

static reel_status run_conv(const conv *c, reel_error *err)
{
    bool parity = takes_parity(c), direct = takes_direct(c);
    for (int64_t t = 0; t < c->op->y.extent[0]; t++) {
        frames f = frames_of(c, t);
        if (parity && f.n > 0) {
            REEL_TRY(run_upsampled(c, t, f, err));
        } else if (direct && f.missing == 0) {
            REEL_TRY(run_direct(c, t, f, err));
        } else {
            REEL_TRY(run_staged(c, t, f, err));
        }
        clear_invalid(c, t);
    }
    return REEL_OK;
}

/* A weight that was not packed is packed for the length of the call. */
reel_status reel_cpu_op_conv3d(reel_stream *stream, const void *args, reel_error *err)
{
    const reel_op_conv3d *op = args;
    reel_device *device = stream->device;
    conv c = {.device = device,
              .kernels = reel_cpu_kernels_get(device),
              .op = op,
              .n_in = op->x.extent[3],
              .n_out = op->w.row_end - op->w.row_begin,
              .height = op->x.extent[1],
              .width = op->x.extent[2],
              .up = op->upsample2 ? 2 : 1};
    for (int i = 0; i < 4; i++) c.pad[i] = op->halo >> i & 1U ? 0 : op->pad[i];
    c.compute = reel_cpu_compute_dtype(device, op->x.dtype);
    c.packed = reel_cpu_packed_for(&op->w, c.compute, op->x.dtype == REEL_DTYPE_BF16 && op->w.dtype != REEL_DTYPE_BF16);
    reel_packed *temporary = NULL;
    if (!c.packed) {
        size_t bytes;
        REEL_TRY(reel_cpu_weight_pack(device, &op->w, op->x.dtype, &temporary, &bytes, err));
        c.packed = temporary;
    }
    reel_status status = run_conv(&c, err);
    reel_cpu_weight_free(device, temporary);
    return status;
}

#else

reel_status reel_cpu_op_conv3d(reel_stream *stream, const void *args, reel_error *err)
{
    (void)stream, (void)args;
    return REEL_FAIL(err, REEL_E_INTERNAL,
                     "a convolution reached the CPU device of a build without oneDNN\nremedy: report this fault of reel");
}

#endif
