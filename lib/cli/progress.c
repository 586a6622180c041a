/* How far a long run is, for a person at a terminal. */
#include "cli/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_watched(void)
{
    const char *term = getenv("TERM");

    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

void progress_begin(struct progress *p, const char *what, int64_t total)
{
    *p = (struct progress){.what = what,
                           .total = is_watched() ? total : 0,
                           .shown = -1,
                           .began = now()};
}

void progress_at(struct progress *p, int64_t done)
{
    if (p->total <= 0 || done <= 0)
        return;
    int64_t permille = done * 1000 / p->total;
    if (permille <= p->shown)
        return;
    p->shown = permille;
    double took = now() - p->began;
    long left = (long)(took / (double)done * (double)(p->total - done) + 0.5);
    fprintf(stderr, "\r%s: %lld %%", p->what, (long long)(permille / 10));
    if (took > 1 && left >= 60)
        fprintf(stderr, ", about %ld min %ld s left", left / 60, left % 60);
    else if (took > 1)
        fprintf(stderr, ", about %ld s left", left);
    fputs("\033[K", stderr);
}

void progress_end(struct progress *p)
{
    if (p->total > 0 && p->shown >= 0)
        fputs("\r\033[K", stderr);
    p->total = 0;
}
