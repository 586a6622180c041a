#ifndef BASE_ERR_H
#define BASE_ERR_H

/*
 * The reason why a call failed.  A lib function returns 0 or -1 (or NULL) and
 * fills the caller's struct err; the first error stands, and each level on the
 * way out may say where it was with err_in().  Messages: lower case, no full
 * stop, what failed first, names in single quotes, then the system's reason.
 */
enum err_code {
    ERR_NONE = 0,        /* it ran, and the answer is yes */
    ERR_NO = 1,          /* it ran to the end, and the answer is no */
    ERR_USAGE = 2,       /* the command line is wrong */
    ERR_INPUT = 3,       /* missing, unreadable or malformed input */
    ERR_UNSUPPORTED = 4, /* a sound input that we do not implement */
    ERR_EXISTS = 5,      /* it would overwrite evidence */
    ERR_SYSTEM = 6,      /* the system said no */
};

struct err {
    enum err_code code; /* also the tool's exit status */
    char text[512];
};

#define ERR_INIT     \
    {                \
        ERR_NONE, "" \
    }

/* Sets err unless one stands already; always returns -1. */
int err_set(struct err *err, enum err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * The same with errno's text after it.  The code follows errno: what a path
 * given by the user causes (ENOENT, ENOTDIR, EACCES, EISDIR, ELOOP,
 * ENAMETOOLONG) is ERR_INPUT, EEXIST is ERR_EXISTS, the rest is ERR_SYSTEM.
 */
int err_sys(struct err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for a path that is written: one that is gone or may not be written
 * to is ERR_SYSTEM, no input. */
int err_write(struct err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts "place: " before the text; returns -1.  Keeps the code. */
int err_in(struct err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Forgets it, so that the struct can serve another attempt. */
void err_clear(struct err *err);
#endif
