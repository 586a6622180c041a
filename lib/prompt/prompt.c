/* A pack's chat template and tokenizer, as the protocol means them. */
#include "prompt/prompt.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "jinja/chat.h"
#include "jinja/jinja.h"

#include <stdlib.h>
#include <string.h>

struct tokenizer *prompt_tokenizer(const char *pack, struct ledger *ledger,
                                   const struct protocol *protocol,
                                   struct err *err)
{
    struct tokenizer_options options = {TOKENIZER_UNSAID,
                                        protocol->transformers, ledger};

    if (tokenizer_rule_parse(protocol->tokenizer, &options.rule, err))
        return NULL;
    return tokenizer_open(pack, &options, err);
}

/* Arguments of apply_chat_template itself are no variables of the template. */
static int take_flag(json_t *flags, const char *key, bool *out, struct err *err)
{
    if (!json_object_get(flags, key))
        return 0;
    if (json_get_bool(flags, key, out, err))
        return err_in(err, "'template'");
    json_object_del(flags, key);
    return 0;
}

/* true, or the name of the field to continue: *out is the caller's. */
static int take_continued(json_t *flags, char **out, struct err *err)
{
    const json_t *value = json_object_get(flags, "continue_final_message");
    bool is_true = false;

    if (json_is_string(value)) {
        if (json_string_length(value))
            *out = xstrdup(json_string_value(value));
        json_object_del(flags, "continue_final_message");
        return 0;
    }
    if (take_flag(flags, "continue_final_message", &is_true, err))
        return -1;
    *out = is_true ? xstrdup("content") : NULL;
    return 0;
}

int prompt_render(const char *pack, struct ledger *ledger,
                  const struct test_case *c, const struct protocol *protocol,
                  struct jinja_results *results, struct buf *out,
                  struct err *err)
{
    json_t *flags = json_object();
    struct chat_request request = {
        .messages = c->messages,
        .tools = c->tools,
        .documents = c->documents,
        .flags = flags,
        .options = {protocol->transformers, c->now ? c->now : protocol->now},
        .ledger = ledger,
    };
    struct ledger *own = ledger ? NULL : ledger_new(pack);
    char *continued = NULL;
    int ret = -1;

    if (own)
        request.ledger = own;
    if (c->has_thinking)
        json_object_set_new(flags, "enable_thinking",
                            json_boolean(c->thinking));
    if (c->arguments)
        json_object_update(flags, c->arguments);
    if (take_continued(flags, &continued, err))
        goto out;
    request.continue_field = continued;
    request.add_generation_prompt = !continued;
    if (take_flag(flags, "add_generation_prompt",
                  &request.add_generation_prompt, err) ||
        tokenizer_class_tokens(pack, request.ledger, protocol->transformers,
                               &request.class_tokens, err))
        goto out;
    ret = chat_render_more(pack, &request, results, out, err);
out:
    ledger_free(own);
    json_decref(flags);
    free(continued);
    return ret;
}

int prompt_files(const char *pack, prompt_visitor *visit, void *context,
                 struct err *err)
{
    static const char *const names[] = {
        "config.json",    "preprocessor_config.json", "processor_config.json",
        "tokenizer.json", "tokenizer_config.json",    "special_tokens_map.json",
        "tiktoken.model", "chat_template.jinja",      "chat_template.json",
    };
    char *more = path_join(pack, "additional_chat_templates");
    struct io_list list = {0};
    int ret = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !ret; i++) {
        char *path = path_join(pack, names[i]);

        if (io_exists(path))
            ret = visit(path, context, err);
        free(path);
    }
    if (!ret && io_is_dir(more))
        ret = io_list(more, &list, err);
    for (size_t i = 0; i < list.count && !ret; i++) {
        char *path = path_join(more, list.names[i]);

        ret = visit(path, context, err);
        free(path);
    }
    io_list_release(&list);
    free(more);
    return ret;
}
