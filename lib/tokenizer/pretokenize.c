/*
 * Pre-tokenizers.  Each step cuts a piece and hands every part to the next one;
 * what the last hands on goes to the model.
 */
#include "base/mem.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

struct run {
    const struct chain *chain;
    struct scratch *scratch;
    piece_each *each;
    void *arg;
    size_t most; /* that a piece may grow to */
};

static int run_step(const struct run *run, size_t at, const struct piece *p,
                    struct err *err);

struct cut {
    const struct run *run;
    size_t next; /* the step after this one */
    const struct piece *p;
    const struct step *step;
    struct part {
        size_t start, end;
        bool is_match;
    } * parts;
    size_t count, cap;
};

static int hand_on(const struct cut *c, size_t start, size_t end,
                   struct err *err)
{
    if (start == end)
        return 0;
    struct piece part = piece_part(c->p, start, end);
    return run_step(c->run, c->next, &part, err);
}

/* The two behaviours that need no neighbours. */
static int cut_at_once(void *arg, size_t start, size_t end, bool is_match,
                       struct err *err)
{
    const struct cut *c = arg;

    if (c->step->behavior == SPLIT_REMOVED && is_match != c->step->invert)
        return 0;
    return hand_on(c, start, end, err);
}

static int cut_collect(void *arg, size_t start, size_t end, bool is_match,
                       struct err *err)
{
    struct cut *c = arg;

    (void)err;
    if (c->count == c->cap) {
        c->cap = c->cap ? c->cap * 2 : 64;
        c->parts = xrealloc(c->parts, c->cap * sizeof(*c->parts));
    }
    c->parts[c->count++] =
        (struct part){start, end, is_match != c->step->invert};
    return 0;
}

/* Joins parts as the behaviour says; the joined ones have is_match false. */
static void join_parts(struct cut *c)
{
    struct part *p = c->parts;
    size_t n = c->count, kept = 0;
    bool before = false;

    if (c->step->behavior == SPLIT_MERGED_WITH_NEXT) {
        kept = n;
        for (size_t i = n; i-- > 0;) {
            bool is_match = p[i].is_match;

            if (is_match && !before && kept < n)
                p[kept].start = p[i].start;
            else
                p[--kept] = p[i];
            before = is_match;
        }
        c->count = n - kept;
        memmove(p, p + kept, c->count * sizeof(*p));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        bool is_match = p[i].is_match;
        bool is_joined = c->step->behavior == SPLIT_CONTIGUOUS
                             ? is_match == before
                             : is_match && !before;

        if (is_joined && kept > 0)
            p[kept - 1].end = p[i].end;
        else
            p[kept++] = p[i];
        before = is_match;
    }
    c->count = kept;
}

static int split(const struct run *run, size_t at, const struct step *step,
                 const struct piece *p, struct err *err)
{
    struct cut c = {.run = run, .next = at + 1, .p = p, .step = step};
    struct pattern_scratch *match = run->scratch->match;
    int ret;

    if (step->behavior == SPLIT_REMOVED || step->behavior == SPLIT_ISOLATED)
        return pattern_cut(step->pattern, match, p->text, p->len, cut_at_once,
                           &c, err);
    ret = pattern_cut(step->pattern, match, p->text, p->len, cut_collect, &c,
                      err);
    if (ret == 0 && c.count)
        join_parts(&c);
    for (size_t i = 0; ret == 0 && i < c.count; i++)
        ret = hand_on(&c, c.parts[i].start, c.parts[i].end, err);
    free(c.parts);
    return ret;
}

/* p with text before it; the text came from p's first character. */
static struct piece prepended(struct made *made, const char *text, size_t len,
                              const struct piece *p)
{
    size_t n;

    utf8_get(p->text, &n);
    made_clear(made);
    made_add(made, text, len, piece_span(p, 0, n));
    made_copy(made, p, 0, p->len);
    return made_piece(made);
}

/* The bytes of p spelled as ByteLevel's characters. */
static struct piece spelled(struct made *made, const struct piece *p)
{
    char u[4];
    size_t n, k = 0;

    made_clear(made);
    for (size_t i = 0; i < p->len; i += n) {
        utf8_get(p->text + i, &n);
        struct span from = piece_span(p, i, i + n);

        for (k = 0; k < n; k++)
            made_add(
                made, u,
                utf8_put(byte_level_char((unsigned char)p->text[i + k]), u),
                from);
    }
    return made_piece(made);
}

struct spelling {
    const struct run *run;
    size_t at;
    const struct piece *p;
};

static int spell_each(void *arg, size_t start, size_t end, bool is_match,
                      struct err *err)
{
    const struct spelling *s = arg;
    struct piece part = piece_part(s->p, start, end);
    bool is_last = s->at + 1 == s->run->chain->pre_tokenizer.count;

    (void)is_match;
    if (start == end)
        return 0;
    if (is_last && s->run->chain->is_byte_level)
        return s->run->each(s->run->arg, &part, err);
    struct piece text = spelled(&s->run->scratch->stage[2 * s->at + 1], &part);
    return run_step(s->run, s->at + 1, &text, err);
}

static int byte_level(const struct run *run, size_t at, const struct step *step,
                      const struct piece *p, struct err *err)
{
    struct piece now = *p;
    struct spelling s = {run, at, &now};

    if (piece_check_start(p, err))
        return -1;
    if (step->add_prefix_space && p->text[0] != ' ')
        now = prepended(&run->scratch->stage[2 * at], " ", 1, p);
    if (step->pattern)
        return pattern_cut(step->pattern, run->scratch->match, now.text,
                           now.len, spell_each, &s, err);
    return spell_each(&s, 0, now.len, true, err);
}

static int metaspace(const struct run *run, size_t at, const struct step *step,
                     const struct piece *p, struct err *err)
{
    struct made *made = &run->scratch->stage[2 * at];
    struct piece now = *p;

    if (memchr(p->text, ' ', p->len)) {
        made_clear(made);
        for (size_t i = 0; i < p->len; i++)
            if (p->text[i] == ' ')
                made_add(made, step->text, step->len, piece_span(p, i, i + 1));
            else
                made_copy(made, p, i, i + 1);
        now = made_piece(made);
    }
    bool is_due =
        step->scheme == SCHEME_ALWAYS ||
        (step->scheme == SCHEME_FIRST && piece_span(&now, 0, 1).start == 0);
    if (is_due &&
        !(now.len >= step->len && memcmp(now.text, step->text, step->len) == 0))
        now = prepended(&run->scratch->stage[2 * at + 1], step->text, step->len,
                        &now);
    if (!step->split)
        return run_step(run, at + 1, &now, err);
    return split(run, at, step, &now, err);
}

static int run_step(const struct run *run, size_t at, const struct piece *p,
                    struct err *err)
{
    if (at == run->chain->pre_tokenizer.count)
        return run->each(run->arg, p, err);
    if (p->len > run->most) /* each step makes it four times as long at most */
        return grown_too_long(run->most, err);
    if (growth_add(&run->scratch->growth, p->len, err))
        return -1;
    const struct step *step = &run->chain->pre_tokenizer.items[at];
    switch (step->kind) {
    case STEP_BYTE_LEVEL:
        return byte_level(run, at, step, p, err);
    case STEP_METASPACE:
        return metaspace(run, at, step, p, err);
    default: /* STEP_SPLIT */
        return split(run, at, step, p, err);
    }
}

int pre_tokenize(const struct chain *chain, const struct piece *p,
                 struct scratch *scratch, piece_each *each, void *arg,
                 struct err *err)
{
    const struct run run = {chain, scratch, each, arg,
                            GROWN_FREE + GROWN_A_BYTE / 4 * p->len};

    return p->len ? run_step(&run, 0, p, err) : 0;
}
