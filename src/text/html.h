/* SPDX-License-Identifier: Apache-2.0
 *
 * HTML character references, in the two readings that prompt cleaning uses one after the other.
 *
 * The careful reading (ftfy's) takes only what ends in a semicolon and can hardly be meant otherwise; the full one (Python's
 * html.unescape) is the HTML standard's, with names cut short and without semicolon. Inner header of src/text. */
#ifndef REEL_TEXT_HTML_H
#define REEL_TEXT_HTML_H

#include "text/unicode.h"

typedef struct reel_html_entity {
    const char *name; /* without "&" */
    uint32_t to[3]; /* zeros after the last */
    int kind; /* 0: of the standard; 1: in capitals, for the careful reading only */
} reel_html_entity;

extern const reel_html_entity reel_html_entities[];
extern const size_t reel_html_entity_count;

/* Both append the text with its references replaced to *out. */
reel_status reel_html_careful(const uint32_t *text, size_t n, reel_u32 *out, reel_error *err);
reel_status reel_html_full(const uint32_t *text, size_t n, reel_u32 *out, reel_error *err);

#endif
