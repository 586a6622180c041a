/* Two files at once have the digests that OpenSSL gives each of them. */
#include "hash/sha256_pair.h"

#include "tap.h"

#include <unistd.h>

static char path[2][32] = {"/tmp/assay-pair-XXXXXX", "/tmp/assay-pair-XXXXXX"};

static uint64_t state = 88172645463325252u;

static unsigned int random_below(unsigned int n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned int)(state % n);
}

static void make(int i, size_t size)
{
    FILE *f = fopen(path[i], "wb");

    for (size_t k = 0; k < size; k++)
        fputc((int)random_below(256), f);
    fclose(f);
}

static bool agrees(size_t a, size_t b)
{
    struct sha256_file f[2] = {{.path = path[0]}, {.path = path[1]}};
    struct err err = ERR_INIT;
    bool same = true;

    make(0, a);
    make(1, b);
    sha256_pair(&f[0], &f[1]);
    for (int i = 0; i < 2; i++) {
        char want[HASH_SHA256_HEX];
        int64_t size;

        same &= hash_sha256_file(path[i], want, &size, &err) == 0 &&
                f[i].err.code == ERR_NONE && f[i].size == size &&
                strcmp(f[i].sha256, want) == 0;
    }
    if (!same)
        diag("%zu and %zu bytes", a, b);
    return same;
}

int main(void)
{
    static const size_t sizes[] = {0,      1,      55,     56,    63,
                                   64,     65,     119,    120,   262143,
                                   262144, 262145, 600000, 524288};
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    bool all = true;

    for (int i = 0; i < 2; i++)
        close(mkstemp(path[i]));
    for (int i = 0; i < SIZES; i++)
        for (int k = 0; k < SIZES; k++)
            all &= agrees(sizes[i], sizes[k]);
    ok(all, "lengths about a block, a step and their ends");
    all = true;
    for (int i = 0; i < 300; i++)
        all &= agrees(random_below(300), random_below(300));
    ok(all, "300 pairs of short files");

    struct sha256_file here = {.path = path[0]}, none = {.path = "/none/such"};
    char want[HASH_SHA256_HEX];
    struct err err = ERR_INIT;

    sha256_pair(&here, &none);
    hash_sha256_file(path[0], want, NULL, &err);
    is_int(none.err.code, ERR_INPUT, "a file that is not there");
    is_str(here.sha256, want, "does not keep the other");
    diag("SHA instructions: %s", sha256_pair_helps() ? "yes" : "no");
    unlink(path[0]);
    unlink(path[1]);
    return done();
}
