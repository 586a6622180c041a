/* Which form of the kernels runs. */
#include "kernels/kernels.h"

#include "kernels/kernels_internal.h"

#include <string.h>

static const struct kernel_table forms[] = {
    KERNEL_TABLE(KERNEL_PLAIN, plain),
};

static const struct kernel_table *in_use;

enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

static bool is_supported(enum kernel_form form)
{
    return form == KERNEL_PLAIN;
}

int kernels_select(const char *name, struct err *err)
{
    for (int i = FORMS - 1; i >= 0; i--) {
        bool is_here = is_supported(forms[i].form);

        if (name ? strcmp(name, forms[i].name) != 0 : !is_here)
            continue;
        if (!is_here)
            return err_set(err, ERR_UNSUPPORTED,
                           "kernel form '%s': this processor lacks it", name);
        in_use = &forms[i];
        return 0;
    }
    return err_set(err, ERR_USAGE, "no kernel form is called '%s'", name);
}

const struct kernel_table *kernels_table(void)
{
    struct err err = ERR_INIT;

    if (!in_use)
        kernels_select(NULL, &err); /* plain is always there */
    return in_use;
}

enum kernel_form kernels_form(void)
{
    return kernels_table()->form;
}

const char *kernels_name(void)
{
    return kernels_table()->name;
}
