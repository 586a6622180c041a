/* A Hugging Face checkpoint by tensor name, one part of the model at a time. */
#include "models/checkpoint_internal.h"

#include "base/mem.h"
#include "hash/hash.h"
#include "models/weight_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (!x->name != !y->name)
        return x->name ? -1 : 1;
    if (!x->name)
        return strcmp(x->info->name, y->info->name);
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->info->name, y->info->name);
}

struct entry *checkpoint_find(const struct checkpoint *c, const char *name)
{
    size_t low = 0, high = c->named;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(c->entries[middle].name, name);

        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == c->named || strcmp(c->entries[low].name, name) != 0)
        return NULL;
    return &c->entries[low];
}

static int check_duplicates(struct checkpoint *c, struct err *err)
{
    char first[HASH_SHA256_HEX], second[HASH_SHA256_HEX];

    for (size_t i = 1; i < c->named; i++) {
        struct entry *a = &c->entries[i - 1], *b = &c->entries[i];

        if (strcmp(a->name, b->name) != 0)
            continue;
        if (weight_digest(c->st, a->info, first, err) ||
            weight_digest(c->st, b->info, second, err))
            return -1;
        if (a->info->dtype != b->info->dtype || strcmp(first, second) != 0)
            return err_set(err, ERR_INPUT,
                           "tensors '%s' and '%s' are one tensor of the model, "
                           "with different bytes",
                           a->info->name, b->info->name);
        b->same = a->same ? a->same : a;
    }
    return 0;
}

struct checkpoint *checkpoint_open(const char *pack,
                                   const struct checkpoint_names *names,
                                   struct err *err)
{
    struct safetensors *st = safetensors_open_pack(pack, err);

    if (!st)
        return NULL;
    struct checkpoint *c = xcalloc(1, sizeof(*c));
    c->names = names;
    c->st = st;
    c->precision = PRECISION_F32;
    c->count = safetensors_count(st);
    c->entries = xcalloc(c->count + 1, sizeof(*c->entries));
    for (size_t i = 0; i < c->count; i++) {
        c->entries[i].info = safetensors_at(st, i);
        c->entries[i].name =
            weight_name(names, c->entries[i].info->name, &c->arena);
        c->named += c->entries[i].name != NULL;
    }
    qsort(c->entries, c->count, sizeof(*c->entries), by_name);
    if (check_duplicates(c, err)) {
        checkpoint_close(c);
        return NULL;
    }
    return c;
}

void checkpoint_close(struct checkpoint *c)
{
    if (!c)
        return;
    checkpoint_forget(c);
    for (int i = 0; i < 2; i++)
        free(c->buffers[i].base);
    arena_release(&c->arena);
    free(c->entries);
    safetensors_close(c->st);
    free(c);
}

void checkpoint_set_precision(struct checkpoint *c, enum precision p)
{
    if (c->precision != p)
        checkpoint_forget(c);
    c->precision = p;
}

/* ---- checking ---- */

bool checkpoint_has(const struct checkpoint *c, const char *format, ...)
{
    char name[WEIGHT_NAME_SIZE];
    va_list ap;

    va_start(ap, format);
    int n = vsnprintf(name, WEIGHT_NAME_SIZE, format, ap);
    va_end(ap);
    return n > 0 && n < WEIGHT_NAME_SIZE && checkpoint_find(c, name);
}

int checkpoint_expect(struct checkpoint *c, const struct part *p,
                      struct err *err)
{
    for (size_t i = 0; i < p->count; i++)
        if (stored_check(c, &p->items[i], err))
            return -1;
    return 0;
}

void checkpoint_skip(struct checkpoint *c, const char *name)
{
    struct entry *e = checkpoint_find(c, name);

    if (e)
        e->is_skipped = true;
}

int checkpoint_finish(const struct checkpoint *c, struct err *err)
{
    for (size_t i = 0; i < c->named; i++) {
        const struct entry *e = &c->entries[i];

        if (!e->is_wanted && !e->is_skipped && !e->same)
            return err_set(err, ERR_INPUT,
                           "tensor '%s' has no place in the model",
                           e->info->name);
    }
    return 0;
}

/* ---- the ledger ---- */

struct decoding {
    const struct checkpoint *c;
    const struct entry *e;
};

static int read_decoded(void *ctx, int64_t first, size_t n, float *scratch,
                        float *out, struct err *err)
{
    const struct decoding *d = ctx;

    return stored_floats(d->c, d->e, first, n, scratch, out, err);
}

static json_t *line_of(const struct checkpoint *c, const struct entry *e)
{
    const char *state = !e->name        ? "ignored"
                        : e->same       ? "duplicate"
                        : e->is_skipped ? "without effect"
                        : e->is_wanted  ? "read"
                                        : "unread";
    int64_t n = shape_count(&e->info->shape);

    return weight_line(c->st, e->info, e->name ? e->name : "", state,
                       (double)e->elements_read / (double)(n > 0 ? n : 1));
}

json_t *checkpoint_ledger(const struct checkpoint *c, bool is_full,
                          struct err *err)
{
    json_t *out = json_array();

    for (size_t i = 0; i < c->count; i++) {
        struct decoding d = {c, &c->entries[i]};
        json_t *line = line_of(c, d.e);

        json_array_append_new(out, line);
        if (is_full && weight_line_measure(line, c->st, d.e->info, read_decoded,
                                           &d, err)) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}
