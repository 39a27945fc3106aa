/* SPDX-License-Identifier: Apache-2.0
 *
 * SentencePiece behind a C face. No exception passes. Inner header of src/text. */
#ifndef REEL_TEXT_SPM_H
#define REEL_TEXT_SPM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct reel_spm reel_spm;

enum { REEL_SPM_REASON_MAX = 256 };

/* Opens a model file's bytes, which reel_spm_file_read has passed. NULL: reason says why. */
reel_spm *reel_spm_open(const char *bytes, size_t n, char reason[REEL_SPM_REASON_MAX]);
void reel_spm_close(reel_spm *spm);
/* The id of a piece, or -1 when the model has none such. */
int32_t reel_spm_id(const reel_spm *spm, const char *piece);

typedef int reel_spm_id_fn(void *user, int32_t id);
/* Ids of UTF-8 text in order. 0: all went well; otherwise what the callback returned, or -1 with a reason. */
int reel_spm_encode(const reel_spm *spm, const char *text, size_t n, reel_spm_id_fn *each, void *user, char reason[REEL_SPM_REASON_MAX]);

#ifdef __cplusplus
}
#endif

#endif
