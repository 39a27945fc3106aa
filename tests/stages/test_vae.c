/* SPDX-License-Identifier: Apache-2.0
 *
 * The autoencoder against diffusers: tiny random ones of odd sizes (fixtures), the bundled model's recordings, and what must not change
 * a bit (frames per pass, resuming) or a byte (length of the clip). With REEL_TEST_DATA set, also every vae_*.safetensors of that
 * folder, made by tests/reference/true_vae.py at the true Wan2.1 size. */
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/env.h"
#include "common/hashed.h"
#include "vae_support.h"

/* Bound of every stage in f32. */
static const double bound_f32 = 1e-5;
/* bf16 may be off by this much of what diffusers' own bf16 run is off. */
static const double bound_bf16 = 1.1;

static reel_error fault;

static reel_vae_options options_of(reel_dtype compute, int32_t chunk)
{
    return (reel_vae_options){.compute = compute, .wants_encoder = true, .wants_decoder = true, .chunk_frames = chunk};
}

static reel_store *open_file(const char *path)
{
    reel_store *store = NULL;
    if (reel_store_open_file(path, &store, &fault) != REEL_OK) fail_msg("%s", fault.text);
    return store;
}

static float *nan_array(int64_t n)
{
    float *out = malloc((size_t)n * sizeof *out);
    assert_non_null(out);
    memset(out, 0xFF, (size_t)n * sizeof *out);
    return out;
}

/* Decoder and encoder of one fixture in one dtype. */
static void compare_fixture(vae_device *device, const char *path, reel_dtype compute)
{
    reel_store *fixture = open_file(path);
    vae_bench bench;
    vae_clip clip;
    int64_t n_frames, n_mean;
    reel_vae_options options = options_of(compute, 4);
    float *frames = vae_load(fixture, "frames", &n_frames), *mean = vae_load(fixture, "mean", &n_mean);
    float *logvar = vae_load(fixture, "logvar", &n_mean);
    vae_bench_fixture(&bench, device, fixture, &options, &clip);
    float *got = nan_array(n_frames), *got_mean = nan_array(n_mean), *got_logvar = nan_array(n_mean);
    vae_decode(&bench, &clip, false, got, NULL);
    vae_encode(&bench, &clip, got_mean, got_logvar);
    double e[3] = {vae_error(got, frames, n_frames), vae_error(got_mean, mean, n_mean), vae_error(got_logvar, logvar, n_mean)};
    double bound[3] = {bound_f32, bound_f32, bound_f32};
    if (compute == REEL_DTYPE_BF16) {
        bound[0] = bound_bf16 * strtod(reel_store_metadata(fixture, "bf16_decode"), NULL);
        bound[1] = bound_bf16 * strtod(reel_store_metadata(fixture, "bf16_mean"), NULL);
        bound[2] = 0.1; /* the clamp makes its norm small where it bites; the mean's bound is the measure */
    }
    print_message("%s %s: decode %.2e, mean %.2e, logvar %.2e\n", strrchr(path, '/') + 1, reel_dtype_name(compute), e[0], e[1], e[2]);
    for (int32_t i = 0; i < 3; i++)
        if (!(e[i] <= bound[i])) fail_msg("%s: error %g, allowed %g", path, e[i], bound[i]);
    free(got), free(got_mean), free(got_logvar), free(frames), free(mean), free(logvar);
    vae_bench_close(&bench);
    vae_clip_free(&clip);
    reel_store_close(&fixture);
}

static void compare_all(const char *pattern, bool is_reference, size_t at_least)
{
    glob_t found;
    vae_device device;
    vae_device_open(&device, is_reference);
    int rc = glob(pattern, 0, NULL, &found);
    assert_true(rc == 0 || (rc == GLOB_NOMATCH && at_least == 0));
    assert_true(rc != 0 || found.gl_pathc >= at_least);
    for (size_t i = 0; rc == 0 && i < found.gl_pathc; i++) {
        compare_fixture(&device, found.gl_pathv[i], REEL_DTYPE_F32);
        compare_fixture(&device, found.gl_pathv[i], REEL_DTYPE_BF16);
    }
    if (rc == 0) globfree(&found);
    vae_device_close(&device);
}

static void odd_sizes_by_references(void **state)
{
    (void)state;
    compare_all(REEL_SOURCE_DIR "/tests/fixtures/vae/*.safetensors", true, 6);
}

static void odd_sizes_on_the_device(void **state)
{
    (void)state;
    compare_all(REEL_SOURCE_DIR "/tests/fixtures/vae/*.safetensors", false, 6);
}

static void true_sizes(void **state)
{
    const char *dir = reel_env("REEL_TEST_DATA");
    char pattern[4096];
    (void)state;
    if (!dir) {
        print_message("REEL_TEST_DATA is not set: the true-size comparison is not part of this run\n");
        skip();
    }
    (void)snprintf(pattern, sizeof pattern, "%s/vae_*.safetensors", dir);
    compare_all(pattern, false, 1);
}

/* ---- the bundled model's recordings -------------------------------------------------------------------------------------- */

static double stored_number(const char *key)
{
    char name[64];
    double value, found = NAN;
    FILE *file = fopen(REEL_SOURCE_DIR "/tests/fixtures/vae/wan-tiny-t2v.bf16.txt", "r");
    assert_non_null(file);
    while (fscanf(file, "%63s %lf", name, &value) == 2)
        if (strcmp(name, key) == 0) found = value;
    fclose(file);
    return found;
}

/* [F, H, W, 3] frame t against a recorded [3, H, W]. */
static void unpack_frame(const float *frames, int64_t t, int64_t area, float *out)
{
    for (int64_t i = 0; i < area; i++)
        for (int64_t c = 0; c < 3; c++) out[c * area + i] = frames[(t * area + i) * 3 + c];
}

static void recordings(reel_dtype compute, double bound_frames, double bound_mean)
{
    vae_device device;
    vae_bench bench;
    int64_t n_clip, n_mean, n_frame;
    reel_vae_options options = options_of(compute, 1);
    reel_store *store = open_file(REEL_SOURCE_DIR "/tests/fixtures/wan-tiny-t2v/vae.safetensors");
    float *pixels = vae_load(store, "clip_uint8", &n_clip), *mean = vae_load(store, "mean", &n_mean),
          *logvar = vae_load(store, "logvar", &n_mean);
    float *first = vae_load(store, "decoded_frame_0", &n_frame), *last = vae_load(store, "decoded_frame_16", &n_frame);
    for (int64_t i = 0; i < n_clip; i++) pixels[i] = pixels[i] / 127.5F - 1.0F;
    vae_device_open(&device, false);
    vae_bench_bundled(&bench, &device, &options);
    vae_clip clip = {.lat_t = 5, .lat_h = 16, .lat_w = 16, .n_frame = 17, .px_h = 128, .px_w = 128, .latents = mean, .pixels = pixels};
    float *got_mean = nan_array(n_mean), *got_logvar = nan_array(n_mean), *frames = nan_array(n_clip), *both = nan_array(2 * n_frame);
    float *wanted = nan_array(2 * n_frame);
    vae_encode(&bench, &clip, got_mean, got_logvar);
    vae_decode(&bench, &clip, true, frames, NULL);
    unpack_frame(frames, 0, n_frame / 3, both);
    unpack_frame(frames, 16, n_frame / 3, both + n_frame);
    memcpy(wanted, first, (size_t)n_frame * sizeof(float));
    memcpy(wanted + n_frame, last, (size_t)n_frame * sizeof(float));
    double e[3] = {vae_error(both, wanted, 2 * n_frame), vae_error(got_mean, mean, n_mean), vae_error(got_logvar, logvar, n_mean)};
    print_message("bundled model %s: frames %.2e, mean %.2e, logvar %.2e\n", reel_dtype_name(compute), e[0], e[1], e[2]);
    assert_true(e[0] <= bound_frames);
    assert_true(e[1] <= bound_mean);
    assert_true(compute == REEL_DTYPE_BF16 || e[2] <= bound_f32);
    free(pixels), free(mean), free(logvar), free(first), free(last), free(got_mean), free(got_logvar), free(frames), free(both),
        free(wanted);
    vae_bench_close(&bench);
    vae_device_close(&device);
    reel_store_close(&store);
}

static void recordings_f32(void **state)
{
    (void)state;
    recordings(REEL_DTYPE_F32, bound_f32, bound_f32);
}

static void recordings_bf16(void **state)
{
    (void)state;
    recordings(REEL_DTYPE_BF16, bound_bf16 * stored_number("bf16_decode"), bound_bf16 * stored_number("bf16_mean"));
}

/* ---- what must not matter ------------------------------------------------------------------------------------------------ */

static void load_case(vae_bench *bench, vae_device *device, const char *name, const reel_vae_options *options, vae_clip *clip)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tests/fixtures/vae/%s.safetensors", REEL_SOURCE_DIR, name);
    reel_store *fixture = open_file(path);
    vae_bench_fixture(bench, device, fixture, options, clip);
    reel_store_close(&fixture);
}

/* Longer than the fixture's clip: fresh latents of lat_t frames. */
static void lengthen(vae_bench *bench, vae_clip *clip, int64_t lat_t)
{
    int64_t n = bench->config.z_dim * lat_t * clip->lat_h * clip->lat_w;
    free(clip->latents);
    clip->latents = malloc((size_t)n * sizeof(float));
    assert_non_null(clip->latents);
    hashed_values("a longer clip", clip->latents, n);
    clip->lat_t = lat_t;
}

static void frames_per_pass_change_no_bit(void **state)
{
    static const char *const cases[] = {"wan21_3x5", "deep_1x1", "wide_2x3", "two_levels"};
    vae_device device;
    (void)state;
    vae_device_open(&device, false);
    for (int32_t dtype = 0; dtype < 2; dtype++)
        for (size_t i = 0; i < REEL_COUNT(cases); i++) {
            float *frames[3] = {NULL};
            int64_t n = 0;
            for (int32_t k = 0; k < 3; k++) {
                vae_bench bench;
                vae_clip clip;
                reel_vae_options options = options_of(dtype ? REEL_DTYPE_BF16 : REEL_DTYPE_F32, 1 << k);
                load_case(&bench, &device, cases[i], &options, &clip);
                lengthen(&bench, &clip, 5);
                int64_t s = bench.config.spatial_factor;
                n = (1 + 4 * bench.config.temporal_factor) * clip.lat_h * clip.lat_w * s * s * 3;
                frames[k] = nan_array(n);
                vae_decode(&bench, &clip, false, frames[k], NULL);
                vae_clip_free(&clip);
                vae_bench_close(&bench);
            }
            assert_memory_equal(frames[0], frames[1], (size_t)n * sizeof(float));
            assert_memory_equal(frames[0], frames[2], (size_t)n * sizeof(float));
            free(frames[0]), free(frames[1]), free(frames[2]);
        }
    vae_device_close(&device);
}

static void length_changes_no_byte(void **state)
{
    vae_device device;
    vae_bench bench;
    vae_clip clip;
    size_t bytes[2];
    (void)state;
    vae_device_open(&device, false);
    for (int32_t chunk = 1; chunk <= 4; chunk *= 2) {
        reel_vae_options options = options_of(REEL_DTYPE_F32, chunk);
        load_case(&bench, &device, "wan21_1x1", &options, &clip);
        for (int32_t i = 0; i < 2; i++) {
            lengthen(&bench, &clip, i == 0 ? 5 : 41); /* 17 and 161 frames */
            float *frames = nan_array((int64_t)161 * 64 * 3);
            vae_decode(&bench, &clip, false, frames, &bytes[i]);
            for (int64_t k = 0; k < (1 + 4 * (clip.lat_t - 1)) * 64 * 3; k++) assert_true(isfinite(frames[k]));
            free(frames);
        }
        assert_int_equal(bytes[0], bytes[1]);
        assert_int_equal(bytes[0], reel_vae_decode_bytes(&bench.config, REEL_DTYPE_F32, chunk, 1, 1, device.ops.props.alignment_bytes));
        vae_clip_free(&clip);
        vae_bench_close(&bench);
    }
    vae_device_close(&device);
}

static reel_status keep_frames(void *user, const reel_tensor *frames, int64_t first_frame, int64_t row0, reel_error *err)
{
    (void)row0, (void)err;
    size_t each = reel_tensor_bytes(frames) / (size_t)frames->extent[0];
    memcpy((char *)user + (size_t)first_frame * each, frames->data, reel_tensor_bytes(frames));
    return REEL_OK;
}

/* Copies the state of one session into another one. */
static void carry_over(vae_device *device, const reel_vae_session *from, reel_vae_session *to)
{
    char name[REEL_VAE_STATE_NAME_MAX], other[REEL_VAE_STATE_NAME_MAX];
    reel_tensor a, b;
    int32_t n = 0, n_there = 0;
    assert_int_equal(reel_vae_session_resume(to, reel_vae_session_pushed(from), &fault), REEL_OK);
    for (; reel_vae_session_state(from, n, name, &a); n++) {
        assert_true(reel_vae_session_state(to, n, other, &b));
        assert_string_equal(name, other);
        assert_int_equal(a.data != NULL, b.data != NULL);
        if (!a.data) continue;
        assert_int_equal(a.extent[0], b.extent[0]);
        assert_int_equal(device->vt.copy(device->stream, b.data, a.data, reel_tensor_bytes(&a), &fault), REEL_OK);
        n_there++;
    }
    assert_false(reel_vae_session_state(to, n, other, &b));
    assert_true(n_there > 0);
}

static void resuming_changes_no_bit(void **state)
{
    vae_device device;
    vae_bench bench;
    vae_clip clip;
    reel_vae_options options = options_of(REEL_DTYPE_F32, 2);
    (void)state;
    vae_device_open(&device, false);
    load_case(&bench, &device, "wan21_3x5", &options, &clip);
    enum { LATENTS = 6, FRAMES = 21 };
    lengthen(&bench, &clip, LATENTS);
    int64_t n = (int64_t)FRAMES * 24 * 40 * 3, each = 16 * 15;
    float *whole = nan_array(n), *parts = nan_array(n);
    for (int64_t cut = 0; cut < LATENTS; cut++) {
        reel_vae_session *session = NULL, *second = NULL;
        memset(parts, 0xFF, (size_t)n * sizeof(float));
        assert_int_equal(reel_vae_decode_begin(bench.vae, 3, 5, keep_frames, cut == 0 ? whole : parts, &session, &fault), REEL_OK);
        for (int64_t t = 0; t < LATENTS; t++) {
            reel_tensor latent = reel_tensor_dense(clip.latents + t * each, REEL_DTYPE_F32, 16, 3, 5, 0);
            if (t == cut && cut > 0) {
                assert_int_equal(reel_vae_decode_begin(bench.vae, 3, 5, keep_frames, parts, &second, &fault), REEL_OK);
                carry_over(&device, session, second);
                reel_vae_session_free(&session);
                session = second;
            }
            assert_int_equal(reel_vae_decode_push(session, &latent, &fault), REEL_OK);
        }
        assert_int_equal(reel_vae_session_pushed(session), LATENTS);
        if (cut > 0) assert_memory_equal(whole, parts, (size_t)n * sizeof(float));
        reel_vae_session_free(&session);
    }
    free(whole), free(parts);
    vae_clip_free(&clip);
    vae_bench_close(&bench);
    vae_device_close(&device);
}

static void encoder_resumes(void **state)
{
    vae_device device;
    vae_bench bench;
    vae_clip clip;
    reel_vae_options options = options_of(REEL_DTYPE_F32, 1);
    (void)state;
    vae_device_open(&device, false);
    load_case(&bench, &device, "deep_1x1", &options, &clip);
    float whole[5][4], parts[5][4];
    for (int64_t cut = 0; cut < 5; cut++) {
        reel_vae_session *session = NULL, *second = NULL;
        assert_int_equal(reel_vae_encode_begin(bench.vae, clip.px_h, clip.px_w, &session, &fault), REEL_OK);
        for (int64_t t = 0; t < 5; t++) {
            reel_tensor all = reel_tensor_dense(clip.pixels, REEL_DTYPE_F32, clip.n_frame, clip.px_h, clip.px_w, 3);
            reel_tensor frames = reel_tensor_slice(all, 0, t == 0 ? 0 : 4 * t - 3, 4 * t + 1);
            reel_tensor mean = reel_tensor_dense(cut == 0 ? whole[t] : parts[t], REEL_DTYPE_F32, 4, 1, 1, 0);
            if (t == cut && cut > 0) {
                assert_int_equal(reel_vae_encode_begin(bench.vae, clip.px_h, clip.px_w, &second, &fault), REEL_OK);
                carry_over(&device, session, second);
                reel_vae_session_free(&session);
                session = second;
            }
            assert_int_equal(reel_vae_encode_push(session, &frames, &mean, NULL, &fault), REEL_OK);
        }
        if (cut > 0) assert_memory_equal(whole, parts, sizeof whole);
        reel_vae_session_free(&session);
    }
    vae_clip_free(&clip);
    vae_bench_close(&bench);
    vae_device_close(&device);
}

static reel_status refuse_frames(void *user, const reel_tensor *frames, int64_t first_frame, int64_t row0, reel_error *err)
{
    (void)user, (void)frames, (void)first_frame, (void)row0;
    return REEL_FAIL(err, REEL_E_IO, "the disk is full\nremedy: free some space");
}

static void wrong_input_is_refused(void **state)
{
    vae_device device;
    vae_bench bench;
    vae_clip clip;
    reel_vae_session *session = NULL, *encoding = NULL;
    reel_vae_options options = options_of(REEL_DTYPE_F32, 3);
    reel_vae *vae = NULL;
    (void)state;
    vae_device_open(&device, false);
    reel_vae_options good = options_of(REEL_DTYPE_F32, 1);
    load_case(&bench, &device, "deep_1x1", &good, &clip);
    assert_int_equal(reel_vae_new(&bench.config, &device.ops, bench.weights, &options, &vae, &fault), REEL_E_ARGUMENT);
    options = good;
    options.attention = "no such thing";
    assert_int_equal(reel_vae_new(&bench.config, &device.ops, bench.weights, &options, &vae, &fault), REEL_E_UNSUPPORTED);
    reel_vae_config other = bench.config;
    other.is_residual = true;
    assert_int_equal(reel_vae_new(&other, &device.ops, bench.weights, &good, &vae, &fault), REEL_E_UNSUPPORTED);
    assert_int_equal(reel_vae_decode_bytes(&other, REEL_DTYPE_F32, 1, 1, 1, 64), 0);
    other = bench.config;
    other.base_dim = 24;
    other.decoder_base_dim = 24;
    assert_int_equal(reel_vae_new(&other, &device.ops, bench.weights, &good, &vae, &fault), REEL_E_MODEL);
    assert_null(vae);
    assert_int_equal(reel_vae_decode_begin(bench.vae, 0, 1, refuse_frames, NULL, &session, &fault), REEL_E_ARGUMENT);
    assert_int_equal(reel_vae_encode_begin(bench.vae, 3, 9, &session, &fault), REEL_E_ARGUMENT);
    assert_null(session);
    assert_int_equal(reel_vae_decode_begin(bench.vae, 1, 1, refuse_frames, NULL, &session, &fault), REEL_OK);
    reel_tensor latent = reel_tensor_dense(clip.latents, REEL_DTYPE_F32, 4, 1, 1, 0), wide = latent;
    wide.extent[2] = 2;
    assert_int_equal(reel_vae_decode_push(session, &wide, &fault), REEL_E_ARGUMENT);
    assert_int_equal(reel_vae_session_pushed(session), 0);
    /* a push that fails in the middle spoils the histories: nothing more comes out */
    assert_int_equal(reel_vae_decode_push(session, &latent, &fault), REEL_E_IO);
    assert_int_equal(reel_vae_decode_push(session, &latent, &fault), REEL_E_ARGUMENT);
    assert_int_equal(reel_vae_encode_begin(bench.vae, clip.px_h, clip.px_w, &encoding, &fault), REEL_OK);
    float mean[4];
    reel_tensor frames = reel_tensor_dense(clip.pixels, REEL_DTYPE_F32, 4, clip.px_h, clip.px_w, 3);
    reel_tensor moments = reel_tensor_dense(mean, REEL_DTYPE_F32, 4, 1, 1, 0);
    assert_int_equal(reel_vae_encode_push(encoding, &frames, &moments, NULL, &fault), REEL_E_ARGUMENT); /* the first push takes one */
    reel_vae_session_free(&session);
    reel_vae_session_free(&encoding);
    reel_vae_session_free(&encoding);
    vae_clip_free(&clip);
    vae_bench_close(&bench);
    vae_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_sizes_by_references),
        cmocka_unit_test(odd_sizes_on_the_device),
        cmocka_unit_test(recordings_f32),
        cmocka_unit_test(recordings_bf16),
        cmocka_unit_test(frames_per_pass_change_no_bit),
        cmocka_unit_test(length_changes_no_byte),
        cmocka_unit_test(resuming_changes_no_bit),
        cmocka_unit_test(encoder_resumes),
        cmocka_unit_test(wrong_input_is_refused),
        cmocka_unit_test(true_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
