/* SPDX-License-Identifier: Apache-2.0
 *
 * weight_pack: a second copy of a weight in the layout that products or convolutions read fastest.
 *
 * A packed weight stands for exactly the rows it was made from. Convolutions of an upsampled picture (1×3×3 kernels) also get the four 2×2
 * kernels that its even and odd rows and columns see: nearest upsampling makes neighbouring taps read the same pixel, so their weights add. */
#include "backends/device/cpu/pack.h"

#include <stdlib.h>

#include "backends/device/cpu/conv.h"
#include "backends/device/cpu/device.h"
#include "backends/device/cpu/onednn.h"

reel_dtype reel_cpu_compute_dtype(const reel_device *device, reel_dtype x)
{
    return x == REEL_DTYPE_BF16 && reel_cpu_has_fast_bf16(device) ? REEL_DTYPE_BF16 : REEL_DTYPE_F32;
}

reel_dtype reel_cpu_conv_dtype(const reel_device *device, reel_dtype x, int64_t n_in)
{
    return n_in % 2 == 0 ? reel_cpu_compute_dtype(device, x) : REEL_DTYPE_F32;
}

const reel_packed *reel_cpu_packed_for(const reel_weight *w, reel_dtype compute, bool rounds)
{
    enum { PANEL_MAX = 32 };
    const reel_packed *packed = w->packed;
    if (!packed || packed->dtype != compute || packed->rounds != rounds) return NULL;
    if (packed->row_begin == w->row_begin && packed->row_end == w->row_end) return packed;
    bool is_inside = packed->row_begin <= w->row_begin && w->row_end <= packed->row_end;
    bool is_aligned = (w->row_begin - packed->row_begin) % PANEL_MAX == 0;
    return packed->kind == REEL_PACKED_PANELS && is_inside && is_aligned ? packed : NULL;
}

static reel_status no_memory(reel_error *err, size_t bytes)
{
    return REEL_FAIL(err, REEL_E_MEMORY,
                     "no memory to pack a weight\ngiven: %zu bytes\nremedy: `--weights mapped` needs no copy of matrices", bytes);
}

static reel_status part_new(reel_packed_part *part, size_t bytes, reel_error *err)
{
    void *data = NULL;
    if (posix_memalign(&data, 64, bytes) != 0) return no_memory(err, bytes);
    part->data = data;
    part->bytes = bytes;
    return REEL_OK;
}

/* A stored weight as dense rows of the packed dtype. */
static reel_status widen(const reel_device *device, const reel_weight *w, reel_dtype dtype, bool rounds, void **out, reel_error *err)
{
    int64_t n = w->row_end - w->row_begin;
    size_t bytes = (size_t)(n * w->n_col) * reel_dtype_bytes(dtype);
    void *rows = malloc(bytes);
    if (!rows) return no_memory(err, bytes);
    reel_cpu_widen_rows(device, w, w->row_begin, n, dtype, rounds, rows);
    *out = rows;
    return REEL_OK;
}

static reel_status pack_panels(const reel_device *device, const reel_weight *w, bool rounds, reel_packed *packed, reel_error *err)
{
    int64_t panel = reel_cpu_kernels_get(device)->gemm.panel, n = w->row_end - w->row_begin;
    packed->kind = REEL_PACKED_PANELS;
    REEL_TRY(part_new(&packed->whole, (size_t)((n + panel - 1) / panel * panel * w->n_col) * sizeof(float), err));
    reel_cpu_pack_panels(device, w, w->row_begin, n, rounds, packed->whole.data);
    return REEL_OK;
}

#if defined(REEL_WITH_ONEDNN)

static reel_status pack_dnn(reel_device *device, const reel_dnn_spec *spec, const void *rows, reel_dtype dtype, reel_packed *packed,
                            reel_error *err)
{
    size_t bytes;
    REEL_TRY(reel_dnn_layout_any(device, spec, &packed->layout, &bytes, err));
    REEL_TRY(part_new(&packed->whole, bytes, err));
    REEL_TRY(reel_dnn_pack(device, spec, rows, dtype, packed->layout, packed->whole.data, err));
    return REEL_OK;
}

/* The layout is asked for 256 rows; oneDNN's AVX-512 products read it for any number of rows. */
static reel_status pack_matrix(reel_device *device, const reel_weight *w, bool rounds, reel_packed *packed, reel_error *err)
{
    reel_dnn_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.x_dtype = (int32_t)packed->dtype;
    spec.y_dtype = (int32_t)packed->dtype;
    spec.m = 256;
    spec.n = w->row_end - w->row_begin;
    spec.k = spec.x_stride = w->n_col;
    spec.y_stride = spec.n;
    packed->kind = REEL_PACKED_DNN;
    bool takes_stored = (w->dtype == REEL_DTYPE_F32 || w->dtype == REEL_DTYPE_BF16) && !(rounds && packed->dtype == REEL_DTYPE_F32);
    if (takes_stored) {
        spec.w_stride = w->row_stride_bytes / (int64_t)reel_dtype_bytes(w->dtype);
        const char *rows = (const char *)w->data + w->row_begin * w->row_stride_bytes;
        REEL_TRY(pack_dnn(device, &spec, rows, w->dtype, packed, err));
        return REEL_OK;
    }
    void *rows = NULL;
    spec.w_stride = w->n_col;
    REEL_TRY(widen(device, w, packed->dtype, rounds, &rows, err));
    reel_status status = pack_dnn(device, &spec, rows, packed->dtype, packed, err);
    free(rows);
    return status;
}

#endif

/* ---- convolutions --------------------------------------------------------------------------------------------------------------- */

typedef struct conv_pack_job {
    const float *rows; /* [n_out][n_in][n_tap] */
    int64_t n_out, n_in, n_tap, panel;
    reel_dtype dtype;
    bool is_dot;
    int64_t row_depth; /* kw·I */
    char *out;
} conv_pack_job;

/* Where weight k = tap·I + i of a panel's lane goes. */
static int64_t conv_place(const conv_pack_job *job, int64_t k, int64_t lane)
{
    if (job->is_dot) return (k / job->row_depth * job->panel + lane) * job->row_depth + k % job->row_depth;
    if (job->dtype == REEL_DTYPE_BF16) return (k / 2 * job->panel + lane) * 2 + k % 2;
    return k * job->panel + lane;
}

static void conv_pack_body(void *context, int64_t begin, int64_t end, int32_t thread)
{
    (void)thread;
    const conv_pack_job *job = context;
    int64_t depth = job->n_tap * job->n_in;
    for (int64_t p = begin; p < end; p++) {
        for (int64_t lane = 0; lane < job->panel; lane++) {
            int64_t o = p * job->panel + lane;
            for (int64_t k = 0; k < depth; k++) {
                float f = o < job->n_out ? job->rows[(o * job->n_in + k % job->n_in) * job->n_tap + k / job->n_in] : 0.0F;
                int64_t to = p * depth * job->panel + conv_place(job, k, lane);
                if (job->dtype == REEL_DTYPE_BF16) {
                    ((uint16_t *)(void *)job->out)[to] = reel_bf16_from_f32(f);
                } else {
                    ((float *)(void *)job->out)[to] = f;
                }
            }
        }
    }
}

static reel_status pack_taps(const reel_device *device, const float *rows, int64_t n_out, int64_t n_in, const int32_t taps[2],
                             const reel_packed *packed, reel_packed_part *part, reel_error *err)
{
    int64_t n_tap = (int64_t)taps[0] * taps[1]; /* kt·kh and kw */
    conv_pack_job job = {.rows = rows,
                         .n_out = n_out,
                         .n_in = n_in,
                         .n_tap = n_tap,
                         .panel = packed->panel,
                         .dtype = packed->dtype,
                         .is_dot = packed->is_dot,
                         .row_depth = taps[1] * n_in};
    int64_t n_panel = (n_out + job.panel - 1) / job.panel;
    REEL_TRY(part_new(part, (size_t)(n_panel * job.panel * n_tap * n_in) * reel_dtype_bytes(packed->dtype), err));
    job.out = part->data;
    reel_cpu_parallel_for(device, n_panel, &job, conv_pack_body);
    return REEL_OK;
}

/* Sums the taps of one row (or column) of a 3-wide kernel that read the same pixel: parity 0 → {0}, {1, 2}; parity 1 → {0, 1}, {2}. */
static int slot_of(int parity, int tap)
{
    return parity == 0 ? (tap > 0) : (tap > 1);
}

static reel_status pack_parity(const reel_device *device, const float *rows, int64_t n_out, int64_t n_in, int parity, reel_packed *packed,
                               reel_error *err)
{
    size_t bytes = (size_t)(n_out * n_in) * 4 * sizeof(float);
    float *sums = calloc(1, bytes);
    if (!sums) return no_memory(err, bytes);
    for (int64_t i = 0; i < n_out * n_in; i++) {
        for (int h = 0; h < 3; h++) {
            for (int w = 0; w < 3; w++) sums[i * 4 + slot_of(parity >> 1, h) * 2 + slot_of(parity & 1, w)] += rows[i * 9 + h * 3 + w];
        }
    }
    reel_status status = pack_taps(device, sums, n_out, n_in, (const int32_t[2]){2, 2}, packed, &packed->parity[parity], err);
    free(sums);
    return status;
}

static reel_status pack_conv(const reel_device *device, const reel_weight *w, bool rounds, reel_packed *packed, reel_error *err)
{
    int64_t n_out = w->row_end - w->row_begin, n_tap = (int64_t)w->kernel[0] * w->kernel[1] * w->kernel[2], n_in = w->n_col / n_tap;
    bool has_parity = w->kernel[0] == 1 && w->kernel[1] == 3 && w->kernel[2] == 3;
    void *rows = NULL;
    packed->kind = REEL_PACKED_CONV;
    packed->panel = reel_cpu_conv_kernels_get(device, packed->dtype)->panel;
    if (n_out <= packed->panel / 2) packed->panel /= 2;
    packed->is_dot = n_out <= REEL_CPU_DOT_MAX;
    if (packed->is_dot) packed->panel = (int32_t)n_out;
    REEL_TRY(widen(device, w, REEL_DTYPE_F32, rounds, &rows, err));
    reel_status status =
        pack_taps(device, rows, n_out, n_in, (const int32_t[2]){w->kernel[0] * w->kernel[1], w->kernel[2]}, packed, &packed->whole, err);
    for (int i = 0; i < 4 && has_parity && status == REEL_OK; i++) status = pack_parity(device, rows, n_out, n_in, i, packed, err);
    free(rows);
    return status;
}

static reel_status pack(reel_device *device, const reel_weight *w, reel_dtype compute, reel_packed *packed, reel_error *err)
{
    bool rounds = compute == REEL_DTYPE_BF16 && w->dtype != REEL_DTYPE_BF16;
    packed->rounds = rounds;
    if (w->kernel[0] > 0) return pack_conv(device, w, rounds, packed, err);
#if defined(REEL_WITH_ONEDNN)
    if (device->isa >= REEL_CPU_ISA_AVX512) return pack_matrix(device, w, rounds, packed, err);
#endif
    return pack_panels(device, w, rounds, packed, err);
}

reel_status reel_cpu_weight_pack(reel_device *device, const reel_weight *weight, reel_dtype compute, reel_packed **out, size_t *bytes,
                                 reel_error *err)
{
    if (!reel_cpu_kernels_get(device)) { /* the C references read weights as stored */
        *out = NULL;
        *bytes = 0;
        return REEL_OK;
    }
    reel_packed *packed = calloc(1, sizeof *packed);
    if (!packed) return no_memory(err, sizeof *packed);
    packed->dtype = reel_cpu_compute_dtype(device, compute);
    if (weight->kernel[0] > 0) {
        int64_t n_tap = (int64_t)weight->kernel[0] * weight->kernel[1] * weight->kernel[2];
        packed->dtype = reel_cpu_conv_dtype(device, compute, weight->n_col / n_tap);
    }
    packed->row_begin = weight->row_begin;
    packed->row_end = weight->row_end;
    reel_status status = pack(device, weight, compute, packed, err);
    if (status != REEL_OK) {
        reel_cpu_weight_free(device, packed);
        return status;
    }
    *bytes = packed->whole.bytes;
    for (int i = 0; i < 4; i++) *bytes += packed->parity[i].bytes;
    *out = packed;
    return REEL_OK;
}

void reel_cpu_weight_free(reel_device *device, reel_packed *packed)
{
    (void)device;
    if (!packed) return;
    free(packed->whole.data);
    for (int i = 0; i < 4; i++) free(packed->parity[i].data);
    free(packed);
}
