#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdint.h>

/*
 * One line on stderr that tells how far a long run is and about how long it
 * will take: "forward: 42 %, about 1 min 20 s left".  Only when stderr is a
 * terminal that is not dumb; it changes nothing else.
 */
struct progress {
    const char *what;
    int64_t total; /* units of work; 0: nothing is shown */
    int64_t shown; /* per mille that stand on the line, -1 before */
    double began;  /* seconds */
};

void progress_begin(struct progress *p, const char *what, int64_t total);
void progress_at(struct progress *p, int64_t done);
void progress_end(struct progress *p); /* clears the line */
#endif
