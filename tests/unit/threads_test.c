/* The pool covers every index once, for any count, grain and size. */
#include "kernel_data.h"
#include "kernels/threads.h"

#include <stdatomic.h>

struct seen {
    int64_t count, grain;
    atomic_int *times;
    atomic_int ragged;
};

static void note(void *ctx, int64_t first, int64_t end)
{
    struct seen *seen = ctx;

    if (first % seen->grain != 0 ||
        (end % seen->grain != 0 && end != seen->count))
        atomic_fetch_add(&seen->ragged, 1);
    for (int64_t i = first; i < end; i++)
        atomic_fetch_add(&seen->times[i], 1);
}

static void nested(void *ctx, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; i++)
        threads_for(7, 2, note, ctx);
}

static void test_cover(void)
{
    static const int64_t counts[] = {0, 1, 2, 15, 16, 17, 1000};
    static const int64_t grains[] = {1, 3, 16, 5000};

    for (int n = 1; n <= 3; n++) {
        int wrong = 0;

        set_threads(n);
        is_int(threads_count(), n, "the pool has the size asked for");
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
            for (size_t g = 0; g < sizeof(grains) / sizeof(grains[0]); g++) {
                struct seen seen = {.count = counts[c], .grain = grains[g]};

                seen.times = data_array(counts[c], sizeof(*seen.times));
                threads_for(counts[c], grains[g], note, &seen);
                for (int64_t i = 0; i < counts[c]; i++)
                    wrong += seen.times[i] != 1;
                wrong += seen.ragged;
                free(seen.times);
            }
        is_int(wrong, 0, "each index once, in pieces of whole grains");
    }
}

static void test_nested(void)
{
    struct seen seen = {.count = 7, .grain = 2};
    int wrong = 0;

    set_threads(3);
    seen.times = data_array(7, sizeof(*seen.times));
    threads_for(50, 1, nested, &seen);
    for (int i = 0; i < 7; i++)
        wrong += seen.times[i] != 50;
    is_int(wrong, 0, "a loop inside a loop runs in place");
    free(seen.times);
}

static void test_scratch(void)
{
    char *a = threads_scratch(SCRATCH_SHARED, 100), *b, *again;

    memset(a, 7, 100);
    b = threads_scratch(SCRATCH_PIECE, 1000);
    again = threads_scratch(SCRATCH_SHARED, 50);
    ok(a == again && a != b && a[99] == 7, "slots are apart, and kept");
    ok((uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0, "scratch is aligned");
}

static void test_refusals(void)
{
    struct err err = ERR_INIT;

    ok(threads_set(0, &err) == -1 && err.code == ERR_USAGE, "0 threads");
    err_clear(&err);
    ok(threads_set(1025, &err) == -1 && err.code == ERR_USAGE, "1025 threads");
    err_clear(&err);
    ok(kernels_select("sse9", &err) == -1 && err.code == ERR_USAGE,
       "a form that nobody wrote");
    is_str(err.text, "no kernel form is called 'sse9'", "and says so");
    err_clear(&err);
    ok(kernels_select("plain", &err) == 0, "plain is always there");
    is_str(kernels_name(), "plain", "and is then in use");
    is_int(kernels_form(), KERNEL_PLAIN, "by its number too");
    ok(kernels_select(NULL, &err) == 0, "the best form there is");
    diag("which is %s; %d processors", kernels_name(), threads_online());
}

int main(void)
{
    test_cover();
    test_nested();
    test_scratch();
    test_refusals();
    set_threads(1);
    return done();
}
