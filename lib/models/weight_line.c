/* One tensor of a weight ledger. */
#include "models/weight_line.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 16 };

json_t *weight_line(const struct safetensors *st,
                    const struct tensor_info *info, const char *canonical,
                    const char *state, double times_read)
{
    const char *path = safetensors_path(st, info);
    const char *slash = strrchr(path, '/');
    json_t *shape = json_array();

    for (int i = 0; i < info->shape.dims; i++)
        json_array_append_new(shape, json_integer(info->shape.size[i]));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "tensor",
                     info->name, "canonical", canonical, "file",
                     slash ? slash + 1 : path, "dtype", dtype_name(info->dtype),
                     "state", state, "shape", shape, "times_read",
                     json_real_or_text(times_read));
}

int weight_digest(const struct safetensors *st, const struct tensor_info *info,
                  char out[HASH_SHA256_HEX], struct err *err)
{
    struct hash *h = hash_new(HASH_SHA256);
    char *piece = xmalloc(PIECE);
    int ret = 0;

    for (int64_t at = 0; at < info->bytes && ret == 0; at += PIECE) {
        size_t n = info->bytes - at < PIECE ? (size_t)(info->bytes - at)
                                            : (size_t)PIECE;

        ret = safetensors_read(st, info, at, n, piece, err);
        hash_add(h, piece, n);
    }
    free(piece);
    if (ret == 0)
        hash_hex(h, out);
    hash_free(h);
    return ret;
}

int weight_line_measure(json_t *line, const struct safetensors *st,
                        const struct tensor_info *info, weight_reader *read,
                        void *ctx, struct err *err)
{
    double sum = 0, least = INFINITY, most = -INFINITY;
    size_t n = (size_t)shape_count(&info->shape);
    char sha256[HASH_SHA256_HEX];

    if (weight_digest(st, info, sha256, err))
        return -1;
    json_object_set_new(line, "sha256", json_string(sha256));
    if (!dtype_is_float(info->dtype) || info->dtype == DTYPE_F64)
        return 0;
    float *piece = xmalloc(2 * PIECE * sizeof(*piece));
    int ret = 0;
    for (size_t at = 0, m; at < n && ret == 0; at += m) {
        m = n - at < PIECE ? n - at : PIECE;
        ret = read(ctx, (int64_t)at, m, piece + PIECE, piece, err);
        for (size_t i = 0; i < m && ret == 0; i++) {
            double v = (double)piece[i];

            sum += v;
            least = v < least ? v : least;
            most = v > most ? v : most;
        }
    }
    free(piece);
    json_object_set_new(line, "mean", json_real_or_text(sum / (double)n));
    json_object_set_new(line, "min", json_real_or_text(least));
    json_object_set_new(line, "max", json_real_or_text(most));
    return ret;
}
