/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions of weights on two fake devices: one that shares the host's memory, one whose buffers the host must not touch (their addresses are
 * reserved and unreadable; `upload` writes to a hidden copy). Both count what they hand out, and fail on demand. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/temp_dir.h"
#include "reel-plugin/tensor_util.h"
#include "weights/weights.h"

static reel_error err;
#define GOOD(call)                                                  \
    do {                                                            \
        if ((call) != REEL_OK) fail_msg("%s: %s", #call, err.text); \
    } while (0)

static void expect(reel_status status, reel_status wanted, const char *text)
{
    if (status != wanted || !strstr(err.text, text)) fail_msg("wanted \"%s\", got %d: %s", text, (int)status, err.text);
}

/* ---- the devices ------------------------------------------------------------------------------------------------------------------ */

enum { BUFFERS_MAX = 16, ALIGNMENT = 64 };

struct reel_packed {
    reel_dtype compute;
    int64_t n_row, n_col;
    int32_t kernel[3];
};

struct reel_device {
    bool is_host_memory;
    uint32_t weight_dtypes;
    struct {
        uint8_t *device, *real;
        size_t bytes;
    } buffer[BUFFERS_MAX];
    int n_buffer, n_buffer_made, n_packed, n_packed_made, n_sync;
    int fail_pack_at; /* the how-manieth packing fails; 0: none */
    bool fail_buffer;
};

static reel_status fake_props(reel_device *d, reel_device_props *out, reel_error *e)
{
    (void)e;
    *out = (reel_device_props){
        .size = sizeof *out, .is_host_memory = d->is_host_memory, .alignment_bytes = ALIGNMENT, .weight_dtypes = d->weight_dtypes};
    return REEL_OK;
}

static reel_status fake_buffer_new(reel_device *d, size_t bytes, void **out, reel_error *e)
{
    if (d->fail_buffer) return REEL_FAIL(e, REEL_E_MEMORY, "no memory on the fake device\nremedy: none");
    assert_true(d->n_buffer < BUFFERS_MAX);
    void *real = NULL, *device = NULL;
    assert_int_equal(posix_memalign(&real, ALIGNMENT, bytes), 0);
    memset(real, 0xFF, bytes);
    if (d->is_host_memory) {
        device = real;
    } else {
        device = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(device != MAP_FAILED);
    }
    d->buffer[d->n_buffer].device = device;
    d->buffer[d->n_buffer].real = real;
    d->buffer[d->n_buffer++].bytes = bytes;
    d->n_buffer_made++;
    *out = device;
    return REEL_OK;
}

static void fake_buffer_free(reel_device *d, void *buffer)
{
    int i = 0;
    while (i < d->n_buffer && d->buffer[i].device != buffer) i++;
    assert_true(i < d->n_buffer);
    if (!d->is_host_memory) assert_int_equal(munmap(buffer, d->buffer[i].bytes), 0);
    free(d->buffer[i].real);
    d->buffer[i] = d->buffer[--d->n_buffer];
}

/* What the device sees at one of its addresses, or a host address that it shares. */
static const void *seen(const reel_device *d, const void *address, size_t bytes)
{
    const uint8_t *a = address;
    for (int i = 0; i < d->n_buffer; i++) {
        if (a < d->buffer[i].device || a >= d->buffer[i].device + d->buffer[i].bytes) continue;
        assert_true((size_t)(a - d->buffer[i].device) + bytes <= d->buffer[i].bytes);
        return d->buffer[i].real + (a - d->buffer[i].device);
    }
    assert_true(d->is_host_memory); /* else the weights point to memory that the device has not */
    return address;
}

static reel_status fake_sync(reel_stream *s, reel_error *e)
{
    (void)e;
    ((reel_device *)(void *)s)->n_sync++;
    return REEL_OK;
}

static reel_status fake_upload(reel_stream *s, void *dst, const void *src, size_t bytes, reel_error *e)
{
    (void)e;
    memcpy((void *)(uintptr_t)seen((reel_device *)(void *)s, dst, bytes), src, bytes);
    return REEL_OK;
}

static reel_status fake_pack(reel_device *d, const reel_weight *w, reel_dtype compute, reel_packed **out, size_t *bytes, reel_error *e)
{
    if (++d->n_packed_made == d->fail_pack_at) return REEL_FAIL(e, REEL_E_MEMORY, "no memory to pack\nremedy: none");
    assert_int_equal(w->size, sizeof *w);
    const size_t n = (size_t)w->n_row * (size_t)w->row_stride_bytes;
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < n; i++) sum = (uint8_t)(sum + ((const uint8_t *)seen(d, w->data, n))[i]);
    reel_packed *p = calloc(1, sizeof *p);
    assert_non_null(p);
    *p = (reel_packed){compute, w->n_row, w->n_col, {w->kernel[0], w->kernel[1], w->kernel[2]}};
    d->n_packed++;
    *out = p;
    *bytes = 1000;
    return REEL_OK;
}

static void fake_pack_free(reel_device *d, reel_packed *p)
{
    d->n_packed--;
    free(p);
}

static const reel_device_vt fake = {.size = sizeof fake,
                                    .props = fake_props,
                                    .buffer_new = fake_buffer_new,
                                    .buffer_free = fake_buffer_free,
                                    .stream_sync = fake_sync,
                                    .upload = fake_upload,
                                    .weight_pack = fake_pack,
                                    .weight_free = fake_pack_free};

static const uint32_t sixteen = 1U << REEL_DTYPE_F32 | 1U << REEL_DTYPE_BF16 | 1U << REEL_DTYPE_F16;

static reel_weights *new_weights(const reel_store *store, const reel_device_vt *vt, reel_device *d, bool is_packed)
{
    reel_weights *w = NULL;
    const reel_weights_options options = {.compute = REEL_DTYPE_BF16, .is_packed = is_packed};
    GOOD(reel_weights_new(store, vt, d, (reel_stream *)(void *)d, &options, &w, &err));
    return w;
}

static void done(reel_weights *w, const reel_device *d)
{
    reel_weights_free(&w);
    assert_null(w);
    assert_int_equal(d->n_buffer, 0);
    assert_int_equal(d->n_packed, 0);
}

/* ---- stores made in memory -------------------------------------------------------------------------------------------------------- */

typedef struct made {
    uint8_t *block;
    reel_store *store;
} made;

/* Entries (JSON without braces) and data; `shift` moves all data off its alignment. */
static made make(const char *entries, const void *data, size_t n, size_t shift)
{
    char header[2048];
    int h = snprintf(header, sizeof header, "{%s}", entries);
    while ((8 + (size_t)h) % 64 != 0) header[h++] = ' ';
    made m = {.block = malloc(8 + (size_t)h + n + 128)};
    assert_non_null(m.block);
    uint8_t *at = m.block + (64 - (uintptr_t)m.block % 64) + shift;
    memset(at, 0, 8);
    at[0] = (uint8_t)h, at[1] = (uint8_t)(h >> 8);
    memcpy(at + 8, header, (size_t)h);
    memcpy(at + 8 + h, data, n);
    GOOD(reel_store_parse(at, 8 + (size_t)h + n, "made", &m.store, &err));
    return m;
}

static void unmake(made *m)
{
    reel_store_close(&m->store);
    free(m->block);
}

/* Where values lie: F32 [2,3] at 0, BF16 [2,3] at 24, F16 [2,3] at 36, F64 [2,3] at 48, E4M3 [2,3] at 96, E5M2 [2,3] at 102, I64 [1,1] at 108. */
static const char all_types[] = "\"f32\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                                "\"bf16\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[24,36]},"
                                "\"f16\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[36,48]},"
                                "\"f64\":{\"dtype\":\"F64\",\"shape\":[2,3],\"data_offsets\":[48,96]},"
                                "\"e4m3\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,3],\"data_offsets\":[96,102]},"
                                "\"e5m2\":{\"dtype\":\"F8_E5M2\",\"shape\":[2,3],\"data_offsets\":[102,108]},"
                                "\"i64\":{\"dtype\":\"I64\",\"shape\":[1,1],\"data_offsets\":[108,116]}";
static const char *const names[] = {"f32", "bf16", "f16", "f64", "e4m3", "e5m2"};
enum { TYPES = 6, ALL_BYTES = 116 };

/* −1.5, 0.25, 448, −0.015625, 0, 3: exact in every type. */
static const float values[6] = {-1.5F, 0.25F, 448.0F, -0.015625F, 0.0F, 3.0F};

static void all_data(uint8_t *out)
{
    static const uint8_t e4m3[6] = {0xBC, 0x28, 0x7E, 0x88, 0x00, 0x44}, e5m2[6] = {0xBE, 0x34, 0x5F, 0xA4, 0x00, 0x42};
    for (int i = 0; i < 6; i++) {
        const double d = values[i];
        const uint16_t b = reel_bf16_from_f32(values[i]), h = reel_f16_from_f32(values[i]);
        memcpy(out + 4 * i, &values[i], 4);
        memcpy(out + 24 + 2 * i, &b, 2);
        memcpy(out + 36 + 2 * i, &h, 2);
        memcpy(out + 48 + 8 * i, &d, 8);
    }
    memcpy(out + 96, e4m3, 6);
    memcpy(out + 102, e5m2, 6);
    memset(out + 108, 1, 8);
}

static void check_values(const reel_device *d, const void *data, reel_dtype dtype)
{
    const uint8_t *p = seen(d, data, 6 * reel_dtype_bytes(dtype));
    for (int i = 0; i < 6; i++) {
        float f = NAN;
        uint16_t half;
        memcpy(&half, p + 2 * i, 2);
        if (dtype == REEL_DTYPE_F32) memcpy(&f, p + 4 * i, 4);
        if (dtype == REEL_DTYPE_BF16) f = reel_f32_from_bf16(half);
        if (dtype == REEL_DTYPE_F16) f = reel_f32_from_f16(half);
        if (!(f == values[i])) fail_msg("value %d is %g, not %g", i, (double)f, (double)values[i]);
    }
}

/* ---- tests -------------------------------------------------------------------------------------------------------------------------- */

static void check_matrix(const reel_weight *w, reel_dtype dtype)
{
    assert_int_equal(w->size, sizeof *w);
    assert_int_equal(w->dtype, dtype);
    assert_int_equal(w->n_row, 2);
    assert_int_equal(w->n_col, 3);
    assert_int_equal(w->row_begin, 0);
    assert_int_equal(w->row_end, 2);
    assert_int_equal(w->block_elements, 1);
    assert_int_equal(w->block_bytes, reel_dtype_bytes(dtype));
    assert_int_equal(w->row_stride_bytes, 3 * reel_dtype_bytes(dtype));
    assert_int_equal(w->kernel[0] + w->kernel[1] + w->kernel[2], 0);
    assert_null(w->packed);
}

static void run_matrices(bool is_host_memory, uint32_t weight_dtypes, size_t shift, const reel_dtype *wanted, int n_mapped)
{
    uint8_t data[ALL_BYTES];
    all_data(data);
    made m = make(all_types, data, ALL_BYTES, shift);
    reel_device d = {.is_host_memory = is_host_memory, .weight_dtypes = weight_dtypes};
    reel_weights *w = new_weights(m.store, &fake, &d, false);
    reel_weight_request requests[TYPES];
    int32_t index = -1, mapped = 0;
    size_t copied = 0;
    for (int i = 0; i < TYPES; i++) requests[i] = (reel_weight_request){.name = names[i], .kind = REEL_WEIGHT_MATRIX};
    GOOD(reel_weights_add_region(w, requests, TYPES, &index, &err));
    reel_region r;
    GOOD(reel_weights_acquire(w, index, &r, &err));
    assert_int_equal(r.n, TYPES);
    for (int i = 0; i < TYPES; i++) {
        check_matrix(&r.weight[i], wanted[i]);
        check_values(&d, r.weight[i].data, wanted[i]);
        if (r.weight[i].data == reel_store_find(m.store, names[i])->data) {
            mapped++;
        } else {
            assert_int_equal((uintptr_t)r.weight[i].data % ALIGNMENT, 0);
            copied += (6 * reel_dtype_bytes(wanted[i]) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
    }
    assert_int_equal(mapped, n_mapped);
    assert_int_equal(d.n_buffer_made, n_mapped == TYPES ? 0 : 1);
    assert_int_equal(reel_weights_bytes(w), copied);
    assert_int_equal(d.n_packed_made, 0);
    reel_weights_release(w, index);
    done(w, &d);
    unmake(&m);
}

static void test_matrices(void **state)
{
    (void)state;
    static const reel_dtype usual[] = {REEL_DTYPE_F32, REEL_DTYPE_BF16, REEL_DTYPE_F16, REEL_DTYPE_F32, REEL_DTYPE_BF16, REEL_DTYPE_BF16};
    static const reel_dtype wide[] = {REEL_DTYPE_F32, REEL_DTYPE_F32, REEL_DTYPE_F32, REEL_DTYPE_F32, REEL_DTYPE_F32, REEL_DTYPE_F32};
    run_matrices(true, sixteen, 0, usual, 3);
    run_matrices(true, sixteen, 1, usual, 0); /* odd addresses: all copied */
    run_matrices(true, sixteen, 2, usual, 2);
    run_matrices(true, 1U << REEL_DTYPE_F32, 0, wide, 1);
    run_matrices(false, sixteen, 0, usual, 0);
    run_matrices(false, 1U << REEL_DTYPE_F32, 1, wide, 0);
}

static void test_vectors_and_rows(void **state)
{
    (void)state;
    for (int host = 0; host < 2; host++) {
        uint8_t data[ALL_BYTES];
        all_data(data);
        made m = make(all_types, data, ALL_BYTES, 0);
        reel_device d = {.is_host_memory = host, .weight_dtypes = sixteen};
        reel_weights *w = new_weights(m.store, &fake, &d, true);
        reel_weight_request requests[TYPES + 2];
        int32_t index = -1;
        for (int i = 0; i < TYPES; i++) requests[i] = (reel_weight_request){.name = names[i], .kind = REEL_WEIGHT_VECTOR};
        requests[TYPES] = (reel_weight_request){.name = "bf16", .kind = REEL_WEIGHT_ROWS};
        requests[TYPES + 1] = (reel_weight_request){.name = "none", .kind = REEL_WEIGHT_MATRIX, .is_optional = true};
        GOOD(reel_weights_add_region(w, requests, TYPES + 2, &index, &err));
        reel_region r;
        GOOD(reel_weights_acquire(w, index, &r, &err));
        for (int i = 0; i < TYPES; i++) {
            assert_int_equal(r.vector[i].dtype, REEL_DTYPE_F32);
            assert_int_equal(r.vector[i].n_dim, 1);
            assert_int_equal(r.vector[i].extent[0], 6);
            assert_int_equal(r.vector[i].stride[0], 1);
            check_values(&d, r.vector[i].data, REEL_DTYPE_F32);
            assert_null(r.weight[i].data);
        }
        check_matrix(&r.weight[TYPES], REEL_DTYPE_BF16);
        check_values(&d, r.weight[TYPES].data, REEL_DTYPE_BF16);
        if (host) assert_ptr_equal(r.weight[TYPES].data, reel_store_find(m.store, "bf16")->data);
        assert_null(r.weight[TYPES + 1].data);
        assert_null(r.vector[TYPES + 1].data);
        assert_int_equal(d.n_packed_made, 0);
        assert_int_equal(d.n_buffer_made, 1);
        assert_true(d.n_sync > 0);
        reel_weights_release(w, index);
        done(w, &d);
        unmake(&m);
    }
}

/* All 256 bytes of both 8-bit types, against powers of two written out here. */
static void test_f8(void **state)
{
    (void)state;
    uint8_t data[512];
    for (int i = 0; i < 512; i++) data[i] = (uint8_t)i;
    made m = make("\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[16,16],\"data_offsets\":[0,256]},\"b\":{\"dtype\":\"F8_E5M2\",\"shape\":[16,16],"
                  "\"data_offsets\":[256,512]}",
                  data, 512, 0);
    reel_device d = {.is_host_memory = true, .weight_dtypes = sixteen};
    reel_weights *w = new_weights(m.store, &fake, &d, false);
    const reel_weight_request requests[] = {{"a", REEL_WEIGHT_MATRIX, false}, {"b", REEL_WEIGHT_MATRIX, false}};
    int32_t index = -1;
    GOOD(reel_weights_add_region(w, requests, 2, &index, &err));
    reel_region r;
    GOOD(reel_weights_acquire(w, index, &r, &err));
    for (int i = 0; i < 512; i++) {
        const int bits = i < 256 ? 3 : 2, bias = i < 256 ? 7 : 15, top = i < 256 ? 15 : 31, b = i % 256;
        const int e = (b & 127) >> bits, mant = b & ((1 << bits) - 1);
        double want = e == 0 ? ldexp(mant, 1 - bias - bits) : ldexp((1 << bits) + mant, e - bias - bits);
        if (i < 256 && e == top && mant == 7) want = NAN; /* E4M3FN has no infinity */
        if (i >= 256 && e == top) want = mant ? NAN : INFINITY;
        if (b & 128) want = -want;
        const float got = reel_f32_from_bf16(((const uint16_t *)r.weight[i / 256].data)[b]);
        if (isnan(want) ? !isnan(got) : (double)got != want || !signbit(got) != !signbit(want))
            fail_msg("byte %d: %g, not %g", i, (double)got, want);
    }
    reel_weights_release(w, index);
    done(w, &d);
    unmake(&m);
}

static void test_packing(void **state)
{
    (void)state;
    uint16_t data[2 * 3 * 1 * 3 * 3 + 2 * 3 * 3 * 3 + 12] = {0};
    made m = make("\"c4\":{\"dtype\":\"BF16\",\"shape\":[2,3,3,3],\"data_offsets\":[0,108]},\"c5\":{\"dtype\":\"BF16\",\"shape\":[2,3,1,3,"
                  "3],\"data_offsets\":[108,216]},"
                  "\"m\":{\"dtype\":\"BF16\",\"shape\":[3,4],\"data_offsets\":[216,240]}",
                  data, sizeof data, 0);
    const reel_weight_request requests[] = {{"c4", REEL_WEIGHT_CONV, false},  {"c5", REEL_WEIGHT_CONV, false},
                                            {"m", REEL_WEIGHT_MATRIX, false}, {"m", REEL_WEIGHT_MATRIX_F32, false},
                                            {"m", REEL_WEIGHT_ROWS, false},   {"m", REEL_WEIGHT_VECTOR, false}};
    reel_device_vt plain = fake;
    plain.weight_pack = NULL;
    plain.weight_free = NULL;
    for (int packed = 0; packed < 2; packed++) {
        for (int has = 0; has < 2; has++) {
            reel_device d = {.is_host_memory = packed == has, .weight_dtypes = sixteen};
            reel_weights *w = new_weights(m.store, has ? &fake : &plain, &d, packed);
            int32_t index = -1;
            GOOD(reel_weights_add_region(w, requests, 6, &index, &err));
            reel_region r;
            GOOD(reel_weights_acquire(w, index, &r, &err));
            assert_int_equal(d.n_packed, has ? (packed ? 4 : 2) : 0);
            for (int i = 0; i < 2; i++) {
                assert_int_equal(r.weight[i].n_row, 2);
                assert_int_equal(r.weight[i].n_col, 27);
                assert_int_equal(r.weight[i].kernel[0], 1);
                assert_int_equal(r.weight[i].kernel[1], 3);
                assert_int_equal(r.weight[i].kernel[2], 3);
                assert_int_equal(!r.weight[i].packed, !has);
            }
            assert_int_equal(!r.weight[2].packed, !(has && packed));
            assert_null(r.weight[4].packed);
            if (has && packed) {
                assert_int_equal(r.weight[2].packed->compute, REEL_DTYPE_BF16);
                assert_int_equal(r.weight[3].packed->compute, REEL_DTYPE_F32);
            }
            const size_t own = reel_weights_bytes(w) - 1000 * (size_t)d.n_packed;
            assert_int_equal(own, d.is_host_memory ? 64 : 128 + 128 + 64 * 4);
            reel_weights_release(w, index);
            done(w, &d);
        }
    }
    unmake(&m);
}

/* A convolution stored in a type that the device does not take is converted before it is packed. */
static void test_conv_types(void **state)
{
    (void)state;
    uint8_t data[6] = {0xBC, 0x28, 0x7E, 0x88, 0x00, 0x44};
    made m = make("\"c\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,3,1,1,1],\"data_offsets\":[0,6]}", data, sizeof data, 0);
    const reel_weight_request request = {"c", REEL_WEIGHT_CONV, false};
    for (int host = 0; host < 2; host++) {
        reel_device d = {.is_host_memory = host, .weight_dtypes = sixteen};
        reel_weights *w = new_weights(m.store, &fake, &d, false);
        int32_t index = -1;
        reel_region r;
        GOOD(reel_weights_add_region(w, &request, 1, &index, &err));
        GOOD(reel_weights_acquire(w, index, &r, &err));
        assert_int_equal(r.weight[0].dtype, REEL_DTYPE_BF16);
        assert_int_equal(r.weight[0].row_stride_bytes, 6);
        check_values(&d, r.weight[0].data, REEL_DTYPE_BF16);
        assert_non_null(r.weight[0].packed);
        reel_weights_release(w, index);
        done(w, &d);
    }
    unmake(&m);
}

static void test_faults(void **state)
{
    (void)state;
    uint8_t data[ALL_BYTES];
    all_data(data);
    made m = make(all_types, data, ALL_BYTES, 0);
    reel_device d = {.is_host_memory = true, .weight_dtypes = sixteen};
    reel_weights *w = new_weights(m.store, &fake, &d, true);
    int32_t index = 77;
    reel_region r;
    const reel_weight_request missing[] = {{"f64", REEL_WEIGHT_VECTOR, false}, {"nothing", REEL_WEIGHT_MATRIX, false}},
                              integer = {"i64", REEL_WEIGHT_VECTOR, false}, flat = {"f32", REEL_WEIGHT_CONV, false},
                              three[] = {{"f64", REEL_WEIGHT_MATRIX, false},
                                         {"f32", REEL_WEIGHT_MATRIX, false},
                                         {"f16", REEL_WEIGHT_MATRIX, false}};
    expect(reel_weights_add_region(w, missing, 2, &index, &err), REEL_E_MODEL, "\"nothing\"");
    expect(reel_weights_add_region(w, &integer, 1, &index, &err), REEL_E_MODEL, "is I64");
    expect(reel_weights_add_region(w, &flat, 1, &index, &err), REEL_E_MODEL, "2 dimensions");
    d.fail_pack_at = 3;
    expect(reel_weights_add_region(w, three, 3, &index, &err), REEL_E_MEMORY, "to pack");
    assert_int_equal(d.n_buffer, 0);
    assert_int_equal(d.n_packed, 0);
    assert_int_equal(reel_weights_bytes(w), 0);
    d.fail_buffer = true;
    expect(reel_weights_add_region(w, three, 3, &index, &err), REEL_E_MEMORY, "fake device");
    assert_int_equal(index, 77);
    expect(reel_weights_acquire(w, 0, &r, &err), REEL_E_INTERNAL, "not there");
    d.fail_buffer = false;
    GOOD(reel_weights_add_region(w, three, 3, &index, &err));
    assert_int_equal(index, 0);
    expect(reel_weights_acquire(w, 1, &r, &err), REEL_E_INTERNAL, "not there");
    done(w, &d);
    unmake(&m);
}

/* How many pages of a mapping this process holds. */
static int held_pages(const void *data, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = ((uintptr_t)data + page - 1) / page,
                    last = ((uintptr_t)data + bytes) / page;
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), n = 0;
    if (fd < 0) return -1;
    for (uintptr_t i = first; i < last; i++) {
        uint64_t entry = 0;
        if (pread(fd, &entry, sizeof entry, (off_t)(i * sizeof entry)) != (ssize_t)sizeof entry) entry = 0;
        n += (int)(entry >> 63);
    }
    (void)close(fd);
    return n;
}

/* After packing or converting, the file's pages are given back; what is used where it lies stays and reads right. */
static void test_pages(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    if (held_pages("", 1) < 0) skip(); /* no /proc/self/pagemap: nothing to see */
    char *dir = temp_dir_new();
    float *data = malloc(sizeof *data * N);
    assert_non_null(data);
    for (int i = 0; i < N; i++) data[i] = (float)(i * 7 % 1013);
    const reel_stored_out out[] = {{"packed", reel_tensor_dense(data, REEL_DTYPE_F32, 1024, N / 1024, 0, 0)},
                                   {"vector", reel_tensor_dense(data, REEL_DTYPE_F32, N, 0, 0, 0)},
                                   {"rows", reel_tensor_dense(data, REEL_DTYPE_F32, 1024, N / 1024, 0, 0)}};
    reel_store *store = NULL;
    GOOD(reel_safetensors_write(temp_path(dir, "m.safetensors"), out, 3, NULL, true, &err));
    GOOD(reel_store_open(dir, "m", &store, &err));
    volatile uint8_t sum = 0;
    for (int i = 0; i < 3; i++) {
        const reel_stored *t = reel_store_find(store, out[i].name);
        for (size_t k = 0; k < t->bytes; k += 512) sum = (uint8_t)(sum + t->data[k]);
        assert_true(held_pages(t->data, t->bytes) > 1000);
    }
    reel_device d = {.is_host_memory = true, .weight_dtypes = sixteen};
    reel_weights *w = new_weights(store, &fake, &d, true);
    const reel_weight_request requests[] = {
        {"packed", REEL_WEIGHT_MATRIX, false}, {"vector", REEL_WEIGHT_VECTOR, false}, {"rows", REEL_WEIGHT_ROWS, false}};
    int32_t index = -1;
    GOOD(reel_weights_add_region(w, requests, 3, &index, &err));
    /* the kernel may map a few neighbours of a page that stays (fault-around: 16 pages) */
    assert_in_range(held_pages(reel_store_find(store, "packed")->data, sizeof *data * N), 0, 16);
    assert_in_range(held_pages(reel_store_find(store, "vector")->data, sizeof *data * N), 0, 16);
    assert_true(held_pages(reel_store_find(store, "rows")->data, sizeof *data * N) > 100);
    for (int i = 0; i < 3; i++) assert_memory_equal(reel_store_find(store, out[i].name)->data, data, sizeof *data * N);
    done(w, &d);
    reel_store_close(&store);
    free(data);
    temp_dir_free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matrices),   cmocka_unit_test(test_vectors_and_rows),
                                       cmocka_unit_test(test_f8),         cmocka_unit_test(test_packing),
                                       cmocka_unit_test(test_conv_types), cmocka_unit_test(test_faults),
                                       cmocka_unit_test(test_pages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
