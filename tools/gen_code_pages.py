#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes src/text/code_pages.c: what the bytes 0x80 to 0xFF mean in the single-byte encodings with which UTF-8 is commonly confused.
#
#     python3 tools/gen_code_pages.py > src/text/code_pages.c
#
# A byte that a Windows page leaves open stands for the control character of the same number, as in the HTML standard.
PAGES = ["latin-1", "cp1252", "cp1251", "cp1250", "cp1253", "cp1254", "cp1257", "iso-8859-2", "mac-roman", "cp437"]


def main():
    print("""/* SPDX-License-Identifier: Apache-2.0
 *
 * Single-byte code pages, bytes 0x80 to 0xFF. Made by tools/gen_code_pages.py; do not edit. */
#include "text/mojibake.h"

/* clang-format off */
const uint16_t reel_code_pages[REEL_CODE_PAGES][128] = {""")
    for page in PAGES:
        print("    /* %s */ {" % page)
        cells = []
        for byte in range(128, 256):
            try:
                cells.append(ord(bytes([byte]).decode(page)))
            except UnicodeDecodeError:
                cells.append(byte)
        for i in range(0, 128, 16):
            print("        " + ",".join("%#x" % c for c in cells[i:i + 16]) + ",")
        print("    },")
    print("};\n/* clang-format on */")


main()
