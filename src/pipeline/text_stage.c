/* SPDX-License-Identifier: Apache-2.0
 *
 * Prompt to text states: cleaning, tokens, encoder, with warnings in the user's words and the engine's cache in front of the encoder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"

/* Wan's customary negative prompt (Wan-Video/Wan2.2, shared configuration). */
static const char wan_negative[] =
    "色调艳丽，过曝，静态，细节模糊不清，字幕，风格，作品，画作，画面，静止，整体发灰，最差质量，低质量，JPEG压缩残留，丑陋的，残缺的，"
    "多余的手指，画得不好的手部，画得不好的脸部，畸形的，毁容的，形态畸形的肢体，手指融合，静止不动的画面，杂乱的背景，三条腿，背景人很多，"
    "倒着走";

reel_status reel_negative_preset(const char *text, const char **out, reel_error *err)
{
    if (!text || strcmp(text, "@none") == 0) {
        *out = "";
    } else if (strcmp(text, "@wan") == 0) {
        *out = wan_negative;
    } else if (text[0] == '@') {
        return REEL_FAIL(
            err, REEL_E_ARGUMENT,
            "unknown preset for the negative prompt\ngiven: --negative-prompt %.60s\nallowed: @wan, @none, or a text that does "
            "not begin with @\nremedy: correct --negative-prompt",
            text);
    } else {
        *out = text;
    }
    return REEL_OK;
}

static void warn(const reel_pipeline *p, const char *text)
{
    if (p->hooks->warn) p->hooks->warn(p->hooks->user, text);
}

/* Cleans and tokenizes; says what was cut or looks damaged. */
static reel_status to_tokens(const reel_pipeline *p, const char *prompt, const char *what, reel_tokens *out, reel_error *err)
{
    reel_buf clean = {.max = (size_t)8 << 20};
    bool is_suspect = false;
    char text[640];
    reel_status status = REEL_OK;
    if (strlen(prompt) > REEL_PROMPT_BYTES_MAX) {
        return REEL_FAIL(err, REEL_E_ARGUMENT,
                         "the %s is too long\ngiven: %zu bytes\nallowed: %d bytes\nremedy: shorten it; the model reads 512 tokens", what,
                         strlen(prompt), REEL_PROMPT_BYTES_MAX);
    }
    REEL_TRY_GOTO(reel_prompt_clean(prompt, strlen(prompt), &clean, &is_suspect, err), cleanup);
    if (is_suspect) {
        (void)snprintf(text, sizeof text, "the %s looks like text in a wrong encoding; it is used as given: \"%.200s\"", what, prompt);
        warn(p, text);
    }
    REEL_TRY_GOTO(reel_tokenize(p->tokenizer, clean.data ? clean.data : "", clean.n, p->plan->max_token, out, err), cleanup);
    if (out->n_cut > 0) {
        (void)snprintf(text, sizeof text, "the %s is longer than %d tokens; %d tokens were cut, beginning with \"%s\"", what,
                       (int)p->plan->max_token, (int)out->n_cut, out->cut_text);
        warn(p, text);
    }
cleanup:
    reel_buf_deinit(&clean);
    return status;
}

static reel_status check_finite(const reel_pipeline *p, reel_arena *arena, const reel_tensor *states, reel_error *err)
{
    const reel_ops *ops = p->components->ops;
    reel_tensor count;
    int32_t n = 0;
    REEL_TRY(reel_arena_take(arena, REEL_DTYPE_I32, 1, 0, 0, 0, &count, err));
    REEL_TRY(REEL_OP(ops, count_nonfinite, err, .x = *states, .count = count));
    REEL_TRY(reel_ops_download(ops, &n, &count, err));
    if (n == 0) return REEL_OK;
    return REEL_FAIL(err, REEL_E_NUMERIC,
                     "the text encoder gave values that are not finite\ngiven: %d of %lld values\nremedy: try --dtype f32; check the text "
                     "encoder's files with `reel inspect`",
                     (int)n, (long long)reel_tensor_count(states));
}

size_t reel_stage_text_bytes(const reel_model *model, const reel_plan *plan, size_t alignment)
{
    return reel_umt5_scratch_bytes(&model->text, plan->text_compute, plan->max_token, alignment) +
           reel_arena_need(alignment, plan->text_compute, (int64_t)plan->max_token * model->text.d_model) +
           reel_arena_need(alignment, REEL_DTYPE_I32, 1);
}

/* Runs the encoder and leaves the states in host memory. */
static reel_status encode(const reel_pipeline *p, const reel_tokens *tokens, void *host, reel_error *err)
{
    reel_components *c = p->components;
    const reel_plan *plan = p->plan;
    REEL_TRY(reel_components_ensure_text(c, plan, err));
    reel_arena arena = {0};
    reel_tensor states;
    reel_status status = REEL_OK;
    const char *attention = plan->attention[REEL_USE_TEXT][0] ? plan->attention[REEL_USE_TEXT] : NULL;
    REEL_TRY(reel_arena_init(&arena, c->ops, "text", reel_stage_text_bytes(c->model, plan, c->ops->props.alignment_bytes), err));
    REEL_TRY_GOTO(reel_arena_take(&arena, plan->text_compute, tokens->n, c->model->text.d_model, 0, 0, &states, err), cleanup);
    REEL_TRY_GOTO(reel_umt5_encode(c->umt5, tokens, &arena, attention, &states, err), cleanup);
    REEL_TRY_GOTO(check_finite(p, &arena, &states, err), cleanup);
    REEL_TRY_GOTO(reel_ops_download(c->ops, host, &states, err), cleanup);
cleanup:
    reel_arena_deinit(&arena);
    return status;
}

reel_status reel_stage_text(const reel_pipeline *p, const char *prompt, const char *what, reel_states *out, reel_error *err)
{
    reel_states s = {0};
    REEL_TRY(to_tokens(p, prompt, what, &s.tokens, err));
    const reel_dtype dtype = p->plan->text_compute;
    const size_t bytes = (size_t)s.tokens.n * (size_t)p->components->model->text.d_model * reel_dtype_bytes(dtype);
    s.host = malloc(bytes);
    if (!s.host) return REEL_FAIL(err, REEL_E_MEMORY, "out of memory for text states\nremedy: close other programs");
    const void *known = reel_embed_cache_get(p->cache, &s.tokens, dtype);
    reel_status status = REEL_OK;
    if (known) {
        memcpy(s.host, known, bytes);
    } else {
        REEL_TRY_GOTO(encode(p, &s.tokens, s.host, err), cleanup);
        REEL_TRY_GOTO(reel_embed_cache_put(p->cache, &s.tokens, dtype, s.host, bytes, err), cleanup);
    }
    *out = s;
    return REEL_OK;
cleanup:
    reel_states_deinit(&s);
    return status;
}

void reel_states_deinit(reel_states *states)
{
    free(states->host);
    *states = (reel_states){0};
}
