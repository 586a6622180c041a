/* Is everything there that was declared, and nothing else? */
#include "audit.h"
#include "base/mem.h"
#include "base/path.h"

#include <stdlib.h>
#include <string.h>

static void check_images(struct audit *a, const struct test_case *c)
{
    for (size_t i = 0; i < c->image_count; i++) {
        struct buf bytes = BUF_INIT;
        struct err err = ERR_INIT;

        if (!path_is_portable(c->images[i].file))
            audit_fault(a, "case '%s': image '%s' lies elsewhere", c->name,
                        c->images[i].file);
        else if (case_image_read(&c->images[i], &bytes, &err))
            audit_fault(a, "case '%s': %s", c->name, err.text);
        buf_release(&bytes);
    }
}

/* A folder of cases holds those that were declared and no other. */
static void check_cases_of(struct audit *a, const char *folder)
{
    char *prefix = xasprintf("data/%s/", folder);
    size_t n = strlen(prefix);

    for (size_t i = 0; i < a->cases.count; i++) {
        char *dir = xasprintf("%s/%s", folder, a->cases.cases[i].name);

        if (!audit_has_folder(a, dir))
            audit_fault(a, "%s: missing", dir);
        free(dir);
    }
    for (size_t i = 0; i < a->files.count; i++) {
        const char *path = a->files.items[i].path;
        bool is_declared = false;

        if (strncmp(path, prefix, n) != 0)
            continue;
        for (size_t k = 0; k < a->cases.count; k++) {
            const char *name = a->cases.cases[k].name;

            is_declared |= strncmp(path + n, name, strlen(name)) == 0 &&
                           path[n + strlen(name)] == '/';
        }
        if (!is_declared)
            audit_fault(a, "%s: of no declared case", path + 5);
    }
    free(prefix);
}

static bool is_declared_image(const struct audit *a, const char *below)
{
    for (size_t i = 0; i < a->cases.count; i++)
        for (size_t k = 0; k < a->cases.cases[i].image_count; k++)
            if (strcmp(a->cases.cases[i].images[k].file, below) == 0)
                return true;
    return false;
}

/* Files that no claim would look at: beside the stages, among the frozen. */
static void check_strays(struct audit *a)
{
    static const char *const known[] = {
        "executables.json", "verdict.intoto.json", "inputs/cases.json",
        "inputs/protocol.json", "inputs/gates.json"};
    static const char *const folders[] = {
        "source/",    "export/",      "forward/", "candidate/",
        "reference/", "adjudicator/", "compare/"};

    for (size_t i = 0; i < a->files.count; i++) {
        const char *below = a->files.items[i].path + strlen("data/");
        bool is_known = strncmp(below, "inputs/", 7) == 0 &&
                        is_declared_image(a, below + 7);

        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
            is_known |= strcmp(below, known[k]) == 0;
        for (size_t k = 0; k < sizeof(folders) / sizeof(folders[0]); k++)
            is_known |= strncmp(below, folders[k], strlen(folders[k])) == 0;
        if (!is_known)
            audit_fault(a, "%s: of no stage", below);
    }
}

void audit_coverage(struct audit *a)
{
    char *path = path_join(a->data, "inputs/cases.json");
    struct err err = ERR_INIT;

    if (!audit_payload(a, "inputs/cases.json"))
        audit_fault(a, "inputs/cases.json: missing");
    else if (case_list_read(path, &a->cases, &err))
        audit_fault(a, "%s", err.text);
    else
        a->has_cases = true;
    for (size_t i = 0; i < a->cases.count; i++) {
        char *verdict = xasprintf("compare/%s.json", a->cases.cases[i].name);

        check_images(a, &a->cases.cases[i]);
        if (!audit_payload(a, verdict))
            audit_fault(a, "%s: missing", verdict);
        free(verdict);
    }
    check_strays(a);
    if (a->has_cases) {
        check_cases_of(a, "export");
        if (audit_has_folder(a, "adjudicator"))
            check_cases_of(a, "adjudicator");
        if (!audit_has_folder(a, "candidate"))
            check_cases_of(a, "forward");
    }
    char *by = xasprintf("%zu cases declared", a->cases.count);
    audit_conclude(a, "every declared case was run and judged", by);
    free(by);
    free(path);
}
