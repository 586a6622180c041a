#ifndef SUPPORT_FORMS_H
#define SUPPORT_FORMS_H

#include "kernels/kernels.h"
#include "tap.h"

/* for (int i = 0; use_form(i); i++): the plain form, then each other one that
 * this processor has. */
static bool use_form(int i)
{
    static const char *const names[] = {"plain", "avx2"};
    struct err err = ERR_INIT;

    if (i >= (int)(sizeof(names) / sizeof(names[0])) ||
        kernels_select(names[i], &err))
        return false;
    diag("form: %s", names[i]);
    return true;
}
#endif
