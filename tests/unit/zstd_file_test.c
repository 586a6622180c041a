/* zstd files: whole frames in, exact bytes out, everything else refused.
 * The packed bytes were made with zstd 1.5.4: printf 'hello hello hello\n' |
 * zstd -19 --no-check, and printf 'b' | zstd. */
#include "archive/zstd_file.h"
#include "base/io.h"
#include "tap.h"

#include <unistd.h>

static char path[] = "/tmp/assay-zstd-XXXXXX";

static int read_bytes(const void *data, size_t len, size_t cap, struct buf *out,
                      struct err *err)
{
    FILE *f = fopen(path, "wb");

    fwrite(data, 1, len, f);
    fclose(f);
    return zstd_read_file(path, cap, out, err);
}

int main(void)
{
    static const unsigned char hello[] = {
        0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x68, 0x6d, 0x00, 0x00, 0x38, 0x68,
        0x65, 0x6c, 0x6c, 0x6f, 0x20, 0x0a, 0x01, 0x00, 0x31, 0x4a, 0x11};
    static const unsigned char b[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00,
                                      0x58, 0x09, 0x00, 0x00, 0x62};
    unsigned char both[sizeof(hello) + sizeof(b)];
    struct buf out = BUF_INIT;
    struct err err = ERR_INIT;
    bool all = true;
    int fd = mkstemp(path);

    if (fd < 0)
        return 1;
    close(fd);
    is_int(read_bytes(hello, sizeof(hello), 100, &out, &err), 0, "one frame");
    is_str(out.data, "hello hello hello\n", "its bytes");
    memcpy(both, hello, sizeof(hello));
    memcpy(both + sizeof(hello), b, sizeof(b));
    is_int(read_bytes(both, sizeof(both), 100, &out, &err), 0, "two frames");
    is_str(out.data, "hello hello hello\nhello hello hello\nb",
           "are appended to what was there");
    size_t len = out.len;
    for (size_t cut = 0; cut < sizeof(hello); cut++) {
        err_clear(&err);
        all = read_bytes(hello, cut, 100, &out, &err) == -1 &&
              err.code == ERR_INPUT && out.len == len && all;
    }
    ok(all, "cut short at every byte: refused, nothing appended");
    err_clear(&err);
    ok(read_bytes(hello, sizeof(hello), 17, &out, &err) == -1 &&
           err.code == ERR_INPUT,
       "more than the cap is refused");
    both[sizeof(hello)] = 'x';
    err_clear(&err);
    ok(read_bytes(both, sizeof(both), 100, &out, &err) == -1 &&
           err.code == ERR_INPUT,
       "something else behind a frame is refused");
    err_clear(&err);
    ok(zstd_read_file("/nonexistent.zst", 10, &out, &err) == -1 &&
           err.code == ERR_INPUT,
       "a missing file is refused");
    unlink(path);
    buf_release(&out);
    return done();
}
