/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused (MAY) operations built from basic ones, for devices that have no fused form. Private to src/ops. */
#ifndef REEL_OPS_COMPOSE_H
#define REEL_OPS_COMPOSE_H

#include "ops/ops.h"

enum { REEL_COMPOSE_SCRATCH_BYTES = 64 * 1024 };

/* Runs the operation of that name through others of the same table; REEL_E_UNSUPPORTED when no composition is known. */
reel_status reel_compose_run(const reel_ops *ops, const char *name, const void *args, reel_error *err);

#endif
