/* assay-export --render, --template: rendered bytes on stdout. */
#include "export.h"

#include "base/io.h"
#include "jinja/jinja.h"
#include "prompt.h"

#include <stdio.h>

enum { MAX_CONTEXT = 64 << 20 };

static void print_bytes(const struct buf *b)
{
    if (b->len)
        fwrite(b->data, 1, b->len, stdout); /* cli_finish() checks stdout */
}

int export_render(const struct export_options *opt,
                  const struct protocol *protocol, struct err *err)
{
    struct case_list list;
    struct buf out = BUF_INIT;
    const struct test_case *c;
    int ret = -1;

    if (case_list_read(opt->cases, &list, err))
        return -1;
    c = case_list_find(&list, opt->render, err);
    if (c && prompt_render(opt->pack, c, protocol, &out, err))
        err_in(err, "case '%s'", c->name);
    else if (c)
        ret = 0;
    if (ret == 0)
        print_bytes(&out);
    buf_release(&out);
    case_list_release(&list);
    return ret;
}

int export_template(const struct export_options *opt,
                    const struct protocol *protocol, struct err *err)
{
    const struct jinja_options options = {protocol->transformers,
                                          protocol->now};
    struct buf source = BUF_INIT, context = BUF_INIT, out = BUF_INIT;
    struct jinja_template *t = NULL;
    int ret = -1;

    if (io_read_file(opt->template, JINJA_MAX_SOURCE, &source, err) ||
        io_read_file(opt->context, MAX_CONTEXT, &context, err))
        goto out;
    if (json_check_depth(context.data ? context.data : "", context.len, err)) {
        err_in(err, "%s", opt->context);
        goto out;
    }
    t = jinja_compile(opt->template, source.data ? source.data : "", source.len,
                      &options, err);
    if (!t || jinja_render_text(t, context.data ? context.data : "",
                                context.len, NULL, &out, err))
        goto out;
    print_bytes(&out);
    ret = 0;
out:
    jinja_free(t);
    buf_release(&source);
    buf_release(&context);
    buf_release(&out);
    return ret;
}
