/* assay-export --text, --jsonl: a pack's tokenizer alone. */
#include "export.h"

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "prompt/prompt.h"
#include "tokenizer/tokenizer.h"
#include "json/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 256 << 20 };

static json_t *ids_json(const struct token_ids *ids)
{
    json_t *row = json_object(), *list = json_array();

    for (size_t i = 0; i < ids->count; i++)
        json_array_append_new(list, json_integer(ids->ids[i]));
    json_object_set_new(row, "ids", list);
    return row;
}

/* The same with how the vocabulary spells each id (null when that is no text,
 * as some of a tiktoken.model are) and the bytes of the text it stands for. */
static json_t *pieces_json(const struct tokenizer *t,
                           const struct token_ids *ids)
{
    json_t *row = ids_json(ids), *pieces = json_array(),
           *offsets = json_array();

    for (size_t i = 0; i < ids->count; i++) {
        size_t len;
        const char *text = tokenizer_piece(t, ids->ids[i], &len);
        json_t *piece = text ? json_stringn(text, len) : NULL;

        json_array_append_new(pieces, piece ? piece : json_null());
        json_array_append_new(offsets,
                              json_pack("[I,I]", (json_int_t)ids->starts[i],
                                        (json_int_t)ids->ends[i]));
    }
    json_object_set_new(row, "pieces", pieces);
    json_object_set_new(row, "offsets", offsets);
    return row;
}

static void print_line(json_t *row)
{
    char *text = json_dumps(row, 0);

    puts(text);
    free(text);
    json_decref(row);
}

int export_text(const struct export_options *opt,
                const struct protocol *protocol, struct err *err)
{
    struct tokenizer *t = prompt_tokenizer(opt->pack, NULL, protocol, err);
    struct buf text = BUF_INIT;
    struct token_ids ids;
    int ret = -1;

    token_ids_init(&ids);
    ids.want_places = opt->is_json;
    if (!t)
        goto out;
    if (strcmp(opt->text, "-") != 0)
        buf_addstr(&text, opt->text);
    else if (io_read_file("-", MAX_TEXT, &text, err))
        goto out;
    if (tokenizer_encode(t, text.data ? text.data : "", text.len, false, &ids,
                         err))
        goto out;
    if (opt->is_json)
        print_line(pieces_json(t, &ids));
    for (size_t i = 0; !opt->is_json && i < ids.count; i++)
        printf("%" PRId64 "\n", ids.ids[i]);
    ret = 0;
out:
    token_ids_release(&ids);
    buf_release(&text);
    tokenizer_free(t);
    return ret;
}

static int check_only(const json_t *row, const char *key, struct err *err)
{
    if (!json_is_object(row))
        return err_set(err, ERR_INPUT, "not an object");
    if (json_object_size(row) != 1 || !json_object_get(row, key))
        return err_set(err, ERR_INPUT, "not an object with '%s' alone", key);
    return 0;
}

static int encode_line(const struct tokenizer *t, const json_t *row,
                       struct err *err)
{
    const json_t *text = json_object_get(row, "text");
    struct token_ids ids;
    int ret = -1;

    token_ids_init(&ids);
    if (check_only(row, "text", err))
        goto out;
    if (!json_is_string(text)) {
        err_set(err, ERR_INPUT, "'text' is not a string");
        goto out;
    }
    if (tokenizer_encode(t, json_string_value(text), json_string_length(text),
                         false, &ids, err))
        goto out;
    print_line(ids_json(&ids));
    ret = 0;
out:
    token_ids_release(&ids);
    return ret;
}

static int decode_line(const struct tokenizer *t, const json_t *row,
                       struct err *err)
{
    struct buf text = BUF_INIT;
    int64_t *ids = NULL;
    json_t *list, *out;
    int ret = -1;

    if (check_only(row, "ids", err) || json_get_array(row, "ids", &list, err))
        goto out;
    size_t n = json_array_size(list);
    ids = mem_array(n, sizeof(*ids), SIZE_MAX / 2, err);
    if (!ids)
        goto out;
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);

        if (!json_is_integer(id)) {
            err_set(err, ERR_INPUT, "'ids' holds something else than ids");
            goto out;
        }
        ids[i] = json_integer_value(id);
    }
    if (tokenizer_decode(t, ids, n, false, &text, err))
        goto out;
    out = json_object();
    json_object_set_new(out, "text",
                        json_stringn(text.data ? text.data : "", text.len));
    print_line(out);
    ret = 0;
out:
    buf_release(&text);
    free(ids);
    return ret;
}

int export_lines(const struct export_options *opt,
                 const struct protocol *protocol, struct err *err)
{
    bool is_stdin = strcmp(opt->jsonl, "-") == 0;
    struct tokenizer *t = prompt_tokenizer(opt->pack, NULL, protocol, err);
    FILE *f = NULL;
    char *line = NULL;
    size_t cap = 0, number = 0;
    ssize_t n;
    int ret = -1;

    if (!t)
        goto out;
    f = is_stdin ? stdin : fopen(opt->jsonl, "r");
    if (!f) {
        err_sys(err, "%s", opt->jsonl);
        goto out;
    }
    while ((n = getline(&line, &cap, f)) > 0) {
        number++;
        if (line[n - 1] == '\n')
            n--;
        json_t *row = json_parse(line, (size_t)n, err);
        int failed = !row || (opt->is_decode ? decode_line(t, row, err)
                                             : encode_line(t, row, err));

        json_decref(row);
        if (failed) {
            err_in(err, "%s: line %zu", is_stdin ? "stdin" : opt->jsonl,
                   number);
            goto out;
        }
    }
    if (ferror(f)) {
        err_sys(err, "%s", opt->jsonl);
        goto out;
    }
    ret = 0;
out:
    free(line);
    if (f && !is_stdin)
        fclose(f);
    tokenizer_free(t);
    return ret;
}
