/* SPDX-License-Identifier: Apache-2.0
 *
 * A walk over JSON text to the scores (text/json_scores.h), without building a tree. */
#include "text/json_scores.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cursor {
    const char *at, *end;
} cursor;

static void skip_white(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r')) c->at++;
}

/* Takes one character after white space. */
static bool take(cursor *c, char want)
{
    skip_white(c);
    if (c->at == c->end || *c->at != want) return false;
    c->at++;
    return true;
}

/* Takes a string; its bytes as they are written, without the quotes. */
static bool take_string(cursor *c, const char **text, size_t *n)
{
    if (!take(c, '"')) return false;
    *text = c->at;
    while (c->at < c->end && *c->at != '"') c->at += *c->at == '\\' && c->end - c->at > 1 ? 2 : 1;
    *n = (size_t)(c->at - *text);
    return take(c, '"');
}

/* Skips any value: to the comma or bracket behind it, over what it holds. */
static void skip_value(cursor *c)
{
    int64_t depth = 0;
    const char *text = NULL;
    size_t n = 0;
    for (skip_white(c); c->at < c->end; skip_white(c)) {
        char byte = *c->at;
        if (depth == 0 && (byte == ',' || byte == '}' || byte == ']')) return;
        if (byte == '"') {
            if (!take_string(c, &text, &n)) return;
            continue;
        }
        if (byte == '{' || byte == '[') depth++;
        if (byte == '}' || byte == ']') depth--;
        c->at++;
    }
}

/* Enters the object at the cursor and stops at the value of a key. */
static bool find_key(cursor *c, const char *key)
{
    if (!take(c, '{')) return false;
    do {
        const char *text = NULL;
        size_t n = 0;
        if (!take_string(c, &text, &n) || !take(c, ':')) return false;
        if (n == strlen(key) && memcmp(text, key, n) == 0) return true;
        skip_value(c);
    } while (take(c, ','));
    return false;
}

static bool is_digit(const cursor *c)
{
    return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

/* Takes digits into a number of 64 bits; from the first that does not fit on they count for nothing. Returns how many it took in and,
 * through *left_out, how many not. */
static int take_digits(cursor *c, uint64_t *value, int *left_out)
{
    int taken = 0;
    *left_out = 0;
    for (; is_digit(c); c->at++) {
        uint64_t digit = (uint64_t)(*c->at - '0');
        if (*left_out > 0 || *value > (UINT64_MAX - digit) / 10) {
            if (*left_out < 1000000) ++*left_out;
        } else {
            *value = *value * 10 + digit;
            taken++;
        }
    }
    return taken;
}

static int take_exponent(cursor *c)
{
    bool is_negative = false;
    int value = 0;
    c->at++;
    if (c->at < c->end && (*c->at == '+' || *c->at == '-')) is_negative = *c->at++ == '-';
    for (; is_digit(c); c->at++)
        if (value < 1000000) value = value * 10 + (*c->at - '0');
    return is_negative ? -value : value;
}

/* 10 to the power of n, 0 to 308, correctly rounded. */
static double power_of_ten(int n)
{
    char text[16];
    double value = 1;
    if (n > 22) {
        (void)snprintf(text, sizeof text, "1e%d", n);
        return strtod(text, NULL);
    }
    while (n-- > 0) value *= 10; /* exact up to here */
    return value;
}

static double scale(double value, int exponent)
{
    while (exponent < -308 && value != 0) {
        value /= 1e308;
        exponent += 308;
    }
    if (value == 0) return 0;
    return exponent >= 0 ? value * power_of_ten(exponent < 308 ? exponent : 308) : value / power_of_ten(-exponent);
}

static bool take_number(cursor *c, double *out)
{
    skip_white(c);
    bool is_negative = c->at < c->end && *c->at == '-';
    if (is_negative) c->at++;
    if (!is_digit(c)) return false;
    uint64_t digits = 0;
    int exponent = 0, left_out = 0;
    (void)take_digits(c, &digits, &exponent);
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        /* Behind digits that did not fit, tokenizers takes decimals in again if these fit; a number so long is no score. */
        exponent -= take_digits(c, &digits, &left_out);
    }
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) exponent += take_exponent(c);
    double value = scale((double)digits, exponent);
    *out = is_negative ? -value : value;
    return true;
}

bool reel_json_scores(const char *text, size_t n, double *score, size_t n_score)
{
    cursor c = {.at = text, .end = text + n};
    const char *piece = NULL;
    size_t n_piece = 0, count = 0;
    if (!find_key(&c, "model") || !find_key(&c, "vocab") || !take(&c, '[')) return false;
    do {
        if (count == n_score || !take(&c, '[') || !take_string(&c, &piece, &n_piece) || !take(&c, ',') ||
            !take_number(&c, &score[count++]) || !take(&c, ']'))
            return false;
    } while (take(&c, ','));
    return count == n_score && take(&c, ']');
}
