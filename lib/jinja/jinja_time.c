/* strftime_now, of the clock that is given. */
#include "jinja/jinja_spec.h"

#include <string.h>
#include <time.h>

/*
 * What Python does by itself, before the C library: from the left, each '%' and
 * what follows it, which of a time without a zone leaves nothing of %z and %Z,
 * and of %f no microseconds.
 */
static struct jval without_python(struct rt *rt, struct jval format)
{
    const char *at = format.s->data, *end = at + format.s->len;
    struct jsb b = {.rt = rt};

    while (at < end) {
        size_t n = *at == '%' && end - at > 1 ? 2 : 1;

        rt_step(rt, 1);
        if (n == 2 && at[1] == 'f')
            jsb_addstr(&b, "000000");
        else if (n == 1 || (at[1] != 'z' && at[1] != 'Z'))
            jsb_add(&b, at, n);
        at += n;
    }
    return jsb_val(&b);
}

struct jval jformat_time(struct rt *rt, struct jval format)
{
    const struct jinja_template *t = rt->t;
    struct jsb b = {.rt = rt};
    char text[128];

    if (!t->has_now)
        rt_fail(rt, ERR_INPUT,
                "the template asks for the time, and no clock "
                "is given: set 'now'");
    if (format.type != JV_STR)
        rt_fail(rt, ERR_INPUT, "strftime_now: format must be str, not %s",
                jval_typename(format));
    if (memchr(format.s->data, '\0', format.s->len))
        rt_fail(rt, ERR_INPUT, "strftime_now: embedded null character");
    struct tm tm = {.tm_year = (int)t->now[0] - 1900,
                    .tm_mon = (int)t->now[1] - 1,
                    .tm_mday = (int)t->now[2],
                    .tm_hour = (int)t->now[3],
                    .tm_min = (int)t->now[4],
                    .tm_sec = (int)t->now[5]};
    struct tm day = tm;
    (void)timegm(&day); /* fills the days of the week and of the year */
    tm.tm_wday = day.tm_wday;
    tm.tm_yday = day.tm_yday;
    tm.tm_isdst = -1;
    format = without_python(rt, format);
    for (size_t i = 0; i < format.s->len;) {
        size_t from = i;
        char one[16];

        rt_step(rt, 1);
        if (format.s->data[i++] != '%') {
            jsb_addch(&b, format.s->data[from]);
            continue;
        }
        while (i < format.s->len && strchr("-_0^#", format.s->data[i]))
            i++;
        const char *width = format.s->data + i;
        if (spec_number(rt, &width, format.s->data + format.s->len) > 99)
            rt_fail(rt, ERR_UNSUPPORTED, "strftime_now: a width above 99");
        i = (size_t)(width - format.s->data);
        if (i < format.s->len && strchr("EO", format.s->data[i]))
            i++; /* a second one is no conversion, and what follows is text */
        if (i < format.s->len)
            juni_next(format.s->data, &i);
        size_t n = i - from;
        char kind = format.s->data[i - 1];
        bool is_other = (unsigned char)kind >= 0x80; /* '^' has an effect */
        if (kind == 's' || kind == 'z' || kind == 'Z' ||
            (is_other && memchr(format.s->data + from, '^', n)))
            rt_fail(rt, ERR_UNSUPPORTED, "strftime_now: '%.*s'", (int)n,
                    format.s->data + from);
        if (n >= sizeof(one) || n < 2 || is_other) {
            jsb_add(&b, format.s->data + from, n);
            continue;
        }
        memcpy(one, format.s->data + from, n);
        one[n] = '\0';
        /* each conversion alone: its text has a bound */
        size_t len = strftime(text, sizeof(text), one, &tm);
        jsb_add(&b, text, len);
    }
    return jsb_val(&b);
}
