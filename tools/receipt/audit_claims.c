/* What claims are made of: faults, verdicts, the run's files. */
#include "audit.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"

#include <stdarg.h>
#include <stdlib.h>

void audit_fault(struct audit *a, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    json_append_line(a->faults, format, ap);
    va_end(ap);
}

void audit_claim(struct audit *a, const char *claim, const char *verdict,
                 const char *by)
{
    json_array_append_new(a->claims, json_pack("{s:s, s:s, s:s, s:O}", "claim",
                                               claim, "verdict", verdict, "by",
                                               by, "faults", a->faults));
    json_decref(a->faults);
    a->faults = json_array();
}

/* Ends the claim at hand: proved unless a fault was found. */
void audit_conclude(struct audit *a, const char *claim, const char *by)
{
    audit_claim(a, claim,
                json_array_size(a->faults) ? "contradicted" : "proved", by);
}

void audit_open_claim(struct audit *a, const char *claim, const char *by)
{
    audit_claim(a, claim, "cannot be proved", by);
}

/* A payload file below data/. */
const struct bag_file *audit_payload(const struct audit *a, const char *below)
{
    char *path = xasprintf("data/%s", below);
    const struct bag_file *f = bag_find(&a->files, path);

    free(path);
    return f;
}

json_t *audit_read_payload(struct audit *a, const char *below)
{
    char *path = path_join(a->data, below);
    struct err err = ERR_INIT;
    json_t *root = audit_payload(a, below) ? json_read_file(path, &err) : NULL;

    if (!root && err.code)
        audit_fault(a, "%s", err.text);
    else if (!root)
        audit_fault(a, "%s: missing", below);
    free(path);
    return root;
}

const char *audit_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

bool audit_has_folder(const struct audit *a, const char *name)
{
    char *path = path_join(a->data, name);
    bool found = io_is_dir(path);

    free(path);
    return found;
}

json_t *audit_read_summary(const char *run)
{
    char *path = path_join(run, "data/compare/summary.json");
    struct err ignored = ERR_INIT;
    json_t *summary = json_read_file(path, &ignored);

    free(path);
    return summary;
}

/* A stage's record; NULL, which another claim tells, when there is none. */
json_t *audit_read_record(struct audit *a, const char *stage)
{
    char *path = xasprintf("%s/%s/stage.json", a->data, stage);
    struct err ignored = ERR_INIT;
    json_t *record = json_read_file(path, &ignored);

    free(path);
    return record;
}
