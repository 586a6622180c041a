/* The k largest of n values, with PyTorch's choice among equals. */
#include "kernels/topk.h"

#include "base/bug.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { SMALL = 3 };

static bool before(const struct topk_pair *x, const struct topk_pair *y)
{
    return (isnan(x->value) && !isnan(y->value)) || x->value > y->value;
}

static void swap(struct topk_pair *x, struct topk_pair *y)
{
    struct topk_pair t = *x;

    *x = *y;
    *y = t;
}

/* The median of a[f + 1], the middle one and a[l - 1] goes to a[f]. */
static void median_first(struct topk_pair *a, int64_t f, int64_t l)
{
    struct topk_pair *x = &a[f + 1], *y = &a[f + (l - f) / 2], *z = &a[l - 1];

    if (before(x, y))
        swap(&a[f], before(y, z) ? y : before(x, z) ? z : x);
    else
        swap(&a[f], before(x, z) ? x : before(y, z) ? z : y);
}

static int64_t partition(struct topk_pair *a, int64_t f, int64_t l)
{
    int64_t i = f + 1, j = l;

    median_first(a, f, l);
    for (;; i++) {
        while (before(&a[i], &a[f]))
            i++;
        do
            j--;
        while (before(&a[f], &a[j]));
        if (i >= j)
            return i;
        swap(&a[i], &a[j]);
    }
}

static void insertion_sort(struct topk_pair *a, int64_t f, int64_t l)
{
    for (int64_t i = f + 1; i < l; i++) {
        struct topk_pair x = a[i];
        int64_t j = i;

        for (; j > f && before(&x, &a[j - 1]); j--)
            a[j] = a[j - 1];
        a[j] = x;
    }
}

/* The heap select that nth_element falls back to: a[f .. p] is made a heap
 * whose top is the last of them in order, and each later element before the
 * top takes its place. */
static void sift(struct topk_pair *heap, int64_t hole, int64_t len,
                 struct topk_pair x)
{
    int64_t top = hole, child = hole;

    while (child < (len - 1) / 2) {
        child = 2 * (child + 1);
        if (before(&heap[child], &heap[child - 1]))
            child--;
        heap[hole] = heap[child];
        hole = child;
    }
    if (len % 2 == 0 && child == (len - 2) / 2) {
        child = 2 * child + 1;
        heap[hole] = heap[child];
        hole = child;
    }
    for (int64_t up = (hole - 1) / 2; hole > top && before(&heap[up], &x);
         up = (hole - 1) / 2) {
        heap[hole] = heap[up];
        hole = up;
    }
    heap[hole] = x;
}

static void heap_select(struct topk_pair *a, int64_t f, int64_t p, int64_t l)
{
    struct topk_pair *heap = a + f;
    int64_t len = p + 1 - f;

    for (int64_t parent = (len - 2) / 2; len > 1 && parent >= 0; parent--)
        sift(heap, parent, len, heap[parent]);
    for (int64_t i = p + 1; i < l; i++)
        if (before(&a[i], heap)) {
            struct topk_pair x = a[i];

            a[i] = heap[0];
            sift(heap, 0, len, x);
        }
    swap(heap, &a[p]);
}

static void nth_element(struct topk_pair *a, int64_t n, int64_t p)
{
    int64_t f = 0, l = n;
    int budget = 2 * (63 - __builtin_clzll((unsigned long long)n));

    while (l - f > SMALL) {
        if (budget-- == 0) {
            heap_select(a, f, p, l);
            return;
        }
        int64_t cut = partition(a, f, l);
        if (cut <= p)
            f = cut;
        else
            l = cut;
    }
    insertion_sort(a, f, l);
}

static int by_value_then_index(const void *a, const void *b)
{
    const struct topk_pair *x = a, *y = b;

    if (before(x, y) || before(y, x))
        return before(x, y) ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

void topk_torch(const double *values, int64_t n, int64_t k, int64_t *chosen,
                struct topk_pair *scratch)
{
    BUG_ON(k < 1 || k > n);
    for (int64_t i = 0; i < n; i++)
        scratch[i] = (struct topk_pair){values[i], i};
    if (k > n / 64)
        nth_element(scratch, n, k - 1);
    else {
        heap_select(scratch, 0, k - 1, n);
        qsort(scratch, (size_t)k, sizeof(*scratch), by_value_then_index);
    }
    for (int64_t i = 0; i < k; i++)
        chosen[i] = scratch[i].index;
}
