/*
 * Which class upstream's AutoTokenizer takes for a pack.  The rules are those
 * of transformers' models/auto/tokenization_auto.py.
 */
#include "tokenizer/class.h"

#include "base/mem.h"
#include "base/path.h"
#include "json/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char as_file[] = "TokenizersBackend";

/* Special tokens are never added to a rendered prompt, nothing is truncated or
 * padded; the rest is read elsewhere or describes the file. */
static const char *const unused[] = {
    "add_bos_token",
    "add_eos_token",
    "add_prefix_space",
    "added_tokens_decoder",
    "additional_special_tokens",
    "auto_map",
    "backend",
    "chat_template",
    "clean_up_tokenization_spaces",
    "do_lower_case",
    "errors",
    "is_local",
    "legacy",
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

/* Each would change ids; trust_remote_code of the file takes tokenizer.json as
 * it is for a class that rebuilds. */
static const char *const off[] = {"split_special_tokens", "fix_mistral_regex",
                                  "trust_remote_code"};

/* Upstream asks whether they are true, and takes other things for it. */
static const char *const flags[] = {"add_prefix_space", "legacy"};

static bool is_nothing(const json_t *value)
{
    return !value || json_is_null(value) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

/* Does upstream read another file in tokenizer.json's place? */
static bool names_other_file(const struct section *config)
{
    const json_t *list = config_value(config, "fast_tokenizer_files");
    bool is_plain = is_nothing(list) || json_is_array(list);

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));

        is_plain &= name && strcmp(name, "tokenizer.json") == 0;
    }
    return !is_plain;
}

int class_check(const struct section *config, enum class_version version,
                struct err *err)
{
    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
        if (config_expect_flag(config, off[i], false, err))
            return -1;
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        const json_t *value = json_object_get(config_object(config), flags[i]);

        if (value && !json_is_null(value) && !json_is_boolean(value))
            return err_set(err, ERR_INPUT, "%s: '%s' is neither true nor false",
                           config_path(config), flags[i]);
    }
    if (names_other_file(config))
        return config_refuse(config, "fast_tokenizer_files", err,
                             "names files other than tokenizer.json");
    if (!is_nothing(config_value(config, "init_inputs")))
        return config_refuse(config, "init_inputs", err,
                             "has arguments, which are not supported");
    if (version == CLASS_5_5 && config_value(config, "tokenizer_file"))
        return config_refuse(config, "tokenizer_file", err,
                             "is set: transformers before 5.24 reads that "
                             "path in place of the pack's");
    config_ignore(config, unused);
    return 0;
}

/* What the files of a pack say about its class. */
struct pack {
    enum class_version version;
    const struct class_row *row; /* of its model type, or NULL */
    bool has_own_code;
    const char *file; /* its tokenizer.json */
    char *named;      /* by tokenizer_config.json, without 'Fast', or NULL */
    char *model;      /* by config.json, the same */
};

static int by_type(const void *key, const void *row)
{
    return strcmp(key, ((const struct class_row *)row)->model_type);
}

static int by_name(const void *key, const void *name)
{
    return strcmp(key, *(const char *const *)name);
}

static char *without_fast(const char *name)
{
    size_t len = name ? strlen(name) : 0;

    if (len == 0)
        return NULL;
    if (len > 4 && strcmp(name + len - 4, "Fast") == 0)
        len -= 4;
    return xstrndup(name, len);
}

static bool is_equal(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

enum class_version class_version(const char *transformers)
{
    int major = 5, minor = 5;

    if (transformers)
        sscanf(transformers, "%d.%d", &major, &minor);
    return major > 5 || (major == 5 && minor >= 24) ? CLASS_5_24 : CLASS_5_5;
}

/* A registered class that differs from the one a pack names takes its place,
 * and is not built: upstream then takes the file. */
static const char *choose_5_5(const struct pack *p)
{
    const char *registered = p->row ? p->row->named[CLASS_5_5] : NULL;

    if (!p->has_own_code && p->named && registered &&
        strcmp(registered, p->named) != 0)
        return as_file;
    return p->named   ? p->named
           : p->model ? p->model
           : p->row   ? p->row->made[CLASS_5_5]
                      : as_file;
}

/* Upstream looks for this in the whole text of tokenizer.json.  A file that
 * cannot be read is refused by who reads it next. */
static bool is_byte_level(const char *path)
{
    static const char name[] = "\"ByteLevel\"";
    enum { LEN = sizeof(name) - 1, HELD = 64 << 10 };
    struct err why = ERR_INIT;
    struct window w;
    bool is_found = false;

    if (window_open(&w, path, HELD, &why) == 0 && window_more(&w))
        do
            is_found = memmem(w.data, w.size, name, LEN) != NULL;
        while (!is_found &&
               window_slide(&w, w.size < LEN ? 0 : w.size - (LEN - 1)));
    window_release(&w);
    return is_found;
}

static const char *choose_5_24(const struct pack *p)
{
    const char *registered = p->row ? p->row->named[CLASS_5_24] : NULL;
    const char *wanted = p->named ? p->named : p->model;
    bool is_distrusted = p->row && p->row->is_distrusted;

    if (!p->has_own_code && is_equal(wanted, "LlamaTokenizer") &&
        !is_distrusted && is_byte_level(p->file))
        return as_file;
    if (!p->has_own_code && wanted && registered &&
        strcmp(registered, wanted) != 0) {
        if (strcmp(registered, as_file) == 0)
            return as_file;
        return is_distrusted ? registered : wanted;
    }
    return wanted ? wanted : p->row ? p->row->made[CLASS_5_24] : as_file;
}

static void read_pack(const struct section *config, const struct section *model,
                      struct pack *p)
{
    const json_t *code =
        config ? json_object_get(config_object(config), "auto_map") : NULL;
    const char *type =
        model ? json_string_value(config_value(model, "model_type")) : NULL;

    if (config)
        p->named = without_fast(
            json_string_value(config_value(config, "tokenizer_class")));
    if (model)
        p->model = without_fast(json_string_value(
            json_object_get(config_object(model), "tokenizer_class")));
    if (json_is_object(code))
        code = json_object_get(code, "AutoTokenizer");
    p->has_own_code = code && !json_is_null(code);
    if (type)
        p->row = bsearch(type, class_table, class_table_count,
                         sizeof(*class_table), by_type);
}

/* 5.24.0 leaves a BPE's text alone unless it is told twice. */
static void read_clean_up(const struct section *config, struct rebuild *out)
{
    static const char even_bpe[] = "clean_up_tokenization_spaces_for_bpe_"
                                   "even_though_it_will_corrupt_output";

    if (!config)
        return;
    out->cleans_up =
        json_is_true(config_value(config, "clean_up_tokenization_spaces"));
    out->cleans_up_bpe =
        out->cleans_up && (out->version == CLASS_5_5 ||
                           json_is_true(config_value(config, even_bpe)));
}

/* The class of a pack, by name: a constant, or one that p holds. */
static int choose(struct ledger *ledger, struct pack *p,
                  const struct section **config, const char **name,
                  struct err *err)
{
    const struct section *model;

    if (ledger_file(ledger, "tokenizer_config.json", config, err) ||
        ledger_file(ledger, "config.json", &model, err))
        return -1;
    read_pack(*config, model, p);
    *name = p->version == CLASS_5_24 ? choose_5_24(p) : choose_5_5(p);
    return 0;
}

static void pack_release(struct pack *p)
{
    free(p->named);
    free(p->model);
}

int class_read(struct tokenizer *t, const char *file, struct rebuild *out,
               bool *is_known, struct err *err)
{
    const struct section *config = NULL;
    struct pack p = {.version = class_version(t->transformers), .file = file};
    const char *name;
    int ret = 0;

    *is_known = false;
    if (!t->ledger)
        return 0;
    if (choose(t->ledger, &p, &config, &name, err) ||
        (config && class_check(config, p.version, err))) {
        ret = -1;
        goto out;
    }
    const char *named =
        config ? json_string_value(config_value(config, "tokenizer_class"))
               : NULL;
    t->class_name = named ? xstrdup(named) : NULL;
    out->version = p.version;
    out->kind = class_kind_find(name);
    read_clean_up(config, out);
    *is_known = out->kind || !bsearch(name, class_names, class_names_count,
                                      sizeof(*class_names), by_name);
    if (out->kind) {
        out->kind->build(out, config);
        out->has_own_frames =
            out->kind->puts_bos ||
            (p.version == CLASS_5_24 && out->kind->drops_frames_5_24);
    }
    t->made_by = xstrdup(name);
    if (!*is_known && t->rule == TOKENIZER_CLASS)
        ret = err_set(err, ERR_UNSUPPORTED,
                      "tokenizer_config.json: what tokenizer_class '%s' makes "
                      "of tokenizer.json is not known here",
                      name);
    else if (!*is_known)
        tokenizer_warn(t,
                       "tokenizer_class '%s' is not known here: tokenizer.json "
                       "is taken as it is",
                       name);
out:
    pack_release(&p);
    return ret;
}

int tokenizer_class_tokens(const char *pack, struct ledger *ledger,
                           const char *transformers, const char *const **tokens,
                           struct err *err)
{
    char *file = path_join(pack, "tokenizer.json");
    struct pack p = {.version = class_version(transformers), .file = file};
    const struct section *config;
    const char *name;
    int ret = choose(ledger, &p, &config, &name, err);
    const struct class_kind *kind = ret ? NULL : class_kind_find(name);

    *tokens = kind ? kind->specials : NULL;
    pack_release(&p);
    free(file);
    return ret;
}
