/* SPDX-License-Identifier: Apache-2.0
 *
 * base/env.h over getenv. */
#include "base/env.h"

#include <stdlib.h>

const char *reel_env(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : 0;
}
