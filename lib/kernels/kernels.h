#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include "base/err.h"

/*
 * The forms of the heavy kernels.  The plain C form of each is its definition
 * (the written orders: grid24, chain128, lanes16); the others give the same
 * bits for any number of rows and threads.  A form is chosen once, before the
 * first kernel runs and from the main thread.
 *
 * Every kernel here: activations are floats (an f16 or bf16 activation is a
 * float that it can represent exactly), results are f32 sums that the caller
 * rounds; names with _f64 do the same in double.  A NaN result is the
 * canonical one, 0x7FC00000 (0x7FF8000000000000 in double), whatever NaN or
 * infinity it came from.  Shapes are the caller's promise (BUG_ON).  Scratch
 * belongs to the threads and is kept between calls (kernels/threads.h).
 */
enum kernel_form {
    KERNEL_PLAIN,
    KERNEL_AVX2 /* AVX2, FMA and F16C */
};

/*
 * "plain", "avx2", or NULL for the best that this processor has.  Another
 * name is ERR_USAGE, a form that the processor lacks ERR_UNSUPPORTED.
 */
int kernels_select(const char *name, struct err *err);

/* The form in use; the best there is when none was selected. */
enum kernel_form kernels_form(void);
const char *kernels_name(void);
#endif
