/* A conversation's template and variables, as apply_chat_template's. */
#include "jinja/chat.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/utf8.h"
#include "jinja/jinja_unicode.h"

#include <stdlib.h>
#include <string.h>

static const char final_tag[] = "CONTINUE_FINAL_MESSAGE_TAG ";

/* --- the template --- */

/* What is found so far: the better of two templates stays. */
struct found {
    int rank; /* of the template's name; 0: none is held */
    struct buf source;
    char *name; /* its place */
};

static void found_take(struct found *f, int rank, struct buf *source,
                       char *name)
{
    buf_release(&f->source);
    free(f->name);
    *f = (struct found){rank, *source, name};
}

static void found_release(struct found *f)
{
    buf_release(&f->source);
    free(f->name);
}

/* A file of one template.  Upstream reads all that there are: each must be
 * UTF-8, whichever is meant. */
static int take_file(const char *pack, const char *file, int rank,
                     struct found *f, struct err *err)
{
    struct buf source = BUF_INIT;
    char *path = path_join(pack, file);

    if (io_read_file(path, JINJA_MAX_SOURCE, &source, err))
        goto fail;
    if (source.len && !utf8_is_valid(source.data, source.len)) {
        err_set(err, ERR_INPUT, "%s: not UTF-8", path);
        goto fail;
    }
    if (rank > f->rank) {
        found_take(f, rank, &source, path);
        return 0;
    }
    buf_release(&source);
    free(path);
    return 0;
fail:
    buf_release(&source);
    free(path);
    return -1;
}

static bool is_template(const char *folder, const char *name)
{
    size_t n = strlen(name);
    char *path = path_join(folder, name);
    bool is = n >= 6 && strcmp(name + n - 6, ".jinja") == 0 && !io_is_dir(path);

    free(path);
    return is;
}

/* chat_template.jinja is `default`, unless the folder beside it has one; of
 * the folder's files each is named as it is called. */
static int from_files(const char *pack, bool with_tools, struct found *f,
                      struct err *err)
{
    static const char single[] = "chat_template.jinja";
    struct io_list list = {0};
    char *path = path_join(pack, single);
    char *folder = path_join(pack, "additional_chat_templates");
    bool has_any = io_exists(path);
    int ret = has_any ? take_file(pack, single, 1, f, err) : 0;

    if (!ret && io_is_dir(folder))
        ret = io_list(folder, &list, err);
    for (size_t i = 0; i < list.count && !ret; i++) {
        const char *name = list.names[i];

        if (!is_template(folder, name))
            continue;
        has_any = true;
        ret = take_file(folder, name,
                        strcmp(name, "default.jinja") == 0                  ? 2
                        : with_tools && strcmp(name, "tool_use.jinja") == 0 ? 3
                                                                            : 0,
                        f, err);
    }
    if (!ret && has_any && !f->rank)
        ret = err_set(err, ERR_INPUT,
                      "%s: several chat templates, and none named 'default'",
                      pack);
    io_list_release(&list);
    free(folder);
    free(path);
    return ret;
}

/* A list of {name, template} as an object by name, a new one: of a name given
 * twice the last; what is no text names nothing.  NULL when an item is none. */
static json_t *by_names(const json_t *list)
{
    json_t *out = json_object();

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const json_t *name = json_object_get(entry, "name");
        json_t *text = json_object_get(entry, "template");

        if (!name || !text) {
            json_decref(out);
            return NULL;
        }
        if (json_is_string(name))
            json_object_set(out, json_string_value(name), text);
    }
    return out;
}

/* The text under chat_template: as it stands, or the one of several that is
 * meant.  A processor's are no list, and tools choose none of them. */
static int take_value(const struct section *config, const json_t *value,
                      bool is_processor, bool with_tools, struct found *f,
                      struct err *err)
{
    json_t *named = !is_processor && json_is_array(value) ? by_names(value)
                    : json_is_object(value) ? json_incref((json_t *)value)
                                            : NULL;
    const json_t *text = NULL;
    int ret = 0;

    if (with_tools && !is_processor)
        text = json_object_get(named, "tool_use");
    if (!text)
        text = named ? json_object_get(named, "default") : value;
    if (json_is_string(text)) {
        struct buf source = BUF_INIT;

        buf_add(&source, json_string_value(text), json_string_length(text));
        found_take(f, 1, &source,
                   xasprintf("%s: chat_template", config_path(config)));
    } else
        ret = err_set(err, ERR_INPUT, "%s: 'chat_template' holds no text",
                      config_path(config));
    json_decref(named);
    return ret;
}

static int from_config(struct ledger *ledger, bool with_tools, struct found *f,
                       struct err *err)
{
    static const char *const places[] = {
        "tokenizer_config.json", "processor_config.json", "chat_template.json"};

    for (size_t i = 0; i < 3 && !f->rank; i++) {
        const struct section *config;

        if (ledger_file(ledger, places[i], &config, err))
            return -1;
        const json_t *value =
            config ? config_value(config, "chat_template") : NULL;
        bool is_nothing =
            i == 2 && json_is_string(value) && json_string_length(value) == 0;
        if (value && !is_nothing &&
            take_value(config, value, i > 0, with_tools, f, err))
            return -1;
    }
    return 0;
}

/* Appends the template's source; *name is its place, freed by the caller. */
static int find_template(const char *pack, struct ledger *ledger,
                         bool with_tools, struct buf *source, char **name,
                         struct err *err)
{
    struct found f = {0, BUF_INIT, NULL};
    int ret = from_files(pack, with_tools, &f, err);

    *name = NULL;
    if (!ret && !f.rank)
        ret = from_config(ledger, with_tools, &f, err);
    if (!ret && !f.rank)
        ret = err_set(err, ERR_UNSUPPORTED,
                      "%s: the pack has no chat template: its prompts need a "
                      "renderer of their own, or a frozen prompt text",
                      pack);
    if (!ret) {
        buf_add(source, f.source.data ? f.source.data : "", f.source.len);
        *name = f.name;
        f.name = NULL;
    }
    found_release(&f);
    return ret;
}

/* --- the variables --- */

/* The names that a message's reasoning goes by, in 5.24's order. */
static const char *const reasoning_names[] = {"reasoning_content", "thinking",
                                              "reasoning"};

static bool is_524(const struct jinja_options *o)
{
    return o->transformers && strncmp(o->transformers, "5.", 2) == 0 &&
           atoi(o->transformers + 2) >= 24;
}

static void set_token(json_t *context, const char *key, const json_t *value)
{
    if (json_is_object(value))
        value = json_object_get(value, "content");
    if (json_is_string(value))
        json_object_set(context, key, (json_t *)value);
}

static const char *const named[] = {"bos_token", "eos_token", "unk_token",
                                    "sep_token", "pad_token", "cls_token",
                                    "mask_token"};

static bool is_token_key(const char *key)
{
    size_t n = strlen(key);

    return n > 6 && strcmp(key + n - 6, "_token") == 0;
}

/* The tokens that are set: the seven that have names, then a model's own; and
 * the class's where the files say nothing, not even null. */
static void set_tokens(json_t *context, const json_t *config,
                       const char *const *defaults)
{
    const json_t *extra = json_object_get(config, "extra_special_tokens");
    const json_t *own =
        json_object_get(config, "model_specific_special_tokens");
    const char *key;
    json_t *value;

    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
        set_token(context, named[i], json_object_get(config, named[i]));
    json_object_foreach((json_t *)extra, key, value)
        set_token(context, key, value);
    json_object_foreach((json_t *)config, key, value)
    {
        if (is_token_key(key))
            set_token(context, key, value);
    }
    json_object_foreach((json_t *)own, key, value)
        set_token(context, key, value);
    for (; defaults && *defaults; defaults += 2)
        if (!json_object_get(config, defaults[0]))
            json_object_set_new(context, defaults[0], json_string(defaults[1]));
}

static int check_objects(const json_t *list, const char *what, struct err *err)
{
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return err_set(err, ERR_INPUT, "'%s' is not a list", what);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_object(json_array_get(list, i)))
            return err_set(err, ERR_INPUT, "'%s', item %zu is not an object",
                           what, i);
    return 0;
}

/* 5.24: absent rather than None, and one name for a message's reasoning; the
 * keys in upstream's order.  Returns a new object. */
static json_t *modernize(const json_t *message)
{
    const char *key;
    json_t *value, *reasoning = NULL, *out = json_object();

    for (size_t i = 0; i < 3 && !reasoning; i++)
        if (json_has(message, reasoning_names[i]))
            reasoning = json_object_get(message, reasoning_names[i]);
    if (reasoning)
        json_object_set(out, "thinking", reasoning);
    json_object_foreach((json_t *)message, key, value) if (!json_is_null(value))
        json_object_set(out, key, value);
    if (reasoning)
        json_object_set(out, "reasoning_content", reasoning);
    return out;
}

/* Text with the tag behind it, a new string. */
static json_t *tagged(const json_t *text)
{
    struct buf b = BUF_INIT;

    buf_add(&b, json_string_value(text), json_string_length(text));
    buf_addstr(&b, final_tag);
    json_t *out = json_stringn(b.data, b.len);
    buf_release(&b);
    return out;
}

/* Is it one of the names that modernize() gives a message's reasoning? */
static bool is_reasoning(const char *field)
{
    for (size_t i = 0; i < 3; i++)
        if (strcmp(field, reasoning_names[i]) == 0)
            return true;
    return false;
}

/* The field that is continued; *copies says whether its copies are too. */
static const char *continued(const struct chat_request *request, bool *copies)
{
    const char *field = request->continue_field;

    *copies = field && is_524(&request->options) && is_reasoning(field);
    return field && !is_524(&request->options) ? "content" : field;
}

/* Tags the last message; *text is its content before, a reference. */
static int tag_final(json_t *messages, const struct chat_request *request,
                     json_t **text, struct err *err)
{
    bool copies;
    const char *field = continued(request, &copies), *key = field;
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    json_t *content = json_object_get(last, field), *holder = last;

    if (json_is_array(content)) {
        size_t i = json_array_size(content);

        holder = NULL;
        while (i-- > 0 && !holder)
            if (json_object_get(json_array_get(content, i), "text"))
                holder = json_array_get(content, i);
        if (!holder)
            return err_set(err, ERR_INPUT,
                           "continue_final_message: the last "
                           "message has no text");
        key = "text";
        content = json_object_get(holder, key);
    }
    if (!json_is_string(content))
        return err_set(err, ERR_INPUT,
                       "continue_final_message: the last message's %s is "
                       "not text",
                       field);
    *text = json_incref(content);
    for (size_t i = 0; copies && i < 3; i++)
        if (json_equal(json_object_get(last, reasoning_names[i]), *text))
            json_object_set_new(last, reasoning_names[i], tagged(*text));
    if (!copies || holder != last)
        json_object_set_new(holder, key, tagged(*text));
    return 0;
}

/* 5.24 wants the field's name to stand in the template. */
static int check_continued(const struct chat_request *request,
                           const struct buf *source, struct err *err)
{
    bool copies;
    const char *field = continued(request, &copies);

    if (!field || !is_524(&request->options))
        return 0;
    for (size_t i = 0; i < 3; i++) {
        const char *name = copies ? reasoning_names[i] : field;

        if (source->len &&
            memmem(source->data, source->len, name, strlen(name)))
            return 0;
    }
    return err_set(err, ERR_INPUT,
                   "continue_final_message: the template does not name '%s'",
                   field);
}

static int set_flags(json_t *context, const json_t *flags, struct err *err)
{
    /* arguments of apply_chat_template: they do not reach the template */
    static const char *const taken[] = {"messages",
                                        "tools",
                                        "documents",
                                        "add_generation_prompt",
                                        "conversation",
                                        "chat_template",
                                        "continue_final_message",
                                        "tokenize",
                                        "padding",
                                        "truncation",
                                        "max_length",
                                        "return_tensors",
                                        "return_dict",
                                        "return_assistant_tokens_mask",
                                        "tokenizer_kwargs"};
    const char *key;
    json_t *value;

    if (!flags || json_is_null(flags))
        return 0;
    if (!json_is_object(flags))
        return err_set(err, ERR_INPUT,
                       "the template's arguments are not an "
                       "object");
    json_object_foreach((json_t *)flags, key, value)
    {
        for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
            if (strcmp(key, taken[i]) == 0)
                return err_set(err, ERR_INPUT,
                               "'%s' cannot be an argument of the template",
                               key);
        json_object_set(context, key, value);
    }
    return 0;
}

/* `text` takes the last message's content when it is continued. */
static json_t *make_context(const json_t *config,
                            const struct chat_request *request, json_t **text,
                            struct err *err)
{
    json_t *context = NULL, *messages = NULL;
    int ret = -1;

    if (!json_is_array(request->messages) ||
        json_array_size(request->messages) == 0) {
        err_set(err, ERR_INPUT, "no messages");
        return NULL;
    }
    if (check_objects(request->messages, "messages", err) ||
        check_objects(request->tools, "tools", err) ||
        check_objects(request->documents, "documents", err))
        return NULL;
    if (request->continue_field && request->add_generation_prompt) {
        err_set(err, ERR_INPUT,
                "continue_final_message with "
                "add_generation_prompt");
        return NULL;
    }
    context = json_object();
    messages = json_deep_copy(request->messages);
    if (!context || !messages) {
        err_set(err, ERR_SYSTEM, "out of memory");
        goto out;
    }
    for (size_t i = 0;
         is_524(&request->options) && i < json_array_size(messages); i++)
        json_array_set_new(messages, i, modernize(json_array_get(messages, i)));
    if (request->continue_field && tag_final(messages, request, text, err))
        goto out;
    json_object_set(context, "messages", messages);
    json_object_set(context, "tools",
                    request->tools ? (json_t *)request->tools : json_null());
    json_object_set(context, "documents",
                    request->documents ? (json_t *)request->documents
                                       : json_null());
    json_object_set_new(context, "add_generation_prompt",
                        json_boolean(request->add_generation_prompt));
    set_tokens(context, config, request->class_tokens);
    ret = set_flags(context, request->flags, err);
out:
    json_decref(messages);
    if (ret) {
        json_decref(context);
        return NULL;
    }
    return context;
}

/* --- the prompt --- */

/* Where [from, to) begins, and ends, without Python's white space around it. */
static size_t strip_start(const char *data, size_t from, size_t to)
{
    while (from < to) {
        size_t at = from;

        if (!juni_is(juni_next(data, &at), JUNI_SPACE))
            break;
        from = at;
    }
    return from;
}

static size_t strip_end(const char *data, size_t from, size_t to)
{
    while (from < to) {
        size_t at = to;

        if (!juni_is(juni_before(data, &at), JUNI_SPACE))
            break;
        to = at;
    }
    return to;
}

/* Cuts the prompt, out[begin..], where the last message's text ends. */
static int cut_final(struct buf *out, size_t begin, const json_t *text,
                     struct err *err)
{
    const char *content = json_string_value(text);
    size_t from = 0, to = json_string_length(text), at = 0;
    size_t tag = sizeof(final_tag) - 2; /* without its space */
    const char *found = NULL;
    char *p = out->data ? out->data + begin : NULL, *end = out->data + out->len;

    from = strip_start(content, from, to);
    to = strip_end(content, from, to);
    while (p && (p = memmem(p, (size_t)(end - p), final_tag, tag)))
        found = p++;
    if (!found || (to > from && !memmem(out->data + begin, out->len - begin,
                                        content + from, to - from)))
        return err_set(err, ERR_INPUT,
                       "continue_final_message: the last message is not in "
                       "what the template gives");
    at = (size_t)(found - out->data);
    if (at + tag >= out->len || out->data[at + tag] != ' ')
        at = strip_end(out->data, begin, at);
    buf_cut(out, at);
    return 0;
}

static void note_tokens(const struct section *config)
{
    const char *key;
    json_t *value;

    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
        config_value(config, named[i]);
    config_value(config, "extra_special_tokens");
    config_value(config, "model_specific_special_tokens");
    json_object_foreach((json_t *)config_object(config), key, value)
    {
        if (is_token_key(key) &&
            (json_is_string(value) || json_is_object(value)))
            config_value(config, key);
    }
}

/* tokenizer_config.json, with special_tokens_map.json over it where upstream
 * still reads that: a new object. */
static json_t *read_tokens(struct ledger *ledger, struct err *err)
{
    const struct section *config, *map = NULL;

    if (ledger_file(ledger, "tokenizer_config.json", &config, err))
        return NULL;
    if (config) {
        note_tokens(config);
        config_value(config, "added_tokens_decoder");
    }
    bool is_new = config && json_object_get(config_object(config),
                                            "added_tokens_decoder");
    if (!is_new && ledger_file(ledger, "special_tokens_map.json", &map, err))
        return NULL;
    json_t *all =
        config ? json_copy((json_t *)config_object(config)) : json_object();
    if (map) {
        note_tokens(map);
        json_object_update(all, (json_t *)config_object(map));
    }
    return all;
}

int chat_look(const char *pack, struct ledger *ledger, bool with_tools,
              struct err *err)
{
    struct buf source = BUF_INIT;
    char *name = NULL;
    json_t *tokens = read_tokens(ledger, err);
    int ret = tokens
                  ? find_template(pack, ledger, with_tools, &source, &name, err)
                  : -1;

    json_decref(tokens);
    free(name);
    buf_release(&source);
    return ret;
}

int chat_render_more(const char *pack, const struct chat_request *request,
                     struct jinja_results *results, struct buf *out,
                     struct err *err)
{
    struct buf source = BUF_INIT;
    struct jinja_template *t = NULL;
    json_t *config = NULL, *context = NULL, *text = NULL;
    char *name = NULL;
    size_t begin = out->len;
    int ret = -1;
    bool with_tools = request->tools && !json_is_null(request->tools);
    struct ledger *own = request->ledger ? NULL : ledger_new(pack);
    struct ledger *ledger = own ? own : request->ledger;

    if (find_template(pack, ledger, with_tools, &source, &name, err))
        goto out;
    config = read_tokens(ledger, err);
    if (!config)
        goto out;
    context = make_context(config, request, &text, err);
    if (!context)
        goto out;
    if (check_continued(request, &source, err)) {
        err_in(err, "%s", name);
        goto out;
    }
    t = jinja_compile(name, source.data ? source.data : "", source.len,
                      &request->options, err);
    if (!t || jinja_render_more(t, context, results, out, err))
        goto out;
    if (text && cut_final(out, begin, text, err)) {
        err_in(err, "%s", name);
        goto out;
    }
    ret = 0;
out:
    if (ret)
        buf_cut(out, begin);
    jinja_free(t);
    json_decref(text);
    json_decref(context);
    json_decref(config);
    ledger_free(own);
    free(name);
    buf_release(&source);
    return ret;
}

int chat_render(const char *pack, const struct chat_request *request,
                struct buf *out, struct err *err)
{
    return chat_render_more(pack, request, NULL, out, err);
}
