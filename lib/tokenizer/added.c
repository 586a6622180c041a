/* Added tokens found in a text: leftmost, then longest, each by its flags. */
#include "tokenizer/added.h"

static bool is_space(uint32_t c)
{
    return unicode_has(unicode_space, unicode_space_count, c);
}

static bool is_word(uint32_t c)
{
    return unicode_has(unicode_word, unicode_word_count, c);
}

/* Has the match at [start, end) no word character beside it? */
static bool stands_alone(const char *text, size_t len, size_t start, size_t end)
{
    size_t n;

    return (start == 0 || !is_word(utf8_get_before(text, start, &n))) &&
           (end == len || !is_word(utf8_get(text + end, &n)));
}

static size_t space_before(const char *text, size_t start)
{
    size_t before;

    while (start > 0 && is_space(utf8_get_before(text, start, &before)))
        start = before;
    return start;
}

static size_t space_behind(const char *text, size_t len, size_t end)
{
    size_t n;

    while (end < len && is_space(utf8_get(text + end, &n)))
        end += n;
    return end;
}

/* The longest token that begins at text[at], or NULL. */
static const struct added_token *longest(const struct added *a,
                                         const struct trie *t, const char *text,
                                         size_t len, size_t at, size_t *end,
                                         uint64_t *work)
{
    uint32_t node = 0, value, found = TRIE_NONE;
    size_t from = at;

    while (at < len && trie_step(t, &node, text[at++], &value))
        if (value != TRIE_NONE) {
            found = value;
            *end = at;
        }
    *work += at - from;
    return found == TRIE_NONE ? NULL : &a->items[found];
}

int added_cut(const struct added *a, const struct trie *t, const char *text,
              size_t len, added_each *each, void *arg, struct err *err)
{
    uint64_t work = 0, most = WORK_FREE + WORK_A_BYTE * (uint64_t)len;
    size_t done = 0;

    for (size_t at = 0; at < len;) {
        const struct added_token *token = NULL;
        size_t match_end = 0;

        while (at < len && !trie_may_start(t, text[at]))
            at++;
        if (at < len)
            token = longest(a, t, text, len, at, &match_end, &work);
        if (work > most)
            return err_set(err, ERR_INPUT,
                           "finding added tokens in %zu bytes takes more than "
                           "%llu steps",
                           len, (unsigned long long)most);
        if (!token) {
            at++;
            continue;
        }
        size_t start = at, end = match_end;
        at = match_end;
        if (token->single_word && !stands_alone(text, len, start, end))
            continue;
        if (token->lstrip) {
            start = space_before(text, start);
            if (start < done)
                start = done;
        }
        if (token->rstrip)
            end = space_behind(text, len, end);
        if (done < start && each(arg, NULL, done, start, err))
            return -1;
        /* One that another has already taken as its blanks vanishes. */
        if (start < end && each(arg, token, start, end, err))
            return -1;
        done = end;
    }
    return done < len ? each(arg, NULL, done, len, err) : 0;
}
