/* Rotary embeddings as config.json describes them. */
#include "models/rotary.h"

#include "base/bug.h"
#include "base/mem.h"
#include "kernels/elementary.h"
#include "kernels/rope.h"
#include "kernels/vec_elementary.h"
#include "models/eager_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

double rotary_mscale(double s, double m)
{
    return s <= 1 ? 1 : 0.1 * m * elem_log(s) + 1;
}

/* ---- config.json ---- */

/* 0 and null stand for the default. */
static int real_or(const struct section *s, const char *key, double fallback,
                   double *out, struct err *err)
{
    if (config_real(s, key, fallback, out, err))
        return -1;
    if (*out == 0)
        *out = fallback;
    return 0;
}

static int read_yarn(struct rotary *r, const struct section *s,
                     double max_position, struct err *err)
{
    double given;

    r->type = ROTARY_YARN;
    if (config_real(s, "original_max_position_embeddings", max_position,
                    &r->original, err) ||
        config_real(s, "factor", max_position / r->original, &r->factor, err) ||
        real_or(s, "beta_fast", 32, &r->beta_fast, err) ||
        real_or(s, "beta_slow", 1, &r->beta_slow, err) ||
        config_real(s, "mscale", 0, &r->mscale, err) ||
        config_real(s, "mscale_all_dim", 0, &r->mscale_all_dim, err) ||
        config_real(s, "attention_factor", 0, &given, err) ||
        config_flag(s, "truncate", true, &r->is_truncated, err))
        return -1;
    if (!(r->original >= 1) || !(r->factor > 0) || !(r->beta_fast > 0) ||
        !(r->beta_slow > 0))
        return config_refuse(s, "factor", err, "and its kin are out of range");
    if (given != 0)
        r->attention_factor = given;
    else if (r->mscale != 0 && r->mscale_all_dim != 0)
        r->attention_factor = rotary_mscale(r->factor, r->mscale) /
                              rotary_mscale(r->factor, r->mscale_all_dim);
    else
        r->attention_factor = rotary_mscale(r->factor, 1);
    return 0;
}

static int read_linear(struct rotary *r, const struct section *s,
                       struct err *err)
{
    r->type = ROTARY_LINEAR;
    if (config_real(s, "factor", NAN, &r->factor, err))
        return -1;
    if (!(r->factor > 0))
        return config_refuse(s, "factor", err, "is not above 0");
    return 0;
}

static int read_llama3(struct rotary *r, const struct section *s,
                       double max_position, struct err *err)
{
    if (read_linear(r, s, err) ||
        config_real(s, "original_max_position_embeddings", max_position,
                    &r->original, err) ||
        config_real(s, "low_freq_factor", NAN, &r->low_freq, err) ||
        config_real(s, "high_freq_factor", NAN, &r->high_freq, err))
        return -1;
    r->type = ROTARY_LLAMA3;
    if (!(r->original >= 1) || !(r->low_freq > 0) ||
        !(r->high_freq > r->low_freq))
        return config_refuse(s, "high_freq_factor", err,
                             "and its kin are out of range");
    return 0;
}

static int read_dynamic(struct rotary *r, const struct section *s,
                        double max_position, struct err *err)
{
    if (read_linear(r, s, err))
        return -1;
    r->type = ROTARY_DYNAMIC;
    r->original = max_position;
    if (!(r->original >= 1) || r->original != floor(r->original))
        return config_refuse(s, "factor", err,
                             "needs max_position_embeddings, a whole number");
    return 0;
}

/* Checks what was read, and the rest of a type from the object that names it.
 */
static int read_type(struct rotary *r, const struct section *s,
                     const struct section *inner, const char *type,
                     double max_position, struct err *err)
{
    if (r->partial < 0)
        r->partial = NAN;
    if (!(r->theta > 1) || !(r->theta < 1e18))
        return config_refuse(s, "rope_theta", err, "is out of range");
    if (strcmp(type, "yarn") == 0)
        return read_yarn(r, inner, max_position, err);
    if (strcmp(type, "linear") == 0)
        return read_linear(r, inner, err);
    if (strcmp(type, "llama3") == 0)
        return read_llama3(r, inner, max_position, err);
    if (strcmp(type, "dynamic") == 0)
        return read_dynamic(r, inner, max_position, err);
    if (strcmp(type, "default") != 0)
        return config_refuse(inner, "rope_type", err,
                             "is '%.40s', only 'default', 'dynamic', "
                             "'linear', 'llama3' and 'yarn' are supported",
                             type);
    return 0;
}

int rotary_read(struct rotary *r, const struct section *s, double theta,
                double max_position, struct err *err)
{
    const struct section *old, *inner;
    const char *type = "default";

    *r = (struct rotary){.attention_factor = 1, .partial = NAN};
    if (config_section(s, "rope_scaling", &old, err) ||
        config_section(s, "rope_parameters", &inner, err))
        return -1;
    if (old)
        inner = old;
    if (config_real(s, "rope_theta", theta, &r->theta, err) ||
        config_real(s, "partial_rotary_factor", -1, &r->partial, err))
        return -1;
    if (inner && (config_real(inner, "rope_theta", r->theta, &r->theta, err) ||
                  config_real(inner, "partial_rotary_factor", r->partial,
                              &r->partial, err) ||
                  config_text(inner, "rope_type|type", "default", &type, err)))
        return -1;
    return read_type(r, s, inner, type, max_position, err);
}

int rotary_read_object(struct rotary *r, const struct section *object,
                       double theta, double max_position, struct err *err)
{
    const char *type;

    *r = (struct rotary){.attention_factor = 1};
    if (config_real(object, "rope_theta", theta, &r->theta, err) ||
        config_real(object, "partial_rotary_factor", -1, &r->partial, err) ||
        config_text(object, "rope_type|type", "default", &type, err))
        return -1;
    return read_type(r, object, object, type, max_position, err);
}

/* ---- frequencies ---- */

struct ramp {
    double low, high;
};

static double correction(const struct rotary *r, double rotations)
{
    return (double)r->dims * elem_log(r->original / (2 * PI * rotations)) /
           (2 * elem_log(r->theta));
}

static struct ramp yarn_ramp(const struct rotary *r)
{
    struct ramp ramp = {correction(r, r->beta_fast),
                        correction(r, r->beta_slow)};

    if (r->is_truncated) {
        ramp.low = floor(ramp.low);
        ramp.high = ceil(ramp.high);
    }
    if (ramp.low < 0)
        ramp.low = 0;
    if (ramp.high > (double)(r->dims - 1))
        ramp.high = (double)(r->dims - 1);
    if (ramp.low == ramp.high)
        ramp.high += 0.001;
    return ramp;
}

/* Upstream divides a number by a tensor as the number times 1 / tensor. */
static float llama3_frequency(const struct rotary *r, float f)
{
    float original = (float)r->original, factor = (float)r->factor;
    float low = (float)(r->original / r->low_freq);
    float high = (float)(r->original / r->high_freq);
    float wave = 1.0f / f * (float)(2 * PI);

    if (wave > low)
        return f / factor;
    if (wave < high)
        return f;
    float smooth = (1.0f / wave * original - (float)r->low_freq) /
                   (float)(r->high_freq - r->low_freq);
    return (1.0f - smooth) * f / factor + smooth * f;
}

static double llama3_frequency_f64(const struct rotary *r, double f)
{
    double wave = 2 * PI / f;

    if (wave > r->original / r->low_freq)
        return f / r->factor;
    if (wave < r->original / r->high_freq)
        return f;
    double smooth =
        (r->original / wave - r->low_freq) / (r->high_freq - r->low_freq);
    return (1 - smooth) * f / r->factor + smooth * f;
}

/* Upstream's theta: in double up to the positions that the model knows, beyond
 * them in f32 from a tensor of the length, whose power has an exponent in
 * double and is rounded once. */
static double dynamic_theta(const struct rotary *r, int64_t length)
{
    double exponent = (double)r->dims / (double)(r->dims - 2);
    double grown = r->factor * r->original / r->original - (r->factor - 1);
    float wide = (float)r->factor * (float)length / (float)r->original -
                 (float)(r->factor - 1);

    if ((double)length > r->original)
        return (float)r->theta * (float)elem_pow((double)wide, exponent);
    return grown == 1 ? r->theta : r->theta * elem_pow(grown, exponent);
}

static double dynamic_theta_f64(const struct rotary *r, int64_t length)
{
    double of = (double)length > r->original ? (double)length : r->original;

    return r->theta * elem_pow(r->factor * of / r->original - (r->factor - 1),
                               (double)r->dims / (double)(r->dims - 2));
}

/* Frequencies that PyTorch takes as vectors; the others are rope_inv_freq's. */
static int64_t in_vectors(const struct rotary *r)
{
    return r->dims / 2 / VEC_WHOLE * VEC_WHOLE;
}

/* theta to the power of 2i / dims */
static float power_of(const struct rotary *r, double theta, int64_t i)
{
    float exponent = (float)(2 * i) / (float)r->dims;

    return (i < in_vectors(r) ? vec_pow : elem_pow_f32)((float)theta, exponent);
}

void rotary_frequencies(const struct rotary *r, int64_t length, float *f)
{
    double theta =
        r->type == ROTARY_DYNAMIC ? dynamic_theta(r, length) : r->theta;
    struct ramp ramp;

    rope_inv_freq(f, r->dims, theta);
    for (int64_t i = 0; i < in_vectors(r); i++)
        f[i] = 1.0f / power_of(r, theta, i);
    if (r->type != ROTARY_YARN) {
        for (int64_t i = 0; i < r->dims / 2; i++)
            f[i] = r->type == ROTARY_LINEAR   ? f[i] / (float)r->factor
                   : r->type == ROTARY_LLAMA3 ? llama3_frequency(r, f[i])
                                              : f[i];
        return;
    }
    ramp = yarn_ramp(r);
    for (int64_t i = 0; i < r->dims / 2; i++) {
        float inter = 1.0f / ((float)r->factor * power_of(r, theta, i));
        float at = ((float)i - (float)ramp.low) / (float)(ramp.high - ramp.low);
        float extra = 1.0f - (at < 0 ? 0 : at > 1 ? 1 : at);

        f[i] = inter * (1.0f - extra) + f[i] * extra;
    }
}

void rotary_frequencies_f64(const struct rotary *r, int64_t length, double *f)
{
    struct ramp ramp;

    rope_inv_freq_f64(f, r->dims,
                      r->type == ROTARY_DYNAMIC ? dynamic_theta_f64(r, length)
                                                : r->theta);
    if (r->type != ROTARY_YARN) {
        for (int64_t i = 0; i < r->dims / 2; i++)
            f[i] = r->type == ROTARY_LINEAR   ? f[i] / r->factor
                   : r->type == ROTARY_LLAMA3 ? llama3_frequency_f64(r, f[i])
                                              : f[i];
        return;
    }
    ramp = yarn_ramp(r);
    for (int64_t i = 0; i < r->dims / 2; i++) {
        double at = ((double)i - ramp.low) / (ramp.high - ramp.low);

        at = at < 0 ? 0 : at > 1 ? 1 : at;
        f[i] = f[i] / r->factor * at + f[i] * (1 - at);
    }
}

/* ---- tables ---- */

struct rotary_tables rotary_tables(struct ops *o, const struct rotary *r,
                                   const int64_t *positions, int64_t rows)
{
    enum dtype t = ops_compute(o->precision);
    int64_t half = r->dims / 2;
    struct rotary_tables y = {ops_new(o, rows, half, t),
                              ops_new(o, rows, half, t)};
    float factor = (float)r->attention_factor;
    double *f = xmalloc((size_t)half * sizeof(*f) + 1);
    int64_t length = 0;

    for (int64_t i = 0; i < rows; i++)
        length = positions[i] >= length ? positions[i] + 1 : length;
    if (t == DTYPE_F64) {
        rotary_frequencies_f64(r, length, f);
        for (int64_t i = 0; i < rows * half; i++) {
            double angle = (double)positions[i / half] * f[i % half];

            act_d(&y.cosine)[i] = elem_cos(angle) * r->attention_factor;
            act_d(&y.sine)[i] = elem_sin(angle) * r->attention_factor;
        }
    } else {
        float *narrow = (float *)(void *)f;

        rotary_frequencies(r, length, narrow);
        for (int64_t i = 0; i < rows * half; i++) {
            float angle = (float)positions[i / half] * narrow[i % half];

            act_f(&y.cosine)[i] = elem_cos_f32(angle) * factor;
            act_f(&y.sine)[i] = elem_sin_f32(angle) * factor;
        }
        op_round(&y.cosine);
        op_round(&y.sine);
    }
    free(f);
    return y;
}

void op_rotary(const struct act *x, const struct rotary_tables *t,
               const struct rotary_shape *shape)
{
    BUG_ON(x->cols != shape->heads * shape->width ||
           t->cosine.rows != x->rows || 2 * t->cosine.cols != shape->dims);
    if (act_is_wide(x))
        eager_rotary_f64(act_d(x), act_d(&t->cosine), act_d(&t->sine), shape,
                         x->rows);
    else
        eager_rotary(act_f(x), act_f(&t->cosine), act_f(&t->sine), shape,
                     x->rows, x->dtype);
}
