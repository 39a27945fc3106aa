/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking through a spiece.model (a protocol buffer) before anything else touches it.
 *
 * SentencePiece trusts the tables of its file; here they are checked: the wire format, every piece, the map of characters. What passes
 * cannot lead it outside its memory. Inner header of src/text. */
#ifndef REEL_TEXT_SPM_FILE_H
#define REEL_TEXT_SPM_FILE_H

#include "text/vocab.h"

/* Appends the pieces in order of their ids to *vocab (not indexed). path names the file in messages. */
reel_status reel_spm_file_read(const uint8_t *bytes, size_t n, const char *path, reel_vocab *vocab, reel_error *err);

#endif
