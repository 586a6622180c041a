/*
 * A set of characters as PCRE2 text: ranges, with PCRE2's own categories where
 * these, corrected by the difference in Unicode versions, are shorter.
 */
#include "tokenizer/translate.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

static bool has_unicode_14(void)
{
    char version[64] = "";

    return pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, NULL) <=
               (int)sizeof(version) &&
           pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version) > 0 &&
           strcmp(version, "14.0.0") == 0;
}

/* The categories, as PCRE2 holds them, that lie wholly inside s. */
static uint32_t categories_inside(const struct char_set *s)
{
    uint32_t mask = 0;

    if (!has_unicode_14())
        return 0;
    mask = ((uint32_t)1 << unicode_category_names_count) - 1;
    for (size_t i = 0; i < unicode_category_count; i++) {
        const struct unicode_valued_range *c = &unicode_category[i];

        if (mask >> c->value & 1 && !char_set_holds(s, c->first, c->last))
            mask &= ~((uint32_t)1 << c->value);
    }
    for (size_t i = 0; i < unicode_pcre2_extra_count; i++) {
        const struct unicode_valued_range *c = &unicode_pcre2_extra[i];

        if (mask >> c->value & 1 && !char_set_holds(s, c->first, c->last))
            mask &= ~((uint32_t)1 << c->value);
    }
    return mask;
}

/* What is left of s when the categories of mask are written by name. */
static void rest_of(const struct char_set *s, uint32_t mask,
                    struct char_set *rest)
{
    struct char_set named = {0}, lacks = {0};

    char_set_add_valued(&named, unicode_category, unicode_category_count, mask);
    char_set_negate(&named);
    char_set_add_valued(&lacks, unicode_pcre2_lacks, unicode_pcre2_lacks_count,
                        mask);
    char_set_add_set(&named, &lacks);
    char_set_tidy(&named);
    char_set_add_set(rest, s);
    char_set_intersect(rest, &named);
    char_set_release(&named);
    char_set_release(&lacks);
}

void translate_write_set(struct buf *out, struct char_set *s)
{
    struct char_set outside = {0}, rest[2] = {{0}, {0}};
    uint32_t mask[2];

    char_set_add_set(&outside, s);
    char_set_negate(&outside);
    char_set_drop_surrogates(s);
    char_set_drop_surrogates(&outside);
    if (s->count == 0) {
        buf_addstr(out, "(?!)");
    } else if (outside.count == 0) {
        buf_addstr(out, "[\\x{0}-\\x{10ffff}]");
    } else {
        mask[0] = s->count > 12 ? categories_inside(s) : 0;
        mask[1] = outside.count > 12 ? categories_inside(&outside) : 0;
        rest_of(s, mask[0], &rest[0]);
        rest_of(&outside, mask[1], &rest[1]);
        int side = rest[1].count < rest[0].count;

        buf_addstr(out, side ? "[^" : "[");
        for (size_t i = 0; i < unicode_category_names_count; i++)
            if (mask[side] >> i & 1)
                buf_addf(out, "\\p{%s}", unicode_category_names[i]);
        for (size_t i = 0; i < rest[side].count; i++) {
            const struct unicode_range *c = &rest[side].r[i];

            buf_addf(out, "\\x{%x}", c->first);
            if (c->last != c->first)
                buf_addf(out, "-\\x{%x}", c->last);
        }
        buf_addch(out, ']');
    }
    char_set_release(&outside);
    char_set_release(&rest[0]);
    char_set_release(&rest[1]);
}
