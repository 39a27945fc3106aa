/* SPDX-License-Identifier: Apache-2.0
 *
 * RGB to YCbCr and back in 8 bits, with the exact coefficients of the matrix and range in whole numbers: what is stored differs from the
 * real-valued formula by no more than its rounding. Gamma-coded values throughout, as in every video format.
 *
 * Scale: coefficients are times 2^18 on the way in, where a 4:2:0 chroma sample sums pixels of weight 8 together (largest sum 255 · 8 · 2^17,
 * below 2^31), and times 2^16 on the way out, where it interpolates samples of weight 16 together (64-bit sums). */
#include <math.h>

#include "media/inner.h"

enum { SHIFT = 18, BACK_SHIFT = 16, BACK_WEIGHT = 16 };

static uint8_t clip8(int32_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

void reel_media_bt709(reel_yuv *yuv)
{
    yuv->kr = 0.2126;
    yuv->kb = 0.0722;
    yuv->is_full = false;
    yuv->is_centre = false;
}

void reel_media_guess_matrix(reel_yuv *yuv)
{
    bool is_hd = yuv->width >= 1280 || yuv->height > 576;
    yuv->kr = is_hd ? 0.2126 : 0.299;
    yuv->kb = is_hd ? 0.0722 : 0.114;
}

/* Rows of the matrix: luma, Cb, Cr. The largest entry absorbs the rounding, so that greys keep Cb = Cr = 128 exactly. */
static void forward_matrix(const reel_yuv *yuv, int32_t m[3][3])
{
    double one = (double)(1 << SHIFT);
    double luma = yuv->is_full ? 1.0 : 219.0 / 255.0, chroma = yuv->is_full ? 1.0 : 224.0 / 255.0;
    double k[3] = {yuv->kr, 1.0 - yuv->kr - yuv->kb, yuv->kb};
    double cb = chroma / (2.0 * (1.0 - k[2])), cr = chroma / (2.0 * (1.0 - k[0]));
    for (int c = 0; c < 3; c++) {
        m[0][c] = (int32_t)lround(k[c] * luma * one);
        m[1][c] = (int32_t)lround(((c == 2 ? 1.0 : 0.0) - k[c]) * cb * one);
        m[2][c] = (int32_t)lround(((c == 0 ? 1.0 : 0.0) - k[c]) * cr * one);
    }
    m[0][1] += (int32_t)lround(luma * one) - (m[0][0] + m[0][1] + m[0][2]);
    m[1][2] -= m[1][0] + m[1][1] + m[1][2];
    m[2][0] -= m[2][0] + m[2][1] + m[2][2];
}

/* Sums of weights 8 over two rows and three columns around column x. */
static void sum_420(const uint8_t *row0, const uint8_t *row1, int32_t x, int32_t sum[3])
{
    int32_t left = x > 0 ? x - 1 : 0;
    for (int c = 0; c < 3; c++) {
        sum[c] = row0[3 * left + c] + 2 * row0[3 * x + c] + row0[3 * (x + 1) + c] + row1[3 * left + c] + 2 * row1[3 * x + c] +
                 row1[3 * (x + 1) + c];
    }
}

static uint8_t apply(const int32_t row[3], const int32_t v[3], int32_t offset, int32_t weight)
{
    int32_t sum = row[0] * v[0] + row[1] * v[1] + row[2] * v[2];
    return clip8(offset + ((sum + (weight << (SHIFT - 1))) >> (SHIFT + (weight == 8 ? 3 : 0)))); /* rounded to nearest */
}

void reel_media_rgb_to_yuv(const uint8_t *rgb, const reel_yuv *out)
{
    int32_t m[3][3];
    forward_matrix(out, m);
    int32_t w = out->width, h = out->height, black = out->is_full ? 0 : 16;
    assert(!out->is_420 || (w % 2 == 0 && h % 2 == 0));
    for (int32_t y = 0; y < h; y++) {
        const uint8_t *row = rgb + (int64_t)y * w * 3;
        for (int32_t x = 0; x < w; x++) {
            int32_t v[3] = {row[3 * x], row[3 * x + 1], row[3 * x + 2]};
            out->plane[0][y * out->stride[0] + x] = apply(m[0], v, black, 1);
            if (out->is_420) continue;
            out->plane[1][y * out->stride[1] + x] = apply(m[1], v, 128, 1);
            out->plane[2][y * out->stride[2] + x] = apply(m[2], v, 128, 1);
        }
        if (!out->is_420 || y % 2 == 1) continue;
        for (int32_t x = 0; x < w; x += 2) {
            int32_t v[3];
            sum_420(row, row + (int64_t)w * 3, x, v);
            out->plane[1][y / 2 * out->stride[1] + x / 2] = apply(m[1], v, 128, 8);
            out->plane[2][y / 2 * out->stride[2] + x / 2] = apply(m[2], v, 128, 8);
        }
    }
}

typedef struct back_matrix {
    int32_t y, r_cr, g_cb, g_cr, b_cb, black;
} back_matrix;

static back_matrix make_back(const reel_yuv *in)
{
    double one = (double)(1 << BACK_SHIFT);
    double luma = in->is_full ? 1.0 : 255.0 / 219.0, chroma = in->is_full ? 1.0 : 255.0 / 224.0, kg = 1.0 - in->kr - in->kb;
    return (back_matrix){
        .y = (int32_t)lround(luma * one),
        .r_cr = (int32_t)lround(2.0 * (1.0 - in->kr) * chroma * one),
        .g_cb = (int32_t)lround(-2.0 * (1.0 - in->kb) * in->kb / kg * chroma * one),
        .g_cr = (int32_t)lround(-2.0 * (1.0 - in->kr) * in->kr / kg * chroma * one),
        .b_cb = (int32_t)lround(2.0 * (1.0 - in->kb) * chroma * one),
        .black = in->is_full ? 0 : 16,
    };
}

/* Two neighbours and their weights (sum 4) of a sample position in a subsampled line of n samples. */
typedef struct tap {
    int32_t i0, i1, w0, w1;
} tap;

static tap tap_at(int32_t x, int32_t n, bool is_between)
{
    int32_t i = x / 2;
    int32_t side = !is_between || x % 2 == 1 ? i + 1 : i - 1;
    if (side < 0) side = 0;
    if (side > n - 1) side = n - 1;
    if (is_between) return (tap){i, side, 3, 1};
    return x % 2 == 0 ? (tap){i, i, 4, 0} : (tap){i, side, 2, 2};
}

/* The chroma sample at a pixel, times BACK_WEIGHT. */
static int32_t chroma_at(const reel_yuv *in, int c, int32_t x, int32_t y)
{
    const uint8_t *p = in->plane[c];
    int64_t stride = in->stride[c];
    if (!in->is_420) return BACK_WEIGHT * p[y * stride + x];
    tap h = tap_at(x, (in->width + 1) / 2, in->is_centre), v = tap_at(y, (in->height + 1) / 2, true);
    int32_t a = h.w0 * p[v.i0 * stride + h.i0] + h.w1 * p[v.i0 * stride + h.i1];
    int32_t b = h.w0 * p[v.i1 * stride + h.i0] + h.w1 * p[v.i1 * stride + h.i1];
    return v.w0 * a + v.w1 * b;
}

void reel_media_yuv_to_rgb(const reel_yuv *in, uint8_t *rgb)
{
    back_matrix m = make_back(in);
    int64_t half = (int64_t)BACK_WEIGHT << (BACK_SHIFT - 1);
    int32_t shift = BACK_SHIFT + 4; /* BACK_WEIGHT is 2^4 */
    for (int32_t y = 0; y < in->height; y++) {
        for (int32_t x = 0; x < in->width; x++) {
            int64_t luma = (int64_t)m.y * BACK_WEIGHT * (in->plane[0][y * in->stride[0] + x] - m.black) + half;
            int32_t cb = chroma_at(in, 1, x, y) - BACK_WEIGHT * 128, cr = chroma_at(in, 2, x, y) - BACK_WEIGHT * 128;
            uint8_t *to = rgb + ((int64_t)y * in->width + x) * 3;
            to[0] = clip8((int32_t)((luma + (int64_t)m.r_cr * cr) >> shift));
            to[1] = clip8((int32_t)((luma + (int64_t)m.g_cb * cb + (int64_t)m.g_cr * cr) >> shift));
            to[2] = clip8((int32_t)((luma + (int64_t)m.b_cb * cb) >> shift));
        }
    }
}
