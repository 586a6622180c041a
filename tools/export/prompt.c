/* A pack's chat template and tokenizer, as the protocol means them. */
#include "prompt.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "jinja/chat.h"
#include "jinja/jinja.h"

#include <stdlib.h>

struct tokenizer *prompt_tokenizer(const char *pack,
                                   const struct protocol *protocol,
                                   struct err *err)
{
    struct tokenizer_options options = {TOKENIZER_UNSAID};

    if (tokenizer_rule_parse(protocol->tokenizer, &options.rule, err))
        return NULL;
    return tokenizer_open(pack, &options, err);
}

int prompt_render(const char *pack, const struct test_case *c,
                  const struct protocol *protocol, struct buf *out,
                  struct err *err)
{
    json_t *arguments = json_object();
    struct chat_request request = {
        .messages = c->messages,
        .tools = c->tools,
        .documents = c->documents,
        .arguments = arguments,
        .now = c->now ? c->now : protocol->now,
        .transformers = protocol->transformers,
    };

    if (c->has_thinking)
        json_object_set_new(arguments, "enable_thinking",
                            json_boolean(c->thinking));
    if (c->arguments)
        json_object_update(arguments, c->arguments);
    int ret = chat_render(pack, &request, out, err);
    json_decref(arguments);
    return ret;
}
