#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes src/text/html_entities.c from Python's table of HTML 5 entities (html.entities.html5, itself the list of the HTML standard).
#
#     python3 tools/gen_html_entities.py > src/text/html_entities.c
#
# A row is {name without "&", up to three characters (0 after the last), kind}. kind 0: a name as html5 has it, with or without semicolon;
# kind 1: the name in capitals that only the first cleaning step takes (a lower-case name with semicolon whose capitals mean nothing to
# html.unescape), with the characters in capitals too.
import html
import html.entities


def rows():
    table = {}
    for name, text in html.entities.html5.items():
        table[name] = (text, 0)
    for name, text in html.entities.html5.items():
        if name.endswith(";") and name == name.lower():
            capitals = name.upper()
            if html.unescape("&" + capitals) == "&" + capitals:
                table[capitals] = (text.upper(), 1)
    return sorted((name.encode("ascii"), text, kind) for name, (text, kind) in table.items())


def main():
    out = rows()
    print("""/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTML 5 entities, sorted by name in byte order. Made by tools/gen_html_entities.py; do not edit. */
#include "text/html.h"

/* clang-format off */
const reel_html_entity reel_html_entities[] = {""")
    line = "   "
    for name, text, kind in out:
        points = [ord(c) for c in text]
        assert 1 <= len(points) <= 3, name
        cell = ' {"%s",{%s},%d},' % (name.decode(), ",".join("%#x" % c for c in points if c), kind)
        if len(line) + len(cell) > 139:
            print(line)
            line = "   "
        line += cell
    print(line)
    print("""};
/* clang-format on */
const size_t reel_html_entity_count = sizeof(reel_html_entities) / sizeof(reel_html_entities[0]);""")


main()
