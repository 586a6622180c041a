#ifndef EVIDENCE_BAG_INTERNAL_H
#define EVIDENCE_BAG_INTERNAL_H

#include "evidence/bag.h"

/* What bagit.txt says, byte for byte. */
#define BAG_DECLARATION_TEXT \
    "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"

struct bag_file *bag_add(struct bag_files *files, const char *path);
void bag_sort(struct bag_files *files);

/* "BYTES.FILES" */
void bag_oxum(const struct bag_files *files, char out[64]);

/* Appends a line to the faults. */
void bag_fault(json_t *faults, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Walks dir/data and hashes what is there; what may not stand in evidence is a
 * fault. */
int bag_load_payload(const char *dir, struct bag_files *files, json_t *faults,
                     struct err *err);
#endif
