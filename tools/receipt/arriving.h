#ifndef TOOLS_RECEIPT_ARRIVING_H
#define TOOLS_RECEIPT_ARRIVING_H

#include "base/err.h"
#include "receipt/receipt.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One file of a receipt as its bytes arrive: hashed on the way, so that nothing
 * is read twice, and given up (ERR_NO) as soon as it cannot become the
 * receipt's: more bytes than its size, or, where the receipt has a digest of
 * each tensor (record --tensors), the first tensor that is another.
 */
struct arriving;

/* What `listed` says must outlive it.  `hash` is that of Git ids. */
struct arriving *arriving_new(const struct receipt_file *listed,
                              enum hash_kind hash);
void arriving_free(struct arriving *a); /* NULL is fine */

/* The content's size when the receipt tells it, else -1: that of a small blob
 * may be of the pointer to a larger file. */
int64_t arriving_size(const struct receipt_file *listed);

int arriving_add(struct arriving *a, const void *data, size_t len,
                 struct err *err);

/* After the last byte: is the file at `path`, which holds what arrived, the
 * receipt's?  -1 when it could not be read. */
int arriving_end(struct arriving *a, const char *path, bool *is_same,
                 struct err *err);
#endif
