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

/* The ids of an entry of special_tokens. */
static int get_special(const json_t *specials, const char *id, json_t **ids,
                       struct err *err)
{
    json_t *entry, *item;
    size_t i;

    if (json_get_object(specials, id, &entry, err) ||
        json_get_array(entry, "ids", ids, err))
        return -1;
    json_array_foreach(*ids, i, item)
    {
        if (!json_is_integer(item) || json_integer_value(item) < 0 ||
            json_integer_value(item) > UINT32_MAX)
            return err_set(err, ERR_INPUT, "'%s': an id is not a number", id);
    }
    return 0;
}

/* One piece of a template: its ids, or -1 for the text. */
static int read_frame_piece(const json_t *piece, const json_t *specials,
                            struct frame *frame, struct err *err)
{
    const json_t *special = json_object_get(piece, "SpecialToken");
    const json_t *sequence = json_object_get(piece, "Sequence");
    const json_t *what = special ? special : sequence;
    const char *id;
    json_t *ids = NULL;
    size_t more = 1;

    if (json_object_size(piece) != 1 || !json_is_object(what))
        return err_set(err, ERR_INPUT, "neither a SpecialToken nor a Sequence");
    if (json_get_str(what, "id", &id, err))
        return -1;
    if (special) {
        if (get_special(specials, id, &ids, err))
            return err_in(err, "special_tokens");
        more = json_array_size(ids);
    } else if (strcmp(id, "A") == 0) {
        frame->texts++;
    } else if (strcmp(id, "B") == 0) {
        return err_set(err, ERR_UNSUPPORTED,
                       "sequence 'B' in the template of a single text");
    } else {
        return err_set(err, ERR_INPUT, "sequence '%s' is neither A nor B", id);
    }
    frame->ids =
        xrealloc(frame->ids, (frame->count + more) * sizeof(*frame->ids));
    for (size_t i = 0; i < more; i++)
        frame->ids[frame->count++] =
            special ? (int64_t)json_integer_value(json_array_get(ids, i)) : -1;
    return 0;
}

static int read_template(const struct section *value, struct frames *out,
                         struct err *err)
{
    json_t *list, *specials;

    config_ignore(value, (const char *const[]){"pair", NULL});
    config_value(value, "special_tokens");
    if (config_get_list(value, "single", &list, err) ||
        json_get_object(config_object(value), "special_tokens", &specials, err))
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
        return component_ignore_flags(value, component_byte_level_keys,
                                      err); /* moves offsets */
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
