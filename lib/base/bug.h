#ifndef BASE_BUG_H
#define BASE_BUG_H

#include <stdio.h>
#include <stdlib.h>

/* What cannot happen is not an error: says where, and stops, in every build. */
#define BUG_ON(condition)                                           \
    do {                                                            \
        if (condition) {                                            \
            fprintf(stderr, "bug: %s:%d: %s\n", __FILE__, __LINE__, \
                    #condition);                                    \
            abort();                                                \
        }                                                           \
    } while (0)
/* A place that cannot be reached. */
#define BUG(what)                                                      \
    do {                                                               \
        fprintf(stderr, "bug: %s:%d: %s\n", __FILE__, __LINE__, what); \
        abort();                                                       \
    } while (0)
#endif
