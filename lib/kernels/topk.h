#ifndef KERNELS_TOPK_H
#define KERNELS_TOPK_H

#include <stdint.h>

/*
 * The k largest of n values, as torch.topk(..., sorted=False) picks them on a
 * CPU: chosen[0 .. k) are their indices in its order (deepseek-v4.md 6.4).
 *
 *     64 k > n   std::nth_element over (value, index) pairs in index order: a
 *                quickselect by median of three, whose choice among equal
 *                values is its own
 *     else       std::partial_sort: a heap of k whose top gives way to every
 *                larger value, then in descending order, equal values by
 *                ascending index (where they stand then is not followed)
 *
 * A NaN counts as larger than any number.  1 <= k <= n; scratch holds n.
 */
struct topk_pair {
    double value;
    int64_t index;
};
void topk_torch(const double *values, int64_t n, int64_t k, int64_t *chosen,
                struct topk_pair *scratch);
#endif
