/* A zstd-compressed file, read whole. */
#include "archive/zstd_file.h"

#include "base/io.h"

#include <stdbool.h>
#include <zstd.h>

/* Decompresses all of `packed` behind out, at most to `cap` bytes more. */
static int unpack(ZSTD_DCtx *zstd, const struct buf *packed, size_t cap,
                  struct buf *out, struct err *err)
{
    ZSTD_inBuffer in = {packed->data, packed->len, 0};
    size_t begin = out->len, step = ZSTD_DStreamOutSize(), left = 1;

    while (in.pos < in.size || left != 0) {
        buf_reserve(out, step);
        ZSTD_outBuffer to = {out->data + out->len, step, 0};
        size_t before = in.pos;

        left = ZSTD_decompressStream(zstd, &to, &in);
        if (ZSTD_isError(left))
            return err_set(err, ERR_INPUT, "byte %zu: %s", in.pos,
                           ZSTD_getErrorName(left));
        out->len += to.pos;
        out->data[out->len] = '\0';
        if (out->len - begin > cap)
            return err_set(err, ERR_INPUT, "unpacks to more than %zu bytes",
                           cap);
        if (left != 0 && to.pos == 0 && in.pos == before)
            return err_set(err, ERR_INPUT, "a zstd frame is cut short");
    }
    return 0;
}

int zstd_read_file(const char *path, size_t cap, struct buf *out,
                   struct err *err)
{
    struct buf packed = BUF_INIT;
    size_t begin = out->len;
    int ret = -1;
    ZSTD_DCtx *zstd = ZSTD_createDCtx();

    if (!zstd) {
        err_set(err, ERR_SYSTEM, "out of memory");
        goto out;
    }
    /* incompressible data grows a little, and frames have headers */
    if (io_read_file(path, cap + cap / 128 + 4096, &packed, err))
        goto out;
    if (unpack(zstd, &packed, cap, out, err)) {
        err_in(err, "%s", path);
        goto out;
    }
    ret = 0;
out:
    if (ret)
        buf_cut(out, begin);
    ZSTD_freeDCtx(zstd);
    buf_release(&packed);
    return ret;
}
