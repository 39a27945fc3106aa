/* SPDX-License-Identifier: Apache-2.0
 *
 * Any JSON as the configs of a model: {"index": …, "text": …, "dit": …, "dit_2": …, "vae": …, "scheduler": …}, each read by its own reader, then whether
 * the parts belong together. What is taken has sizes within bounds, and a list of tensors whose extents are positive and fit int64 together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static reel_status check_spec(void *user, const reel_tensor_spec *spec, reel_error *err)
{
    (void)err;
    int32_t *n = user;
    int64_t count = 1;
    if (spec->n_dim < 1 || spec->n_dim > 5 || spec->name[0] == '\0' || strlen(spec->name) > 200) abort();
    for (int32_t i = 0; i < spec->n_dim; i++) {
        if (spec->extent[i] < 1 || count > INT64_MAX / spec->extent[i]) abort();
        count *= spec->extent[i];
    }
    return ++*n > 20000 ? REEL_E_CANCELLED : REEL_OK;
}

static reel_json part(const reel_json *all, const char *key)
{
    return (reel_json){.root = json_object_get(all->root, key), .path = key, .fault = REEL_E_MODEL};
}

static void read_all(const reel_json *all, reel_model *m)
{
    const reel_json index = part(all, "index"), text = part(all, "text"), dit = part(all, "dit"), dit_2 = part(all, "dit_2"),
                    vae = part(all, "vae"), scheduler = part(all, "scheduler");
    reel_error err = {0};
    int32_t n_good = 0, n = 0;
    if (json_is_object(index.root)) n_good += reel_config_index(&index, m, &err) == REEL_OK;
    if (json_is_object(text.root)) n_good += reel_config_umt5(&text, &m->text, &err) == REEL_OK;
    if (json_is_object(dit.root)) n_good += reel_config_dit(&dit, &m->dit[0], &err) == REEL_OK;
    if (json_is_object(vae.root)) n_good += reel_config_vae(&vae, &m->vae, &err) == REEL_OK;
    if (json_is_object(scheduler.root)) n_good += reel_config_scheduler(&scheduler, &m->scheduler, &err) == REEL_OK;
    if (m->has_component[REEL_COMPONENT_TRANSFORMER_2] &&
        (!json_is_object(dit_2.root) || reel_config_dit(&dit_2, &m->dit[1], &err) != REEL_OK))
        return;
    if (n_good < 5 || reel_model_match(m, &err) != REEL_OK) return;
    if (m->family[0] == '\0' || m->vae.spatial_factor < 1 || m->vae.temporal_factor < 1 || m->vae.z_dim != m->dit[0].out_channels) abort();
    if (reel_model_size_multiple(m) < 1 || reel_model_latent_frames(m, 81) < 1) abort();
    if (!isnan(m->boundary_ratio) && !(m->boundary_ratio >= 0.0 && m->boundary_ratio <= 1.0)) abort();
    for (int32_t i = 0; i < m->vae.z_dim; i++) {
        if (!isfinite(m->vae.latents_mean[i]) || !(m->vae.latents_std[i] > 0.0)) abort();
    }
    (void)reel_model_check_supported(m, &err);
    for (int32_t i = 0; i < REEL_COMPONENT_COUNT; i++) {
        n = 0;
        if (m->has_component[i] && reel_model_tensors(m, (reel_component)i, check_spec, &n, &err) == REEL_OK && n == 0) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    reel_json all;
    reel_error err;
    if (reel_json_parse((const char *)data, size, "fuzz", REEL_E_MODEL, &all, &err) != REEL_OK) return 0;
    reel_model *m = calloc(1, sizeof *m);
    if (m) read_all(&all, m);
    free(m);
    reel_json_deinit(&all);
    return 0;
}
