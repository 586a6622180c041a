#ifndef SUPPORT_JSONL_H
#define SUPPORT_JSONL_H

#include "base/io.h"
#include "tap.h"
#include "json/json.h"

/* Each line of a file of JSON documents, one after the other, to `check`. */
__attribute__((unused)) static void each_line(const char *path,
                                              void (*check)(const json_t *line))
{
    struct err err = ERR_INIT;
    struct buf text = BUF_INIT;

    if (!ok(io_read_file(path, IO_JSON_CAP, &text, &err) == 0, "%s is there",
            path))
        diag("%s", err.text);
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        size_t len = end ? (size_t)(end - text.data) - at : text.len - at;
        json_t *line = json_parse(text.data + at, len, &err);

        at += len + 1;
        if (line)
            check(line);
        else
            ok(false, "%s: %s", path, err.text);
        json_decref(line);
    }
    buf_release(&text);
}
#endif
