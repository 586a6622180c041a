/* A value of a stream as a tree. */
#include "json/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static json_t *tree_of(struct json_stream *s, enum json_event event,
                       struct err *err);

/* NULL with err when it does not fit; a byte that is no digit stands behind
 * the text. */
static json_t *number_of(const struct json_stream *s, struct err *err)
{
    bool is_whole = !memchr(s->text, '.', s->len) &&
                    !memchr(s->text, 'e', s->len) &&
                    !memchr(s->text, 'E', s->len);
    json_error_t why = {.text = "too big integer"};
    json_t *number;

    errno = 0;
    if (is_whole) {
        json_int_t value = strtoll(s->text, NULL, 10);
        number = errno ? NULL : json_integer(value);
    } else {
        number = json_loadb(s->text, s->len, JSON_DECODE_ANY, &why);
    }
    if (!number)
        json_stream_fail(s, ERR_INPUT, err, "%s", why.text);
    return number;
}

static json_t *list_of(struct json_stream *s, struct err *err)
{
    json_t *list = json_array();
    enum json_event event;

    while ((event = json_stream_next(s, err)) != STREAM_LIST_END) {
        json_t *item = tree_of(s, event, err);

        if (!item) {
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list, item);
    }
    return list;
}

static int check_key(const struct json_stream *s, const json_t *object,
                     struct err *err)
{
    if (memchr(s->text, '\0', s->len))
        return json_stream_fail(s, ERR_INPUT, err, "a key with a NUL");
    if (json_object_getn(object, s->text, s->len))
        return json_stream_fail(s, ERR_INPUT, err, "duplicate key '%.*s'",
                                (int)(s->len < 100 ? s->len : 100), s->text);
    return 0;
}

static json_t *object_of(struct json_stream *s, struct err *err)
{
    json_t *object = json_object(), *value = NULL;
    struct buf key = BUF_INIT;
    enum json_event event;

    while ((event = json_stream_next(s, err)) == STREAM_KEY) {
        buf_clear(&key);
        buf_add(&key, s->text, s->len);
        if (check_key(s, object, err) == 0)
            value = tree_of(s, json_stream_next(s, err), err);
        if (!value)
            break;
        json_object_setn_new_nocheck(object, key.data, key.len, value);
        value = NULL;
    }
    buf_release(&key);
    if (event == STREAM_OBJECT_END)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *tree_of(struct json_stream *s, enum json_event event,
                       struct err *err)
{
    if (event == STREAM_LIST)
        return list_of(s, err);
    if (event == STREAM_OBJECT)
        return object_of(s, err);
    return event == STREAM_BAD ? NULL : json_stream_scalar(s, err);
}

json_t *json_stream_scalar(const struct json_stream *s, struct err *err)
{
    switch (s->last) {
    case STREAM_TEXT:
        return json_stringn_nocheck(s->text, s->len);
    case STREAM_NUMBER:
        return number_of(s, err);
    case STREAM_TRUTH:
        return json_boolean(s->text[0] == 't');
    default:
        return json_null();
    }
}

json_t *json_stream_tree(struct json_stream *s, struct err *err)
{
    return tree_of(s, json_stream_next(s, err), err);
}
