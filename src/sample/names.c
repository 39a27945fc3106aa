/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of schedulers: ours, diffusers' classes, ComfyUI's and stable-diffusion.cpp's samplers.
 *
 * A name is an alias where it means the same solver on a flow-matching model; the noise levels always follow our grid. ComfyUI's uni_pc and
 * uni_pc_bh2 differ in B(h) and in the order they reach; both mean "UniPC" to their users and map to the bh2 solver of order 2.
 * Known samplers that compute something else are refused with the reason. Case, '_', '-' and blanks do not count. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "sample/sample.h"

typedef struct alias {
    const char *name;
    reel_scheduler scheduler;
} alias;

static const alias aliases[] = {
    {"unipc", REEL_SCHEDULER_UNIPC},
    {"euler", REEL_SCHEDULER_EULER},
    {"dpm++", REEL_SCHEDULER_DPMPP},
    /* diffusers */
    {"UniPCMultistepScheduler", REEL_SCHEDULER_UNIPC},
    {"FlowMatchEulerDiscreteScheduler", REEL_SCHEDULER_EULER},
    {"DPMSolverMultistepScheduler", REEL_SCHEDULER_DPMPP},
    {"dpmsolver++", REEL_SCHEDULER_DPMPP},
    /* ComfyUI */
    {"uni_pc", REEL_SCHEDULER_UNIPC},
    {"uni_pc_bh2", REEL_SCHEDULER_UNIPC},
    {"dpmpp_2m", REEL_SCHEDULER_DPMPP},
    {"dpmpp", REEL_SCHEDULER_DPMPP},
    /* stable-diffusion.cpp ("euler" above) */
    {"dpm++2m", REEL_SCHEDULER_DPMPP},
};

typedef struct stranger {
    const char *name;
    const char *reason;
    reel_scheduler nearest;
} stranger;

#define ANCESTRAL "it adds fresh noise at every step"
#define STOCHASTIC "it solves a stochastic equation with fresh noise at every step"
#define TWO_STAGE "it evaluates the model twice a step"
#define DISTILLED "it is made for distilled few-step models and adds fresh noise at every step"
#define VARIANCE "it steps through another noise schedule than flow matching"
#define MULTISTEP "it is another multistep formula"

static const stranger strangers[] = {
    {"euler_a", ANCESTRAL, REEL_SCHEDULER_EULER},
    {"euler_ancestral", ANCESTRAL, REEL_SCHEDULER_EULER},
    {"euler_cfg_pp", "it changes guidance (CFG++)", REEL_SCHEDULER_EULER},
    {"euler_ancestral_cfg_pp", ANCESTRAL, REEL_SCHEDULER_EULER},
    {"EulerDiscreteScheduler", VARIANCE, REEL_SCHEDULER_EULER},
    {"EulerAncestralDiscreteScheduler", ANCESTRAL, REEL_SCHEDULER_EULER},
    {"heun", TWO_STAGE, REEL_SCHEDULER_DPMPP},
    {"heunpp2", TWO_STAGE, REEL_SCHEDULER_DPMPP},
    {"HeunDiscreteScheduler", TWO_STAGE, REEL_SCHEDULER_DPMPP},
    {"FlowMatchHeunDiscreteScheduler", TWO_STAGE, REEL_SCHEDULER_DPMPP},
    {"dpm2", TWO_STAGE, REEL_SCHEDULER_DPMPP},
    {"dpm_2", TWO_STAGE, REEL_SCHEDULER_DPMPP},
    {"dpm_2_ancestral", ANCESTRAL, REEL_SCHEDULER_DPMPP},
    {"dpm2_a", ANCESTRAL, REEL_SCHEDULER_DPMPP},
    {"lms", MULTISTEP, REEL_SCHEDULER_DPMPP},
    {"dpm_fast", MULTISTEP, REEL_SCHEDULER_DPMPP},
    {"dpm_adaptive", "it chooses its own number of steps", REEL_SCHEDULER_DPMPP},
    {"dpmpp_2s_ancestral", ANCESTRAL, REEL_SCHEDULER_DPMPP},
    {"dpm++2s_a", ANCESTRAL, REEL_SCHEDULER_DPMPP},
    {"dpmpp_sde", STOCHASTIC, REEL_SCHEDULER_DPMPP},
    {"dpmpp_2m_sde", STOCHASTIC, REEL_SCHEDULER_DPMPP},
    {"dpmpp_3m_sde", STOCHASTIC, REEL_SCHEDULER_DPMPP},
    {"dpm++2mv2", "it changes the second-order term of dpm++2m", REEL_SCHEDULER_DPMPP},
    {"DPMSolverSDEScheduler", STOCHASTIC, REEL_SCHEDULER_DPMPP},
    {"DPMSolverSinglestepScheduler", TWO_STAGE, REEL_SCHEDULER_DPMPP},
    {"DEISMultistepScheduler", MULTISTEP, REEL_SCHEDULER_UNIPC},
    {"deis", MULTISTEP, REEL_SCHEDULER_UNIPC},
    {"ipndm", MULTISTEP, REEL_SCHEDULER_UNIPC},
    {"ipndm_v", MULTISTEP, REEL_SCHEDULER_UNIPC},
    {"res_multistep", MULTISTEP, REEL_SCHEDULER_DPMPP},
    {"res_2s", TWO_STAGE, REEL_SCHEDULER_DPMPP},
    {"sa_solver", STOCHASTIC, REEL_SCHEDULER_UNIPC},
    {"er_sde", STOCHASTIC, REEL_SCHEDULER_DPMPP},
    {"gradient_estimation", MULTISTEP, REEL_SCHEDULER_EULER},
    {"ddpm", STOCHASTIC, REEL_SCHEDULER_EULER},
    {"DDPMScheduler", STOCHASTIC, REEL_SCHEDULER_EULER},
    {"ddim", VARIANCE, REEL_SCHEDULER_EULER},
    {"ddim_trailing", VARIANCE, REEL_SCHEDULER_EULER},
    {"DDIMScheduler", VARIANCE, REEL_SCHEDULER_EULER},
    {"lcm", DISTILLED, REEL_SCHEDULER_EULER},
    {"LCMScheduler", DISTILLED, REEL_SCHEDULER_EULER},
    {"FlowMatchLCMScheduler", DISTILLED, REEL_SCHEDULER_EULER},
    {"tcd", DISTILLED, REEL_SCHEDULER_EULER},
    {"TCDScheduler", DISTILLED, REEL_SCHEDULER_EULER},
};

static int skipped(char c)
{
    return c == '_' || c == '-' || c == ' ';
}

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

static int same_name(const char *a, const char *b)
{
    for (;;) {
        while (skipped(*a)) a++;
        while (skipped(*b)) b++;
        if (lower(*a) != lower(*b)) return 0;
        if (*a == '\0') return 1;
        a++;
        b++;
    }
}

static const char *nearest_alias(const char *name)
{
    const char *names[REEL_COUNT(aliases)];
    for (size_t i = 0; i < REEL_COUNT(aliases); i++) names[i] = aliases[i].name;
    return reel_word_nearest(name, names, REEL_COUNT(aliases));
}

reel_status reel_scheduler_from_name(const char *name, reel_scheduler *out, reel_error *err)
{
    for (size_t i = 0; i < REEL_COUNT(aliases); i++) {
        if (!same_name(name, aliases[i].name)) continue;
        *out = aliases[i].scheduler;
        return REEL_OK;
    }
    for (size_t i = 0; i < REEL_COUNT(strangers); i++) {
        if (!same_name(name, strangers[i].name)) continue;
        return REEL_FAIL(err, REEL_E_UNSUPPORTED,
                         "this sampler is not built in: %s\ngiven: %.64s\nallowed: unipc, euler, dpm++\nremedy: the nearest is %s",
                         strangers[i].reason, name, reel_scheduler_name(strangers[i].nearest));
    }
    const char *near_name = nearest_alias(name);
    return REEL_FAIL(err, REEL_E_ARGUMENT,
                     "no scheduler of that name\ngiven: %.64s\nallowed: unipc, euler, dpm++, or their names in diffusers, ComfyUI and "
                     "stable-diffusion.cpp\nremedy: %s%s",
                     name, near_name ? "did you mean " : "use unipc, the default", near_name ? near_name : "");
}
