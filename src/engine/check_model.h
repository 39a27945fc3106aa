/* SPDX-License-Identifier: Apache-2.0
 *
 * What the configs demand against what the files hold: every tensor there, of the right shape, of a dtype that can be computed with. */
#ifndef REEL_ENGINE_CHECK_MODEL_H
#define REEL_ENGINE_CHECK_MODEL_H

#include "model/model.h"
#include "weights/weights.h"

/* Fails on the first problem and says how many more there are. */
reel_status reel_check_component(const reel_model *model, reel_component component, const reel_store *store, reel_error *err);
/* Reports every problem, at most 20 and then their number. */
void reel_check_component_all(const reel_model *model, reel_component component, const reel_store *store,
                              void (*fn)(void *user, const char *text), void *user);

#endif
