#ifndef BASE_ROOM_H
#define BASE_ROOM_H

#include "base/err.h"

#include <stdint.h>

/* What the machine has left, for a run that wants to know before it starts. */

/* Bytes that may still be written on the storage of `path`, or of its nearest
 * parent that is there. */
int room_on_disk(const char *path, int64_t *bytes, struct err *err);

/*
 * Bytes of memory that may still be taken, the least of what the kernel tells:
 * MemAvailable, the limit of each control group above this process less what is
 * used without its reclaimable cache, and the limits on address space and data
 * (ulimit -v, -d), less what libraries and the stacks of a thread a processor
 * take of address space.  *limit names the one that counts.
 */
int room_in_memory(int64_t *bytes, const char **limit, struct err *err);

/* The most memory that this process has had resident so far. */
int64_t room_peak(void);

/* A size as a person reads it: "12 KiB", "345 MiB", "1.5 GiB". */
void room_format(int64_t bytes, char out[32]);
#endif
