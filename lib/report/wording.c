/* What every report says in the same words. */
#include "report/report_internal.h"

#include <math.h>
#include <string.h>

const char *report_str(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

const char *report_entity(char c)
{
    return c == '&'   ? "&amp;"
           : c == '<' ? "&lt;"
           : c == '>' ? "&gt;"
           : c == '"' ? "&quot;"
                      : NULL;
}

const json_t *report_cases(const json_t *document)
{
    return json_object_get(document, "cases");
}

const json_t *report_gates(const json_t *test_case)
{
    return json_object_get(test_case, "gates");
}

int report_count(const json_t *document, const char *verdict)
{
    return (int)json_integer_value(
        json_object_get(json_object_get(document, "counts"), verdict));
}

void report_number(const json_t *value, struct buf *out)
{
    if (json_is_string(value)) {
        buf_addstr(out, json_string_value(value));
    } else if (json_is_real(value)) {
        char text[32];

        json_format_real(json_real_value(value), text);
        buf_addstr(out, text);
    } else if (json_is_integer(value)) {
        buf_addf(out, "%lld", (long long)json_integer_value(value));
    } else {
        buf_addch(out, '-');
    }
}

static void add_list(const json_t *list, struct buf *out)
{
    size_t i;
    json_t *item;

    buf_addch(out, '[');
    json_array_foreach(list, i, item)
    {
        buf_addstr(out, i ? ", " : "");
        report_number(item, out);
    }
    buf_addch(out, ']');
}

static const json_t *limit_of(const json_t *gate, const char **relation)
{
    const json_t *limit = json_object_get(gate, "at_most");

    *relation = limit ? "at most" : "at least";
    return limit ? limit : json_object_get(gate, "at_least");
}

void report_cell(const json_t *gate, struct buf *out)
{
    const char *verdict = report_str(gate, "verdict");
    const json_t *value = json_object_get(gate, "value");
    bool is_pass = strcmp(verdict, "pass") == 0;

    if (strcmp(verdict, "not applicable") == 0) {
        buf_addch(out, '-');
        return;
    }
    if (strcmp(verdict, "missing") == 0) {
        buf_addstr(out, "MISSING");
        return;
    }
    buf_addstr(out, is_pass ? "" : "FAIL");
    if (json_is_real(value))
        buf_addf(out, "%s%.3g", is_pass ? "" : " ", json_real_value(value));
    else if (json_is_string(value))
        buf_addf(out, " %s", json_string_value(value));
    else if (is_pass)
        buf_addstr(out, "equal");
    else if (json_is_integer(value))
        buf_addf(out, " %lld", (long long)json_integer_value(value));
}

void report_limit(const json_t *gate, struct buf *out)
{
    const char *relation;
    const json_t *limit = limit_of(gate, &relation);

    if (!limit) {
        buf_addstr(out, "none may differ");
        return;
    }
    buf_addf(out, "%s ", relation);
    report_number(limit, out);
}

void report_value(const json_t *gate, struct buf *out)
{
    const json_t *value = json_object_get(gate, "value");
    const json_t *rows = json_object_get(gate, "rows");

    report_number(value, out);
    if (!json_is_integer(value))
        return;
    buf_addstr(out, " of ");
    report_number(rows ? rows : json_object_get(gate, "compared"), out);
    buf_addstr(out, rows ? " rows differ" : " differ");
}

static void add_worst(const json_t *gate, struct buf *out)
{
    const json_t *worst = json_object_get(gate, "worst");
    const json_t *place = json_object_get(gate, "place");

    if (!json_is_object(worst))
        return;
    if (report_str(gate, "worst_tensor")[0])
        buf_addf(out, ", in %s", report_str(gate, "worst_tensor"));
    buf_addstr(out, ", at ");
    add_list(json_object_get(worst, "index"), out);
    if (place) {
        buf_addstr(out, " (image ");
        report_number(json_object_get(place, "image"), out);
        buf_addstr(out, ", pixel ");
        add_list(json_object_get(place, "pixel"), out);
        buf_addstr(out, ", channel ");
        report_number(json_object_get(place, "channel"), out);
        buf_addstr(out, ", frame ");
        report_number(json_object_get(place, "frame"), out);
        buf_addch(out, ')');
    }
    buf_addstr(out, " ");
    report_number(json_object_get(worst, "reference"), out);
    buf_addstr(out, " in the reference, ");
    report_number(json_object_get(worst, "candidate"), out);
    buf_addstr(out, " in the candidate");
}

void report_sentence(const json_t *gate, struct buf *out)
{
    const char *reason = report_str(gate, "reason");
    const char *explanation = report_str(gate, "explanation");
    const char *relation;
    bool has_value = !json_is_null(json_object_get(gate, "value"));

    buf_addf(out, "%s of %s: ", report_str(gate, "metric"),
             report_str(gate, "tensor"));
    if (reason[0])
        buf_addstr(out, reason);
    else
        report_value(gate, out);
    if (!reason[0] && has_value && limit_of(gate, &relation)) {
        buf_addstr(out, ", limit ");
        report_limit(gate, out);
        buf_addstr(out, ", margin ");
        report_number(json_object_get(gate, "margin"), out);
    }
    add_worst(gate, out);
    if (explanation[0])
        buf_addf(out, "; %s", explanation);
}

void report_distance(const json_t *line, struct buf *out)
{
    buf_addf(out, "%s %s: reference ", report_str(line, "tensor"),
             report_str(line, "metric"));
    report_number(json_object_get(line, "reference"), out);
    buf_addstr(out, ", candidate ");
    report_number(json_object_get(line, "candidate"), out);
    if (report_nearer(line)[0])
        buf_addf(out, " (%s)", report_nearer(line));
}

const char *report_nearer(const json_t *line)
{
    const json_t *r = json_object_get(line, "reference");
    const json_t *c = json_object_get(line, "candidate");

    if (!json_is_number(r) || !json_is_number(c))
        return "";
    if (json_number_value(r) == json_number_value(c))
        return "equally near";
    return json_number_value(c) < json_number_value(r) ? "candidate nearer"
                                                       : "reference nearer";
}

void report_about(const json_t *document, struct buf *out)
{
    const json_t *about = json_object_get(document, "about");
    const char *pack = report_str(about, "pack");
    const char *revision = report_str(about, "revision");
    const char *receipt = report_str(about, "receipt_sha256");
    const char *candidate = report_str(about, "candidate");

    if (pack[0])
        buf_addf(out, "pack %s, revision %s", pack, revision);
    else if (receipt[0])
        buf_addf(out,
                 "a pack whose receipt names no upstream, receipt SHA-256 %s",
                 receipt);
    if (candidate[0])
        buf_addf(out, "%scandidate: %s", pack[0] || receipt[0] ? "; " : "",
                 candidate);
}

void report_tally(const json_t *document, struct buf *out)
{
    int pass = report_count(document, "pass");
    int failed = report_count(document, "fail");
    int missing = report_count(document, "missing");
    int skipped = report_count(document, "not applicable");
    int cases = (int)json_array_size(report_cases(document)), others = 0;
    size_t i;
    json_t *item;

    buf_addf(out, "%d case%s, %d gate%s: %d passed, %d failed, %d missing",
             cases, cases == 1 ? "" : "s", pass + failed + missing,
             pass + failed + missing == 1 ? "" : "s", pass, failed, missing);
    if (skipped)
        buf_addf(out, " (%d not applicable)", skipped);
    json_array_foreach(report_cases(document), i, item)
    {
        others += report_str(item, "reason")[0] != '\0';
    }
    if (others)
        buf_addf(out, "; %d case%s of another prompt", others,
                 others == 1 ? "" : "s");
}

static void remark(const json_t *document, const char *key, const char *text,
                   struct buf *lines, size_t max, size_t *count)
{
    const json_t *names = json_object_get(document, key);
    size_t i;
    json_t *name;

    if (json_array_size(names) == 0 || *count == max)
        return;
    buf_addf(&lines[*count], "%s: ", text);
    json_array_foreach(names, i, name)
    {
        buf_addf(&lines[*count], "%s%s", i ? ", " : "",
                 json_string_value(name));
    }
    (*count)++;
}

/* Equality of a file with itself says nothing of another implementation. */
static void copies(const json_t *document, struct buf *lines, size_t max,
                   size_t *count)
{
    size_t i, k, found = 0;
    json_t *item, *same;

    json_array_foreach(report_cases(document), i, item){json_array_foreach(
        json_object_get(item, "same_bytes"), k, same){if (*count == max) return;
    buf_addf(&lines[*count], "%s%s (of %s)",
             found++ ? ", "
                     : "candidate files that are, byte for byte, the "
                       "reference's own: a copy, or an implementation "
                       "that writes the same file; that they agree "
                       "measures nothing by itself: ",
             report_str(same, "candidate"), report_str(same, "reference"));
}
}
*count += found > 0;
}

size_t report_remarks(const json_t *document, struct buf *lines, size_t max)
{
    const char *reason = report_str(document, "reason");
    size_t count = 0;

    if (reason[0] && max > 0)
        buf_addstr(&lines[count++], reason);
    copies(document, lines, max, &count);
    remark(document, "extra_cases", "cases of the candidate alone", lines, max,
           &count);
    remark(document, "not_compared",
           "reference captures that the cases file does not name", lines, max,
           &count);
    remark(document, "unused_gates", "gates that applied to no case", lines,
           max, &count);
    return count;
}

double report_ratio(const json_t *gate)
{
    const char *relation;
    const json_t *limit = limit_of(gate, &relation);
    const json_t *value = json_object_get(gate, "value");

    if (!limit || !json_is_real(value))
        return NAN;
    double l = json_real_value(limit), v = json_real_value(value);
    if (json_object_get(gate, "at_least")) {
        l = 1 - l;
        v = 1 - v;
    }
    if (l > 0)
        return fmax(v, 0) / l;
    return v <= l ? 1 : INFINITY;
}

/* How bad a gate came out: not measured before failed before its ratio. */
static double badness(const json_t *gate)
{
    const char *verdict = report_str(gate, "verdict");
    const json_t *value = json_object_get(gate, "value");
    double ratio = report_ratio(gate);

    if (strcmp(verdict, "not applicable") == 0)
        return -1;
    if (strcmp(verdict, "missing") == 0)
        return 2e300;
    if (strcmp(verdict, "fail") == 0 && !json_is_number(value))
        return 1e300;
    if (json_is_integer(value))
        return (double)json_integer_value(value);
    return isnan(ratio) ? 0 : fmin(ratio, 1e299);
}

const json_t *report_worst(const json_t *document, size_t i,
                           const char **case_name)
{
    const json_t *worst = NULL;
    double most = -1;
    size_t at;
    json_t *item;

    json_array_foreach(report_cases(document), at, item)
    {
        const json_t *gate = json_array_get(report_gates(item), i);

        if (badness(gate) > most) {
            most = badness(gate);
            worst = gate;
            *case_name = report_str(item, "name");
        }
    }
    return worst;
}
