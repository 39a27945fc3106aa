/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry of devices: who is taken, who is refused and with which reason, and who wins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "device/device.h"

static const char plugin_dir[] = REEL_BINARY_DIR "/plugins";

/* The template device, from its file: the only whole device table that the tests can borrow. */
static const reel_plugin *template_plugin(reel_registry **registry)
{
    static const reel_plugin *const nothing[] = {NULL};
    const reel_plugin *plugin = NULL;
    assert_int_equal(reel_registry_open_with(nothing, plugin_dir, NULL, registry, NULL), REEL_OK);
    assert_int_equal(reel_registry_find(*registry, "template", &plugin, NULL), REEL_OK);
    return plugin;
}

static int32_t score_none(void)
{
    return 0;
}
static int32_t score_5(void)
{
    return 5;
}
static int32_t score_9(void)
{
    return 9;
}
static void free_nothing(reel_device *device, reel_packed *packed)
{
    (void)device, (void)packed;
}

static void built_in_cpu_is_there(void **state)
{
    (void)state;
    reel_registry *r = NULL;
    const reel_plugin *plugin = NULL;
    assert_int_equal(reel_registry_open(NULL, NULL, &r, NULL), REEL_OK);
    assert_int_equal(reel_registry_find(r, "cpu", &plugin, NULL), REEL_OK);
    assert_string_equal(plugin->name, "cpu");
    assert_true(reel_registry_count(r) >= 1);
    assert_null(reel_registry_at(r, 0)->path);
    assert_null(reel_registry_at(r, reel_registry_count(r)));
    assert_null(reel_registry_at(r, -1));
    reel_registry_close(&r);
    assert_null(r);
    reel_registry_close(&r); /* safe on NULL */
}

static void file_is_loaded_and_opens(void **state)
{
    (void)state;
    reel_registry *r = NULL;
    const reel_plugin *plugin = template_plugin(&r);
    const reel_registry_entry *e = reel_registry_at(r, 0);
    assert_string_equal(e->name, "template");
    assert_non_null(strstr(e->path, "libreel-device-template.so"));
    assert_null(e->reason);
    reel_device_options options = {.size = sizeof options};
    reel_device *device = NULL;
    reel_device_props props = {.size = sizeof props};
    assert_int_equal(plugin->device->open(NULL, &options, &device, NULL), REEL_OK);
    assert_int_equal(plugin->device->props(device, &props, NULL), REEL_OK);
    assert_string_equal(props.kind, "template");
    plugin->device->close(device);
    reel_registry_close(&r);
}

static void highest_score_wins_and_names_pick(void **state)
{
    (void)state;
    reel_registry *whole = NULL, *r = NULL;
    reel_plugin a = *template_plugin(&whole), b = a, c = a;
    a.name = "five", a.score = score_5;
    b.name = "nine", b.score = score_9;
    c.name = "tie", c.score = score_9;
    const reel_plugin *const list[] = {&a, &b, &c, NULL}, *plugin = NULL;
    assert_int_equal(reel_registry_open_with(list, NULL, NULL, &r, NULL), REEL_OK);
    assert_int_equal(reel_registry_find(r, NULL, &plugin, NULL), REEL_OK);
    assert_ptr_equal(plugin, &b);
    assert_int_equal(reel_registry_find(r, "auto", &plugin, NULL), REEL_OK);
    assert_ptr_equal(plugin, &b);
    assert_int_equal(reel_registry_find(r, "five", &plugin, NULL), REEL_OK);
    assert_ptr_equal(plugin, &a);
    reel_error err = {.code = REEL_OK};
    plugin = &c;
    assert_int_equal(reel_registry_find(r, "abacus", &plugin, &err), REEL_E_UNSUPPORTED);
    assert_ptr_equal(plugin, &c); /* written only on success */
    assert_non_null(strstr(err.text, "abacus"));
    assert_non_null(strstr(err.text, "five, nine, tie"));
    reel_registry_close(&r);
    reel_registry_close(&whole);
}

/* Opens a registry with this plug-in alone and expects it refused for a reason that holds the words. */
static void expect_refused(const reel_plugin *plugin, const char *words)
{
    const reel_plugin *const list[] = {plugin, NULL}, *found = NULL;
    reel_registry *r = NULL;
    reel_error err = {.code = REEL_OK};
    assert_int_equal(reel_registry_open_with(list, NULL, NULL, &r, NULL), REEL_OK);
    assert_int_equal(reel_registry_count(r), 1);
    const reel_registry_entry *e = reel_registry_at(r, 0);
    assert_null(e->plugin);
    assert_non_null(e->reason);
    if (!strstr(e->reason, words)) fail_msg("reason \"%s\" does not say \"%s\"", e->reason, words);
    assert_int_equal(reel_registry_find(r, "auto", &found, &err), REEL_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "none is usable"));
    if (plugin->name && strcmp(e->name, plugin->name) == 0) {
        assert_int_equal(reel_registry_find(r, plugin->name, &found, &err), REEL_E_UNSUPPORTED);
        assert_non_null(strstr(err.text, e->reason));
    }
    reel_registry_close(&r);
}

static void faults_are_refused_with_reasons(void **state)
{
    (void)state;
    reel_registry *whole = NULL;
    const reel_plugin good = *template_plugin(&whole);
    reel_device_vt vt = *good.device;
    reel_plugin p = good;
    p.abi = REEL_PLUGIN_ABI + 1;
    expect_refused(&p, "plug-in interface 2");
    p = good, p.size = 8;
    expect_refused(&p, "8 bytes");
    p = good, p.kind = (reel_plugin_kind)7;
    expect_refused(&p, "no device");
    p = good, p.name = "";
    expect_refused(&p, "name");
    p = good, p.name = "auto";
    expect_refused(&p, "name");
    p = good, p.name = "a-name-of-sixteen";
    expect_refused(&p, "name");
    p = good, p.name = NULL;
    expect_refused(&p, "name");
    p = good, p.score = NULL;
    expect_refused(&p, "score");
    p = good, p.score = score_none;
    expect_refused(&p, "cannot run on this machine");
    p = good, p.device = NULL;
    expect_refused(&p, "no table");
    p = good, p.device = &vt;
    vt.size = sizeof vt - 8;
    expect_refused(&p, "shorter");
    vt = *good.device, vt.event_sync = NULL;
    expect_refused(&p, "gaps");
    vt = *good.device, vt.weight_free = free_nothing;
    expect_refused(&p, "weight_pack");
    reel_registry_close(&whole);
}

static void second_of_a_name_is_refused(void **state)
{
    (void)state;
    reel_registry *whole = NULL, *r = NULL;
    reel_plugin a = *template_plugin(&whole);
    const reel_plugin *const list[] = {&a, NULL}, *plugin = NULL;
    assert_int_equal(reel_registry_open_with(list, plugin_dir, NULL, &r, NULL), REEL_OK);
    assert_int_equal(reel_registry_count(r), 2);
    assert_non_null(strstr(reel_registry_at(r, 1)->reason, "there already"));
    assert_int_equal(reel_registry_find(r, "template", &plugin, NULL), REEL_OK);
    assert_ptr_equal(plugin, &a);
    reel_registry_close(&r);
    reel_registry_close(&whole);
}

static void count_warning(void *user, int level, const char *text)
{
    assert_int_equal(level, REEL_LOG_WARNING);
    assert_non_null(strstr(text, "libreel-device-"));
    (*(int *)user)++;
}

static void write_text(const char *dir, const char *name)
{
    char path[REEL_PATH_MAX];
    assert_int_equal(reel_path_join(path, sizeof path, dir, name, NULL), REEL_OK);
    assert_int_equal(reel_write_file(path, "no library", 10, false, NULL), REEL_OK);
}

static void remove_text(const char *dir, const char *name)
{
    char path[REEL_PATH_MAX];
    assert_int_equal(reel_path_join(path, sizeof path, dir, name, NULL), REEL_OK);
    assert_int_equal(unlink(path), 0);
}

static void foreign_files_do_no_harm(void **state)
{
    (void)state;
    char dir[] = "/tmp/reel-registry-XXXXXX";
    assert_non_null(mkdtemp(dir));
    static const char *const names[] = {"libreel-device-b.so", "libreel-device-a.so", "libreel-device-.so", "readme.txt",
                                        "libreel-device-c.so.bak"};
    for (size_t i = 0; i < REEL_COUNT(names); i++) write_text(dir, names[i]);
    char folder[REEL_PATH_MAX];
    assert_int_equal(reel_path_join(folder, sizeof folder, dir, "libreel-device-d.so", NULL), REEL_OK);
    assert_int_equal(mkdir(folder, 0700), 0);
    int n_warning = 0;
    reel_log log = {.write = count_warning, .user = &n_warning};
    reel_registry *r = NULL;
    const reel_plugin *plugin = NULL;
    assert_int_equal(reel_registry_open(dir, &log, &r, NULL), REEL_OK);
    int32_t n = reel_registry_count(r);
    assert_true(n >= 3);
    assert_string_equal(reel_registry_at(r, n - 2)->name, "libreel-device-a.so");
    assert_string_equal(reel_registry_at(r, n - 1)->name, "libreel-device-b.so");
    assert_non_null(strstr(reel_registry_at(r, n - 1)->reason, "cannot load"));
    assert_int_equal(n_warning, 2);
    assert_int_equal(reel_registry_find(r, "auto", &plugin, NULL), REEL_OK);
    reel_registry_close(&r);
    for (size_t i = 0; i < REEL_COUNT(names); i++) remove_text(dir, names[i]);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rmdir(dir), 0);
    reel_error err = {.code = REEL_OK};
    assert_int_equal(reel_registry_open(dir, NULL, &r, &err), REEL_E_IO);
    assert_null(r);
    assert_non_null(strstr(err.text, dir));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_in_cpu_is_there),
        cmocka_unit_test(file_is_loaded_and_opens),
        cmocka_unit_test(highest_score_wins_and_names_pick),
        cmocka_unit_test(faults_are_refused_with_reasons),
        cmocka_unit_test(second_of_a_name_is_refused),
        cmocka_unit_test(foreign_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
