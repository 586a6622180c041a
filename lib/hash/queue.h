#ifndef HASH_QUEUE_H
#define HASH_QUEUE_H

#include "hash/hash.h"

#include <stddef.h>

/*
 * A digest on a thread of its own, for who has other work to do on the same
 * bytes.  They lie in a few buffers that are filled one after the other; each
 * is hashed behind the back of whoever fills the next.
 */
struct hash_queue;

enum { HASH_QUEUE_BUFFERS = 8 };

/* Buffers of `step` bytes. */
struct hash_queue *hash_queue_new(enum hash_kind kind, size_t step);

/* The next buffer, waited for when it is not hashed yet; filled by the caller.
 * Its bytes stay as they are until HASH_QUEUE_BUFFERS - 1 more were asked for.
 */
void *hash_queue_next(struct hash_queue *q);

/* `len` bytes of that buffer come next in the digest. */
void hash_queue_add(struct hash_queue *q, size_t len);

/* Waits for all, and ends it. */
void hash_queue_hex(struct hash_queue *q, char *out);
void hash_queue_free(struct hash_queue *q); /* NULL is fine */
#endif
