/* Which form of the kernels runs. */
#include "kernels/kernels.h"

#include "kernels/kernels_internal.h"

#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

static const struct kernel_table forms[] = {
    KERNEL_TABLE(KERNEL_PLAIN, plain),
#ifdef __x86_64__
    KERNEL_TABLE(KERNEL_AVX2, avx2),
#endif
};

static const struct kernel_table *in_use;

enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

#ifdef __x86_64__
/* What the processor can do and the system saves: cpuid and xgetbv. */
static bool has_avx2(void)
{
    enum { FMA = 1 << 12, OSXSAVE = 1 << 27, F16C = 1 << 29, AVX2 = 1 << 5 };
    const unsigned needed = FMA | OSXSAVE | F16C;
    unsigned a, b, c, d, saved, high;

    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & needed) != needed)
        return false;
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if ((saved & 6) != 6) /* the registers' lower and upper halves */
        return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & AVX2);
}
#endif

static bool is_supported(enum kernel_form form)
{
#ifdef __x86_64__
    if (form == KERNEL_AVX2)
        return has_avx2();
#endif
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
