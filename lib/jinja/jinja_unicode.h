#ifndef JINJA_JINJA_UNICODE_H
#define JINJA_JINJA_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What Python's str methods know of a code point, in the Unicode version of
 * the Python that upstream runs on.  The tables are generated, see
 * make_unicode.py.  Text is UTF-8 in which lone surrogates may stand, each as
 * its own three bytes: templates can make them, and no UTF-8 file holds them.
 */
extern const char juni_version[];

enum juni_flag {
    JUNI_ALPHA = 1 << 0,
    JUNI_SPACE = 1 << 1,
    JUNI_PRINTABLE = 1 << 2,
    JUNI_ID_START = 1 << 3,
    JUNI_ID_CONTINUE = 1 << 4,
    JUNI_LOWER = 1 << 5,
    JUNI_UPPER = 1 << 6,
    JUNI_TITLE = 1 << 7,
    JUNI_CASE_IGNORABLE = 1 << 8,
    JUNI_DECIMAL = 1 << 9,
    JUNI_DIGIT = 1 << 10,
    JUNI_ALNUM = 1 << 11,
    JUNI_NAME = 1 << 12, /* of a template's names, by jinja2's pattern */
    JUNI_CASED = JUNI_LOWER | JUNI_UPPER | JUNI_TITLE,
};

struct juni_record {
    uint16_t flags;
    uint8_t lengths; /* two bits each: upper, lower, title; 0 is a delta */
    uint8_t digit;
    int32_t upper, lower, title; /* a delta, or a place in juni_specials */
};
extern const struct juni_record juni_records[];
extern const uint16_t juni_first[], juni_second[];
extern const int32_t juni_specials[];
extern const int juni_shift;

const struct juni_record *juni_get(uint32_t cp);
bool juni_is(uint32_t cp, unsigned flags); /* any of them */

/* The mapping as 1 to 3 code points; returns how many. */
enum juni_case { JUNI_TO_UPPER, JUNI_TO_LOWER, JUNI_TO_TITLE };
size_t juni_map(uint32_t cp, enum juni_case to, uint32_t out[3]);

/* The code point at data[*at]; *at moves behind it.  The text is sound. */
uint32_t juni_next(const char *data, size_t *at);
/* The one before data[*at]; *at moves to its start. */
uint32_t juni_before(const char *data, size_t *at);
size_t juni_count(const char *data, size_t len);

/* UTF-8 as Python decodes it: no overlong forms, surrogates or beyond. */
bool juni_is_utf8(const char *data, size_t len, size_t *bad);

struct juni_name {
    const char *name;
    uint32_t cp;
};
extern const struct juni_name juni_names[]; /* sorted */
extern const size_t juni_name_count;

/* The code point with this name (as in \N{...}); -1 when we know none. */
int32_t juni_named(const char *name, size_t len);
#endif
