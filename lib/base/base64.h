#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/buf.h"

#include <stdbool.h>

/* Base64, appended to out; false when malformed, white space too. */
bool base64_decode(const char *text, size_t len, struct buf *out);
/* Lines of `width` characters; 0: one line without its end. */
void base64_encode(const void *data, size_t len, size_t width, struct buf *out);
#endif
