/* SPDX-License-Identifier: Apache-2.0
 *
 * Causal 3-D convolution over channels-last frames, as products of our own panels.
 *
 * In channels-last rows the kw taps of a pixel are kw·I neighbouring elements, so one kernel row of a run of pixels is a product of depth
 * kw·I whose input rows overlap; nothing is copied. A tile is a run of pixels of one output row: its sums collect kernel row after kernel
 * row (rows and frames in padding are left out; pixels at the border take the taps that exist), then bias and residual are added and the
 * tile is stored. Every output element is one chain over (kt, kh, kw, i), so bits depend neither on threads, chunks nor halos.
 * An upsampled picture under a 1×3×3 kernel is read as four 2×2 convolutions of the small one, 4/9 of the work. oneDNN's convolutions
 * are as fast, but choose blocking, and with it the order of sums, by picture and number of threads (docs/perf-log.md). */
#include "backends/device/cpu/conv.h"

#include "backends/device/cpu/device.h"

enum {
    TILE_PIXELS = 96, /* inputs and sums of a tile stay in the second-level cache up to 192 channels */
    DEPTH_BYTES = 192 * 4, /* of a product: a panel of 32 takes 24 KiB, and 12 pixels 9 KiB, of the first-level cache */
    BAND_BYTES = 12 << 20, /* widened input rows at a time */
};

/* One call. */
typedef struct conv {
    reel_device *device;
    const reel_cpu_kernels *kernels;
    const reel_cpu_conv_kernels *conv;
    const reel_op_conv3d *op;
    const reel_packed *packed;
    reel_dtype compute;
    int64_t n_in, n_out, wide_out, height, width; /* wide_out: whole panels; height and width of x */
    int64_t sum_stride; /* floats of a pixel's sums: wide_out, or lanes of each output */
    int64_t up; /* 2 where upsampled rows are written out, else 1 */
    int64_t pad[4]; /* with halo sides at 0 */
} conv;

/* Where rows of the input lie: row r of frame f of the picture the kernel sees, r from `low` on. */
typedef struct view {
    const char *data;
    int64_t first_frame, low, n_row; /* n_row: rows of a frame in memory */
    int64_t height, width; /* of the picture */
} view;

/* Output pixel (row, col) of the pass is pixel (row·step + first) of y; its window begins at input pixel position·stride + origin. */
typedef struct axis {
    int64_t kernel, stride, origin;
    int64_t n, step, first;
} axis;

/* One convolution of a frame: the plain one, or one of the four parities. */
typedef struct pass {
    const conv *c;
    view in;
    const char *w;
    axis rows, cols;
    int64_t t; /* frame of y */
    int64_t row_begin, n_segment, n_group, group; /* rows from row_begin on; segments of a row; groups of panels */
    char *scratch;
    size_t scratch_step; /* of a thread */
} pass;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- one tile ------------------------------------------------------------------------------------------------------------------- */

/* Pixels [begin, end) of an output row, one kernel row: input row `line`, weights `w` of one panel, sums c [pixels][stride]. */
typedef struct tile_row {
    const char *line;
    const char *w;
    float *sum;
    int64_t begin, end;
} tile_row;

static void add_pixels(const pass *p, const tile_row *r, int64_t begin, int64_t end, int64_t tap_low, int64_t tap_high)
{
    const conv *c = p->c;
    int64_t element = (int64_t)reel_dtype_bytes(c->compute), panel = c->packed->panel, x_stride = p->cols.stride * c->n_in;
    int64_t depth = (tap_high - tap_low) * c->n_in, step = DEPTH_BYTES / element, row_depth = p->cols.kernel * c->n_in;
    const char *x = r->line + (begin * p->cols.stride + p->cols.origin + tap_low) * c->n_in * element;
    float *sum = r->sum + (begin - r->begin) * c->sum_stride;
    if (c->packed->is_dot) {
        reel_cpu_dot dot = {.a = x,
                            .b = r->w + tap_low * c->n_in * element,
                            .a_stride = x_stride,
                            .b_stride = row_depth,
                            .m = end - begin,
                            .k = depth,
                            .n_out = (int32_t)panel,
                            .c = sum};
        c->conv->dot(&dot);
        return;
    }
    const char *w = r->w + tap_low * c->n_in * panel * element;
    bool is_narrow = panel < c->conv->panel;
    for (int64_t k = 0; k < depth; k += step) {
        (is_narrow ? c->conv->narrow : c->conv->product)(x + k * element, x_stride, end - begin, least(step, depth - k),
                                                         w + k * panel * element, sum, c->sum_stride);
    }
}

static void add_kernel_row(const pass *p, const tile_row *r)
{
    const axis *a = &p->cols;
    /* pixels whose whole window lies in the picture */
    int64_t low = a->origin < 0 ? (-a->origin + a->stride - 1) / a->stride : 0;
    int64_t room = p->in.width - a->kernel - a->origin, high = room < 0 ? 0 : room / a->stride + 1;
    low = least(most(low, r->begin), r->end);
    high = least(most(high, low), r->end);
    for (int64_t x = r->begin; x < r->end; x++) {
        if (x == low && high > low) {
            add_pixels(p, r, low, high, 0, a->kernel);
            x = high - 1;
            continue;
        }
        int64_t start = x * a->stride + a->origin, tap_low = most(0, -start), tap_high = least(a->kernel, p->in.width - start);
        if (tap_low < tap_high) add_pixels(p, r, x, x + 1, tap_low, tap_high);
    }
}

/* Sums of pixels [begin, end) of a row for panels [panel_begin, panel_end). */
static void sum_tile(const pass *p, int64_t row, int64_t begin, int64_t end, int64_t panel_begin, int64_t panel_end, float *sum)
{
    const conv *c = p->c;
    int64_t element = (int64_t)reel_dtype_bytes(c->compute), kt_n = c->op->w.kernel[0], panel = c->packed->panel;
    int64_t depth = p->cols.kernel * c->n_in, pixel = c->n_in * element;
    for (int64_t i = panel_begin; i < panel_end; i++) {
        for (int64_t kt = 0; kt < kt_n; kt++) {
            int64_t frame = p->t * c->op->stride[0] - c->op->pad_front + kt;
            if (frame < 0) continue;
            for (int64_t kh = 0; kh < p->rows.kernel; kh++) {
                int64_t y = row * p->rows.stride + p->rows.origin + kh;
                if (y < 0 || y >= p->in.height) continue;
                int64_t line = (frame - p->in.first_frame) * p->in.n_row + y - p->in.low;
                tile_row r = {.line = p->in.data + line * p->in.width * pixel,
                              .w = p->w + ((i * kt_n + kt) * p->rows.kernel + kh) * depth * panel * element,
                              .sum = sum + i * panel,
                              .begin = begin,
                              .end = end};
                add_kernel_row(p, &r);
            }
        }
    }
}

static void store_tile(const pass *p, int64_t row, int64_t begin, int64_t end, int64_t out_begin, int64_t out_end, const float *sum)
{
    const conv *c = p->c;
    const reel_tensor *y = &c->op->y, *r = &c->op->residual;
    const float *bias = c->op->bias.data ? (const float *)c->op->bias.data + out_begin : NULL;
    int64_t y_row = row * p->rows.step + p->rows.first;
    for (int64_t x = begin; x < end; x++) {
        int64_t y_col = x * p->cols.step + p->cols.first;
        int64_t to = p->t * y->stride[0] + y_row * y->stride[1] + y_col * y->stride[2] + out_begin;
        int64_t from = r->data ? p->t * r->stride[0] + y_row * r->stride[1] + y_col * r->stride[2] + out_begin : 0;
        const void *residual = r->data ? (const char *)r->data + (size_t)from * reel_dtype_bytes(r->dtype) : NULL;
        c->kernels->finish((char *)y->data + (size_t)to * reel_dtype_bytes(y->dtype), y->dtype, sum + (x - begin) * c->wide_out + out_begin,
                           bias, residual, r->dtype, REEL_ACTIVATION_NONE, out_end - out_begin);
    }
}

static void pass_body(void *context, int64_t begin, int64_t end, int32_t thread)
{
    const pass *p = context;
    const conv *c = p->c;
    float *sum = (float *)(void *)(p->scratch + (size_t)thread * p->scratch_step);
    float few[TILE_PIXELS * REEL_CPU_DOT_MAX];
    int64_t n_panel = c->wide_out / c->packed->panel;
    for (int64_t i = begin; i < end; i++) {
        int64_t group = i % p->n_group, segment = i / p->n_group % p->n_segment, row = p->row_begin + i / p->n_group / p->n_segment;
        int64_t left = segment * TILE_PIXELS, right = least(left + TILE_PIXELS, p->cols.n);
        int64_t panel_begin = group * p->group, panel_end = least(panel_begin + p->group, n_panel);
        memset(sum, 0, (size_t)((right - left) * c->sum_stride) * sizeof(float));
        sum_tile(p, row, left, right, panel_begin, panel_end, sum);
        if (c->packed->is_dot) c->conv->add_lanes(sum, (right - left) * c->n_out, few);
        store_tile(p, row, left, right, panel_begin * c->packed->panel, least(panel_end * c->packed->panel, c->n_out),
                   c->packed->is_dot ? few : sum);
    }
}

/* Rows [begin, end) of a pass. Small pictures are also split by panels, so that all threads have work. */
static void run_pass(pass *p, int64_t begin, int64_t end)
{
    const conv *c = p->c;
    int64_t n_panel = c->wide_out / c->packed->panel;
    if (begin >= end || p->cols.n <= 0) return;
    p->row_begin = begin;
    p->n_segment = (p->cols.n + TILE_PIXELS - 1) / TILE_PIXELS;
    p->group = (end - begin) * p->n_segment >= 4 * c->device->n_thread ? n_panel : 1;
    p->n_group = (n_panel + p->group - 1) / p->group;
    reel_cpu_parallel_dynamic(c->device, (end - begin) * p->n_segment * p->n_group, 1, p, pass_body);
}

/* ---- input rows of another dtype -------------------------------------------------------------------------------------------------- */

/* Rows [low, low + n) of frames [first, …) of the picture, widened (and duplicated) to the compute dtype. */
typedef struct band_job {
    const conv *c;
    int64_t first, low, n;
    char *out;
} band_job;

static void widen_line(const conv *c, const char *in, int64_t n, char *out)
{
    float wide[REEL_CPU_BLOCK];
    size_t in_bytes = reel_dtype_bytes(c->op->x.dtype), out_bytes = reel_dtype_bytes(c->compute);
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
        int64_t row = (job->first + i / job->n) * c->height + (job->low + i % job->n) / c->up;
        const char *in = (const char *)c->op->x.data + (size_t)(row * c->width) * source;
        char *out = job->out + (size_t)(i * c->width * c->up) * pixel;
        if (c->up == 1) {
            widen_line(c, in, c->width * c->n_in, out);
            continue;
        }
        for (int64_t x = 0; x < c->width; x++) {
            widen_line(c, in + (size_t)x * source, c->n_in, out + (size_t)(2 * x) * pixel);
            memcpy(out + (size_t)(2 * x + 1) * pixel, out + (size_t)(2 * x) * pixel, pixel);
        }
    }
}

/* ---- one frame ---------------------------------------------------------------------------------------------------------------------- */

/* The input as it lies, or in bands through scratch. */
static void run_bands(pass *p, bool is_staged)
{
    const conv *c = p->c;
    int64_t kt = c->op->w.kernel[0], first = p->t * c->op->stride[0] - c->op->pad_front, end_frame = first + kt;
    first = most(first, 0);
    p->in.height = c->height * c->up;
    p->in.width = c->width * c->up;
    if (!is_staged) {
        p->in.data = c->op->x.data;
        p->in.first_frame = 0;
        p->in.low = 0;
        p->in.n_row = c->height;
        run_pass(p, 0, p->rows.n);
        return;
    }
    int64_t line = kt * p->in.width * c->n_in * (int64_t)reel_dtype_bytes(c->compute);
    int64_t n = most(1, (BAND_BYTES / line - p->rows.kernel) / p->rows.stride);
    char *rows = p->scratch + (size_t)c->device->n_thread * p->scratch_step;
    for (int64_t row = 0; row < p->rows.n; row += n) {
        int64_t end = least(row + n, p->rows.n), low = most(0, row * p->rows.stride + p->rows.origin);
        int64_t high = least(p->in.height, (end - 1) * p->rows.stride + p->rows.origin + p->rows.kernel);
        band_job job = {.c = c, .first = first, .low = low, .n = most(high - low, 0), .out = rows};
        reel_cpu_parallel_for(c->device, most(end_frame - first, 0) * job.n, &job, band_body);
        p->in.data = rows;
        p->in.first_frame = first;
        p->in.low = low;
        p->in.n_row = job.n;
        run_pass(p, row, end);
    }
}

/* Along one axis of an upsampled picture, output position o reads duplicated pixels o − pad … o − pad + 2; their middle is pixel c = o + 1 − pad,
 * small pixel c / 2 of parity c % 2. Those of parity p read small pixels c/2 − 1 + p and c/2 + p. */
static axis parity_axis(int64_t n_out, int64_t pad, int parity)
{
    int64_t begin = (1 - pad - parity + 1) / 2, last = n_out - pad - parity;
    int64_t end = last < 0 ? 0 : last / 2 + 1;
    return (axis){.kernel = 2,
                  .stride = 1,
                  .origin = begin - 1 + parity,
                  .n = most(end - begin, 0),
                  .step = 2,
                  .first = 2 * begin + parity - 1 + pad};
}

static bool takes_parity(const reel_op_conv3d *op, const int64_t pad[4])
{
    bool fits =
        op->upsample2 && op->w.kernel[0] == 1 && op->w.kernel[1] == 3 && op->w.kernel[2] == 3 && op->stride[1] == 1 && op->stride[2] == 1;
    for (int i = 0; i < 4; i++) fits = fits && pad[i] <= 1;
    return fits;
}

/* Rows at or beyond valid_rows are written as zero. */
static void clear_invalid(const conv *c, int64_t t)
{
    const reel_tensor *y = &c->op->y;
    size_t bytes = reel_dtype_bytes(y->dtype), line = (size_t)(y->extent[2] * c->n_out) * bytes;
    for (int64_t i = c->op->valid_rows; i < y->extent[1]; i++) {
        memset((char *)y->data + (size_t)(t * y->stride[0] + i * y->stride[1]) * bytes, 0, line);
    }
}

static void run_frame(const conv *c, int64_t t, pass p)
{
    const reel_op_conv3d *op = c->op;
    bool is_staged = op->x.dtype != c->compute || c->up == 2;
    p.c = c;
    p.t = t;
    if (takes_parity(op, c->pad)) {
        for (int i = 0; i < 4; i++) {
            p.rows = parity_axis(op->y.extent[1], c->pad[0], i >> 1);
            p.cols = parity_axis(op->y.extent[2], c->pad[2], i & 1);
            p.w = c->packed->parity[i].data;
            run_bands(&p, is_staged);
        }
    } else {
        p.rows = (axis){.kernel = op->w.kernel[1], .stride = op->stride[1], .origin = -c->pad[0], .n = op->y.extent[1], .step = 1};
        p.cols = (axis){.kernel = op->w.kernel[2], .stride = op->stride[2], .origin = -c->pad[2], .n = op->y.extent[2], .step = 1};
        p.w = c->packed->whole.data;
        run_bands(&p, is_staged);
    }
    if (op->valid_rows > 0) clear_invalid(c, t);
}

/* ---- the call ---------------------------------------------------------------------------------------------------------------------- */

static reel_status run_conv(const conv *c, reel_error *err)
{
    const reel_op_conv3d *op = c->op;
    int64_t line = op->w.kernel[0] * c->width * c->up * c->n_in * (int64_t)reel_dtype_bytes(c->compute);
    size_t tile = (size_t)(TILE_PIXELS * c->sum_stride) * sizeof(float) + 128;
    size_t band = BAND_BYTES + (size_t)(line * (op->w.kernel[1] + op->stride[1]));
    bool is_staged = op->x.dtype != c->compute || c->up == 2;
    size_t bytes = (size_t)c->device->n_thread * tile + (is_staged ? band : 0);
    char *scratch = reel_cpu_scratch(c->device, bytes);
    if (!scratch)
        return REEL_FAIL(err, REEL_E_MEMORY, "no memory for a convolution\ngiven: %zu bytes\nremedy: close other programs", bytes);
    for (int64_t t = 0; t < op->y.extent[0]; t++) run_frame(c, t, (pass){.scratch = scratch, .scratch_step = tile});
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
              .width = op->x.extent[2]};
    for (int i = 0; i < 4; i++) c.pad[i] = op->halo >> i & 1U ? 0 : op->pad[i];
    c.up = op->upsample2 && !takes_parity(op, c.pad) ? 2 : 1;
    c.compute = reel_cpu_conv_dtype(device, op->x.dtype, c.n_in);
    c.conv = reel_cpu_conv_kernels_get(device, c.compute);
    c.packed = reel_cpu_packed_for(&op->w, c.compute, op->x.dtype == REEL_DTYPE_BF16 && op->w.dtype != REEL_DTYPE_BF16);
    reel_packed *temporary = NULL;
    if (!c.packed) {
        size_t bytes;
        REEL_TRY(reel_cpu_weight_pack(device, &op->w, op->x.dtype, &temporary, &bytes, err));
        c.packed = temporary;
    }
    c.wide_out = (c.n_out + c.packed->panel - 1) / c.packed->panel * c.packed->panel;
    c.sum_stride = c.packed->is_dot ? c.n_out * c.conv->lanes : c.wide_out;
    reel_status status = run_conv(&c, err);
    reel_cpu_weight_free(device, temporary);
    return status;
}
