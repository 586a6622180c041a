#ifndef SUPPORT_TAP_H
#define SUPPORT_TAP_H

/*
 * TAP for one C test binary: a line a check, `return done();` at the end.
 * A check that fails prints what it got and what was wanted.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count, tap_failed;

__attribute__((format(printf, 2, 3), unused)) static bool
ok(bool good, const char *name, ...)
{
    va_list ap;

    printf("%sok %d - ", good ? "" : "not ", ++tap_count);
    va_start(ap, name);
    vprintf(name, ap);
    va_end(ap);
    putchar('\n');
    tap_failed += !good;
    return good;
}

__attribute__((format(printf, 1, 2), unused)) static void diag(const char *text,
                                                               ...)
{
    va_list ap;

    printf("# ");
    va_start(ap, text);
    vprintf(text, ap);
    va_end(ap);
    putchar('\n');
}

__attribute__((unused)) static bool is_str(const char *got, const char *want,
                                           const char *name)
{
    bool good = got && want ? strcmp(got, want) == 0 : got == want;

    if (!ok(good, "%s", name)) {
        diag("got    '%s'", got ? got : "(null)");
        diag("wanted '%s'", want ? want : "(null)");
    }
    return good;
}

__attribute__((unused)) static bool is_int(int64_t got, int64_t want,
                                           const char *name)
{
    if (!ok(got == want, "%s", name))
        diag("got %" PRId64 ", wanted %" PRId64, got, want);
    return got == want;
}

__attribute__((unused)) static bool is_mem(const void *got, const void *want,
                                           size_t n, const char *name)
{
    const unsigned char *g = got, *w = want;
    size_t i = 0;

    while (i < n && g[i] == w[i])
        i++;
    if (!ok(i == n, "%s", name))
        diag("byte %zu of %zu: got %02x, wanted %02x", i, n, g[i], w[i]);
    return i == n;
}

/* Ends the plan early: the reason stands in prove's summary. */
__attribute__((noreturn, unused)) static void skip_all(const char *why)
{
    printf("1..0 # SKIP %s\n", why);
    exit(0);
}

__attribute__((unused)) static int done(void)
{
    printf("1..%d\n", tap_count);
    if (tap_count == 0)
        return 1; /* a test that checked nothing has failed */
    return tap_failed != 0;
}
#endif
