/*
 * The comparison as a library: what an auditor relies on, and what happens when
 * memory runs out at any allocation.
 */
#include "base/io.h"
#include "base/mem.h"
#include "gates/compare.h"
#include "gates/stages.h"
#include "report/report.h"
#include "tap.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct compare_request request(const char *const *reference,
                                      const char *const *candidate,
                                      size_t candidates)
{
    return (struct compare_request){
        .gates = "fixtures/compare/gates.json",
        .cases = "fixtures/compare/cases.json",
        .reference = {.role = "REFERENCE", .paths = reference, .count = 1},
        .candidate = {.role = "CANDIDATE",
                      .paths = candidate,
                      .count = candidates,
                      .may_fail = true},
    };
}

static const char *const reference[] = {"fixtures/compare/reference"};
static const char *const good[] = {"fixtures/compare/good"};
static const char *const box[] = {"fixtures/compare/good",
                                  "fixtures/compare/resized-box"};

static void test_verdicts(void)
{
    struct err err = ERR_INIT;
    struct compare_request r = request(reference, good, 1);
    json_t *doc = compare_run(&r, &err);

    ok(doc && compare_passed(doc), "a sound candidate passes");
    json_decref(doc);
    r = request(reference, box, 2);
    doc = compare_run(&r, &err);
    ok(doc && !compare_passed(doc), "a failed gate is a document, no error");
    json_decref(doc);
    r = request(reference, reference, 1);
    ok(!compare_run(&r, &err) && err.code == ERR_INPUT,
       "one file on both sides is an error of the input");
}

/* Runs the whole with its n-th allocation failing; the child's status. */
static int run_with_failure(uint64_t n)
{
    int status = 0;

    fflush(stdout);
    pid_t child = fork();

    if (child == 0) {
        struct err err = ERR_INIT;
        struct compare_request r = request(reference, box, 2);
        struct buf text = BUF_INIT;

        if (!freopen("/dev/null", "w", stderr))
            _exit(99);
        mem_fail_at(n);
        json_t *doc = compare_run(&r, &err);
        if (doc) {
            report_html(doc, &text);
            err.code = compare_passed(doc) ? ERR_NONE : ERR_NO;
        }
        json_decref(doc);
        buf_release(&text);
        _exit((int)err.code);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_memory_runs_out(void)
{
    int odd = 0, failed = 0;

    /* Every allocation at first, then ever fewer of them. */
    for (uint64_t n = 1; n < 20000; n += 1 + n / 40) {
        int status = run_with_failure(n);

        failed += status == ERR_SYSTEM;
        if (status != ERR_SYSTEM && status != ERR_NO && odd++ < 5)
            diag("allocation %d: status %d", (int)n, status);
    }
    is_int(odd, 0, "any allocation may fail: it is a 6, or the verdict stands");
    ok(failed > 30, "and many did fail (%d)", failed);
}

static void test_order_of_stages(void)
{
    static const char *const ordered[] = {
        "vision.patch_embed",   "vision.pos_embed",
        "vision.rotary_angles", "vision.block0.attn",
        "vision.block0.out",    "vision.block10.out",
        "vision.merger",        "input_embeds",
        "layer0.attn",          "layer0.mixer",
        "layer0.router",        "layer0.out",
        "layer2.mixer",         "layer10.mixer",
        "final_norm",           "logits",
    };
    const size_t n = sizeof(ordered) / sizeof(ordered[0]);
    int wrong = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            int order = stages_order(ordered[i], ordered[j]);

            wrong += i < j ? order >= 0 : i > j ? order <= 0 : order != 0;
        }
    is_int(wrong, 0, "stages stand in the order of computing");
}

int main(void)
{
    test_verdicts();
    test_memory_runs_out();
    test_order_of_stages();
    return done();
}
