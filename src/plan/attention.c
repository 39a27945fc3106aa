/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses attention: for each use the first implementation of the device's list that takes the shape, or the one that the user forced.
 * Every choice and every refusal keeps its reason. */
#include <stdio.h>
#include <string.h>

#include "plan/plan.h"

const char *reel_attention_use_name(reel_attention_use use)
{
    static const char *const name[REEL_USE_COUNT] = {"text encoder", "self attention", "cross attention", "vae"};
    return (int)use >= 0 && use < REEL_USE_COUNT ? name[use] : "unknown";
}

static reel_status unknown_name(const reel_plan_offers *o, const char *forced, reel_error *err)
{
    char names[REEL_OFFER_MAX * (REEL_NAME_MAX + 2)] = "";
    size_t n = 0;
    for (int32_t i = 0; i < o->n_offer; i++) n += (size_t)snprintf(names + n, sizeof names - n, ", %s", o->offer[0][i].name);
    return REEL_FAIL(err, REEL_E_ARGUMENT,
                     "unknown attention implementation\ngiven: --attention %s\nallowed: auto%s\nremedy: correct --attention", forced,
                     names);
}

static reel_status pick(reel_plan *plan, const reel_plan_offers *offers, reel_attention_use use, const char *forced, reel_error *err)
{
    for (int32_t i = 0; i < offers->n_offer; i++) {
        const reel_attention_offer *o = &offers->offer[use][i];
        if (forced && strcmp(o->name, forced) != 0) continue;
        if (!o->accepts && forced) {
            return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                             "the attention that was asked for cannot serve the %s\ngiven: --attention %s: %s\nallowed: auto, or another "
                             "that `reel devices` "
                             "lists\nremedy: leave out --attention",
                             reel_attention_use_name(use), forced, o->reason);
        }
        if (!o->accepts) continue;
        (void)snprintf(plan->attention[use], REEL_NAME_MAX, "%s", o->name);
        (void)snprintf(plan->attention_reason[use], REEL_REASON_MAX, "%s",
                       forced   ? "asked for"
                       : i == 0 ? "the first of the device's list"
                                : "the first of the device's list that takes this shape");
        return REEL_OK;
    }
    if (forced) return unknown_name(offers, forced, err);
    return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                     "the device has no attention for the %s\ngiven: device %s\nremedy: use another device or dtype",
                     reel_attention_use_name(use), plan->device);
}

reel_status reel_plan_attention(reel_plan *plan, const reel_plan_offers *offers, const char *forced, reel_error *err)
{
    if (forced && (forced[0] == '\0' || strcmp(forced, "auto") == 0)) forced = NULL;
    for (int32_t use = 0; use < REEL_USE_COUNT; use++) REEL_TRY(pick(plan, offers, (reel_attention_use)use, forced, err));
    return REEL_OK;
}
