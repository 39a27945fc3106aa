/* SPDX-License-Identifier: Apache-2.0
 *
 * Which neighbours do not occur in ordinary text: classes of the few hundred characters that wrong decoding brings forth, and the
 * sequences of classes that are unlikely. The classes and sequences are those that ftfy 6.3 goes by, so that both judge alike. */
#include "text/mojibake_class.h"

enum {
    COMMON = 1 << 0,
    C1 = 1 << 1,
    BAD = 1 << 2,
    LAW = 1 << 3,
    MONEY = 1 << 4,
    OPENER = 1 << 5,
    CLOSER = 1 << 6,
    NUMERIC = 1 << 7,
    FACE = 1 << 8,
    UPPER = 1 << 9, /* accented capitals */
    LOWER = 1 << 10,
    UPPER_PLAIN = 1 << 11, /* Greek and Cyrillic capitals */
    LOWER_PLAIN = 1 << 12,
    BOX = 1 << 13,
    ASCII_LOWER = 1 << 14,
    ASCII_LETTER = 1 << 15,
    NOT_ASCII_LETTER = 1 << 16,
    SPACE = 1 << 17, /* any white space */
    BLANK = 1 << 18, /* U+0020 */
    WORD = 1 << 19,
    NOT_LINE = 1 << 20, /* anything but a line break */
};

/* clang-format off */
static const struct { uint16_t first, last, classes; } table[] = {
    {0x80,0x9f,C1}, {0xa0,0xa0,COMMON}, {0xa1,0xa1,OPENER}, {0xa2,0xa3,MONEY}, {0xa4,0xa4,BAD}, {0xa5,0xa5,MONEY}, {0xa6,0xa6,BAD},
    {0xa7,0xa7,LAW}, {0xa8,0xa8,BAD}, {0xa9,0xa9,OPENER}, {0xaa,0xaa,BAD}, {0xab,0xab,OPENER}, {0xac,0xac,BAD}, {0xad,0xad,COMMON},
    {0xae,0xae,CLOSER}, {0xaf,0xaf,BAD}, {0xb0,0xb0,FACE}, {0xb1,0xb3,NUMERIC}, {0xb4,0xb4,COMMON}, {0xb5,0xb5,NUMERIC}, {0xb6,0xb6,LAW},
    {0xb7,0xb7,COMMON}, {0xb8,0xb8,BAD}, {0xb9,0xb9,NUMERIC}, {0xba,0xba,BAD}, {0xbb,0xbb,CLOSER}, {0xbc,0xbe,NUMERIC}, {0xbf,0xbf,OPENER},
    {0xc0,0xd1,UPPER}, {0xd2,0xd6,FACE}, {0xd7,0xd7,NUMERIC}, {0xd8,0xd8,UPPER}, {0xd9,0xdb,FACE}, {0xdc,0xdc,FACE | UPPER},
    {0xdd,0xdd,UPPER}, {0xde,0xde,UPPER_PLAIN}, {0xdf,0xf1,LOWER}, {0xf2,0xf6,FACE}, {0xf7,0xf7,NUMERIC}, {0xf8,0xfb,FACE},
    {0xfc,0xfc,FACE | LOWER}, {0x100,0x100,UPPER}, {0x101,0x101,LOWER}, {0x102,0x102,UPPER}, {0x103,0x103,LOWER}, {0x104,0x104,UPPER},
    {0x105,0x105,LOWER}, {0x106,0x106,UPPER}, {0x107,0x107,LOWER}, {0x10c,0x10c,UPPER}, {0x10d,0x10d,LOWER}, {0x10e,0x10e,UPPER},
    {0x10f,0x10f,LOWER}, {0x110,0x110,UPPER}, {0x111,0x111,LOWER}, {0x112,0x112,UPPER}, {0x113,0x113,LOWER}, {0x116,0x116,UPPER},
    {0x117,0x117,LOWER}, {0x118,0x118,UPPER}, {0x119,0x119,LOWER}, {0x11a,0x11a,UPPER}, {0x11b,0x11b,LOWER}, {0x11e,0x11e,UPPER},
    {0x11f,0x11f,LOWER}, {0x122,0x122,UPPER}, {0x123,0x123,LOWER}, {0x12a,0x12a,UPPER}, {0x12b,0x12b,LOWER}, {0x12f,0x12f,LOWER},
    {0x130,0x130,UPPER}, {0x136,0x136,UPPER}, {0x137,0x137,LOWER}, {0x139,0x139,UPPER}, {0x13a,0x13a,LOWER}, {0x13b,0x13b,UPPER},
    {0x13c,0x13c,LOWER}, {0x13d,0x13d,UPPER}, {0x13e,0x13e,LOWER}, {0x141,0x141,UPPER}, {0x142,0x142,LOWER}, {0x143,0x143,UPPER},
    {0x145,0x145,UPPER}, {0x147,0x147,UPPER}, {0x14c,0x14c,FACE}, {0x150,0x150,FACE}, {0x152,0x152,UPPER}, {0x153,0x153,LOWER},
    {0x155,0x155,LOWER}, {0x158,0x158,UPPER}, {0x15a,0x15a,UPPER}, {0x15b,0x15b,LOWER}, {0x15e,0x15e,UPPER}, {0x15f,0x15f,LOWER},
    {0x160,0x160,UPPER}, {0x161,0x161,LOWER}, {0x162,0x162,UPPER}, {0x164,0x164,UPPER}, {0x165,0x165,LOWER}, {0x16a,0x16a,FACE},
    {0x16e,0x16e,UPPER}, {0x170,0x170,UPPER}, {0x172,0x172,FACE}, {0x178,0x179,UPPER}, {0x17a,0x17a,LOWER}, {0x17b,0x17b,UPPER},
    {0x17c,0x17c,LOWER}, {0x17d,0x17d,UPPER}, {0x17e,0x17e,LOWER}, {0x192,0x192,BAD}, {0x2c6,0x2c7,BAD}, {0x2d8,0x2d8,BAD},
    {0x2db,0x2dc,BAD}, {0x2dd,0x2dd,CLOSER}, {0x384,0x385,OPENER}, {0x386,0x386,UPPER_PLAIN}, {0x388,0x38a,UPPER_PLAIN},
    {0x38c,0x38c,UPPER_PLAIN}, {0x38e,0x38f,UPPER_PLAIN}, {0x391,0x3ab,UPPER_PLAIN}, {0x3ac,0x3c9,LOWER_PLAIN}, {0x401,0x42f,UPPER_PLAIN},
    {0x430,0x45f,LOWER_PLAIN}, {0x490,0x490,UPPER}, {0x491,0x491,LOWER}, {0x2013,0x2015,COMMON}, {0x2018,0x2018,OPENER},
    {0x2019,0x2019,COMMON}, {0x201a,0x201a,OPENER}, {0x201c,0x201c,OPENER}, {0x201d,0x201d,CLOSER}, {0x201e,0x201e,OPENER},
    {0x2020,0x2021,BAD}, {0x2022,0x2022,OPENER}, {0x2026,0x2026,COMMON}, {0x2030,0x2030,BAD}, {0x2039,0x2039,OPENER},
    {0x203a,0x203a,CLOSER}, {0x2044,0x2044,NUMERIC}, {0x20a7,0x20a7,MONEY}, {0x20ac,0x20ac,MONEY}, {0x2116,0x2116,NUMERIC},
    {0x2122,0x2122,CLOSER}, {0x2202,0x2202,NUMERIC}, {0x2206,0x2206,NUMERIC}, {0x220f,0x220f,NUMERIC}, {0x2211,0x2211,NUMERIC},
    {0x221a,0x221a,NUMERIC}, {0x221e,0x221e,NUMERIC}, {0x2229,0x2229,NUMERIC}, {0x222b,0x222b,NUMERIC}, {0x2248,0x2248,NUMERIC},
    {0x2260,0x2261,NUMERIC}, {0x2264,0x2265,NUMERIC}, {0x2310,0x2310,BAD}, {0x2502,0x2502,BOX}, {0x250c,0x250c,BOX}, {0x2510,0x2510,BOX},
    {0x2518,0x2518,BOX}, {0x251c,0x251c,BOX}, {0x2524,0x2524,BOX}, {0x252c,0x252c,BOX}, {0x253c,0x253c,BOX}, {0x2550,0x256c,BOX},
    {0x2580,0x2580,BOX}, {0x2584,0x2584,BOX}, {0x2588,0x2588,BOX}, {0x258c,0x258c,BOX}, {0x2590,0x2593,BOX}, {0x25ca,0x25ca,BAD},
    {0xf8ff,0xf8ff,OPENER}, {0xfb01,0xfb02,LOWER}, {0xfffd,0xfffd,BAD},
};
/* clang-format on */

static uint32_t classes_of(uint32_t c)
{
    uint32_t found = 0;
    size_t low = 0, high = REEL_COUNT(table);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (c < table[mid].first) {
            high = mid;
        } else if (c > table[mid].last) {
            low = mid + 1;
        } else {
            found = table[mid].classes;
            break;
        }
    }
    bool is_lower = c >= 'a' && c <= 'z', is_letter = is_lower || (c >= 'A' && c <= 'Z');
    found |= (is_lower ? (uint32_t)ASCII_LOWER : 0) | (is_letter ? (uint32_t)ASCII_LETTER : (uint32_t)NOT_ASCII_LETTER);
    found |= (reel_char_is_space(c) ? (uint32_t)SPACE : 0) | (c == ' ' ? (uint32_t)BLANK : 0) | (c != '\n' ? (uint32_t)NOT_LINE : 0);
    return found | (reel_char_is_alnum(c) ? (uint32_t)WORD : 0);
}

/* One place of a sequence: a character of any of the classes, or one of those spelt out. */
typedef struct place {
    uint32_t classes;
    const char *spelt; /* UTF-8, may be NULL */
} place;

typedef struct sequence {
    place at[6]; /* ends at the first empty place */
    bool only_at_start;
} sequence;

#define ACCENTED (LOWER | UPPER)
#define SIGNS (BOX | OPENER | CLOSER | MONEY | NUMERIC | LAW)
#define ARABIC                                                  \
    {.spelt = "ØÙ"},                                            \
    {                                                           \
        COMMON | MONEY | BAD | NUMERIC | OPENER, "ŸŠ®°µ»" \
    }
#define CYRILLIC            \
    {                       \
        .spelt = "ВГРС" \
    }
#define GREEK               \
    {                       \
        .spelt = "ΒΓΞΟ" \
    }

/* clang-format off */
static const sequence sequences[] = {
    {{{C1, NULL}}, false},
    {{{BAD | ACCENTED | SIGNS, NULL}, {BAD, NULL}}, false},
    {{{ASCII_LETTER, NULL}, {LOWER_PLAIN | UPPER_PLAIN, NULL}, {BAD, NULL}}, false},
    {{{BAD, NULL}, {ACCENTED | SIGNS, NULL}}, false},
    {{{LOWER | LOWER_PLAIN | BOX | CLOSER | MONEY | NUMERIC, NULL}, {UPPER, NULL}}, false},
    {{{BOX | CLOSER | MONEY | NUMERIC, NULL}, {LOWER, NULL}}, false},
    {{{LOWER | BOX | CLOSER, NULL}, {MONEY, NULL}}, false},
    {{{SPACE, NULL}, {UPPER, NULL}, {MONEY, NULL}}, false},
    {{{UPPER | BOX, NULL}, {NUMERIC | LAW, NULL}}, false},
    {{{ACCENTED | BOX | MONEY | CLOSER, NULL}, {OPENER, NULL}, {NUMERIC, NULL}}, false},
    {{{ACCENTED | MONEY | NUMERIC | BOX | LAW, NULL}, {CLOSER, NULL}, {OPENER, NULL}}, false},
    {{{MONEY | NUMERIC | BOX, NULL}, {OPENER, NULL}}, false},
    {{{ASCII_LOWER, NULL}, {UPPER, NULL}, {OPENER | MONEY, NULL}}, false},
    {{{BOX, NULL}, {FACE, NULL}}, false},
    {{{ACCENTED | MONEY | NUMERIC | OPENER | CLOSER | LAW, NULL}, {BOX, NULL}}, false},
    {{{BOX, NULL}, {CLOSER, NULL}}, false},
    {{{ACCENTED, NULL}, {OPENER | CLOSER, NULL}, {WORD, NULL}}, false},
    {{{0, "Œœ"}, {NOT_ASCII_LETTER, NULL}}, false},
    {{{UPPER, NULL}, {0, "°"}}, false},
    {{{0, "ÂÃÎÐ"}, {OPENER | CLOSER, "€œŠš¢£Ÿž\u00A0\u00AD®©°·»–—´"}}, false},
    {{{0, "×"}, {0, "²³"}}, false},
    {{ARABIC, ARABIC}, false},
    {{{0, "à"}, {0, "²µ¹¼½¾"}}, false},
    {{{0, "√"}, {0, "±∂†≠®™´≤≥¥µø"}}, false}, /* Mac OS Roman from here */
    {{{0, "≈"}, {0, "°¢"}}, false},
    {{{0, "‚"}, {0, "Ä"}, {0, "ìîïòôúùû†°¢π"}}, false},
    {{{0, "‚"}, {0, "âó"}, {0, "àä°ê"}}, false},
    {{{0, "в"}, {0, "Ђ"}}, false}, /* Windows-1251 */
    {{CYRILLIC, {C1 | BAD | OPENER | CLOSER | MONEY, "°µ"}, CYRILLIC}, false},
    {{{0, "Г"}, {0, "ў"}, {0, "В"}, {0, "Ђ"}, {0, "В"}, {NOT_LINE, NULL}}, false}, /* and a letter or blank behind, see below */
    {{{0, "Ã"}, {0, "\u00A0¡"}}, false},
    {{{ASCII_LOWER, NULL}, {0, "ÃÂ"}, {BLANK, NULL}}, false},
    {{{ASCII_LOWER, NULL}, {SPACE, NULL}, {0, "ÃÂ"}, {BLANK, NULL}}, false},
    {{{0, "ÃÂ"}, {BLANK, NULL}}, true},
    {{{ASCII_LOWER | CLOSER, ".,?!"}, {0, "Â"}, {BLANK | OPENER | CLOSER, NULL}}, false},
    {{{0, "β"}, {0, "€"}, {0, "™\u00A0Ά\u00AD®°"}}, false}, /* Windows-1253 */
    {{GREEK, {C1 | BAD | OPENER | CLOSER | MONEY, "°"}, GREEK}, false},
    {{{0, "ā"}, {0, "€"}}, false}, /* Windows-1257 */
};
/* clang-format on */

static bool is_spelt(const char *spelt, uint32_t c)
{
    size_t n = 0;
    while (spelt && spelt[n]) n++;
    for (size_t at = 0; at < n;) {
        uint32_t one = 0;
        if (!reel_utf8_next(spelt, n, &at, &one)) return false;
        if (one == c) return true;
    }
    return false;
}

static bool fits(const sequence *s, const uint32_t *text, size_t n, size_t from)
{
    if (s->only_at_start && from > 0) return false;
    size_t length = 0;
    for (; length < REEL_COUNT(s->at) && (s->at[length].classes || s->at[length].spelt); length++) {
        if (from + length >= n) return false;
        const place *p = &s->at[length];
        if (!(classes_of(text[from + length]) & p->classes) && !is_spelt(p->spelt, text[from + length])) return false;
    }
    if (length < REEL_COUNT(s->at)) return true;
    /* The one sequence of six places wants a Latin letter or a blank in a seventh. */
    return from + length < n && (classes_of(text[from + length]) & (ASCII_LETTER | BLANK)) != 0;
}

bool reel_mojibake_is_unlikely(const uint32_t *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        /* Every sequence has a character beyond ASCII in its first three places: pure ASCII neighbourhoods are left at once. */
        bool is_ascii = true;
        for (size_t j = i; j < n && j < i + 3; j++) is_ascii = is_ascii && text[j] < 0x80;
        for (size_t k = 0; !is_ascii && k < REEL_COUNT(sequences); k++)
            if (fits(&sequences[k], text, n, i)) return true;
    }
    return false;
}
