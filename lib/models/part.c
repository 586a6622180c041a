/* What a part of a model wants of its checkpoint. */
#include "models/part.h"

#include "base/bug.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void part_clear(struct part *p)
{
    p->count = 0;
    p->is_kept = false;
}

void part_release(struct part *p)
{
    free(p->items);
    *p = (struct part)PART_INIT;
}

/* Elements [offset, offset + count) of the tensor that the format names. */
static struct wanted *add(struct part *p, enum wanted_kind kind, void *target,
                          struct tensor_shape shape, int64_t offset,
                          int64_t count, const char *format, va_list ap)
{
    if (p->count == p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 32;
        p->items = xrealloc(p->items, p->capacity * sizeof(*p->items));
    }
    struct wanted *w = &p->items[p->count++];
    *w = (struct wanted){.kind = kind,
                         .shape = shape,
                         .offset = offset,
                         .count = count,
                         .is_kept = p->is_kept,
                         .target = target};
    int n = vsnprintf(w->name, sizeof(w->name), format, ap);
    BUG_ON(n < 0 || n >= (int)sizeof(w->name));
    return w;
}

/* Rows [first, first + out) of the tensor as a matrix of `in` columns. */
static void add_rows(struct part *p, struct dense_weight *target,
                     struct tensor_shape shape, int64_t first, int64_t out,
                     int64_t in, const char *format, va_list ap)
{
    struct wanted *w =
        add(p, WANTED_DENSE, target, shape, first * in, out * in, format, ap);

    w->out = out;
    w->in = in;
}

void part_dense(struct part *p, struct dense_weight *target, int64_t out,
                int64_t in, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    add_rows(p, target, SHAPE(out, in), 0, out, in, format, ap);
    va_end(ap);
}

void part_rows(struct part *p, struct dense_weight *target, int64_t out,
               int64_t first, int64_t count, int64_t in, const char *format,
               ...)
{
    va_list ap;

    BUG_ON(first + count > out);
    va_start(ap, format);
    add_rows(p, target, SHAPE(out, in), first, count, in, format, ap);
    va_end(ap);
}

void part_slice(struct part *p, struct dense_weight *target, int64_t count,
                int64_t index, int64_t rows, int64_t first, int64_t out,
                int64_t in, const char *format, ...)
{
    va_list ap;

    BUG_ON(index >= count || first + out > rows);
    va_start(ap, format);
    add_rows(p, target, SHAPE(count, rows, in), index * rows + first, out, in,
             format, ap);
    va_end(ap);
}

void part_param(struct part *p, struct param *target, int64_t count,
                const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    add(p, WANTED_PARAM, target, SHAPE(count), 0, count, format, ap);
    va_end(ap);
}

void part_params(struct part *p, struct param *target, int64_t total,
                 int64_t first, int64_t count, const char *format, ...)
{
    va_list ap;

    BUG_ON(first + count > total);
    va_start(ap, format);
    add(p, WANTED_PARAM, target, SHAPE(total), first, count, format, ap);
    va_end(ap);
}

void part_prefix(struct part *p, struct param *target, int64_t count,
                 const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    struct wanted *w =
        add(p, WANTED_PARAM, target, SHAPE(count), 0, count, format, ap);
    va_end(ap);
    w->is_prefix = true;
}

void part_ints(struct part *p, const int64_t **target, int64_t count,
               const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    add(p, WANTED_INTS, (void *)target, SHAPE(count), 0, count, format, ap);
    va_end(ap);
}
