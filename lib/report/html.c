/*
 * A comparison as one page: verdict, table, a figure of how near each value
 * comes to its limit, then every gate in words.
 */
#include "base/buf.h"
#include "kernels/elementary.h"
#include "report/report.h"
#include "report/report_internal.h"

#include <math.h>
#include <string.h>

enum {
    REMARKS = 8,
    FIGURE_CASES = 200, /* dots a gate; more would say nothing more */
    ROW = 26,           /* of the figure, in its own units */
    LEFT = 150,
    NAME_BYTES = 20, /* of a name that fit left of it */
    WIDE = 760,
    DECADES_BELOW = 8, /* shown of value / limit */
    DECADES_ABOVE = 2
};

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1c1f23;--soft:#5c6470;--page:#fff;"
    "--line:#d5d9df;--good:#146c2e;--goodbg:#e7f4ea;--bad:#a1151e;"
    "--badbg:#fdeaea}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--soft:#9aa3af;"
    "--page:#14171a;--line:#333a42;--good:#7fd49a;--goodbg:#17301f;"
    "--bad:#ff9c9c;--badbg:#3a1a1c}}\n"
    "body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);"
    "background:var(--page);margin:2rem auto;max-width:70rem;padding:0 1rem}\n"
    "h1{margin:0 0 .25rem}.pass{color:var(--good)}.fail,.missing{color:"
    "var(--bad)}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;margin:1rem 0;"
    "font-variant-numeric:tabular-nums}\n"
    "th,td{border:1px solid var(--line);padding:.3rem .6rem;text-align:left;"
    "white-space:nowrap}thead td{color:var(--soft);white-space:normal}\n"
    "caption{text-align:left;color:var(--soft)}figure{margin:1rem 0}\n"
    "td.pass{background:var(--goodbg)}td.fail,td.missing{background:"
    "var(--badbg);font-weight:600}\n"
    "svg{max-width:100%;height:auto}svg text{font:13px system-ui,sans-serif;"
    "fill:var(--ink)}svg .soft{fill:var(--soft)}\n"
    "svg line{stroke:var(--line)}svg .limit{stroke:var(--bad);stroke-width:2}\n"
    "svg .dot{fill:var(--good)}svg .over{fill:var(--bad)}\n"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3em 0}\n"
    "code{font-size:.85em;overflow-wrap:anywhere}li{overflow-wrap:anywhere}\n"
    "summary{cursor:pointer}";

static void add_text(struct buf *out, const char *text)
{
    for (; *text; text++) {
        const char *entity = report_entity(*text);

        if (entity)
            buf_addstr(out, entity);
        else if ((unsigned char)*text < ' ' || *text == 0x7f)
            buf_addch(out, '?');
        else
            buf_addch(out, *text);
    }
}

static void add_wording(struct buf *out, const json_t *gate,
                        void (*word)(const json_t *gate, struct buf *out))
{
    struct buf text = BUF_INIT;

    word(gate, &text);
    add_text(out, text.data ? text.data : "");
    buf_release(&text);
}

/* The verdict as a class: "not applicable" is none. */
static const char *class_of(const json_t *object)
{
    const char *verdict = report_str(object, "verdict");

    return strchr(verdict, ' ') ? "none" : verdict;
}

static void add_table(const json_t *document, struct buf *out)
{
    const json_t *cases = report_cases(document);
    const json_t *names = report_gates(json_array_get(cases, 0));
    size_t i, j;
    json_t *item, *gate;

    buf_addstr(out, "<div class=\"scroll\"><table>\n<caption>Cases and gates"
                    "</caption>\n<thead><tr><th scope=\"col\">case</th>"
                    "<th scope=\"col\">verdict</th>");
    json_array_foreach(names, j, gate)
    {
        buf_addstr(out, "<th scope=\"col\">");
        add_text(out, report_str(gate, "name"));
        buf_addstr(out, "</th>");
    }
    buf_addstr(out, "</tr>\n<tr><td>limit</td><td></td>");
    json_array_foreach(names, j, gate)
    {
        buf_addstr(out, "<td>");
        add_wording(out, gate, report_limit);
        buf_addstr(out, "</td>");
    }
    buf_addstr(out, "</tr></thead>\n<tbody>\n");
    json_array_foreach(cases, i, item)
    {
        buf_addstr(out, "<tr><th scope=\"row\">");
        add_text(out, report_str(item, "name"));
        buf_addf(out, "</th><td class=\"%s\">%s</td>", class_of(item),
                 report_str(item, "verdict"));
        json_array_foreach(report_gates(item), j, gate)
        {
            buf_addf(out, "<td class=\"%s\">", class_of(gate));
            add_wording(out, gate, report_cell);
            buf_addstr(out, "</td>");
        }
        buf_addstr(out, "</tr>\n");
    }
    buf_addstr(out, "</tbody></table></div>\n");
}

/* Where a power of ten stands in the figure. */
static double place_of(double decade)
{
    decade = fmin(fmax(decade, -DECADES_BELOW), DECADES_ABOVE);
    return LEFT + (decade + DECADES_BELOW) * (WIDE - LEFT - 20) /
                      (DECADES_BELOW + DECADES_ABOVE);
}

/* Where value / limit stands.  The logarithm is our own: the page has the same
 * bytes whatever the C library. */
static double place(double ratio)
{
    if (!(ratio > 0))
        return place_of(-DECADES_BELOW);
    return place_of(isinf(ratio) ? DECADES_ABOVE
                                 : elem_log(ratio) / 2.302585092994046);
}

static bool has_ratio(const json_t *document, size_t gate)
{
    size_t i;
    json_t *item;

    json_array_foreach(report_cases(document), i, item)
    {
        if (!isnan(report_ratio(json_array_get(report_gates(item), gate))))
            return true;
    }
    return false;
}

static void add_dots(const json_t *document, size_t gate, int row,
                     struct buf *out)
{
    size_t i;
    json_t *item;

    json_array_foreach(report_cases(document), i, item)
    {
        double ratio = report_ratio(json_array_get(report_gates(item), gate));

        if (isnan(ratio) || i >= FIGURE_CASES)
            continue;
        buf_addf(out,
                 "<circle class=\"%s\" cx=\"%.1f\" cy=\"%d\" r=\"5\">"
                 "<title>",
                 ratio > 1 ? "over" : "dot", place(ratio), row * ROW + 32);
        add_text(out, report_str(item, "name"));
        buf_addf(out, ": %.3g of the limit</title></circle>\n", ratio);
    }
}

/* A gate's name in the figure's margin. */
static void add_short(struct buf *out, const char *name)
{
    char text[NAME_BYTES + 1];
    size_t n = strlen(name);

    if (n > NAME_BYTES) {
        n = NAME_BYTES - 3;
        while (n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80)
            n--; /* inside a character */
    }
    memcpy(text, name, n);
    text[n] = '\0';
    add_text(out, text);
    if (name[n])
        buf_addstr(out, "...");
}

static void add_figure(const json_t *document, struct buf *out)
{
    static const struct {
        int decade;
        const char *label;
    } scale[] = {{-8, "1e-8"}, {-6, "1e-6"}, {-4, "1e-4"}, {-2, "1 %"},
                 {-1, "10 %"}, {0, "limit"}, {1, "x 10"}};
    const json_t *names =
        report_gates(json_array_get(report_cases(document), 0));
    struct buf body = BUF_INIT, told = BUF_INIT;
    int row = 0;
    size_t i;
    json_t *gate;

    json_array_foreach(names, i, gate)
    {
        const char *in = "";
        const json_t *worst = report_worst(document, i, &in);

        if (!has_ratio(document, i))
            continue;
        buf_addf(&body,
                 "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n"
                 "<text x=\"0\" y=\"%d\">",
                 LEFT, row * ROW + 32, WIDE, row * ROW + 32, row * ROW + 37);
        add_short(&body, report_str(gate, "name"));
        buf_addstr(&body, "</text>\n");
        add_dots(document, i, row, &body);
        if (told.len)
            buf_addstr(&told, "; ");
        add_text(&told, report_str(gate, "name"));
        if (isnan(report_ratio(worst)))
            buf_addstr(&told, " was not measured in ");
        else
            buf_addf(&told, " reaches %.3g of its limit in ",
                     report_ratio(worst));
        add_text(&told, in);
        row++;
    }
    if (row > 0) {
        int high = row * ROW + 48;

        buf_addf(out,
                 "<h2>Distance to the limits</h2>\n"
                 "<figure><svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\""
                 " role=\"img\" aria-labelledby=\"figure-title figure-text\">\n"
                 "<title id=\"figure-title\">Each value as a part of its "
                 "limit, one dot a case</title>\n<desc id=\"figure-text\">",
                 WIDE, high, WIDE, high);
        buf_add(out, told.data, told.len);
        buf_addstr(out, ".</desc>\n");
        for (size_t k = 0; k < sizeof(scale) / sizeof(scale[0]); k++)
            buf_addf(out,
                     "<text class=\"soft\" x=\"%.1f\" y=\"12\" "
                     "text-anchor=\"middle\">%s</text>\n",
                     place_of(scale[k].decade), scale[k].label);
        buf_addf(out,
                 "<line class=\"limit\" x1=\"%.1f\" y1=\"18\" x2=\"%.1f\" "
                 "y2=\"%d\"/>\n",
                 place(1), place(1), high - 8);
        buf_add(out, body.data, body.len);
        buf_addstr(out, "</svg>\n<figcaption>Value as a part of its limit "
                        "(logarithmic); the line is the limit. ");
        buf_add(out, told.data, told.len);
        buf_addstr(out, ".</figcaption></figure>\n");
    }
    buf_release(&body);
    buf_release(&told);
}

static void add_adjudicator(const json_t *item, struct buf *out)
{
    size_t i;
    json_t *line;

    json_array_foreach(json_object_get(item, "adjudicator"), i, line)
    {
        buf_addstr(out, "<li>from the f64 value, ");
        add_wording(out, line, report_distance);
        buf_addstr(out, "</li>\n");
    }
}

static void add_case(const json_t *item, struct buf *out)
{
    bool is_open = strcmp(report_str(item, "verdict"), "pass") != 0 &&
                   strcmp(class_of(item), "none") != 0;
    size_t i;
    json_t *gate;

    buf_addf(out, "<details%s><summary>", is_open ? " open" : "");
    add_text(out, report_str(item, "name"));
    buf_addf(out, ": <span class=\"%s\">%s</span></summary>\n<ul>\n",
             class_of(item), report_str(item, "verdict"));
    if (report_str(item, "reason")[0]) {
        buf_addstr(out, "<li class=\"fail\">");
        add_text(out, report_str(item, "reason"));
        buf_addstr(out, "</li>\n");
    }
    if (json_object_get(item, "around") || json_object_get(item, "prompt")) {
        buf_addstr(out, "<li><pre>");
        add_wording(out, item, report_parting);
        buf_addstr(out, "</pre></li>\n");
    }
    json_array_foreach(report_gates(item), i, gate)
    {
        buf_addstr(out, "<li><strong>");
        add_text(out, report_str(gate, "name"));
        buf_addf(out, "</strong> <span class=\"%s\">%s</span>", class_of(gate),
                 report_str(gate, "verdict"));
        if (strcmp(class_of(gate), "none") != 0) {
            buf_addstr(out, ": ");
            add_wording(out, gate, report_sentence);
        }
        buf_addstr(out, "</li>\n");
    }
    add_adjudicator(item, out);
    buf_addstr(out, "</ul></details>\n");
}

void report_html(const json_t *document, struct buf *out)
{
    static const char *const digests[] = {"gates_sha256", "protocol_sha256",
                                          "cases_sha256"};
    struct buf lines[REMARKS] = {BUF_INIT};
    const char *verdict = report_str(document, "verdict");
    size_t i;
    json_t *item;

    buf_addf(out,
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
             "<meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\""
             "default-src 'none'; style-src 'unsafe-inline'\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, "
             "initial-scale=1\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n"
             "<title>Verdict: %s</title>\n<style>%s</style>\n</head>\n<body>\n"
             "<h1>Verdict: <span class=\"%s\">%s</span></h1>\n<p>",
             verdict, style, class_of(document), verdict);
    report_tally(document, out);
    buf_addstr(out, ".</p>\n");
    if (json_object_get(document, "about")) {
        buf_addstr(out, "<p>");
        add_wording(out, document, report_about);
        buf_addstr(out, "</p>\n");
    }
    add_table(document, out);
    size_t count = report_remarks(document, lines, REMARKS);
    for (i = 0; i < count; i++) {
        buf_addstr(out, "<p>");
        add_text(out, lines[i].data);
        buf_addstr(out, "</p>\n");
        buf_release(&lines[i]);
    }
    add_figure(document, out);
    buf_addstr(out, "<h2>Gate by gate</h2>\n");
    json_array_foreach(report_cases(document), i, item)
    {
        add_case(item, out);
    }
    buf_addstr(out, "<h2>Frozen before</h2>\n<ul>\n");
    for (i = 0; i < 3; i++)
        if (report_str(document, digests[i])[0])
            buf_addf(out, "<li>%.*s.json <code>%s</code></li>\n",
                     (int)(strlen(digests[i]) - strlen("_sha256")), digests[i],
                     report_str(document, digests[i]));
    buf_addstr(out, "</ul>\n</body>\n</html>\n");
}
