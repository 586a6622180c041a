#ifndef SIGN_SIGN_INTERNAL_H
#define SIGN_SIGN_INTERNAL_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SSH's wire form: numbers of four bytes, big-endian, and strings that such a
 * number goes before. */
struct wire {
    const unsigned char *at;
    size_t left;
};

struct wire_string {
    const unsigned char *data;
    size_t len;
};

bool wire_u32(struct wire *w, uint32_t *out);
bool wire_string(struct wire *w, struct wire_string *out);
bool wire_is(const struct wire_string *s, const char *text);
void wire_put(struct buf *out, const void *data, size_t len);

/* The text between "-----BEGIN WHAT-----" and its end, decoded. */
int armor_decode(const char *text, size_t len, const char *what,
                 struct buf *out, struct err *err);
#endif
