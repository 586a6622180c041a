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

static int get_metaspace(const struct section *object, struct step *step,
                         struct err *err)
{
    static const char *const names[] = {"always", "first", "never"};
    const char *scheme = "always";
    size_t n;

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
    if (step->len == 0 || (utf8_get(step->text, &n), n != step->len))
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

int component_ignore_flags(const struct section *value, const char *const *keys,
                           struct err *err)
{
    config_ignore(value, keys);
    for (; *keys; keys++) {
        const json_t *flag = json_object_get(config_object(value), *keys);

        if (flag && !json_is_boolean(flag))
            return err_set(err, ERR_INPUT, "'%s' is not true or false", *keys);
    }
    return 0;
}

/* Offsets are not kept. */
static const char *const offset_keys[] = {"trim_offsets", NULL};
const char *const component_byte_level_keys[] = {
    "add_prefix_space", "trim_offsets", "use_regex", NULL};

int component_unknown(const char *type, struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED, "unknown type '%s'", type);
}

typedef int read_steps(const struct section *value, struct steps *out,
                       struct err *err);

/* The members of a Sequence, each by `read`. */
static int read_sequence(const struct section *value, const char *key,
                         read_steps *read, struct steps *out, struct err *err)
{
    json_t *list;

    if (config_get_list(value, key, &list, err))
        return -1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const struct section *item;

        if (config_get_item(value, key, i, &item, err) || read(item, out, err))
            return err_in(err, "%s[%zu]", key, i);
        if (out->count > MAX_STEPS)
            return err_set(err, ERR_UNSUPPORTED, "more than %d steps",
                           MAX_STEPS);
    }
    return 0;
}

int steps_read_normalizer(const struct section *value, struct steps *out,
                          struct err *err)
{
    static const struct {
        const char *type;
        enum step_kind kind;
    } plain[] = {
        {"NFC", STEP_NFC},
        {"NFD", STEP_NFD},
        {"NFKC", STEP_NFKC},
        {"NFKD", STEP_NFKD},
        {"Lowercase", STEP_LOWERCASE},
        {"StripAccents", STEP_STRIP_ACCENTS},
    };
    const char *type;
    struct step *step;

    if (component_type(value, &type, err))
        return -1;
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (strcmp(type, plain[i].type) == 0) {
            steps_add(out, plain[i].kind);
            return 0;
        }
    if (strcmp(type, "Sequence") == 0)
        return read_sequence(value, "normalizers", steps_read_normalizer, out,
                             err);
    if (strcmp(type, "Strip") == 0) {
        step = steps_add(out, STEP_STRIP);
        return config_get_flag(value, "strip_left", &step->left, err) ||
                       config_get_flag(value, "strip_right", &step->right, err)
                   ? -1
                   : 0;
    }
    if (strcmp(type, "Replace") == 0) {
        step = steps_add(out, STEP_REPLACE);
        return get_pattern(value, step, err) ||
                       get_text(value, "content", step, err)
                   ? -1
                   : 0;
    }
    if (strcmp(type, "Prepend") == 0)
        return get_text(value, "prepend", steps_add(out, STEP_PREPEND), err);
    return component_unknown(type, err);
}

int steps_read_pre_tokenizer(const struct section *value, struct steps *out,
                             struct err *err)
{
    const char *type;
    struct step *step;
    bool flag;

    if (component_type(value, &type, err))
        return -1;
    if (strcmp(type, "Sequence") == 0)
        return read_sequence(value, "pretokenizers", steps_read_pre_tokenizer,
                             out, err);
    if (strcmp(type, "Split") == 0) {
        step = steps_add(out, STEP_SPLIT);
        return get_pattern(value, step, err) ||
                       get_behavior(value, NULL, &step->behavior, err) ||
                       config_get_flag(value, "invert", &step->invert, err)
                   ? -1
                   : 0;
    }
    if (strcmp(type, "ByteLevel") == 0) {
        step = steps_add(out, STEP_BYTE_LEVEL);
        if (component_ignore_flags(value, offset_keys, err) ||
            config_get_flag(value, "add_prefix_space", &step->add_prefix_space,
                            err) ||
            get_bool(value, "use_regex", true, &flag, err))
            return -1;
        if (flag)
            step->pattern =
                pattern_new(byte_level_pattern, strlen(byte_level_pattern),
                            PATTERN_RUBY, err);
        return flag && !step->pattern ? -1 : 0;
    }
    if (strcmp(type, "Metaspace") == 0)
        return get_metaspace(value, steps_add(out, STEP_METASPACE), err);
    if (strcmp(type, "Digits") == 0) {
        step = steps_add(out, STEP_SPLIT);
        step->pattern = pattern_new_set(unicode_numeric, unicode_numeric_count);
        if (config_get_flag(value, "individual_digits", &flag, err))
            return -1;
        step->behavior = flag ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
        return 0;
    }
    if (strcmp(type, "Punctuation") == 0) {
        step = steps_add(out, STEP_SPLIT);
        step->pattern =
            pattern_new_set(unicode_punctuation, unicode_punctuation_count);
        return get_behavior(value, "Isolated", &step->behavior, err);
    }
    if (strcmp(type, "Whitespace") == 0) {
        step = steps_add(out, STEP_SPLIT);
        step->pattern = pattern_new("\\w+|[^\\w\\s]+", 12, PATTERN_RUST, err);
        step->behavior = SPLIT_REMOVED;
        step->invert = true;
        return step->pattern ? 0 : -1;
    }
    if (strcmp(type, "WhitespaceSplit") == 0) {
        step = steps_add(out, STEP_SPLIT);
        step->pattern = pattern_new_set(unicode_space, unicode_space_count);
        step->behavior = SPLIT_REMOVED;
        return 0;
    }
    return component_unknown(type, err);
}

int steps_read_decoder(const struct section *value, struct steps *out,
                       struct err *err)
{
    const char *type;
    struct step *step;
    size_t n;

    if (component_type(value, &type, err))
        return -1;
    if (strcmp(type, "Sequence") == 0)
        return read_sequence(value, "decoders", steps_read_decoder, out, err);
    if (strcmp(type, "ByteLevel") == 0) {
        steps_add(out, STEP_DECODE_BYTE_LEVEL);
        return component_ignore_flags(value, component_byte_level_keys, err);
    }
    if (strcmp(type, "ByteFallback") == 0) {
        steps_add(out, STEP_DECODE_BYTE_FALLBACK);
        return 0;
    }
    if (strcmp(type, "Fuse") == 0) {
        steps_add(out, STEP_DECODE_FUSE);
        return 0;
    }
    if (strcmp(type, "Strip") == 0) {
        step = steps_add(out, STEP_DECODE_STRIP);
        if (get_text(value, "content", step, err) ||
            get_count(value, "start", &step->start, err) ||
            get_count(value, "stop", &step->stop, err))
            return -1;
        if (step->len == 0 || (utf8_get(step->text, &n), n != step->len))
            return err_set(err, ERR_INPUT, "'content' is not one character");
        return 0;
    }
    if (strcmp(type, "Replace") == 0) {
        step = steps_add(out, STEP_REPLACE);
        return get_pattern(value, step, err) ||
                       get_text(value, "content", step, err)
                   ? -1
                   : 0;
    }
    if (strcmp(type, "Metaspace") == 0)
        return get_metaspace(value, steps_add(out, STEP_DECODE_METASPACE), err);
    return component_unknown(type, err);
}
