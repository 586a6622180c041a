/* A comparison for a terminal. */
#include "base/mem.h"
#include "report/report.h"
#include "report/report_internal.h"

#include <stdlib.h>
#include <string.h>

enum { REMARKS = 8 };

/* Rows of cells, padded to the widest of each column. */
struct grid {
    struct buf *cells;
    size_t rows, columns;
};

static struct buf *cell(const struct grid *g, size_t row, size_t column)
{
    return &g->cells[row * g->columns + column];
}

static void grid_init(struct grid *g, size_t rows, size_t columns)
{
    g->rows = rows;
    g->columns = columns;
    g->cells = xcalloc(rows * columns, sizeof(*g->cells));
}

static void grid_print(struct grid *g, struct buf *out)
{
    size_t *widths = xcalloc(g->columns, sizeof(*widths));

    for (size_t r = 0; r < g->rows; r++)
        for (size_t c = 0; c < g->columns; c++)
            if (cell(g, r, c)->len > widths[c])
                widths[c] = cell(g, r, c)->len;
    for (size_t r = 0; r < g->rows; r++) {
        for (size_t c = 0; c < g->columns; c++) {
            const struct buf *b = cell(g, r, c);
            bool is_last = c + 1 == g->columns;

            buf_addf(out, "%-*s%s", is_last ? 0 : (int)widths[c],
                     b->data ? b->data : "", is_last ? "" : "  ");
        }
        buf_addch(out, '\n');
    }
    free(widths);
}

static void grid_release(struct grid *g)
{
    for (size_t i = 0; i < g->rows * g->columns; i++)
        buf_release(&g->cells[i]);
    free(g->cells);
}

static void big_table(const json_t *document, struct buf *out)
{
    const json_t *cases = report_cases(document);
    const json_t *names = report_gates(json_array_get(cases, 0));
    struct grid g;
    size_t i, j;
    json_t *item, *gate;

    grid_init(&g, json_array_size(cases) + 1, json_array_size(names) + 2);
    buf_addstr(cell(&g, 0, 0), "case");
    buf_addstr(cell(&g, 0, 1), "verdict");
    json_array_foreach(names, j, gate)
    {
        buf_addstr(cell(&g, 0, j + 2), report_str(gate, "name"));
    }
    json_array_foreach(cases, i, item)
    {
        buf_addstr(cell(&g, i + 1, 0), report_str(item, "name"));
        buf_addstr(cell(&g, i + 1, 1), report_str(item, "verdict"));
        json_array_foreach(report_gates(item), j, gate)
        {
            report_cell(gate, cell(&g, i + 1, j + 2));
        }
    }
    grid_print(&g, out);
    grid_release(&g);
}

static void gate_table(const json_t *document, struct buf *out)
{
    const json_t *names =
        report_gates(json_array_get(report_cases(document), 0));
    static const char *const head[] = {"gate", "metric", "limit", "worst",
                                       "in case"};
    struct grid g;
    size_t i;
    json_t *gate;

    grid_init(&g, json_array_size(names) + 1, 5);
    for (size_t c = 0; c < 5; c++)
        buf_addstr(cell(&g, 0, c), head[c]);
    json_array_foreach(names, i, gate)
    {
        const char *in = "-";
        const json_t *worst = report_worst(document, i, &in);

        buf_addstr(cell(&g, i + 1, 0), report_str(gate, "name"));
        buf_addstr(cell(&g, i + 1, 1), report_str(gate, "metric"));
        report_limit(gate, cell(&g, i + 1, 2));
        if (!worst)
            buf_addstr(cell(&g, i + 1, 3), "not applicable");
        else if (json_is_null(json_object_get(worst, "value")))
            buf_addstr(cell(&g, i + 1, 3), report_str(worst, "verdict"));
        else
            report_value(worst, cell(&g, i + 1, 3));
        buf_addstr(cell(&g, i + 1, 4), in);
    }
    grid_print(&g, out);
    grid_release(&g);
}

static bool needs_a_line(const json_t *gate)
{
    const char *verdict = report_str(gate, "verdict");

    return strcmp(verdict, "fail") == 0 || strcmp(verdict, "missing") == 0;
}

/* The lines of report_parting(), set in. */
static void parting(const json_t *item, struct buf *out)
{
    struct buf lines = BUF_INIT;

    report_parting(item, &lines);
    for (const char *at = lines.data; at && *at;) {
        size_t n = strcspn(at, "\n");

        buf_addstr(out, "  ");
        buf_add(out, at, n + 1);
        at += n + 1;
    }
    buf_release(&lines);
}

static void failures(const json_t *document, struct buf *out)
{
    size_t i, j;
    json_t *item, *gate;
    bool any = false;

    json_array_foreach(report_cases(document), i, item)
    {
        if (report_str(item, "reason")[0]) {
            buf_addf(out, "%s%s: %s\n", any ? "" : "\n",
                     report_str(item, "name"), report_str(item, "reason"));
            any = true;
        }
        if (json_object_get(item, "around") ||
            json_object_get(item, "prompt")) {
            if (!report_str(item, "reason")[0])
                buf_addf(out, "%s%s:\n", any ? "" : "\n",
                         report_str(item, "name"));
            parting(item, out);
            any = true;
        }
        json_array_foreach(report_gates(item), j, gate)
        {
            if (!needs_a_line(gate))
                continue;
            buf_addf(out, "%s%s, %s: ", any ? "" : "\n",
                     report_str(item, "name"), report_str(gate, "name"));
            report_sentence(gate, out);
            buf_addch(out, '\n');
            any = true;
        }
    }
}

/* The largest of a tensor's distances over all cases, by side; a NaN counts as
 * the largest there is. */
static const json_t *farthest(const json_t *document, const json_t *like,
                              const char *side, const char **case_name)
{
    const json_t *most = NULL;
    size_t i, j;
    json_t *item, *line;

    json_array_foreach(report_cases(document), i, item)
    {
        json_array_foreach(json_object_get(item, "adjudicator"), j, line)
        {
            const json_t *value = json_object_get(line, side);

            if (strcmp(report_str(line, "tensor"),
                       report_str(like, "tensor")) != 0 ||
                strcmp(report_str(line, "metric"),
                       report_str(like, "metric")) != 0 ||
                json_is_null(value))
                continue;
            if (!most || json_is_string(value) ||
                (json_is_number(most) &&
                 json_number_value(value) > json_number_value(most))) {
                most = value;
                *case_name = report_str(item, "name");
            }
        }
    }
    return most;
}

/* In how many cases which side is nearer, of one tensor and metric. */
static void nearer(const json_t *document, const json_t *like, struct buf *out)
{
    static const char *const states[] = {"candidate nearer", "reference nearer",
                                         "equally near"};
    size_t count[3] = {0}, i, j;
    json_t *item, *line;

    json_array_foreach(report_cases(document), i, item)
    {
        json_array_foreach(json_object_get(item, "adjudicator"), j, line)
        {
            if (strcmp(report_str(line, "tensor"),
                       report_str(like, "tensor")) != 0 ||
                strcmp(report_str(line, "metric"),
                       report_str(like, "metric")) != 0)
                continue;
            for (size_t s = 0; s < 3; s++)
                count[s] += strcmp(report_nearer(line), states[s]) == 0;
        }
    }
    for (size_t s = 0; s < 3; s++)
        if (count[s])
            buf_addf(out, "%s%s in %zu", out->len ? ", " : "", states[s],
                     count[s]);
}

/* The case with the most lines names what there is. */
static const json_t *longest_adjudicator(const json_t *document)
{
    const json_t *longest = NULL;
    size_t i;
    json_t *item;

    json_array_foreach(report_cases(document), i, item)
    {
        const json_t *lines = json_object_get(item, "adjudicator");

        if (json_array_size(lines) > json_array_size(longest))
            longest = lines;
    }
    return longest;
}

static void adjudicator_table(const json_t *document, struct buf *out)
{
    static const char *const sides[] = {"reference", "candidate"};
    const json_t *lines = longest_adjudicator(document);
    struct grid g;
    size_t i;
    json_t *line;

    if (!lines)
        return;
    grid_init(&g, json_array_size(lines) + 1, 5);
    buf_addstr(cell(&g, 0, 0), "farthest from the f64 value");
    buf_addstr(cell(&g, 0, 1), "metric");
    buf_addstr(cell(&g, 0, 4), "cases");
    json_array_foreach(lines, i, line)
    {
        buf_addstr(cell(&g, i + 1, 0), report_str(line, "tensor"));
        buf_addstr(cell(&g, i + 1, 1), report_str(line, "metric"));
        for (size_t s = 0; s < 2; s++) {
            const char *in = "";
            const json_t *value = farthest(document, line, sides[s], &in);

            if (i == 0)
                buf_addstr(cell(&g, 0, 2 + s), sides[s]);
            report_number(value, cell(&g, i + 1, 2 + s));
            if (value)
                buf_addf(cell(&g, i + 1, 2 + s), " (%s)", in);
        }
        nearer(document, line, cell(&g, i + 1, 4));
    }
    buf_addch(out, '\n');
    grid_print(&g, out);
    grid_release(&g);
}

void report_text(const json_t *document, struct buf *out)
{
    struct buf lines[REMARKS] = {BUF_INIT};
    struct buf text = BUF_INIT;

    report_about(document, &text);
    if (text.len)
        buf_addstr(&text, "\n\n");
    big_table(document, &text);
    buf_addch(&text, '\n');
    gate_table(document, &text);
    failures(document, &text);
    adjudicator_table(document, &text);
    size_t count = report_remarks(document, lines, REMARKS);
    for (size_t i = 0; i < count; i++) {
        buf_addf(&text, "%s%s\n", i ? "" : "\n", lines[i].data);
        buf_release(&lines[i]);
    }
    buf_addch(&text, '\n');
    report_tally(document, &text);
    buf_addf(&text, "\nverdict: %s\n", report_str(document, "verdict"));
    /* Names come from files: nothing may steer the terminal. */
    for (size_t i = 0; i < text.len; i++)
        if (((unsigned char)text.data[i] < ' ' && text.data[i] != '\n') ||
            text.data[i] == 0x7f)
            text.data[i] = '?';
    buf_add(out, text.data, text.len);
    buf_release(&text);
}
