/* A file in memory, a little at a time. */
#include "json/window.h"

#include "base/io.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char name[] = "the file"; /* whose path our caller puts before */

static char *new_room(size_t cap, struct err *err)
{
    return mem_bytes(cap + 1, 1, WINDOW_FILE_CAP + 1, err);
}

int window_open(struct window *w, const char *path, size_t cap, struct err *err)
{
    int64_t size;

    *w = (struct window){.fd = io_open(path, &size, err)};
    if (w->fd < 0)
        return -1;
    if (size > WINDOW_FILE_CAP)
        return err_set(err, ERR_INPUT, "%s: longer than %d bytes", path,
                       WINDOW_FILE_CAP);
    w->whole = (size_t)size;
    w->cap = cap < w->whole ? cap : w->whole;
    w->data = new_room(w->cap, err);
    if (!w->data)
        return -1;
    w->data[0] = '\0';
    return 0;
}

void window_release(struct window *w)
{
    if (w->fd >= 0)
        close(w->fd);
    free(w->data);
}

static bool is_at_end(const struct window *w)
{
    return w->base + w->size == w->whole || w->trouble.code != ERR_NONE;
}

static int grow(struct window *w)
{
    size_t cap = w->cap < w->whole / 2 ? 2 * w->cap : w->whole;
    char *data = new_room(cap, &w->trouble);

    if (!data)
        return -1;
    memcpy(data, w->data, w->size);
    free(w->data);
    w->data = data;
    w->cap = cap;
    return 0;
}

bool window_more(struct window *w)
{
    if (is_at_end(w) || (w->size == w->cap && grow(w)))
        return false;
    size_t n = w->whole - w->base - w->size;
    if (n > w->cap - w->size)
        n = w->cap - w->size;
    if (io_pread(w->fd, name, w->data + w->size, n,
                 (int64_t)(w->base + w->size), &w->trouble))
        return false;
    w->size += n;
    w->data[w->size] = '\0';
    return true;
}

bool window_slide(struct window *w, size_t keep)
{
    if (is_at_end(w))
        return false;
    memmove(w->data, w->data + keep, w->size - keep);
    w->base += keep;
    w->size -= keep;
    window_more(w);
    return true;
}

void window_seek(struct window *w, size_t offset)
{
    w->base = offset;
    w->size = 0;
    w->data[0] = '\0';
}

/* The line that is being counted, and where in the file it begins. */
struct line {
    size_t number, begin;
};

static void count_lines(struct line *line, const char *text, size_t len,
                        size_t base)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\n') {
            line->number++;
            line->begin = base + i + 1;
        }
}

/* What lies before the window is read again: only errors ask. */
void window_place(const struct window *w, size_t at, size_t *line,
                  size_t *column)
{
    struct line l = {1, 0};
    char part[4096];

    for (size_t from = 0; from < w->base; from += sizeof(part)) {
        struct err why = ERR_INIT;
        size_t n = w->base - from;

        n = n < sizeof(part) ? n : sizeof(part);
        if (io_pread(w->fd, name, part, n, (int64_t)from, &why))
            break;
        count_lines(&l, part, n, from);
    }
    count_lines(&l, w->data, at < w->size ? at : w->size, w->base);
    *line = l.number;
    *column = w->base + at - l.begin + 1;
}
