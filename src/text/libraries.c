/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions of the libraries behind text: ICU and SentencePiece. */
#include <stdio.h>

#include "text/spm.h"
#include "text/text.h"

#ifdef REEL_WITH_ICU
#include <unicode/uversion.h>
#define ICU_TEXT "ICU " U_ICU_VERSION ", "
#else
#define ICU_TEXT "no ICU, "
#endif

const char *reel_text_libraries(void)
{
    return ICU_TEXT "SentencePiece";
}
