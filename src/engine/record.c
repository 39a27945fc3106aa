/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans, builds and settings as JSON: what `reel plan` prints, what a job records, what a clip carries. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine_internal.h"

reel_status reel_json_text(const json_t *json, size_t flags, char **out, reel_error *err)
{
    char *text = json ? json_dumps(json, flags) : NULL;
    if (!text) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for a JSON text\nremedy: close other programs");
    *out = text;
    return REEL_OK;
}

static void set_u64(json_t *o, const char *key, uint64_t n)
{
    (void)json_object_set_new(o, key, json_integer((json_int_t)n));
}

static json_t *real_or_null(double v)
{
    return isnan(v) ? json_null() : json_real(v);
}

static json_t *clip_json(const reel_plan *p)
{
    return json_pack("{s:I,s:I,s:I,s:f,s:[I,I,I],s:I}", "width", (json_int_t)p->px_w, "height", (json_int_t)p->px_h, "frames",
                     (json_int_t)p->n_frame, "fps", p->fps, "latent", (json_int_t)p->lat_t, (json_int_t)p->lat_h, (json_int_t)p->lat_w,
                     "tokens", (json_int_t)p->n_token);
}

static json_t *solver_json(const reel_plan *p)
{
    json_t *o = json_pack("{s:s,s:i,s:f,s:[f,f],s:b}", "scheduler", p->scheduler, "steps", (int)p->n_step, "flow_shift", p->flow_shift,
                          "guidance", p->guidance[0], p->guidance[1], "is_guided", (int)p->is_guided);
    if (o) (void)json_object_set_new(o, "boundary_ratio", real_or_null(p->boundary_ratio));
    return o;
}

static json_t *attention_json(const reel_plan *p)
{
    json_t *o = json_object();
    for (int32_t u = 0; o && u < REEL_USE_COUNT; u++) {
        (void)json_object_set_new(o, reel_attention_use_name((reel_attention_use)u),
                                  json_pack("{s:s,s:s}", "name", p->attention[u], "reason", p->attention_reason[u]));
    }
    return o;
}

static json_t *phases_json(const reel_plan *p)
{
    json_t *list = json_array();
    for (int32_t i = 0; list && i < p->n_phase; i++) {
        const reel_plan_phase *f = &p->phase[i];
        json_t *o = json_pack("{s:s,s:f}", "name", f->name, "estimate_s", f->estimate_s);
        if (!o) break;
        set_u64(o, "weights_bytes", f->weights_bytes);
        set_u64(o, "arena_bytes", f->arena_bytes);
        set_u64(o, "other_bytes", f->other_bytes);
        set_u64(o, "total_bytes", f->total_bytes);
        (void)json_array_append_new(list, o);
    }
    return list;
}

json_t *reel_plan_json(const reel_plan *p)
{
    char hash[32];
    json_t *o = json_object(), *notes = json_array();
    if (!o || !notes) {
        json_decref(o);
        json_decref(notes);
        return NULL;
    }
    (void)snprintf(hash, sizeof hash, "%016llx", (unsigned long long)p->hash);
    for (int32_t i = 0; i < p->n_note; i++) (void)json_array_append_new(notes, json_string(p->note[i]));
    (void)json_object_set_new(o, "version", json_integer(p->version));
    (void)json_object_set_new(o, "hash", json_string(hash));
    (void)json_object_set_new(o, "device", json_string(p->device));
    (void)json_object_set_new(o, "threads", json_integer(p->n_thread));
    (void)json_object_set_new(o, "ranks", json_integer(p->n_rank));
    (void)json_object_set_new(o, "clip", clip_json(p));
    (void)json_object_set_new(o, "clips", json_pack("{s:i,s:i}", "prompts", (int)p->n_prompt, "per_prompt", (int)p->n_clip));
    (void)json_object_set_new(o, "solver", solver_json(p));
    (void)json_object_set_new(o, "dtype",
                              json_pack("{s:s,s:s,s:s}", "text", reel_dtype_name(p->text_compute), "transformer",
                                        reel_dtype_name(p->dit_compute), "vae", reel_dtype_name(p->vae_compute)));
    (void)json_object_set_new(o, "weights", json_string(p->is_packed ? "packed" : "mapped"));
    (void)json_object_set_new(o, "attention", attention_json(p));
    (void)json_object_set_new(o, "cache", json_string(p->cache));
    (void)json_object_set_new(o, "residency", json_string(p->residency == REEL_RESIDENCY_KEEP ? "keep" : "sequence"));
    (void)json_object_set_new(o, "encoder_threads", json_integer(p->encoder_threads));
    (void)json_object_set_new(o, "phases", phases_json(p));
    set_u64(o, "stored_bytes", p->stored_bytes);
    set_u64(o, "peak_bytes", p->peak_bytes);
    set_u64(o, "available_bytes", p->available_bytes);
    (void)json_object_set_new(o, "notes", notes);
    return o;
}

json_t *reel_build_json(const reel_engine *e)
{
    char fingerprint[32];
    (void)snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)e->fingerprint);
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "version", reel_version(), "compiler", __VERSION__, "device", e->ops.props.kind, "isa",
                     e->ops.props.isa, "library", e->ops.props.library, "model_fingerprint", fingerprint);
}

reel_status reel_clip_settings(const reel_engine *engine, const reel_request *request, const reel_plan *plan, int32_t clip,
                               const char *prompt, uint64_t seed, char **out, reel_error *err)
{
    char text[32], hash[32];
    json_t *settings = NULL;
    REEL_TRY(reel_request_to_json(request, &settings, err));
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    (void)snprintf(hash, sizeof hash, "%016llx", (unsigned long long)plan->hash);
    json_t *p = json_string(prompt);
    if (!p) { /* not UTF-8: the text stage has refused it before */
        json_decref(settings);
        return REEL_FAIL(err, REEL_E_ARGUMENT, "the prompt is not UTF-8\nremedy: give it as UTF-8");
    }
    /* This clip alone: its own seed, one clip, one prompt. */
    (void)json_object_set_new(settings, "seed", json_string(text));
    (void)json_object_set_new(settings, "clips", json_integer(1));
    json_t *o = json_pack("{s:i,s:o,s:s,s:i,s:o,s:s,s:o}", "reel", 1, "build", reel_build_json(engine), "model", engine->model.dir, "clip",
                          (int)clip, "prompt", p, "plan", hash, "settings", settings);
    if (!o) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for the clip's settings\nremedy: close other programs");
    reel_status status = reel_json_text(o, JSON_COMPACT, out, err);
    json_decref(o);
    return status;
}
