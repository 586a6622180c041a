/*
 * --ledger: what became of each key of the pack's files that export looks at:
 * read, defaulted, known and without effect, or unread (listed).
 */
#include "ledger/ledger.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/utf8.h"
#include "export.h"
#include "image/processor.h"
#include "jinja/chat.h"
#include "prompt/prompt.h"

#include <stdio.h>
#include <stdlib.h>

static bool has(const char *pack, const char *name)
{
    char *path = path_join(pack, name);
    bool is_there = io_exists(path);

    free(path);
    return is_there;
}

/* All that a case could ask of the pack, as far as the files are there. */
static int look(const char *pack, struct ledger *l,
                const struct protocol *protocol, struct err *err)
{
    struct image_processor processor;
    const struct section *config;
    struct err why = ERR_INIT;

    if (ledger_file(l, "config.json", &config, err))
        return -1;
    if (has(pack, "tokenizer.json") || has(pack, "tiktoken.model")) {
        struct tokenizer *t = prompt_tokenizer(pack, l, protocol, err);

        if (!t)
            return -1;
        tokenizer_free(t);
    }
    if (chat_look(pack, l, false, &why) && why.code != ERR_UNSUPPORTED) {
        *err = why; /* a pack may have no template */
        return -1;
    }
    if (image_processor_is_there(l) && image_processor_load(l, &processor, err))
        return -1;
    if (config)
        config_ignore_rest(config);
    return 0;
}

static void print_text(const json_t *ledger)
{
    const char *file;
    json_t *entries, *entry;
    size_t i;

    json_object_foreach((json_t *)ledger, file, entries)
    {
        json_array_foreach(entries, i, entry)
        {
            const json_t *value = json_object_get(entry, "value");
            char *key =
                xstrdup(json_string_value(json_object_get(entry, "key")));
            struct buf text = BUF_INIT;

            if (value)
                json_write_line(value, &text);
            utf8_make_printable(key);
            printf("%s\t%s\t%s\t%s\n", file, key,
                   json_string_value(json_object_get(entry, "state")),
                   text.data ? text.data : "");
            buf_release(&text);
            free(key);
        }
    }
}

int export_ledger(const struct export_options *opt,
                  const struct protocol *protocol, struct err *err)
{
    struct ledger *l = ledger_new(opt->pack);
    int ret = look(opt->pack, l, protocol, err);

    if (ret == 0) {
        json_t *lines = ledger_json(l);

        if (json_object_size(lines) == 0)
            ret = err_set(err, ERR_INPUT, "%s: holds no file of a pack",
                          opt->pack);
        else if (opt->is_json)
            cli_print_json(lines);
        else
            print_text(lines);
        json_decref(lines);
    }
    ledger_free(l);
    return ret;
}
