/* A comparison's files, as evidence holds them. */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "report/report.h"
#include "report/report_internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Names that differ only in case are one file on some storage. */
static int check_names(const json_t *document, struct err *err)
{
    static const char *const taken[] = {"summary", "stage", "report", "texts"};
    const json_t *cases = report_cases(document);

    for (size_t i = 0; i < json_array_size(cases); i++) {
        const char *name = report_str(json_array_get(cases, i), "name");

        if (path_check_name(name, err))
            return -1;
        for (size_t j = 0; j < sizeof(taken) / sizeof(taken[0]); j++)
            if (strcasecmp(name, taken[j]) == 0)
                return err_set(err, ERR_INPUT,
                               "a case cannot be named '%s': that is a file of "
                               "the report",
                               name);
        for (size_t j = 0; j < i; j++) {
            const char *other = report_str(json_array_get(cases, j), "name");

            if (strcasecmp(name, other) == 0)
                return err_set(err, ERR_INPUT,
                               "cases '%s' and '%s' differ only in case", other,
                               name);
        }
    }
    return 0;
}

static void write_junit(const json_t *document, struct buf *out)
{
    report_junit(document, "compare", out);
}

int report_each(const json_t *document,
                int (*visit)(const char *name, const struct buf *text,
                             void *context, struct err *err),
                void *context, struct err *err)
{
    static const struct {
        const char *name;
        void (*write)(const json_t *document, struct buf *out);
    } files[] = {
        {"summary.json", json_write},
        {"report.md", report_markdown},
        {"report.html", report_html},
        {"junit.xml", write_junit},
    };
    struct buf text = BUF_INIT;
    int ret = check_names(document, err);
    size_t i;
    json_t *item;

    json_array_foreach(report_cases(document), i, item)
    {
        char *name = xasprintf("%s.json", report_str(item, "name"));

        buf_clear(&text);
        json_write(item, &text);
        if (ret == 0)
            ret = visit(name, &text, context, err);
        free(name);
    }
    for (i = 0; i < sizeof(files) / sizeof(files[0]) && ret == 0; i++) {
        buf_clear(&text);
        files[i].write(document, &text);
        ret = visit(files[i].name, &text, context, err);
    }
    buf_release(&text);
    return ret;
}

struct folder {
    const char *dir;
    int (*visit)(const char *name, void *context, struct err *err);
    void *context;
};

static int write_one(const char *name, const struct buf *text, void *context,
                     struct err *err)
{
    const struct folder *f = context;
    char *path = path_join(f->dir, name);
    int ret = io_write_file(path, text->data, text->len, err);

    free(path);
    return ret == 0 && f->visit ? f->visit(name, f->context, err) : ret;
}

int report_write(const json_t *document, const char *dir,
                 int (*visit)(const char *name, void *context, struct err *err),
                 void *context, struct err *err)
{
    struct folder f = {dir, visit, context};

    return report_each(document, write_one, &f, err);
}
