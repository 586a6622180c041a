#ifndef JSON_WINDOW_H
#define JSON_WINDOW_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The part of a file that is held in memory while its text is read from front
 * to back: a little at a time, in memory that is used over and over, so that a
 * document of 30 MB costs no pages of its own.
 *
 * Positions are counted from data[0], which stands at `base` in the file.
 */
struct window {
    char *data;
    size_t size; /* bytes at data; a NUL stands behind them */
    size_t base;

    size_t cap; /* of data, without the NUL */
    int fd;
    size_t whole;       /* bytes of the file */
    struct err trouble; /* why nothing more comes, when that is an error */
};

/* Bytes of the longest file that is read. */
enum { WINDOW_FILE_CAP = 1 << 30 };

/* Holds `cap` bytes (1 or more) at a time, and more only where window_more()
 * has to.  What failed to open may be released too. */
int window_open(struct window *w, const char *path, size_t cap,
                struct err *err);
void window_release(struct window *w);

/* Appends what comes next; false at the end of the file and in trouble.  Moves
 * data; positions stay. */
bool window_more(struct window *w);

/* Forgets what lies before position `keep`, which becomes 0, and appends what
 * comes next.  Nothing happens where no more comes. */
bool window_slide(struct window *w, size_t keep);

/* Begins anew at a byte of the file. */
void window_seek(struct window *w, size_t offset);

/* Line and column (in bytes) of a position, both from 1. */
void window_place(const struct window *w, size_t at, size_t *line,
                  size_t *column);
#endif
