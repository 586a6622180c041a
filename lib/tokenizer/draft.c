/* What reading the document and reading its model share. */
#include "tokenizer/draft.h"

#include "base/mem.h"

#include <stdlib.h>

int draft_wrong(const struct draft *d, const char *what, struct err *err)
{
    return json_stream_fail(&d->stream, ERR_INPUT, err, "%s", what);
}

static int note_key(struct draft *d, struct seen_keys *seen, struct err *err)
{
    char *key = xstrndup(d->stream.text, d->stream.len);

    for (size_t i = 0; i < seen->count; i++)
        if (strcmp(seen->names[i], key) == 0) {
            json_stream_fail(&d->stream, ERR_INPUT, err, "duplicate key '%s'",
                             key);
            free(key);
            return -1;
        }
    if (seen->count == sizeof(seen->names) / sizeof(seen->names[0])) {
        free(key);
        return draft_wrong(d, "more than 64 keys", err);
    }
    seen->names[seen->count++] = key;
    return 0;
}

int draft_next_key(struct draft *d, struct seen_keys *seen, const char **key,
                   struct err *err)
{
    enum json_event event = json_stream_next(&d->stream, err);

    *key = NULL;
    if (!seen->is_open) {
        if (event != STREAM_OBJECT)
            return event == STREAM_BAD ? -1
                                       : draft_wrong(d, "not an object", err);
        seen->is_open = true;
        event = json_stream_next(&d->stream, err);
    }
    if (event == STREAM_OBJECT_END)
        return 0;
    if (event == STREAM_BAD || note_key(d, seen, err))
        return -1;
    *key = seen->names[seen->count - 1];
    return 0;
}

void draft_forget_keys(struct seen_keys *seen)
{
    for (size_t i = 0; i < seen->count; i++)
        free(seen->names[i]);
}

int draft_keep(struct draft *d, json_t *object, const char *key,
               struct err *err)
{
    json_t *value = json_stream_tree(&d->stream, err);

    return value ? json_object_set_new(object, key, value) : -1;
}
