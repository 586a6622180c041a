/*
 * The components of a tokenizer.json, read into flat lists of steps.  An
 * unknown type is refused by name and place.
 */
#include "tokenizer/components.h"
#include "base/mem.h"
#include "tokenizer/byte_level.h"

#include <stdlib.h>
#include <string.h>

static void step_release(struct step *s)
{
    pattern_free(s->pattern);
    free(s->text);
}

void steps_release(struct steps *s)
{
    for (size_t i = 0; i < s->count; i++)
        step_release(&s->items[i]);
    free(s->items);
    *s = (struct steps){0};
}

void chain_release(struct chain *c)
{
    steps_release(&c->normalizer);
    steps_release(&c->pre_tokenizer);
    steps_release(&c->decoder);
}

struct step *steps_add(struct steps *s, enum step_kind kind)
{
    s->items = xrealloc(s->items, (s->count + 1) * sizeof(*s->items));
    s->items[s->count] = (struct step){.kind = kind};
    return &s->items[s->count++];
}

static int get_bool(const struct section *object, const char *key, bool unless,
                    bool *out, struct err *err)
{
    *out = unless;
    if (config_has(object, key) || config_is_null(object, key))
        return config_get_flag(object, key, out, err);
    config_default(object, key, json_boolean(unless));
    return 0;
}

/* A string that may hold NUL. */
static int get_text(const struct section *object, const char *key,
                    struct step *step, struct err *err)
{
    const char *text;

    if (config_get_text(object, key, &text, &step->len, err))
        return -1;
    step->text = xstrndup(text, step->len);
    return 0;
}

/* {"String": ...} or {"Regex": ...}. */
static int get_pattern(const struct section *object, struct step *step,
                       struct err *err)
{
    const json_t *value = config_value(object, "pattern");
    const json_t *literal = json_object_get(value, "String");
    const json_t *regex = json_object_get(value, "Regex");

    if (json_object_size(value) != 1 ||
        (!json_is_string(literal) && !json_is_string(regex)))
        return err_set(err, ERR_INPUT,
                       "'pattern' is neither a String nor a Regex");
    if (json_string_length(literal))
        step->pattern = pattern_new_literal(json_string_value(literal),
                                            json_string_length(literal));
    else if (regex)
        step->pattern =
            pattern_new(json_string_value(regex), json_string_length(regex),
                        PATTERN_RUBY, err);
    else /* no text is found everywhere, as upstream's escaped pattern does */
        step->pattern = pattern_new("", 0, PATTERN_RUBY, err);
    return step->pattern ? 0 : -1;
}

static int get_behavior(const struct section *object, const char *unless,
                        enum behavior *out, struct err *err)
{
    static const char *const names[] = {"Removed", "Isolated",
                                        "MergedWithPrevious", "MergedWithNext",
                                        "Contiguous"};
    const char *text = unless;

    if (unless && !config_has(object, "behavior") &&
        !config_is_null(object, "behavior"))
        config_default(object, "behavior", json_string(unless));
    else if (config_get_text(object, "behavior", &text, NULL, err))
        return -1;
    for (int i = 0; i < 5; i++)
        if (strcmp(names[i], text) == 0) {
            *out = (enum behavior)i;
            return 0;
        }
    return err_set(err, ERR_UNSUPPORTED, "unknown behavior '%s'", text);
}

static bool is_one_character(const struct step *step)
{
    size_t n = 0;

    if (step->len)
        utf8_get(step->text, &n);
    return n > 0 && n == step->len;
}

static int get_count(const struct section *object, const char *key, size_t *out,
                     struct err *err)
{
    int64_t n;

    if (config_get_int(object, key, &n, err))
        return -1;
    if (n < 0)
        return err_set(err, ERR_INPUT, "'%s' is negative", key);
    *out = (size_t)n;
    return 0;
}

int component_type(const struct section *value, const char **type,
                   struct err *err)
{
    return config_get_text(value, "type", type, NULL, err);
}

/* A flag that must be there and changes no id. */
static int ignore_flag(const struct section *value, const char *key,
                       struct err *err)
{
    bool flag;

    config_ignore(value, (const char *const[]){key, NULL});
    return json_get_bool(config_object(value), key, &flag, err);
}

int component_byte_level(const struct section *value, struct err *err)
{
    static const char use_regex[] = "use_regex";

    if (ignore_flag(value, "add_prefix_space", err) ||
        ignore_flag(value, "trim_offsets", err))
        return -1;
    bool is_there = json_object_get(config_object(value), use_regex) != NULL;
    return is_there ? ignore_flag(value, use_regex, err) : 0;
}

int component_unknown(const char *type, struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED, "unknown type '%s'", type);
}

/* -- one component, whose step has its kind -- */

static int read_strip(const struct section *value, struct step *step,
                      struct err *err)
{
    return config_get_flag(value, "strip_left", &step->left, err) ||
                   config_get_flag(value, "strip_right", &step->right, err)
               ? -1
               : 0;
}

static int read_replace(const struct section *value, struct step *step,
                        struct err *err)
{
    return get_pattern(value, step, err) ||
                   get_text(value, "content", step, err)
               ? -1
               : 0;
}

static int read_prepend(const struct section *value, struct step *step,
                        struct err *err)
{
    return get_text(value, "prepend", step, err);
}

static int read_split(const struct section *value, struct step *step,
                      struct err *err)
{
    return get_pattern(value, step, err) ||
                   get_behavior(value, NULL, &step->behavior, err) ||
                   config_get_flag(value, "invert", &step->invert, err)
               ? -1
               : 0;
}

static int read_metaspace(const struct section *object, struct step *step,
                          struct err *err)
{
    static const char *const names[] = {"always", "first", "never"};
    const char *scheme = "always";

    step->behavior = SPLIT_MERGED_WITH_NEXT;
    if (get_text(object, "replacement", step, err) ||
        get_bool(object, "split", true, &step->split, err) ||
        get_bool(object, "add_prefix_space", true, &step->add_prefix_space,
                 err) ||
        ((config_has(object, "prepend_scheme") ||
          config_is_null(object, "prepend_scheme")) &&
         config_get_text(object, "prepend_scheme", &scheme, NULL, err)))
        return -1;
    if (!config_has(object, "prepend_scheme"))
        config_default(object, "prepend_scheme", json_string(scheme));
    config_ignore(object, (const char *const[]){"str_rep", NULL});
    if (!is_one_character(step))
        return err_set(err, ERR_INPUT, "'replacement' is not one character");
    step->pattern = pattern_new_literal(step->text, step->len);
    for (int i = 0; i < 3; i++)
        if (strcmp(scheme, names[i]) == 0) {
            step->scheme = (enum scheme)i;
            if (!step->add_prefix_space && step->scheme != SCHEME_NEVER)
                return err_set(err, ERR_INPUT,
                               "'add_prefix_space' is false, but "
                               "'prepend_scheme' is not 'never'");
            return 0;
        }
    return err_set(err, ERR_UNSUPPORTED, "unknown prepend_scheme '%s'", scheme);
}

static int read_byte_level(const struct section *value, struct step *step,
                           struct err *err)
{
    bool uses_pattern;

    if (ignore_flag(value, "trim_offsets", err) ||
        config_get_flag(value, "add_prefix_space", &step->add_prefix_space,
                        err) ||
        get_bool(value, "use_regex", true, &uses_pattern, err))
        return -1;
    if (uses_pattern)
        step->pattern = pattern_new(
            byte_level_pattern, strlen(byte_level_pattern), PATTERN_RUBY, err);
    return uses_pattern && !step->pattern ? -1 : 0;
}

static int read_digits(const struct section *value, struct step *step,
                       struct err *err)
{
    bool is_each;

    step->pattern = pattern_new_set(unicode_numeric, unicode_numeric_count);
    if (config_get_flag(value, "individual_digits", &is_each, err))
        return -1;
    step->behavior = is_each ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
    return 0;
}

static int read_punctuation(const struct section *value, struct step *step,
                            struct err *err)
{
    step->pattern =
        pattern_new_set(unicode_punctuation, unicode_punctuation_count);
    return get_behavior(value, "Isolated", &step->behavior, err);
}

static int read_whitespace(const struct section *value, struct step *step,
                           struct err *err)
{
    (void)value;
    step->pattern = pattern_new("\\w+|[^\\w\\s]+", 12, PATTERN_RUST, err);
    step->behavior = SPLIT_REMOVED;
    step->invert = true;
    return step->pattern ? 0 : -1;
}

static int read_whitespace_split(const struct section *value, struct step *step,
                                 struct err *err)
{
    (void)value;
    (void)err;
    step->pattern = pattern_new_set(unicode_space, unicode_space_count);
    step->behavior = SPLIT_REMOVED;
    return 0;
}

static int read_byte_level_decoder(const struct section *value,
                                   struct step *step, struct err *err)
{
    (void)step;
    return component_byte_level(value, err);
}

static int read_strip_decoder(const struct section *value, struct step *step,
                              struct err *err)
{
    if (get_text(value, "content", step, err) ||
        get_count(value, "start", &step->start, err) ||
        get_count(value, "stop", &step->stop, err))
        return -1;
    if (!is_one_character(step))
        return err_set(err, ERR_INPUT, "'content' is not one character");
    return 0;
}

/* -- a part of the chain -- */

/* The components that a part may hold, and its Sequence's list. */
struct part_kind {
    const char *members;
    const struct component {
        const char *type;
        enum step_kind kind;
        int (*read)(const struct section *value, struct step *step,
                    struct err *err); /* NULL: it has no settings */
    } components[12];
};

static const struct part_kind normalizers = {
    "normalizers",
    {
        {"NFC", STEP_NFC, NULL},
        {"NFD", STEP_NFD, NULL},
        {"NFKC", STEP_NFKC, NULL},
        {"NFKD", STEP_NFKD, NULL},
        {"Lowercase", STEP_LOWERCASE, NULL},
        {"StripAccents", STEP_STRIP_ACCENTS, NULL},
        {"Strip", STEP_STRIP, read_strip},
        {"Replace", STEP_REPLACE, read_replace},
        {"Prepend", STEP_PREPEND, read_prepend},
    }};

static const struct part_kind pre_tokenizers = {
    "pretokenizers",
    {
        {"Split", STEP_SPLIT, read_split},
        {"ByteLevel", STEP_BYTE_LEVEL, read_byte_level},
        {"Metaspace", STEP_METASPACE, read_metaspace},
        {"Digits", STEP_SPLIT, read_digits},
        {"Punctuation", STEP_SPLIT, read_punctuation},
        {"Whitespace", STEP_SPLIT, read_whitespace},
        {"WhitespaceSplit", STEP_SPLIT, read_whitespace_split},
    }};

static const struct part_kind decoders = {
    "decoders",
    {
        {"ByteLevel", STEP_DECODE_BYTE_LEVEL, read_byte_level_decoder},
        {"ByteFallback", STEP_DECODE_BYTE_FALLBACK, NULL},
        {"Fuse", STEP_DECODE_FUSE, NULL},
        {"Strip", STEP_DECODE_STRIP, read_strip_decoder},
        {"Replace", STEP_REPLACE, read_replace},
        {"Metaspace", STEP_DECODE_METASPACE, read_metaspace},
    }};

static int read_component(const struct section *value,
                          const struct part_kind *part, struct steps *out,
                          struct err *err);

static int read_sequence(const struct section *value,
                         const struct part_kind *part, struct steps *out,
                         struct err *err)
{
    json_t *list;

    if (config_get_list(value, part->members, &list, err))
        return -1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const struct section *item;

        if (config_get_item(value, part->members, i, &item, err) ||
            read_component(item, part, out, err))
            return err_in(err, "%s[%zu]", part->members, i);
        if (out->count > MAX_STEPS)
            return err_set(err, ERR_UNSUPPORTED, "more than %d steps",
                           MAX_STEPS);
    }
    return 0;
}

static int read_component(const struct section *value,
                          const struct part_kind *part, struct steps *out,
                          struct err *err)
{
    const struct component *c = part->components;
    const char *type;

    if (component_type(value, &type, err))
        return -1;
    if (strcmp(type, "Sequence") == 0)
        return read_sequence(value, part, out, err);
    while (c->type && strcmp(c->type, type) != 0)
        c++;
    if (!c->type)
        return component_unknown(type, err);
    struct step *step = steps_add(out, c->kind);
    return c->read ? c->read(value, step, err) : 0;
}

int steps_read_normalizer(const struct section *value, struct steps *out,
                          struct err *err)
{
    return read_component(value, &normalizers, out, err);
}

int steps_read_pre_tokenizer(const struct section *value, struct steps *out,
                             struct err *err)
{
    return read_component(value, &pre_tokenizers, out, err);
}

int steps_read_decoder(const struct section *value, struct steps *out,
                       struct err *err)
{
    return read_component(value, &decoders, out, err);
}
