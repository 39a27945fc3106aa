/* SPDX-License-Identifier: Apache-2.0
 *
 * The only place that reads environment variables. Options are not environment variables; see docs/options.md. */
#ifndef REEL_BASE_ENV_H
#define REEL_BASE_ENV_H

/* The variable's value, or NULL when it is not set or empty. */
const char *reel_env(const char *name);

#endif
