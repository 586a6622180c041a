/* A comparison as JUnit's XML, which every CI system can show. */
#include "base/buf.h"
#include "report/report.h"
#include "report/report_internal.h"

#include <string.h>

/* XML 1.0 forbids most control characters even as references. */
static void add_text(struct buf *out, const char *text)
{
    for (; *text; text++) {
        const char *entity = report_entity(*text);

        if (entity)
            buf_addstr(out, entity);
        else if ((unsigned char)*text >= ' ' || *text == '\t' || *text == '\n')
            buf_addch(out, *text);
    }
}

static int count(const json_t *item, const char *verdict)
{
    size_t i;
    json_t *gate;
    int n = 0;

    json_array_foreach(report_gates(item), i, gate)
    {
        n += strcmp(report_str(gate, "verdict"), verdict) == 0;
    }
    return n;
}

static void add_gate(const json_t *gate, struct buf *out)
{
    const char *verdict = report_str(gate, "verdict");
    struct buf text = BUF_INIT;

    if (strcmp(verdict, "not applicable") == 0) {
        buf_addstr(out, "<skipped/>");
    } else if (strcmp(verdict, "pass") != 0) {
        report_sentence(gate, &text);
        buf_addf(out, "<%s message=\"",
                 strcmp(verdict, "fail") == 0 ? "failure" : "error");
        add_text(out, text.data);
        buf_addstr(out, "\"/>");
    }
    buf_release(&text);
}

void report_junit(const json_t *document, const char *suite, struct buf *out)
{
    size_t i, j;
    json_t *item, *gate;

    buf_addstr(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                    "<testsuites name=\"assay\">\n");
    json_array_foreach(report_cases(document), i, item)
    {
        const char *reason = report_str(item, "reason");
        bool has_reason = reason[0] != '\0';

        buf_addstr(out, "<testsuite name=\"");
        add_text(out, report_str(item, "name"));
        buf_addf(out,
                 "\" tests=\"%zu\" failures=\"%d\" errors=\"%d\" "
                 "skipped=\"%d\">\n",
                 json_array_size(report_gates(item)) + has_reason,
                 count(item, "fail") + has_reason, count(item, "missing"),
                 count(item, "not applicable"));
        if (has_reason) {
            buf_addstr(out,
                       "<testcase name=\"same prompt\" classname=\"assay.");
            add_text(out, suite);
            buf_addch(out, '.');
            add_text(out, report_str(item, "name"));
            buf_addstr(out, "\"><failure message=\"");
            add_text(out, reason);
            buf_addstr(out, "\"/></testcase>\n");
        }
        json_array_foreach(report_gates(item), j, gate)
        {
            buf_addstr(out, "<testcase name=\"");
            add_text(out, report_str(gate, "name"));
            buf_addstr(out, "\" classname=\"assay.");
            add_text(out, suite);
            buf_addch(out, '.');
            add_text(out, report_str(item, "name"));
            buf_addstr(out, "\">");
            add_gate(gate, out);
            buf_addstr(out, "</testcase>\n");
        }
        buf_addstr(out, "</testsuite>\n");
    }
    buf_addstr(out, "</testsuites>\n");
}
