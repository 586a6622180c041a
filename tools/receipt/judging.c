/* The verdict again: compare's work on what a run holds, case by case. */
#include "judging.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "gates/compare.h"

#include <stdlib.h>
#include <string.h>

struct judging {
    json_t *record; /* compare/stage.json */
    char *gates, *cases, *protocol, *receipt;
    char *reference, *adjudicator, *exported, *results;
    struct texts *texts; /* what compare asked the pack */
    json_t *about;
    struct compare *compare;
};

/* The value of an option among the arguments that compare recorded. */
static const char *argument(const json_t *record, const char *name)
{
    json_t *list = json_object_get(record, "arguments"), *item;
    size_t i, n = strlen(name);

    json_array_foreach(list, i, item)
    {
        const char *word = json_string_value(item);

        if (word && strcmp(word, name) == 0)
            return json_string_value(json_array_get(list, i + 1));
        if (word && strncmp(word, name, n) == 0 && word[n] == '=')
            return word + n + 1;
    }
    return NULL;
}

static int read_record(struct judging *j, const char *data, struct err *err)
{
    char *path = path_join(data, "compare/stage.json");

    if (io_exists(path))
        j->record = json_read_file(path, err);
    else
        err_set(err, ERR_INPUT, "compare/stage.json: missing");
    free(path);
    return j->record ? 0 : -1;
}

/* What compare's pack said. */
static int read_texts(struct judging *j, const char *data, struct err *err)
{
    char *texts = path_join(data, "compare/texts.json");
    int ret = 0;

    if (io_exists(texts)) {
        j->texts = texts_open(texts, err);
        ret = j->texts ? 0 : -1;
    }
    free(texts);
    return ret;
}

/* The names that the document gives; the receipt comes last in a bundle. */
static int read_about(struct judging *j, struct err *err)
{
    const char *candidate = argument(j->record, "--candidate-name");
    const char *receipt = argument(j->record, "--receipt") ? j->receipt : NULL;

    if (!receipt && !candidate)
        return 0;
    j->about = compare_about(receipt, candidate, err);
    compare_set_about(j->compare, j->about);
    return j->about ? 0 : -1;
}

static int begin(struct judging *j, const char *data, struct err *err)
{
    if (read_record(j, data, err) || read_texts(j, data, err))
        return -1;
    j->gates = path_join(data, "inputs/gates.json");
    j->cases = path_join(data, "inputs/cases.json");
    j->protocol = path_join(data, "inputs/protocol.json");
    j->receipt = path_join(data, "source/receipt.json");
    j->reference = path_join(data, "reference");
    j->adjudicator = path_join(data, "adjudicator");
    j->exported = path_join(data, "export");
    j->results = path_join(data, "candidate");
    if (!io_is_dir(j->results)) {
        free(j->results);
        j->results = path_join(data, "forward");
    }
    const char *references[] = {j->reference};
    const char *adjudicators[] = {j->adjudicator};
    const char *candidates[] = {j->exported, j->results};
    const char *files = argument(j->record, "--files");
    const char *candidate_files = argument(j->record, "--candidate-files");
    struct compare_request request = {
        .gates = j->gates,
        .reference = {.role = "REFERENCE",
                      .paths = references,
                      .count = 1,
                      .files = files},
        .candidate = {.role = "CANDIDATE",
                      .paths = candidates,
                      .count = 2,
                      .files = candidate_files ? candidate_files : files,
                      .may_fail = true},
        .adjudicator = {.role = "ADJUDICATOR",
                        .paths = adjudicators,
                        .count = io_is_dir(j->adjudicator)},
        .protocol = j->protocol,
        .cases = j->cases,
        .texts = j->texts,
    };
    j->compare = compare_begin(&request, err);
    return j->compare ? 0 : -1;
}

struct judging *judging_begin(const char *data, struct err *err)
{
    struct judging *j = xcalloc(1, sizeof(*j));

    if (begin(j, data, err) == 0)
        return j;
    judging_free(j);
    return NULL;
}

int judging_case(struct judging *j, const char *name, struct err *err)
{
    for (size_t i = 0; i < compare_count(j->compare); i++)
        if (strcmp(compare_name(j->compare, i), name) == 0)
            return compare_judge(j->compare, i, err);
    return 0;
}

json_t *judging_end(struct judging *j, struct err *err)
{
    return read_about(j, err) ? NULL : compare_end(j->compare, err);
}

void judging_free(struct judging *j)
{
    if (!j)
        return;
    compare_free(j->compare);
    texts_free(j->texts);
    json_decref(j->about);
    json_decref(j->record);
    free(j->gates);
    free(j->cases);
    free(j->protocol);
    free(j->receipt);
    free(j->reference);
    free(j->adjudicator);
    free(j->exported);
    free(j->results);
    free(j);
}
