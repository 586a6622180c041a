#ifndef SUPPORT_FORMS_H
#define SUPPORT_FORMS_H

#include "kernels/kernels.h"
#include "kernels/threads.h"
#include "tap.h"

/* for (int i = 0; use_form(i); i++): the plain form, then each other one that
 * this processor has, each with one thread and with three. */
static bool use_form(int i)
{
    static const char *const names[] = {"plain", "avx2"};
    struct err err = ERR_INIT;
    int threads = i % 2 ? 3 : 1;

    if (i / 2 >= (int)(sizeof(names) / sizeof(names[0])) ||
        kernels_select(names[i / 2], &err)) {
        threads_set(1, &err);
        return false;
    }
    if (threads_set(threads, &err)) {
        ok(false, "%s", err.text);
        return false;
    }
    diag("form %s, threads: %d", names[i / 2], threads);
    return true;
}
#endif
