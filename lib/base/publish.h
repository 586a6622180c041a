#ifndef BASE_PUBLISH_H
#define BASE_PUBLISH_H

#include "base/err.h"

/*
 * A directory that appears whole or not at all.  Work goes into the hidden
 * sibling ".NAME.part", locked by the living process (flock on the folder); a
 * stale one, left by a process that died, is emptied.  publish_commit() fsyncs
 * every file and renames; a final name that is there already is ERR_EXISTS,
 * before any work and again at the rename.
 *
 *     struct publish p;
 *     if (publish_begin(&p, out, &err)) ...
 *     write into p.part ...
 *     if (publish_commit(&p, &err)) ...   or publish_abort(&p)
 */
struct publish {
    char *final, *part;
    int lock;      /* descriptor of the part folder, holding the lock */
    int took_over; /* a stale part folder stood there and was emptied */
};

#define PUBLISH_INIT      \
    {                     \
        NULL, NULL, -1, 0 \
    }

int publish_begin(struct publish *p, const char *path, struct err *err);
int publish_commit(struct publish *p, struct err *err);
void publish_abort(
    struct publish *p); /* removes the part folder; NULL is fine */

/* A folder that is whole already gets another name on the same storage; a name
 * that is there is ERR_EXISTS.  Missing parents are made. */
int publish_adopt(const char *from, const char *to, struct err *err);
#endif
