/*
 * From a conversation to a prompt: where a pack's template is found, which
 * variables it gets, and how the last message is continued.  Expected prompts
 * are those of apply_chat_template (transformers 5.5.0) for the same files.
 */
#include "base/io.h"
#include "base/path.h"
#include "jinja/chat.h"
#include "tap.h"

#include <unistd.h>

static char pack[] = "/tmp/assay-chat-XXXXXX";

static void put(const char *file, const char *text)
{
    char *path = path_join(pack, file);
    struct err err = ERR_INIT;

    unlink(path);
    if (io_write_file(path, text, strlen(text), &err))
        ok(false, "%s", err.text);
    free(path);
}

static void drop(const char *file)
{
    char *path = path_join(pack, file);

    unlink(path);
    free(path);
}

static json_t *json(const char *text)
{
    struct err err = ERR_INIT;

    return text ? json_parse(text, strlen(text), &err) : NULL;
}

struct ask {
    const char *messages, *tools, *flags, *version;
    bool prompt, is_continued;
    const char *field; /* that is continued; "content" when NULL */
};

/* The prompt, or the error's code; *out is cleared first. */
static int ask(const struct ask *a, struct buf *out, struct err *err)
{
    json_t *messages = json(a->messages), *tools = json(a->tools),
           *flags = json(a->flags);
    const char *field = a->field ? a->field : "content";
    struct chat_request r = {.messages = messages,
                             .tools = tools,
                             .flags = flags,
                             .add_generation_prompt = a->prompt,
                             .continue_field = a->is_continued ? field : NULL,
                             .options = {a->version, NULL}};

    err_clear(err);
    buf_clear(out);
    int ret = chat_render(pack, &r, out, err);
    json_decref(messages);
    json_decref(tools);
    json_decref(flags);
    return ret ? (int)err->code : 0;
}

static const char hi[] = "[{\"role\": \"user\", \"content\": \"Hi\"}]";

static void is_prompt(struct ask a, const char *want, const char *name)
{
    struct buf out = BUF_INIT;
    struct err err = ERR_INIT;

    if (ask(&a, &out, &err))
        is_str(err.text, want, name);
    else
        is_str(out.data ? out.data : "", want, name);
    buf_release(&out);
}

static void is_refused(struct ask a, int code, const char *why,
                       const char *name)
{
    struct buf out = BUF_INIT;
    struct err err = ERR_INIT;
    int got = ask(&a, &out, &err);

    if (!ok(got == code && strstr(err.text, why) && out.len == 0, "%s", name))
        diag("got %d: %s", got, err.text);
    buf_release(&out);
}

static void places(void)
{
    struct ask plain = {hi, NULL, NULL, NULL, false, false, NULL};
    struct ask with_tools = {hi, "[{}]", NULL, NULL, false, false, NULL};

    is_refused(plain, ERR_UNSUPPORTED, "no chat template",
               "a pack without a template is refused");
    put("chat_template.json", "{\"chat_template\": \"processor\"}");
    is_prompt(plain, "processor", "chat_template.json");
    put("tokenizer_config.json", "{\"model_max_length\": "
                                 "1000000000000000019884624838656, "
                                 "\"chat_template\": \"config\\n\"}");
    is_prompt(plain, "config", "tokenizer_config.json goes before it");
    put("tokenizer_config.json", "{\"chat_template\": null}");
    put("processor_config.json", "{\"chat_template\": {\"default\": \"one\", "
                                 "\"tool_use\": \"tools\"}}");
    is_prompt(with_tools, "one", "a processor's: tools choose none");
    put("processor_config.json", "{\"chat_template\": null}");
    is_prompt(plain, "processor", "null: the next place");
    /* ProcessorMixin.get_processor_dict: [{...}] stays a list, which no
     * template can be; "" is none */
    put("chat_template.json",
        "{\"chat_template\": [{\"name\": \"default\", \"template\": \"x\"}]}");
    is_refused(plain, ERR_INPUT, "holds no text", "a processor's is no list");
    put("chat_template.json", "{\"chat_template\": \"\"}");
    is_refused(plain, ERR_UNSUPPORTED, "no chat template",
               "an empty chat_template.json is none");
    drop("chat_template.json");
    drop("processor_config.json");
    put("tokenizer_config.json",
        "{\"chat_template\": {\"default\": \"one\", \"tool_use\": \"tools\"}}");
    is_prompt(plain, "one", "of an object, default");
    is_prompt(with_tools, "tools", "with tools, tool_use");
    put("tokenizer_config.json",
        "{\"chat_template\": [{\"name\": \"default\", \"template\": \"one\"}, "
        "{\"name\": \"rag\"}]}");
    is_refused(plain, ERR_INPUT, "holds no text",
               "a list with an item that is no template is refused");
    put("tokenizer_config.json",
        "{\"chat_template\": [{\"name\": \"default\", \"template\": \"one\"}, "
        "{\"name\": 1, \"template\": \"x\"}]}");
    is_prompt(plain, "one", "a name that is no text names nothing");
    put("tokenizer_config.json",
        "{\"chat_template\": [{\"name\": \"default\", \"template\": \"one\"}, "
        "{\"name\": \"tool_use\", \"template\": \"tools\"}]}");
    is_prompt(plain, "one", "of a list, default");
    is_prompt(with_tools, "tools", "with tools, tool_use");
    put("tokenizer_config.json",
        "{\"chat_template\": [{\"name\": \"default\", \"template\": \"one\"}, "
        "{\"name\": \"tool_use\", \"template\": \"tools\"}, "
        "{\"name\": \"default\", \"template\": \"two\"}, "
        "{\"name\": \"tool_use\", \"template\": \"more tools\"}]}");
    is_prompt(plain, "two", "of a name given twice, the last");
    is_prompt(with_tools, "more tools", "with tools too");
    put("tokenizer_config.json",
        "{\"chat_template\": [{\"name\": \"rag\", \"template\": \"x\"}]}");
    is_refused(plain, ERR_INPUT, "tokenizer_config.json",
               "a list without default is refused");
    put("chat_template.jinja", "file\r\n\n");
    is_prompt(plain, "file\n", "chat_template.jinja goes before all");
    put("additional_chat_templates/tool_use.jinja", "more");
    is_prompt(plain, "file\n", "beside others it is default");
    is_prompt(with_tools, "more", "with tools, the file tool_use");
    drop("chat_template.jinja");
    is_refused(plain, ERR_INPUT, "default",
               "files without default are refused");
    drop("additional_chat_templates/tool_use.jinja");
    put("chat_template.jinja", "");
    is_prompt(plain, "", "an empty file is a template");
    put("chat_template.jinja", "\xef\xbb\xbfx");
    is_prompt(plain, "\xef\xbb\xbfx", "a byte order mark is text");
    put("additional_chat_templates/rag.jinja", "\xff");
    is_refused(plain, ERR_INPUT, "rag.jinja: not UTF-8",
               "a file beside it that is not UTF-8 is refused");
    drop("additional_chat_templates/rag.jinja");
    put("additional_chat_templates/tool_use.jinja/x", "");
    is_prompt(with_tools, "\xef\xbb\xbfx", "a folder is no template");
    drop("additional_chat_templates/tool_use.jinja/x");
    put("chat_template.jinja", "{{ 1 +");
    is_refused(plain, ERR_INPUT, "chat_template.jinja: line 1, column ",
               "an error names the file, line and column");
    put("tokenizer_config.json", "[]");
    is_refused(plain, ERR_INPUT, "tokenizer_config.json: is not an object",
               "a config that is no object is refused");
}

static void variables(void)
{
    put("tokenizer_config.json",
        "{\"bos_token\": {\"content\": \"<s>\", \"lstrip\": false}, "
        "\"eos_token\": \"</s>\", \"unk_token\": null, \"image_token\": "
        "\"<i>\", \"extra_special_tokens\": {\"boi_token\": \"<b>\"}, "
        "\"added_tokens_decoder\": {}, \"add_bos_token\": true}");
    put("special_tokens_map.json", "{\"pad_token\": \"<p>\"}");
    put("chat_template.jinja",
        "{{ [bos_token, eos_token, image_token, boi_token, unk_token is "
        "defined, pad_token is defined, add_bos_token is defined, tools, "
        "documents, add_generation_prompt, flag] }}");
    is_prompt((struct ask){hi, NULL, "{\"flag\": null, \"eos_token\": \"E\"}",
                           NULL, true, false, NULL},
              "['<s>', 'E', '<i>', '<b>', False, False, False, None, None, "
              "True, None]",
              "special tokens that are set, then flags over them");
    put("tokenizer_config.json", "{}");
    put("chat_template.jinja", "{{ pad_token }}{{ tools }}");
    is_prompt((struct ask){hi, "[]", NULL, NULL, false, false, NULL}, "<p>[]",
              "special_tokens_map.json where upstream still reads it");
    is_refused(
        (struct ask){hi, NULL, "{\"messages\": []}", NULL, false, false, NULL},
        ERR_INPUT, "'messages'", "a flag that is no argument");
    is_refused((struct ask){hi, NULL, "{\"tokenize\": true}", NULL, false,
                            false, NULL},
               ERR_INPUT, "'tokenize'", "nor one of apply_chat_template");
    is_refused((struct ask){"[]", NULL, NULL, NULL, false, false, NULL},
               ERR_INPUT, "no messages", "no messages");
    is_refused((struct ask){"[[]]", NULL, NULL, NULL, false, false, NULL},
               ERR_INPUT, "item 0", "a message that is no object");
    is_refused((struct ask){hi, "[1]", NULL, NULL, false, false, NULL},
               ERR_INPUT, "'tools', item 0", "a tool that is no object");
    put("chat_template.jinja", "{{ messages|tojson }}");
    static const char old[] =
        "[{\"role\": \"assistant\", \"content\": null, \"reasoning\": \"r\"}]";
    is_prompt((struct ask){old, NULL, NULL, "5.5.0", false, false, NULL},
              "[{\"role\": \"assistant\", \"content\": null, \"reasoning\": "
              "\"r\"}]",
              "5.5.0 passes messages as they are");
    is_prompt((struct ask){old, NULL, NULL, "5.24.0", false, false, NULL},
              "[{\"thinking\": \"r\", \"role\": \"assistant\", \"reasoning\": "
              "\"r\", \"reasoning_content\": \"r\"}]",
              "5.24.0 drops None and names reasoning in two ways");
}

static void continued(void)
{
    static const char text[] =
        "[{\"role\": \"user\", \"content\": \"q\"}, "
        "{\"role\": \"assistant\", \"content\": \"Sure \"}]";
    static const char list[] =
        "[{\"role\": \"assistant\", \"content\": [{\"type\": \"text\", "
        "\"text\": \"a\"}, {\"type\": \"text\", \"text\": \"b\"}, {\"type\": "
        "\"image\"}]}]";
    static const char none[] = "[{\"role\": \"assistant\", \"content\": "
                               "[{\"type\": \"image\"}]}]";

    put("chat_template.jinja",
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}");
    is_prompt((struct ask){text, NULL, NULL, NULL, false, true, NULL},
              "<user>q</><assistant>Sure ", "the prompt ends in the message");
    is_refused((struct ask){text, NULL, NULL, NULL, true, true, NULL},
               ERR_INPUT, "add_generation_prompt",
               "not with a generation prompt");
    is_refused((struct ask){none, NULL, NULL, NULL, false, true, NULL},
               ERR_INPUT, "no text", "a message without text is refused");
    is_refused((struct ask){"[{\"role\": \"user\", \"content\": null}]", NULL,
                            NULL, NULL, false, true, NULL},
               ERR_INPUT, "not text", "content that is no text is refused");
    put("chat_template.jinja",
        "{% for m in messages %}<{{ m.content|trim }}>{% endfor %}");
    is_prompt((struct ask){text, NULL, NULL, NULL, false, true, NULL},
              "<q><Sure", "trimmed by the template, trimmed here");
    put("chat_template.jinja", "{{ '\\n ' }}{{ messages[0].content|trim }}");
    is_prompt((struct ask){"[{\"role\": \"user\", \"content\": \" \"}]", NULL,
                           NULL, NULL, false, true, NULL},
              "", "trimmed to nothing where nothing but white space stands");
    put("chat_template.jinja", "{% for m in messages %}{% for p in m.content "
                               "%}[{{ p.text }}]{% endfor %}{% endfor %}");
    is_prompt((struct ask){list, NULL, NULL, NULL, false, true, NULL}, "[a][b",
              "of a list, the last text");
    put("chat_template.jinja", "{{ messages[0].content }}");
    is_refused((struct ask){text, NULL, NULL, NULL, false, true, NULL},
               ERR_INPUT, "not in what the template gives",
               "a template that drops the message is refused");
}

/* The field that is continued, which 5.24 lets the caller name. */
static void continued_fields(void)
{
    static const char text[] = "[{\"role\": \"assistant\", \"thinking\": "
                               "\"T \", \"content\": \"c\"}]";
    struct ask a = {text, NULL, NULL, "5.24.0", false, true, "thinking"};

    put("chat_template.jinja",
        "{% for m in messages %}({{ m.reasoning_content }}|{{ m.thinking }}|{{ "
        "m.content }}){% endfor %}");
    is_prompt(a, "(T CONTINUE_FINAL_MESSAGE_TAG |T ",
              "5.24: every copy of the reasoning is tagged");
    a.field = "content";
    is_prompt(a, "(T |T |c", "5.24: a field by its name");
    a.field = "tool_calls";
    is_refused(a, ERR_INPUT, "tool_calls is not text",
               "5.24: a field that is not there is refused");
    a.version = "5.5.0";
    is_prompt(a, "(|T |c", "5.5.0: any name means the content");
    put("chat_template.jinja", "{{ messages[0]['con' ~ 'tent'] }}");
    a.field = NULL;
    is_prompt(a, "c", "5.5.0: the template need not name the field");
    a.version = "5.24.0";
    is_refused(a, ERR_INPUT, "does not name 'content'",
               "5.24: a template without the field's name is refused");
    put("chat_template.jinja", "{{ dict }}{{ namespace }}");
    a = (struct ask){hi, NULL, NULL, "5.5.0", false, false, NULL};
    is_prompt(a, "<class 'dict'><class 'jinja2.utils.Namespace'>",
              "5.5.0: dict and namespace are classes");
    a.version = "5.24.0";
    is_refused(a, ERR_UNSUPPORTED, "an address",
               "5.24: printing its own dict is refused");
}

int main(void)
{
    struct err err = ERR_INIT;

    if (!mkdtemp(pack))
        return 1;
    places();
    variables();
    continued();
    continued_fields();
    io_remove_tree(pack, &err);
    return done();
}
