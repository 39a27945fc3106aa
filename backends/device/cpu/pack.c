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

static reel_status pack_panels(const reel_device *device, const reel_weight *w, bool rounds, reel_packed *packed, reel_error *err)
{
    int64_t panel = reel_cpu_kernels_get(device)->gemm.panel, n = w->row_end - w->row_begin;
    packed->kind = REEL_PACKED_PANELS;
    REEL_TRY(part_new(&packed->whole, (size_t)((n + panel - 1) / panel * panel * w->n_col) * sizeof(float), err));
    reel_cpu_pack_panels(device, w, w->row_begin, n, rounds, packed->whole.data);
    return REEL_OK;
}

#if defined(REEL_WITH_ONEDNN)

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

static reel_status pack_dnn(reel_device *device, const reel_dnn_spec *spec, const void *rows, reel_dtype dtype, reel_packed_part *part,
                            reel_error *err)
{
    size_t bytes;
    REEL_TRY(reel_dnn_layout_any(device, spec, &part->layout, &bytes, err));
    REEL_TRY(part_new(part, bytes, err));
    REEL_TRY(reel_dnn_pack(device, spec, rows, dtype, part->layout, part->data, err));
    return REEL_OK;
}

/* The layout is asked for 256 rows; oneDNN's AVX-512 products read it for any number of rows. */
static reel_status pack_matrix(reel_device *device, const reel_weight *w, bool rounds, reel_packed *packed, reel_error *err)
{
    reel_dnn_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.kind = REEL_DNN_MATMUL;
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
        REEL_TRY(pack_dnn(device, &spec, rows, w->dtype, &packed->whole, err));
        return REEL_OK;
    }
    void *rows = NULL;
    spec.w_stride = w->n_col;
    REEL_TRY(widen(device, w, packed->dtype, rounds, &rows, err));
    reel_status status = pack_dnn(device, &spec, rows, packed->dtype, &packed->whole, err);
    free(rows);
    return status;
}

/* A convolution of a middling picture stands for all: the layout must follow from the kernel's shape alone. */
static void conv_spec(const reel_packed *packed, int64_t n_in, int64_t n_out, const int64_t kernel[3], reel_dnn_spec *spec)
{
    memset(spec, 0, sizeof *spec);
    spec->kind = REEL_DNN_CONV;
    spec->x_dtype = (int32_t)packed->dtype;
    spec->y_dtype = (int32_t)packed->dtype;
    spec->n_in = n_in;
    spec->n_out = n_out;
    for (int i = 0; i < 3; i++) {
        spec->kernel[i] = kernel[i];
        spec->stride[i] = 1;
        spec->out[i] = i == 0 ? 1 : 64;
        spec->in[i] = spec->out[i] + kernel[i] - 1;
    }
}

/* Sums the taps of one row (or column) of a 3-wide kernel that read the same pixel: parity 0 → {0}, {1, 2}; parity 1 → {0, 1}, {2}. */
static int slot_of(int parity, int tap)
{
    return parity == 0 ? (tap > 0) : (tap > 1);
}

static reel_status pack_parity(reel_device *device, const float *rows, int64_t n_out, int64_t n_in, int parity, reel_packed *packed,
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
    reel_dnn_spec spec;
    conv_spec(packed, n_in, n_out, (const int64_t[3]){1, 2, 2}, &spec);
    reel_status status = pack_dnn(device, &spec, sums, REEL_DTYPE_F32, &packed->parity[parity], err);
    free(sums);
    return status;
}

static reel_status pack_conv(reel_device *device, const reel_weight *w, bool rounds, reel_packed *packed, reel_error *err)
{
    int64_t n_out = w->row_end - w->row_begin, n_in = w->n_col / ((int64_t)w->kernel[0] * w->kernel[1] * w->kernel[2]);
    bool has_parity = w->kernel[0] == 1 && w->kernel[1] == 3 && w->kernel[2] == 3;
    reel_dnn_spec spec;
    void *rows = NULL;
    packed->kind = REEL_PACKED_DNN;
    REEL_TRY(widen(device, w, REEL_DTYPE_F32, rounds, &rows, err));
    conv_spec(packed, n_in, n_out, (const int64_t[3]){w->kernel[0], w->kernel[1], w->kernel[2]}, &spec);
    reel_status status = pack_dnn(device, &spec, rows, REEL_DTYPE_F32, &packed->whole, err);
    for (int i = 0; i < 4 && has_parity && status == REEL_OK; i++) status = pack_parity(device, rows, n_out, n_in, i, packed, err);
    free(rows);
    return status;
}

#endif

static reel_status pack(reel_device *device, const reel_weight *w, reel_dtype compute, reel_packed *packed, reel_error *err)
{
    bool rounds = compute == REEL_DTYPE_BF16 && w->dtype != REEL_DTYPE_BF16;
    packed->rounds = rounds;
#if defined(REEL_WITH_ONEDNN)
    if (w->kernel[0] > 0) return pack_conv(device, w, rounds, packed, err);
    if (device->isa >= REEL_CPU_ISA_AVX512) return pack_matrix(device, w, rounds, packed, err);
#endif
    return pack_panels(device, w, rounds, packed, err);
}

reel_status reel_cpu_weight_pack(reel_device *device, const reel_weight *weight, reel_dtype compute, reel_packed **out, size_t *bytes,
                                 reel_error *err)
{
    bool is_conv = weight->kernel[0] > 0;
#if defined(REEL_WITH_ONEDNN)
    is_conv = false;
#endif
    if (is_conv || !reel_cpu_kernels_get(device)) { /* the C references read weights as stored */
        *out = NULL;
        *bytes = 0;
        return REEL_OK;
    }
    reel_packed *packed = calloc(1, sizeof *packed);
    if (!packed) return no_memory(err, sizeof *packed);
    packed->dtype = reel_cpu_compute_dtype(device, compute);
    packed->row_begin = weight->row_begin;
    packed->row_end = weight->row_end;
    reel_status status = pack(device, weight, compute, packed, err);
    if (status != REEL_OK) {
        reel_cpu_weight_free(device, packed);
        return status;
    }
    *bytes = packed->whole.bytes + packed->small_bytes;
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
    free(packed->small);
    free(packed);
}
