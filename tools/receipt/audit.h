#ifndef TOOLS_RECEIPT_AUDIT_H
#define TOOLS_RECEIPT_AUDIT_H

#include "base/err.h"
#include "cases/cases.h"
#include "evidence/bag.h"
#include "view.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * An audit: claims one after the other, each with what contradicts it.  A claim
 * is checked by adding faults and then concluded; the files below are what the
 * run or the bundle holds, by their digests.
 */
struct audit {
    const char *run;
    char *data;             /* RUN/data */
    struct bag_files files; /* the payload as found, hashed; "data/..." */
    json_t *claims;
    json_t *faults;             /* of the claim at hand */
    const char *pack, *against; /* to recompute; to compare with; or NULL */
    json_t *drift;
    const char *signers; /* allowed_signers, or NULL */
    struct view view;    /* of a bundle */
    bool is_bundle;
    struct case_list cases;
    bool has_cases;
    size_t stages;
};

/* A fault of the claim at hand. */
void audit_fault(struct audit *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ends the claim at hand: with a verdict; proved unless a fault was found; not
 * to be proved from this evidence.  `by` says by what. */
void audit_claim(struct audit *a, const char *claim, const char *verdict,
                 const char *by);
void audit_conclude(struct audit *a, const char *claim, const char *by);
void audit_open_claim(struct audit *a, const char *claim, const char *by);

/* A payload file below data/, or NULL. */
const struct bag_file *audit_payload(const struct audit *a, const char *below);
bool audit_has_folder(const struct audit *a, const char *name);

/* Its document; what is missing or unreadable is a fault. */
json_t *audit_read_payload(struct audit *a, const char *below);

/* Documents of which another claim tells whether they are there; or NULL. */
json_t *audit_read_record(struct audit *a, const char *stage);
json_t *audit_read_summary(const char *run);

/* A string of an object; "" when there is none. */
const char *audit_text(const json_t *object, const char *key);

/* The claims.  -1 only when the system said no. */
void audit_coverage(struct audit *a); /* reads the cases: comes first */
void audit_receipt(struct audit *a);
void audit_chain(struct audit *a);
void audit_executables(struct audit *a);
void audit_statement(struct audit *a);
int audit_verdict(struct audit *a, const json_t *record, struct err *err);
int audit_reports(struct audit *a, const json_t *record, struct err *err);
#endif
