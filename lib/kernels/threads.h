#ifndef KERNELS_THREADS_H
#define KERNELS_THREADS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/*
 * One pool of threads for the kernels.  Work is divided by outputs, never
 * inside a sum, so a result has the same bits for any number of threads.
 * The pool is driven from one thread, the main one.
 */

/* n threads in all, the calling one counted (1 to 1024; ERR_USAGE else).
 * Without a call there is one.  threads_set(1, ...) ends the others and frees
 * their scratch and the caller's. */
int threads_set(int n, struct err *err);
int threads_count(void);
int threads_online(void); /* processors that this process may run on */

/*
 * Calls fn(ctx, first, end) over pieces that together cover [0, count) once;
 * every piece but the last is a multiple of `grain` long (at least 1).
 * Returns when all are done.  Called from inside fn it runs in place.
 */
void threads_for(int64_t count, int64_t grain,
                 void (*fn)(void *ctx, int64_t first, int64_t end), void *ctx);

/*
 * At least `bytes` of the calling thread's scratch memory, 64-byte aligned;
 * it keeps its contents until this thread asks for the same slot again.
 */
enum threads_slot {
    SCRATCH_SHARED, /* set up by the calling thread, read by all pieces */
    SCRATCH_PIECE,  /* of one piece */
    SCRATCH_COUNT
};
void *threads_scratch(enum threads_slot slot, size_t bytes);
#endif
