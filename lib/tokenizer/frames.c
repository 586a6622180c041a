/*
 * Post-processors.  The template of a pair is not used: prompts are single
 * texts.  One of a single text that holds it not once would repeat or drop it
 * upstream, with and without special tokens, and is refused.
 */
#include "base/mem.h"
#include "tokenizer/components.h"

#include <stdlib.h>
#include <string.h>

void frames_release(struct frames *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->items[i].ids);
    free(f->items);
    *f = (struct frames){0};
}

static bool is_id(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) <= UINT32_MAX;
}

/* An entry of special_tokens: {"id": text, "ids": [id...], "tokens":
 * [text...]}, of which we need the ids. */
static int check_special(const json_t *entry, struct err *err)
{
    const char *id;
    json_t *ids, *tokens, *item;
    size_t i;

    if (json_get_str(entry, "id", &id, err) ||
        json_get_array(entry, "ids", &ids, err) ||
        json_get_array(entry, "tokens", &tokens, err))
        return -1;
    json_array_foreach(ids, i, item) if (!is_id(item)) return err_set(
        err, ERR_INPUT, "an id is not a number");
    json_array_foreach(tokens, i, item) if (
        !json_is_string(item)) return err_set(err, ERR_INPUT,
                                              "a token is not a string");
    return 0;
}

static int get_specials(const struct section *value, json_t **specials,
                        struct err *err)
{
    const char *name;
    json_t *entry;

    config_value(value, "special_tokens");
    if (json_get_object(config_object(value), "special_tokens", specials, err))
        return -1;
    json_object_foreach(
        *specials, name,
        entry) if (check_special(entry,
                                 err)) return err_in(err,
                                                     "special_tokens: '%s'",
                                                     name);
    return 0;
}

/* {"SpecialToken" or "Sequence": {"id": text, "type_id": number}} */
static int read_piece(const json_t *piece, bool *is_special, const char **id,
                      struct err *err)
{
    const json_t *special = json_object_get(piece, "SpecialToken");
    const json_t *what = special ? special : json_object_get(piece, "Sequence");

    if (json_object_size(piece) != 1 || !json_is_object(what))
        return err_set(err, ERR_INPUT, "neither a SpecialToken nor a Sequence");
    if (json_get_str(what, "id", id, err))
        return -1;
    if (!is_id(json_object_get(what, "type_id")))
        return err_set(err, ERR_INPUT, "'type_id' is not a number");
    *is_special = special != NULL;
    if (!special && strcmp(*id, "A") != 0 && strcmp(*id, "B") != 0)
        return err_set(err, ERR_INPUT, "sequence '%s' is neither A nor B", *id);
    return 0;
}

static void add_id(struct frame *frame, int64_t id)
{
    frame->ids = xrealloc(frame->ids, (frame->count + 1) * sizeof(*frame->ids));
    frame->ids[frame->count++] = id;
}

/* One piece of the template of a single text: its ids, or -1 for the text. */
static int read_frame_piece(const json_t *piece, const json_t *specials,
                            struct frame *frame, struct err *err)
{
    bool is_special;
    const char *id;
    json_t *entry, *item;
    size_t i;

    if (read_piece(piece, &is_special, &id, err))
        return -1;
    if (!is_special && strcmp(id, "B") == 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "sequence 'B' in the template of a single text");
    if (!is_special) {
        add_id(frame, -1);
        frame->texts++;
        return 0;
    }
    if (json_get_object(specials, id, &entry, err))
        return err_in(err, "special_tokens");
    json_array_foreach(json_object_get(entry, "ids"), i, item)
        add_id(frame, (int64_t)json_integer_value(item));
    return 0;
}

/* Not used, but upstream opens no file where it is not sound. */
static int check_pair(const struct section *value, struct err *err)
{
    json_t *list, *piece;
    bool is_special;
    const char *id;
    size_t i;

    config_ignore(value, (const char *const[]){"pair", NULL});
    if (json_get_array(config_object(value), "pair", &list, err))
        return -1;
    json_array_foreach(
        list, i, piece) if (read_piece(piece, &is_special, &id,
                                       err)) return err_in(err, "pair[%zu]", i);
    return 0;
}

static int read_template(const struct section *value, struct frames *out,
                         struct err *err)
{
    json_t *list, *specials;

    if (check_pair(value, err) || get_specials(value, &specials, err) ||
        config_get_list(value, "single", &list, err))
        return -1;
    out->items = xrealloc(out->items, (out->count + 1) * sizeof(*out->items));
    struct frame *frame = &out->items[out->count++];
    *frame = (struct frame){0};
    for (size_t i = 0; i < json_array_size(list); i++)
        if (read_frame_piece(json_array_get(list, i), specials, frame, err))
            return err_in(err, "single[%zu]", i);
    if (frame->texts != 1)
        return err_set(err, ERR_UNSUPPORTED,
                       "sequence 'A' %zu times in the template of a single "
                       "text",
                       frame->texts);
    return 0;
}

int frames_read(const struct section *value, struct frames *out,
                struct err *err)
{
    const char *type;
    json_t *list;

    if (component_type(value, &type, err))
        return -1;
    if (strcmp(type, "ByteLevel") == 0)
        return component_byte_level(value, err); /* moves offsets */
    if (strcmp(type, "Sequence") == 0) {
        if (config_get_list(value, "processors", &list, err))
            return -1;
        for (size_t i = 0; i < json_array_size(list); i++) {
            const struct section *item;

            if (config_get_item(value, "processors", i, &item, err) ||
                frames_read(item, out, err))
                return err_in(err, "processors[%zu]", i);
        }
        return 0;
    }
    if (strcmp(type, "TemplateProcessing") != 0)
        return component_unknown(type, err);
    return read_template(value, out, err);
}
