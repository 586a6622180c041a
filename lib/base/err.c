/* The reason why a call failed. */
#include "base/err.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, enum err_code code, const char *format, ...)
{
    va_list ap;

    if (err->code != ERR_NONE)
        return -1;
    err->code = code;
    va_start(ap, format);
    vsnprintf(err->text, sizeof(err->text), format, ap);
    va_end(ap);
    utf8_make_printable(err->text);
    return -1;
}

static enum err_code code_of_errno(int number)
{
    switch (number) {
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return ERR_INPUT;
    case EEXIST:
    case ENOTEMPTY:
        return ERR_EXISTS;
    default:
        return ERR_SYSTEM;
    }
}

static int set_errno(struct err *err, enum err_code code, int number,
                     const char *format, va_list ap)
    __attribute__((format(printf, 4, 0)));
static int set_errno(struct err *err, enum err_code code, int number,
                     const char *format, va_list ap)
{
    char what[384];

    vsnprintf(what, sizeof(what), format, ap);
    return err_set(err, code, "%s: %s", what, strerror(number));
}

int err_sys(struct err *err, const char *format, ...)
{
    int number = errno;
    va_list ap;

    va_start(ap, format);
    int ret = set_errno(err, code_of_errno(number), number, format, ap);
    va_end(ap);
    return ret;
}

int err_write(struct err *err, const char *format, ...)
{
    int number = errno;
    bool is_gone = number == ENOENT || number == EACCES;
    va_list ap;

    va_start(ap, format);
    int ret = set_errno(err, is_gone ? ERR_SYSTEM : code_of_errno(number),
                        number, format, ap);
    va_end(ap);
    return ret;
}

int err_in(struct err *err, const char *format, ...)
{
    char place[256], whole[sizeof(err->text)];
    va_list ap;

    va_start(ap, format);
    vsnprintf(place, sizeof(place), format, ap);
    va_end(ap);
    int n = snprintf(whole, sizeof(whole), "%s: ", place);
    size_t room = sizeof(whole) - (size_t)n;
    size_t len = strlen(err->text);
    if (len >= room)
        len = room - 1;
    memcpy(whole + n, err->text, len);
    whole[(size_t)n + len] = '\0';
    memcpy(err->text, whole, (size_t)n + len + 1);
    utf8_make_printable(err->text);
    return -1;
}

void err_clear(struct err *err)
{
    err->code = ERR_NONE;
    err->text[0] = '\0';
}
