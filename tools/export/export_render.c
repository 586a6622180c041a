/* assay-export --render, --template: rendered bytes on stdout. */
#include "export.h"

#include "base/bug.h"
#include "base/io.h"
#include "jinja/jinja.h"
#include "prompt/prompt.h"

#include <stdio.h>

enum { MAX_CONTEXT = 64 << 20 };

static void print_bytes(const struct buf *b)
{
    if (b->len)
        fwrite(b->data, 1, b->len, stdout); /* cli_finish() checks stdout */
}

/* Which place of the template wrote the byte at opt->at. */
static int print_origin(const struct export_options *opt,
                        const struct jinja_results *results,
                        const struct buf *out, struct err *err)
{
    struct jinja_origin o;
    bool has_place;

    if ((uint64_t)opt->at >= out->len)
        return err_set(err, ERR_INPUT, "no byte %lld: %zu were rendered",
                       (long long)opt->at, out->len);
    has_place = jinja_origin_at(results, out, (size_t)opt->at, &o);
    BUG_ON(!has_place); /* every byte has one */
    if (!opt->is_json) {
        printf("%s\t%u\t%u\n", results->name, o.line, o.column);
        return 0;
    }
    json_t *row = json_pack("{s:I,s:s,s:i,s:i}", "offset", (json_int_t)opt->at,
                            "template", results->name, "line", (int)o.line,
                            "column", (int)o.column);
    struct buf text = BUF_INIT;
    json_write(row, &text);
    print_bytes(&text);
    buf_release(&text);
    json_decref(row);
    return 0;
}

static int print_result(const struct export_options *opt,
                        const struct jinja_results *results,
                        const struct buf *out, struct err *err)
{
    if (opt->at >= 0)
        return print_origin(opt, results, out, err);
    print_bytes(out);
    return 0;
}

int export_render(const struct export_options *opt,
                  const struct protocol *protocol, struct err *err)
{
    struct jinja_results results = {.want_origins = opt->at >= 0};
    struct case_list list;
    struct buf out = BUF_INIT;
    const struct test_case *c;
    int ret = -1;

    if (case_list_read(opt->cases, &list, err))
        return -1;
    c = case_list_find(&list, opt->render, err);
    if (!c)
        goto out;
    if (prompt_render(opt->pack, NULL, c, protocol, &results, &out, err) ||
        print_result(opt, &results, &out, err)) {
        err_in(err, "case '%s'", c->name);
        goto out;
    }
    ret = 0;
out:
    jinja_results_release(&results);
    buf_release(&out);
    case_list_release(&list);
    return ret;
}

int export_template(const struct export_options *opt,
                    const struct protocol *protocol, struct err *err)
{
    const struct jinja_options options = {protocol->transformers,
                                          protocol->now};
    struct jinja_results results = {.context_name = opt->context,
                                    .want_origins = opt->at >= 0};
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
                                context.len, &results, &out, err))
        goto out;
    ret = print_result(opt, &results, &out, err);
out:
    jinja_free(t);
    jinja_results_release(&results);
    buf_release(&source);
    buf_release(&context);
    buf_release(&out);
    return ret;
}
