/*
 * How a wanted matrix lies in the files: as it is, or quantised in two or three
 * tensors.  Which of the forms is told by the names and dtypes that are there.
 */
#include "models/checkpoint_internal.h"

#include "base/mem.h"
#include "models/quantized.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 128 };

static struct entry *beside(const struct checkpoint *c, const struct wanted *w,
                            const char *suffix)
{
    char name[WEIGHT_NAME_SIZE + 16];

    snprintf(name, sizeof(name), "%s%s", w->name, suffix);
    return checkpoint_find(c, name);
}

struct stored stored_find(const struct checkpoint *c, const struct wanted *w)
{
    struct stored s = {.data = checkpoint_find(c, w->name)};

    if (s.data) {
        enum dtype dtype = s.data->info->dtype;

        s.form = dtype == DTYPE_F8_E4M3 ? FORM_F8
                 : dtype == DTYPE_I8    ? FORM_FP4
                                        : FORM_PLAIN;
        if (s.form != FORM_PLAIN)
            s.scales = beside(c, w, "_scale_inv");
        return s;
    }
    s.data = beside(c, w, "_packed");
    s.scales = beside(c, w, "_scale");
    if (s.data && s.data->info->dtype == DTYPE_I32) {
        s.form = FORM_INT4;
        s.shape = beside(c, w, "_shape");
    } else {
        s.form = FORM_FP4;
    }
    return s;
}

static int check_shape(const struct entry *e, struct tensor_shape shape,
                       struct err *err)
{
    char got[128], wanted[128];

    if (shape_equal(&e->info->shape, &shape))
        return 0;
    shape_format(&e->info->shape, got, sizeof(got));
    shape_format(&shape, wanted, sizeof(wanted));
    return err_set(err, ERR_INPUT, "tensor '%s' is %s, not %s", e->info->name,
                   got, wanted);
}

static int64_t blocks(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

/* The rows and columns that share a scale, from the grid's shape: blocks of
 * 128 x 128, the last ones ragged, or a grid that divides evenly. */
static bool grid_of(const struct wanted *w, const struct tensor_shape *s,
                    int64_t *tall, int64_t *wide)
{
    if (s->dims != 2 || s->size[0] < 1 || s->size[1] < 1)
        return false;
    *tall = *wide = BLOCK;
    if (s->size[0] == blocks(w->out, BLOCK) &&
        s->size[1] == blocks(w->in, BLOCK))
        return true;
    *tall = w->out / s->size[0];
    *wide = w->in / s->size[1];
    return w->out % s->size[0] == 0 && w->in % s->size[1] == 0;
}

static int expect_scales(const struct wanted *w, const struct stored *s,
                         struct err *err)
{
    const struct tensor_info *info = s->scales ? s->scales->info : NULL;
    int64_t tall, wide;
    char shape[128];

    if (!info)
        return err_set(err, ERR_INPUT, "tensor '%s' is %s without its scales",
                       s->data->info->name, dtype_name(s->data->info->dtype));
    s->scales->is_wanted = true;
    if (info->dtype != DTYPE_F32 && info->dtype != DTYPE_BF16 &&
        info->dtype != DTYPE_F16 && info->dtype != DTYPE_F8_E8M0 &&
        info->dtype != DTYPE_U8)
        return err_set(err, ERR_INPUT,
                       "tensor '%s' is %s, not F32, BF16, F16, F8_E8M0 or U8",
                       info->name, dtype_name(info->dtype));
    if (s->form != FORM_F8)
        return check_shape(s->scales,
                           SHAPE(w->out, blocks(w->in, QUANTIZED_GROUP)), err);
    shape_format(&info->shape, shape, sizeof(shape));
    if (!grid_of(w, &info->shape, &tall, &wide))
        return err_set(err, ERR_INPUT,
                       "tensor '%s' is %s, no grid of blocks of '%s'",
                       info->name, shape, s->data->info->name);
    return 0;
}

/* The stored shape [out, in] that a packed tensor has beside it. */
static int check_stored_shape(const struct checkpoint *c,
                              const struct wanted *w, const struct stored *s,
                              struct err *err)
{
    int64_t wide[2] = {0, 0};
    int32_t narrow[2];
    const struct tensor_info *info = s->shape ? s->shape->info : NULL;

    if (!info)
        return 0;
    s->shape->is_wanted = true;
    if (check_shape(s->shape, SHAPE(2), err))
        return -1;
    if (info->dtype == DTYPE_I32) {
        if (safetensors_read(c->st, info, 0, sizeof(narrow), narrow, err))
            return -1;
        wide[0] = narrow[0];
        wide[1] = narrow[1];
    } else if (info->dtype == DTYPE_I64) {
        if (safetensors_read(c->st, info, 0, sizeof(wide), wide, err))
            return -1;
    }
    s->shape->elements_read += 2;
    if (wide[0] != w->out || wide[1] != w->in)
        return err_set(err, ERR_INPUT,
                       "tensor '%s' says [%" PRId64 ", %" PRId64
                       "], not [%" PRId64 ", %" PRId64 "]",
                       info->name, wide[0], wide[1], w->out, w->in);
    return 0;
}

static int expect_quantized(const struct checkpoint *c, const struct wanted *w,
                            const struct stored *s, struct err *err)
{
    static const enum dtype dtypes[] = {DTYPE_F8_E4M3, DTYPE_I8, DTYPE_I32};
    int64_t packing = s->form == FORM_F8 ? 1 : s->form == FORM_FP4 ? 2 : 8;
    enum dtype dtype = s->data->info->dtype;

    if (w->kind != WANTED_DENSE || w->shape.dims != 2 || w->offset ||
        w->out != w->shape.size[0])
        return err_set(err, ERR_UNSUPPORTED,
                       "tensor '%s' is %s, which is not supported here",
                       s->data->info->name, dtype_name(dtype));
    if (dtype != dtypes[s->form - FORM_F8] &&
        !(s->form == FORM_FP4 && dtype == DTYPE_U8))
        return err_set(err, ERR_UNSUPPORTED, "tensor '%s' is %s, not U8 or I32",
                       s->data->info->name, dtype_name(dtype));
    s->data->is_wanted = true;
    return check_shape(s->data, SHAPE(w->out, blocks(w->in, packing)), err) ||
                   expect_scales(w, s, err) || check_stored_shape(c, w, s, err)
               ? -1
               : 0;
}

int stored_check(const struct checkpoint *c, const struct wanted *w,
                 struct err *err)
{
    struct stored s = stored_find(c, w);

    if (!s.data)
        return err_set(err, ERR_INPUT, "the pack holds no tensor '%s'",
                       w->name);
    if (s.form != FORM_PLAIN)
        return expect_quantized(c, w, &s, err);
    s.data->is_wanted = true;
    /* a small tensor may have any shape of its size */
    int64_t count = shape_count(&s.data->info->shape);
    if ((w->kind == WANTED_DENSE ||
         (w->is_prefix ? count < w->count : count != shape_count(&w->shape))) &&
        check_shape(s.data, w->shape, err))
        return -1;
    enum dtype dtype = s.data->info->dtype;
    bool is_known =
        w->kind == WANTED_INTS
            ? dtype == DTYPE_I64 || dtype == DTYPE_I32
            : dtype == DTYPE_F32 || dtype == DTYPE_BF16 || dtype == DTYPE_F16;
    if (!is_known)
        return err_set(err, ERR_UNSUPPORTED, "tensor '%s' is %s, not %s",
                       s.data->info->name, dtype_name(dtype),
                       w->kind == WANTED_INTS ? "I64 or I32"
                                              : "F32, BF16 or F16");
    return 0;
}

/* ---- values ---- */

int stored_floats(const struct checkpoint *c, const struct entry *e,
                  int64_t offset, size_t n, void *raw, float *out,
                  struct err *err)
{
    size_t size = dtype_bits(e->info->dtype) / 8;

    if (safetensors_read(c->st, e->info, offset * (int64_t)size, n * size, raw,
                         err))
        return -1;
    dtype_to_f32(e->info->dtype, raw, n, out);
    return 0;
}

static float *read_scales(const struct checkpoint *c, const struct entry *e,
                          struct err *err)
{
    size_t n = (size_t)shape_count(&e->info->shape);
    float *out = mem_array(n, 2 * sizeof(*out), CHECKPOINT_CAP, err);
    int ret = 0;

    if (!out)
        return NULL;
    if (e->info->dtype != DTYPE_F8_E8M0 && e->info->dtype != DTYPE_U8) {
        ret = stored_floats(c, e, 0, n, out + n, out, err);
    } else {
        uint8_t *raw = (uint8_t *)(out + n);

        ret = safetensors_read(c->st, e->info, 0, n, raw, err);
        for (size_t i = 0; i < n && ret == 0; i++)
            out[i] = quantized_e8m0(raw[i]);
    }
    for (size_t i = 0; i < n && ret == 0; i++)
        if (!isfinite(out[i]))
            ret =
                err_set(err, ERR_INPUT, "tensor '%s': scale %zu is not finite",
                        e->info->name, i);
    if (ret) {
        free(out);
        return NULL;
    }
    return out;
}

/* Row by row: codes, values, values as they are wanted. */
static int decode_rows(const struct checkpoint *c, const struct wanted *w,
                       const struct stored *s, const float *scales, float *row,
                       char *codes, enum dtype dtype, char *data,
                       struct err *err)
{
    const struct tensor_info *info = s->data->info;
    const int64_t *grid = s->scales->info->shape.size;
    size_t packed = (size_t)(info->bytes / w->out);
    size_t size = (size_t)w->in * dtype_bits(dtype) / 8;
    int64_t tall = 1, wide = QUANTIZED_GROUP, bad = -1;

    if (s->form == FORM_F8)
        grid_of(w, &s->scales->info->shape, &tall, &wide);
    for (int64_t r = 0; r < w->out; r++) {
        const float *scale = scales + r / tall * grid[1];

        if (safetensors_read(c->st, info, r * (int64_t)packed, packed, codes,
                             err))
            return -1;
        if (s->form == FORM_F8)
            bad = quantized_f8_row(row, (uint8_t *)codes, scale, w->in, wide);
        else if (s->form == FORM_FP4)
            quantized_fp4_row(row, (uint8_t *)codes, scale, w->in);
        else
            quantized_int4_row(row, (uint32_t *)(void *)codes, scale, w->in);
        if (bad >= 0)
            return err_set(err, ERR_INPUT,
                           "tensor '%s': element [%" PRId64 ", %" PRId64
                           "] is not a number",
                           info->name, r, bad);
        dtype_from_f32(dtype, row, (size_t)w->in, data + (size_t)r * size);
    }
    return 0;
}

int stored_decode(const struct checkpoint *c, const struct wanted *w,
                  const struct stored *s, enum dtype dtype, char *data,
                  struct err *err)
{
    size_t in = (size_t)w->in;
    float *scales = read_scales(c, s->scales, err);
    float *row = mem_array(in, sizeof(*row), CHECKPOINT_CAP, err);
    char *codes = mem_array(in, sizeof(uint32_t), CHECKPOINT_CAP, err);
    int ret = -1;

    if (scales && row && codes)
        ret = decode_rows(c, w, s, scales, row, codes, dtype, data, err);
    s->scales->elements_read += shape_count(&s->scales->info->shape);
    free(codes);
    free(row);
    free(scales);
    return ret;
}

size_t stored_decoding_bytes(const struct wanted *w, const struct stored *s)
{
    if (s->form == FORM_PLAIN)
        return 0;
    return ((size_t)shape_count(&s->scales->info->shape) + (size_t)w->in) * 2 *
           sizeof(float);
}
