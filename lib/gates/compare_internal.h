#ifndef GATES_COMPARE_INTERNAL_H
#define GATES_COMPARE_INTERNAL_H

#include "cases/cases.h"
#include "gates/compare.h"
#include "gates/gates.h"
#include "gates/metrics.h"
#include "hash/hash.h"

/* Shared by compare.c (which cases, the document), compare_case.c (one case)
 * and compare_gate.c (one gate of it); nobody else includes it. */
enum verdict { PASS, FAIL, MISSING, NOT_APPLICABLE, VERDICTS };

extern const char *const compare_verdicts[VERDICTS];

/* One case of the cases file. */
struct planned {
    const char *name;                /* in the document */
    const struct test_case *of_file; /* NULL without a cases file */
};

struct compare {
    struct compare_request request;
    struct gates gates;
    struct capture_set *reference, *candidate, *adjudicator;
    struct case_list cases; /* empty without a cases file */
    char protocol_sha256[HASH_SHA256_HEX];
    struct planned *planned; /* what is to be compared comes first */
    size_t count, all;       /* how many are, and how many there are */
    int64_t tally[VERDICTS];
    bool *gate_used;
    json_t **judged; /* as planned; NULL: not yet */
    bool any_fail;
};

/* One case under comparison. */
struct one {
    const struct planned *plan;
    struct capture *reference, *candidate, *adjudicator;
    bool in_reference, in_candidate, has_images;
};

/* A text as JSON, or null; a message may name a file whose name is no UTF-8. */
json_t *compare_text(const char *text);

/* ---- compare_gate.c ---- */

/* One gate's element of a case; NULL only when the reference cannot be read. */
json_t *compare_gate(const struct gate *gate, const struct one *one,
                     enum verdict *verdict, struct err *err);
json_t *compare_value(const struct metric_result *r);

/* ---- compare_case.c ---- */

/* One case's element of the document; NULL on an error. */
json_t *compare_case(struct compare *run, const struct planned *planned,
                     bool *is_fail, struct err *err);
#endif
