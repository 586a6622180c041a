#ifndef KERNELS_TORCH_BLOCKING_H
#define KERNELS_TORCH_BLOCKING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Where PyTorch's library of products, oneDNN 3.12, cuts the rows of a bf16
 * product of more than one row and more than one output on a processor with
 * AMX, an L1 of 48 KiB and an L2 of 2 MiB, with one thread.  It depends on the
 * shape of the call:
 *
 *     chunk     columns that are summed from 0, a multiple of 32, before the
 *               next are added; `in`: the whole row
 *     is_even   blocks of a chunk that is not whole blocks of 32 are cut evenly
 *               (even32 of blocks32.h), else 32 long with a shorter last one
 *
 * Up to 32 rows are never cut into chunks.  With two threads, whose shares are
 * other shapes, another chunk is taken for 59 of 260 random shapes of 480 to
 * 3,072 columns, and for SmolLM2's from about 300 rows on.
 */
struct torch_blocking {
    int64_t chunk;
    bool is_even;
};
struct torch_blocking torch_blocking(int64_t rows, int64_t out, int64_t in);
#endif
