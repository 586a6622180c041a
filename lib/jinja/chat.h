#ifndef JINJA_CHAT_H
#define JINJA_CHAT_H

#include "base/buf.h"
#include "base/err.h"
#include "jinja/jinja.h"
#include "ledger/ledger.h"
#include "json/json.h"

#include <stdbool.h>

/*
 * From a conversation to a prompt, as upstream's apply_chat_template does it:
 * the pack's template, found in upstream's order, with upstream's variables.
 *
 * A template is looked for in chat_template.jinja and
 * additional_chat_templates/NAME.jinja; else in tokenizer_config.json, key
 * chat_template (a text, a list of {name, template}, or an object of texts by
 * name).  Among several, with tools `tool_use`, else `default`.  Else it is the
 * processor's: the same key of processor_config.json, then of
 * chat_template.json, a text or an object with `default`.  A pack without any
 * is ERR_UNSUPPORTED.
 *
 * Variables: messages, tools, documents (None when absent),
 * add_generation_prompt, the special tokens that tokenizer_config.json sets or,
 * where it does not name them, the pack's class has, then the flags, which
 * replace a special token of the same name.
 */
struct chat_request {
    const json_t *messages;  /* a list of objects, not empty */
    const json_t *tools;     /* a list of objects; NULL or null: none */
    const json_t *documents; /* the same */
    const json_t *flags;     /* an object: enable_thinking, ...; may be NULL */
    const char *const *class_tokens; /* key, token, ..., NULL; or NULL */
    bool add_generation_prompt;
    /* NULL, or the last message is left open: this field of it, "content",
     * ends the prompt.  Another field is 5.24's; 5.5.0 takes any as true. */
    const char *continue_field;
    struct jinja_options options;
    struct ledger *ledger; /* of the pack's files; NULL: one of its own */
};

/* Appends the prompt; errors name the template's file. */
int chat_render(const char *pack, const struct chat_request *request,
                struct buf *out, struct err *err);

/* The same with what else a render can tell; results may be NULL. */
int chat_render_more(const char *pack, const struct chat_request *request,
                     struct jinja_results *results, struct buf *out,
                     struct err *err);

/* Finds the template and the special tokens, for their notes in the ledger. */
int chat_look(const char *pack, struct ledger *ledger, bool with_tools,
              struct err *err);
#endif
