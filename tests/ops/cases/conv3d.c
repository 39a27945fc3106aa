/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of `conv3d`: the kernels, strides and paddings of the Wan autoencoders and odd mixtures of them, with history, halo bits, nearest
 * upsampling, residual, strided frames and invalid rows. */
#include <math.h>

#include "bed.h"

/* Sums of up to 27·96 products in f32. */
static const bed_tolerance tolerance = {{3e-6, 5e-5}, {1e-3, 4e-2}, {3e-4, 6e-3}};

/* With upsample2, taps that read the same pixel may be added up beforehand; in bf16 the sums of weights are rounded, 2^-9 each. */
static const bed_tolerance merged_bf16 = {{4e-3, 5e-2}, {4e-3, 8e-2}, {4e-3, 5e-2}};

typedef struct shape {
    int32_t kernel[3], stride[3];
    int32_t pad[4]; /* −1: random 0 … kernel − 1 */
    int32_t upsample2;
} shape;

static const shape shapes[] = {
    {{3, 3, 3}, {1, 1, 1}, {1, 1, 1, 1}, 0},     {{1, 1, 1}, {1, 1, 1}, {0, 0, 0, 0}, 0},     {{3, 1, 1}, {1, 1, 1}, {0, 0, 0, 0}, 0},
    {{3, 1, 1}, {2, 1, 1}, {0, 0, 0, 0}, 0},     {{1, 3, 3}, {1, 1, 1}, {1, 1, 1, 1}, 1},     {{1, 3, 3}, {1, 2, 2}, {0, 1, 0, 1}, 0},
    {{1, 3, 3}, {1, 1, 1}, {1, 1, 1, 1}, 0},     {{3, 3, 3}, {1, 1, 1}, {-1, -1, -1, -1}, 1}, {{2, 3, 1}, {1, 2, 1}, {-1, -1, -1, -1}, 0},
    {{3, 3, 3}, {2, 2, 3}, {-1, -1, -1, -1}, 0},
};

static int64_t out_extent(int64_t room, int32_t stride)
{
    return room < 0 ? 0 : room / stride + 1;
}

static void optional_parts(bed *b, reel_op_conv3d *a, reel_dtype y_dtype)
{
    int64_t *e = a->y.extent;
    if (bed_range(b, 0, 1)) a->bias = bed_input(b, REEL_DTYPE_F32, BED_DENSE, e[3], 0, 0, 0);
    switch (bed_range(b, 0, 2)) {
    case 0: a->residual = bed_input(b, y_dtype, BED_DENSE, e[0], e[1], e[2], e[3]); break;
    case 1: { /* in place: y lies on the residual */
        a->residual = bed_input(b, y_dtype, BED_DENSE, e[0], e[1], e[2], e[3]);
        a->y = a->residual;
        break;
    }
    default: break;
    }
    if (bed_range(b, 0, 2) == 0) a->valid_rows = bed_range(b, 1, e[1]);
}

static void one(bed *b, const shape *s, reel_dtype x_dtype, reel_dtype w_dtype, reel_dtype y_dtype, const int64_t channels[2])
{
    bed_clear(b);
    reel_op_conv3d a = {.size = sizeof a, .upsample2 = s->upsample2};
    int64_t t = bed_range(b, 1, 4), h = bed_range(b, 2, 9), w = bed_range(b, 2, 11), up = s->upsample2 ? 2 : 1;
    a.n_history = (int32_t)bed_range(b, 0, 2);
    a.pad_front = s->kernel[0] > 1 ? (int32_t)bed_range(b, 0, 2) : 0;
    a.halo = bed_range(b, 0, 2) == 0 ? (uint32_t)bed_range(b, 0, 15) : 0;
    for (int32_t i = 0; i < 4; i++) a.pad[i] = s->pad[i] >= 0 ? s->pad[i] : (int32_t)bed_range(b, 0, s->kernel[1 + i / 2] - 1);
    for (int32_t i = 0; i < 3; i++) a.stride[i] = s->stride[i];
    int64_t pad[4];
    for (int32_t i = 0; i < 4; i++) pad[i] = a.halo >> i & 1U ? 0 : a.pad[i];
    int64_t e[3] = {out_extent(a.pad_front + a.n_history + t - s->kernel[0], s->stride[0]),
                    out_extent(pad[0] + pad[1] + up * h - s->kernel[1], s->stride[1]),
                    out_extent(pad[2] + pad[3] + up * w - s->kernel[2], s->stride[2])};
    if (e[0] < 1 || e[1] < 1 || e[2] < 1) return; /* too small for the kernel: drawn again by the caller's loop */
    a.x = bed_input(b, x_dtype, BED_DENSE, a.n_history + t, h, w, channels[0]);
    a.w = bed_weight(b, w_dtype, BED_DENSE, channels[1], channels[0] * s->kernel[0] * s->kernel[1] * s->kernel[2], s->kernel);
    a.y = bed_output(b, y_dtype, BED_DENSE, 2 * e[0], e[1], e[2], channels[1]);
    a.y.extent[0] = e[0];
    a.y.stride[0] *= 2; /* every other frame of a buffer: frames may be strided */
    optional_parts(b, &a, y_dtype);
    b->least_rms = 0.3 * sqrt((double)a.w.n_col);
    bed_check(b, "conv3d", &a, s->upsample2 && x_dtype == REEL_DTYPE_BF16 ? merged_bf16 : tolerance,
              "x %s [%lld, %lld, %lld, %lld], w %s [%lld], kernel %d %d %d, stride %d %d %d, pad %d %d %d %d, front %d, history %d, halo "
              "%u, up %d, valid %lld, y %s, "
              "residual %d",
              reel_dtype_name(x_dtype), (long long)a.x.extent[0], (long long)h, (long long)w, (long long)channels[0],
              reel_dtype_name(w_dtype), (long long)channels[1], s->kernel[0], s->kernel[1], s->kernel[2], a.stride[0], a.stride[1],
              a.stride[2], a.pad[0], a.pad[1], a.pad[2], a.pad[3], a.pad_front, a.n_history, (unsigned)a.halo, a.upsample2,
              (long long)a.valid_rows, reel_dtype_name(y_dtype), a.residual.data == a.y.data ? 2 : a.residual.data != NULL);
}

void case_conv3d(bed *b)
{
    static const int64_t channels[][2] = {{3, 5}, {16, 16}, {5, 33}, {1, 1}, {48, 3}, {17, 64}, {96, 3}, {16, 96}};
    for (size_t s = 0; s < REEL_COUNT(shapes); s++)
        for (size_t c = 0; c < REEL_COUNT(channels); c++)
            for (int32_t i = 0; i < 2; i++) {
                reel_dtype x = bed_floats[(c + (size_t)i) % 3], w = bed_floats[bed_range(b, 0, 2)],
                           y = bed_range(b, 0, 2) == 0 ? bed_floats[bed_range(b, 0, 2)] : x;
                one(b, &shapes[s], x, w, y, channels[c]);
            }
}
