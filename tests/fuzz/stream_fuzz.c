/*
 * Any bytes as a JSON document, behind one that says how many of them are held
 * at a time: they must mean the same as held whole, event by event and in what
 * is refused, and as jansson reads them.
 */
#include "memory_file.h"
#include "json/stream.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the events say, one after the other; the reason in the end. */
static void trace(const char *path, size_t window, struct buf *out)
{
    struct json_stream s;
    struct err err = ERR_INIT;
    enum json_event event = STREAM_BAD;

    if (json_stream_open(&s, path, window, &err))
        abort();
    while ((event = json_stream_next(&s, &err)) > STREAM_DONE) {
        buf_addf(out, "%d %zu ", event, json_stream_offset(&s));
        if (event >= STREAM_KEY && event < STREAM_NOTHING)
            buf_add(out, s.text, s.len);
    }
    buf_addf(out, "%d %s", event, err.text);
    json_stream_release(&s);
}

static json_t *tree(const char *path, size_t window)
{
    struct json_stream s;
    struct err err = ERR_INIT;

    if (json_stream_open(&s, path, window, &err))
        abort();
    json_t *value = json_stream_tree(&s, &err);
    if (value && json_stream_next(&s, &err) != STREAM_DONE) {
        json_decref(value);
        value = NULL;
    }
    if (!value && (err.code == ERR_NONE || !*err.text))
        abort();
    json_stream_release(&s);
    return value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf little = BUF_INIT, whole = BUF_INIT;
    struct err err = ERR_INIT;
    char path[64];

    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    int fd = memory_file(text, size - 1, path);
    trace(path, 1 + data[0], &little);
    trace(path, JSON_WINDOW, &whole);
    if (little.len != whole.len ||
        memcmp(little.data, whole.data, whole.len) != 0)
        abort();
    json_t *by_us = tree(path, 1 + data[0]),
           *by_jansson = json_parse(text, size - 1, &err);
    /* jansson takes a number and a NUL behind it */
    bool is_alike = !memchr(text, '\0', size - 1);
    if (is_alike && (by_us ? !json_equal(by_us, by_jansson) : !!by_jansson))
        abort();
    json_decref(by_us);
    json_decref(by_jansson);
    close(fd);
    buf_release(&little);
    buf_release(&whole);
    return 0;
}
