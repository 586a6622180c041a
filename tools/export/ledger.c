/*
 * --ledger: what became of each key of tokenizer_config.json: read, defaulted,
 * known and without effect on ids or rendered text, or unread (listed).  A key
 * that has an effect upstream and none here is refused unless it is off.
 */
#include "ledger/config.h"

#include "base/io.h"
#include "base/path.h"
#include "export.h"
#include "image/processor.h"
#include "prompt.h"

#include <stdio.h>
#include <stdlib.h>

/* By lib/jinja/chat.c and lib/tokenizer. */
static const char *const read_keys[] = {
    "tokenizer_class",
    "chat_template",
    "added_tokens_decoder",
    "add_prefix_space",
    "legacy",
    "extra_special_tokens",
    "model_specific_special_tokens",
    "bos_token",
    "eos_token",
    "unk_token",
    "pad_token",
    "sep_token",
    "cls_token",
    "mask_token",
};

/* Special tokens are never added to a rendered prompt, nothing is truncated or
 * padded, and decoding is not cleaned up; the rest describes the file. */
static const char *const without_effect[] = {
    "add_bos_token",
    "add_eos_token",
    "additional_special_tokens",
    "auto_map",
    "backend",
    "clean_up_tokenization_spaces",
    "do_lower_case",
    "errors",
    "is_local",
    "max_length",
    "model_input_names",
    "model_max_length",
    "name_or_path",
    "pad_to_multiple_of",
    "padding_side",
    "pretokenize_regex",
    "processor_class",
    "sp_model_kwargs",
    "special_tokens_map_file",
    "tokenizer_file",
    "truncation_side",
    "use_fast",
    NULL,
};

/* Each would change ids. */
static const char *const off[] = {
    "split_special_tokens",
    "fix_mistral_regex",
};

/* A long value would only repeat the file. */
static void shorten(json_t *entries)
{
    size_t i;
    json_t *entry;

    json_array_foreach(entries, i, entry)
    {
        const json_t *value = json_object_get(entry, "value");

        if (json_is_object(value) || json_is_array(value) ||
            json_string_length(value) > 100)
            json_object_del(entry, "value");
    }
}

int ledger_tokenizer(const char *pack, json_t **out, struct err *err)
{
    char *path = path_join(pack, "tokenizer_config.json");
    struct err listed = ERR_INIT;
    struct config *c = NULL;
    int ret = -1;

    *out = json_array();
    if (!io_exists(path)) {
        ret = 0;
        goto out;
    }
    c = config_open(path, err);
    if (!c)
        goto out;
    const struct section *root = config_root(c);
    for (size_t i = 0; i < sizeof(read_keys) / sizeof(read_keys[0]); i++)
        config_value(root, read_keys[i]);
    config_ignore(root, without_effect);
    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
        if (config_expect_flag(root, off[i], false, err))
            goto out;
    config_finish(c, &listed); /* an unknown key is listed, not refused */
    json_decref(*out);
    *out = config_ledger(c);
    shorten(*out);
    ret = 0;
out:
    config_close(c);
    free(path);
    if (ret) {
        json_decref(*out);
        *out = NULL;
    }
    return ret;
}

static void add_names(json_t *entries, const char *const *names,
                      const char *state)
{
    for (size_t i = 0; i < PROCESSOR_MAX_KEYS && names[i]; i++)
        json_array_append_new(
            entries, json_pack("{s:s,s:s}", "key", names[i], "state", state));
}

static int ledger_processor(const char *pack, json_t *ledger, struct err *err)
{
    static const char name[] = "preprocessor_config.json";
    char *path = path_join(pack, name);
    struct image_processor p;
    int ret = 0;

    if (io_exists(path)) {
        ret = image_processor_load(pack, &p, err);
        if (ret == 0) {
            json_t *entries = json_array();

            add_names(entries, p.used, "read");
            add_names(entries, p.defaulted, "defaulted");
            add_names(entries, p.ignored, "without effect");
            json_object_set_new(ledger, name, entries);
        }
    }
    free(path);
    return ret;
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
            char *text = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;

            printf("%s\t%s\t%s\t%s\n", file,
                   json_string_value(json_object_get(entry, "key")),
                   json_string_value(json_object_get(entry, "state")),
                   text ? text : "");
            free(text);
        }
    }
}

int export_ledger(const struct export_options *opt, struct err *err)
{
    json_t *ledger = json_object(), *entries;
    int ret = -1;

    if (ledger_tokenizer(opt->pack, &entries, err))
        goto out;
    json_object_set_new(ledger, "tokenizer_config.json", entries);
    if (ledger_processor(opt->pack, ledger, err))
        goto out;
    if (opt->is_json) {
        char *text = json_dumps(ledger, 0);

        puts(text);
        free(text);
    } else {
        print_text(ledger);
    }
    ret = 0;
out:
    json_decref(ledger);
    return ret;
}
