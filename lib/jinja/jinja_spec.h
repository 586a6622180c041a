#ifndef JINJA_JINJA_SPEC_H
#define JINJA_JINJA_SPEC_H

#include "jinja/jinja_text.h"

enum {
    SPEC_MAX_WIDTH = 1 << 20,
    SPEC_MAX_PLACES = 1000,
};

/* How one value is laid out: what stands between % and its letter, or behind
 * the colon of a field of str.format. */
struct spec {
    uint32_t fill; /* 0: not given */
    char align;    /* < > = ^, 0: not given */
    char sign;     /* + - space, 0 */
    bool alternate, zero;
    char group;               /* , or _ */
    int64_t width, precision; /* -1: not given */
    char type;                /* 0: not given */
};

/* Appends the value's text in its width. */
void spec_put_int(struct rt *rt, struct jsb *out, const struct spec *s,
                  struct jval v);
void spec_put_float(struct rt *rt, struct jsb *out, const struct spec *s,
                    double f);
void spec_put_str(struct rt *rt, struct jsb *out, const struct spec *s,
                  struct jval v);
/* The same of a body that is ready; `align` when the spec says nothing. */
void spec_lay_out(struct jsb *out, const struct spec *s, const char *sign,
                  const char *body, size_t len, char align);
const char *spec_sign(const struct spec *s, bool is_negative);

/* Digits at *p, which moves behind them; refuses more than a width may be. */
int64_t spec_number(struct rt *rt, const char **p, const char *end);
struct jval jval_ascii(struct rt *rt, struct jval v); /* Python's ascii(v) */
#endif
