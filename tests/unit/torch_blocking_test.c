/* Where products of bf16 are cut, against torch 2.13.0's own. */
#include "kernels/blocks32.h"
#include "kernels/torch_blocking.h"

#include "tap.h"

/* rows, outputs, columns; columns a chunk (0: all), columns a block.  Printed
 * by python tests/oracle/blocking.py, torch 2.13.0+cpu, one thread, AMX. */
static const int64_t shapes[][5] = {
    {2, 64, 72, 0, 24},       {3, 512, 40, 0, 20},
    {16, 512, 48, 0, 24},     {17, 64, 66, 0, 22},
    {30, 512, 120, 0, 30},    {32, 256, 4096, 0, 32},
    {33, 64, 4096, 512, 32},  {33, 256, 8192, 1184, 32},
    {40, 64, 522, 288, 32},   {40, 512, 300, 0, 30},
    {64, 64, 80, 0, 32},      {64, 64, 96, 0, 32},
    {67, 64, 576, 0, 32},     {67, 192, 576, 288, 32},
    {67, 576, 576, 288, 32},  {67, 576, 1536, 384, 32},
    {67, 1536, 576, 288, 32}, {70, 49152, 576, 288, 32},
    {95, 576, 1536, 384, 32}, {95, 64, 130, 0, 26},
    {96, 96, 130, 0, 32},     {120, 100, 126, 0, 32},
    {200, 128, 1100, 0, 32},  {100, 1024, 3072, 448, 32},
    {128, 256, 512, 256, 32}, {200, 192, 3072, 768, 32},
    {256, 384, 544, 288, 32}, {300, 64, 3072, 0, 32},
    {512, 576, 704, 352, 32}, {700, 768, 1536, 384, 32},
    {1024, 576, 512, 0, 32},  {1024, 2048, 2048, 1024, 32},
    {1500, 2048, 640, 0, 32}, {4096, 512, 704, 0, 32},
};

int main(void)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const int64_t *s = shapes[i];
        struct torch_blocking b = torch_blocking(s[0], s[1], s[2]);
        int64_t chunk = b.chunk < s[2] ? b.chunk : 0;
        int64_t block = b.is_even ? even32_block(b.chunk) : 32;

        if (!ok(chunk == s[3] && block == s[4],
                "%lld rows of %lld columns, %lld outputs", (long long)s[0],
                (long long)s[2], (long long)s[1]))
            diag("chunks of %lld in blocks of %lld", (long long)chunk,
                 (long long)block);
    }
    return done();
}
