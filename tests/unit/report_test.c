/* Reports of documents that are larger or stranger than real ones. */
#include "base/io.h"
#include "base/mem.h"
#include "report/report.h"
#include "tap.h"

#include <string.h>
#include <unistd.h>

/* A document of many failed cases, as gates/compare.h describes it. */
static json_t *make(int cases, int gates)
{
    json_t *list = json_array();

    for (int i = 0; i < cases; i++) {
        char name[32];
        json_t *of_case = json_array();

        snprintf(name, sizeof(name), "case-%d", i);
        for (int j = 0; j < gates; j++) {
            json_t *gate = json_pack(
                "{s:o, s:s, s:s, s:f, s:f, s:s, s:{s:[i,i], s:f, s:f}, s:n, "
                "s:f, s:i, s:i, s:n}",
                "name", json_sprintf("gate %d", j), "tensor", "logits",
                "metric", "max_abs", "at_most", 0.001, "value", 0.5, "verdict",
                i % 2 ? "fail" : "pass", "worst", "index", 3, 4, "reference",
                1.5, "candidate", 2.0, "reason", "margin", -0.499, "compared",
                100, "differing", 99, "explanation");

            json_array_append_new(of_case, gate);
        }
        json_array_append_new(list, json_pack("{s:s, s:s, s:n, s:b, s:o}",
                                              "name", name, "verdict",
                                              i % 2 ? "fail" : "pass", "reason",
                                              "images", 0, "gates", of_case));
    }
    return json_pack("{s:s, s:s, s:n, s:{s:i, s:i, s:i, s:i}, s:[], s:o}",
                     "verdict", "fail", "gates_sha256", "00", "reason",
                     "counts", "pass", cases * gates / 2, "fail",
                     cases * gates / 2, "missing", 0, "not applicable", 0,
                     "extra_cases", "cases", list);
}

static void test_markdown_stays_small(void)
{
    static const int sizes[][2] = {{1, 1}, {500, 8}, {3000, 30}, {20, 1000}};

    for (size_t i = 0; i < 4; i++) {
        struct buf text = BUF_INIT;
        json_t *doc = make(sizes[i][0], sizes[i][1]);

        report_markdown(doc, &text);
        ok(text.len > 0 && text.len < 200 * 1024 &&
               strncmp(text.data, "# Verdict: fail\n", 16) == 0,
           "Markdown of %d cases and %d gates: %zu bytes, the verdict first",
           sizes[i][0], sizes[i][1], text.len);
        if (i == 2)
            ok(strstr(text.data, "more cases stand in summary.json") != NULL,
               "what is left out is said");
        buf_release(&text);
        json_decref(doc);
    }
}

static void test_same_bytes(void)
{
    json_t *doc = make(3, 4);
    struct buf a = BUF_INIT, b = BUF_INIT;

    report_html(doc, &a);
    report_text(doc, &a);
    report_markdown(doc, &a);
    report_junit(doc, "x", &a);
    report_html(doc, &b);
    report_text(doc, &b);
    report_markdown(doc, &b);
    report_junit(doc, "x", &b);
    ok(a.len == b.len && memcmp(a.data, b.data, a.len) == 0,
       "one document gives the same bytes twice");
    buf_release(&a);
    buf_release(&b);
    json_decref(doc);
}

static void test_files(void)
{
    char folder[] = "/tmp/report-XXXXXX";
    struct err err = ERR_INIT;
    json_t *doc = make(2, 2), *one, *all;

    if (!mkdtemp(folder))
        return;
    is_int(report_write(doc, folder, NULL, NULL, &err), 0, "files are written");
    char *path = xasprintf("%s/case-1.json", folder);
    char *whole = xasprintf("%s/summary.json", folder);
    one = json_read_file(path, &err);
    all = json_read_file(whole, &err);
    ok(one && all &&
           json_equal(one, json_array_get(json_object_get(all, "cases"), 1)),
       "CASE.json is that element of summary.json's cases");
    json_object_set_new(json_array_get(json_object_get(doc, "cases"), 1),
                        "name", json_string("Case-0"));
    is_int(report_write(doc, folder, NULL, NULL, &err), -1,
           "names that differ only in case are refused");
    is_int(err.code, ERR_INPUT, "as an input");
    json_object_set_new(json_array_get(json_object_get(doc, "cases"), 1),
                        "name", json_string("../x"));
    err_clear(&err);
    is_int(report_write(doc, folder, NULL, NULL, &err), -1,
           "and one that leaves the folder");
    err_clear(&err);
    io_remove_tree(folder, &err);
    free(path);
    free(whole);
    json_decref(one);
    json_decref(all);
    json_decref(doc);
}

static void test_terminal(void)
{
    json_t *doc = make(1, 1);
    struct buf text = BUF_INIT;

    json_object_set_new(
        json_array_get(
            json_object_get(json_array_get(json_object_get(doc, "cases"), 0),
                            "gates"),
            0),
        "worst_tensor", json_string("trace.\x1b[2J"));
    report_text(doc, &text);
    ok(strchr(text.data, 0x1b) == NULL, "no name steers the terminal");
    buf_release(&text);
    json_decref(doc);
}

int main(void)
{
    test_markdown_stays_small();
    test_same_bytes();
    test_files();
    test_terminal();
    return done();
}
