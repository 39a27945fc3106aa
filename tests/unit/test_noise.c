/* SPDX-License-Identifier: Apache-2.0
 *
 * Noise against torch.randn, bit for bit: recorded digests for 50 seeds and 14 sizes, printed values, and what follows from the algorithm. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "common/fixture.h"
#include "sample/sample.h"

static uint64_t fnv(const void *data, size_t n)
{
    const uint8_t *p = data;
    uint64_t h = 0xCBF29CE484222325U;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001B3U;
    return h;
}

/* n values after a guard of NaNs on both sides that must stay. */
static float *noise(uint64_t seed, size_t n)
{
    float *whole = malloc((n + 2) * sizeof *whole);
    assert_non_null(whole);
    for (size_t i = 0; i < n + 2; i++) whole[i] = NAN;
    reel_noise_fill(seed, whole + 1, (int64_t)n);
    assert_true(isnan(whole[0]) && isnan(whole[n + 1]));
    for (size_t i = 1; i <= n; i++) assert_true(isfinite(whole[i]));
    memmove(whole, whole + 1, n * sizeof *whole);
    return whole;
}

static void test_recorded(void **state)
{
    (void)state;
    fixture f = fixture_open("tests/fixtures/schedules/noise.safetensors");
    size_t n_seed, n_size, n;
    const uint64_t *seeds = fixture_get(&f, "seeds", "I64", &n_seed), *hashes = fixture_get(&f, "hashes", "I64", &n);
    const int32_t *sizes = fixture_get(&f, "sizes", "I32", &n_size);
    const float *first = fixture_get(&f, "first", "F32", &n), *last = fixture_get(&f, "last", "F32", &n);
    assert_int_equal(n_seed, 50);
    assert_int_equal(n, n_seed * n_size);
    for (size_t i = 0; i < n_seed; i++) {
        for (size_t j = 0; j < n_size; j++) {
            size_t size = (size_t)sizes[j], at = i * n_size + j;
            float *x = noise(seeds[i], size);
            if (x[0] != first[at] || x[size - 1] != last[at] || fnv(x, size * sizeof *x) != hashes[at]) {
                fail_msg("seed %llu, %zu values: first %.9g (%.9g), last %.9g (%.9g)", (unsigned long long)seeds[i], size, (double)x[0],
                         (double)first[at], (double)x[size - 1], (double)last[at]);
            }
            free(x);
        }
    }
    size_t big = (size_t) * (const int32_t *)fixture_get(&f, "big_size", "I32", &n);
    float *x = noise(42, big);
    assert_true(fnv(x, big * sizeof *x) == *(const uint64_t *)fixture_get(&f, "big_hash", "I64", &n));
    free(x);
    fixture_close(&f);
}

static void test_printed_values(void **state)
{
    (void)state;
    float *x = noise(0, 20);
    int32_t bits[2];
    memcpy(bits, x, sizeof bits);
    assert_int_equal(bits[0], -1081074811);
    assert_int_equal(bits[1], -1080852342);
    assert_true(x[2] == -0.25057858F && x[3] == -0.43387881F && x[4] == 0.59883946F);
    free(x);
    x = noise(0, 5);
    const double few[5] = {1.5410, -0.2934, -2.1788, 0.5684, -1.0845};
    for (int i = 0; i < 5; i++) assert_true(fabs((double)x[i] - few[i]) < 5.1e-5); /* four printed digits */
    free(x);
}

/* Only the low 32 bits of a seed count; a block of 16 does not depend on what follows it unless the tail is redrawn over it. */
static void test_structure(void **state)
{
    (void)state;
    uint64_t seed = (uint64_t)time(NULL) * 2654435761U;
    size_t n = 16 + (size_t)(seed % 3000);
    float *a = noise(seed, n), *b = noise((seed & 0xFFFFFFFFU) | 0xABCD00000000U, n), *c = noise(seed + 1, n),
          *d = noise(seed, n / 16 * 16);
    assert_memory_equal(a, b, n * sizeof *a);
    assert_memory_not_equal(a, c, n * sizeof *a);
    size_t same = n % 16 == 0 ? n : n - 16;
    assert_memory_equal(a, d, same * sizeof *a);
    free(a), free(b), free(c), free(d);
}

static void test_is_normal(void **state)
{
    (void)state;
    size_t n = 200003;
    float *x = noise((uint64_t)time(NULL), n);
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i], squares += (double)x[i] * (double)x[i];
    /* six standard deviations of the mean and of the variance of n normal values */
    assert_true(fabs(sum / (double)n) < 6.0 / sqrt((double)n));
    assert_true(fabs(squares / (double)n - 1.0) < 6.0 * sqrt(2.0 / (double)n));
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_printed_values),
        cmocka_unit_test(test_structure),
        cmocka_unit_test(test_is_normal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
