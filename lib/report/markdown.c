/* A comparison as Markdown, for a pull request or a CI summary. */
#include "base/buf.h"
#include "report/report.h"
#include "report/report_internal.h"

#include <string.h>

enum {
    REMARKS = 8,
    TABLE_MAX = 100 << 10,  /* bytes after which rows are left out */
    DETAILS_MAX = 180 << 10 /* and lines of the details */
};

/* Text in a table or a line: nothing in it may be markup. */
static void add_text(struct buf *out, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '"' ? NULL : report_entity(*text);

        if (entity)
            buf_addstr(out, entity);
        else if (*text == '|')
            buf_addstr(out, "&#124;");
        else if ((unsigned char)*text < ' ' || *text == 0x7f)
            buf_addch(out, '?');
        else if (strchr("\\`*_[]#~!", *text))
            buf_addf(out, "\\%c", *text);
        else
            buf_addch(out, *text);
    }
}

static void add_cell(struct buf *out, const json_t *gate)
{
    const char *verdict = report_str(gate, "verdict");
    bool is_bad =
        strcmp(verdict, "fail") == 0 || strcmp(verdict, "missing") == 0;
    struct buf cell = BUF_INIT;

    report_cell(gate, &cell);
    buf_addstr(out, is_bad ? " **" : " ");
    add_text(out, cell.data);
    buf_addstr(out, is_bad ? "** |" : " |");
    buf_release(&cell);
}

static void add_table(const json_t *document, struct buf *out)
{
    const json_t *cases = report_cases(document);
    const json_t *names = report_gates(json_array_get(cases, 0));
    size_t i, j;
    json_t *item, *gate;

    buf_addstr(out, "| case | verdict |");
    json_array_foreach(names, j, gate)
    {
        buf_addch(out, ' ');
        add_text(out, report_str(gate, "name"));
        buf_addstr(out, " |");
    }
    buf_addstr(out, "\n| --- | --- |");
    json_array_foreach(names, j, gate)
    {
        buf_addstr(out, " --- |");
    }
    buf_addstr(out, "\n| *limit* | |");
    json_array_foreach(names, j, gate)
    {
        struct buf limit = BUF_INIT;

        report_limit(gate, &limit);
        buf_addch(out, ' ');
        add_text(out, limit.data);
        buf_addstr(out, " |");
        buf_release(&limit);
    }
    buf_addch(out, '\n');
    json_array_foreach(cases, i, item)
    {
        if (out->len > TABLE_MAX) {
            buf_addf(out, "\n%zu more cases stand in summary.json.\n",
                     json_array_size(cases) - i);
            return;
        }
        buf_addstr(out, "| ");
        add_text(out, report_str(item, "name"));
        buf_addf(out, " | %s |", report_str(item, "verdict"));
        json_array_foreach(report_gates(item), j, gate)
        {
            add_cell(out, gate);
        }
        buf_addch(out, '\n');
    }
}

static void add_gate_line(struct buf *out, const json_t *gate)
{
    struct buf text = BUF_INIT;

    buf_addstr(out, "- **");
    add_text(out, report_str(gate, "name"));
    buf_addf(out, "** %s", report_str(gate, "verdict"));
    if (strcmp(report_str(gate, "verdict"), "not applicable") != 0) {
        buf_addstr(out, ": ");
        report_sentence(gate, &text);
        add_text(out, text.data);
    }
    buf_addch(out, '\n');
    buf_release(&text);
}

static void add_adjudicator(struct buf *out, const json_t *item)
{
    size_t i;
    json_t *line;

    json_array_foreach(json_object_get(item, "adjudicator"), i, line)
    {
        struct buf text = BUF_INIT;

        report_distance(line, &text);
        buf_addstr(out, "- from the f64 value, ");
        add_text(out, text.data);
        buf_addch(out, '\n');
        buf_release(&text);
    }
}

/* The lines as they are, in a fence longer than any run of its sign in them. */
static void add_parting(struct buf *out, const json_t *item)
{
    struct buf lines = BUF_INIT;
    size_t longest = 2, run = 0;

    report_parting(item, &lines);
    for (size_t i = 0; i < lines.len; i++) {
        run = lines.data[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    if (lines.len) {
        buf_addch(out, '\n');
        for (size_t i = 0; i <= longest; i++)
            buf_addch(out, '`');
        buf_addf(out, "text\n%s", lines.data);
        for (size_t i = 0; i <= longest; i++)
            buf_addch(out, '`');
        buf_addstr(out, "\n\n");
    }
    buf_release(&lines);
}

static bool is_bad(const json_t *item)
{
    const char *verdict = report_str(item, "verdict");

    return strcmp(verdict, "fail") == 0 || strcmp(verdict, "missing") == 0;
}

static void add_details(const json_t *document, struct buf *out)
{
    const json_t *cases = report_cases(document);
    size_t i, j, left_out = 0;
    json_t *item, *gate;

    /* Failed cases first: they stay when there is no room for all. */
    for (int pass = 0; pass < 2; pass++) {
        json_array_foreach(cases, i, item)
        {
            if (is_bad(item) != (pass == 0))
                continue;
            if (out->len > DETAILS_MAX) {
                left_out++;
                continue;
            }
            buf_addf(out, "\n<details%s><summary>", pass == 0 ? " open" : "");
            buf_addf(out, "%s: %s</summary>\n\n", report_str(item, "name"),
                     report_str(item, "verdict"));
            if (report_str(item, "reason")[0]) {
                buf_addstr(out, "- ");
                add_text(out, report_str(item, "reason"));
                buf_addch(out, '\n');
            }
            add_parting(out, item);
            json_array_foreach(report_gates(item), j, gate)
            {
                if (out->len < DETAILS_MAX)
                    add_gate_line(out, gate);
            }
            add_adjudicator(out, item);
            buf_addstr(out, "\n</details>\n");
        }
    }
    if (left_out)
        buf_addf(out, "\nDetails of %zu more cases stand in summary.json.\n",
                 left_out);
}

void report_markdown(const json_t *document, struct buf *out)
{
    static const char *const digests[] = {"gates_sha256", "protocol_sha256",
                                          "cases_sha256"};
    struct buf lines[REMARKS] = {BUF_INIT};

    struct buf about = BUF_INIT;

    buf_addf(out, "# Verdict: %s\n\n", report_str(document, "verdict"));
    report_about(document, &about);
    if (about.len) {
        add_text(out, about.data);
        buf_addstr(out, ".\n\n");
    }
    buf_release(&about);
    report_tally(document, out);
    buf_addstr(out, ".\n\n");
    add_table(document, out);
    size_t count = report_remarks(document, lines, REMARKS);
    for (size_t i = 0; i < count; i++) {
        if (lines[i].len > 2000)
            lines[i].data[2000] = '\0';
        buf_addch(out, '\n');
        add_text(out, lines[i].data);
        buf_addch(out, '\n');
        buf_release(&lines[i]);
    }
    add_details(document, out);
    buf_addch(out, '\n');
    for (size_t i = 0; i < 3; i++)
        if (report_str(document, digests[i])[0])
            buf_addf(out, "`%s  %.*s.json`\n\n",
                     report_str(document, digests[i]),
                     (int)(strlen(digests[i]) - strlen("_sha256")), digests[i]);
}
