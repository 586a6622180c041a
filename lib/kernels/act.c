/*
 * Activations and gates.  A function of one 16-bit value is a table of its
 * 65,536 results, made at first use by the steps that upstream's graph takes.
 */
#include "kernels/act.h"

#include "base/bug.h"
#include "kernels/elementary.h"
#include "kernels/round.h"
#include "kernels/rows_internal.h"
#include "kernels/threads.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

/* Values that a thread takes at a time: some 20 microseconds' work. */
enum { VALUES = 65536, GRAIN = 16384, GRAIN_F64 = 512 };

/* ---- one value, each operation rounded ---- */

static float exp_to(enum dtype t, float x)
{
    return t == DTYPE_F32 ? elem_exp_f32(x)
                          : round_from_f64(t, elem_exp((double)x));
}

static float tanh_to(enum dtype t, float x)
{
    return t == DTYPE_F32 ? elem_tanh_f32(x)
                          : round_from_f64(t, elem_tanh((double)x));
}

static float sigmoid(enum dtype t, float x)
{
    float e = exp_to(t, fabsf(x));
    float q = round_to(t, 1.0f / round_to(t, 1.0f + e));

    return x < 0 ? q : round_to(t, 1.0f - q);
}

static float silu(enum dtype t, float x)
{
    return round_to(t, x * sigmoid(t, x));
}

/* The constants of the tanh form. */
struct gelu {
    float k1, k2;
};

static struct gelu gelu_constants(enum dtype t)
{
    return (struct gelu){round_from_f64(t, 0.044715),
                         round_from_f64(t, 0.7978845608028654)};
}

static float gelu_tanh(enum dtype t, float x)
{
    struct gelu k = gelu_constants(t);
    double wide = (double)x;
    float cube = round_from_f64(t, wide * wide * wide);
    float u = round_to(t, x + round_to(t, k.k1 * cube));
    float h = tanh_to(t, round_to(t, k.k2 * u));

    return round_to(t, round_to(t, 0.5f * x) * round_to(t, 1.0f + h));
}

static float gelu_erf(enum dtype t, float x)
{
    float root = round_from_f64(t, 1.4142135623730951);
    float s = round_to(t, x / root);
    float e = round_from_f64(t, elem_erf((double)s));
    float p = round_to(t, x * round_to(t, 1.0f + e));

    return round_to(t, p / 2);
}

static float softplus(enum dtype t, float x)
{
    float high = x > 0 ? x : 0, low = x > 0 ? 0 : x;
    float e = exp_to(t, round_to(t, low - high)), sum = 1.0f + e, tail;

    if (x != x)
        return __builtin_nanf("");
    tail = sum == 1 ? e : e * (elem_log_f32(sum) / (sum - 1.0f));
    return round_to(t, high + tail);
}

/* ---- tables ---- */

struct table {
    float (*function)(enum dtype t, float x);
    atomic_bool is_made[2];
    uint16_t values[2][VALUES]; /* F16, BF16 */
};

static struct table sigmoid_table = {.function = sigmoid};
static struct table silu_table = {.function = silu};
static struct table gelu_tanh_table = {.function = gelu_tanh};
static struct table gelu_erf_table = {.function = gelu_erf};
static struct table softplus_table = {.function = softplus};

static const uint16_t *table_of(struct table *table, enum dtype t)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int which = t == DTYPE_BF16;
    uint16_t *values = table->values[which];

    BUG_ON(t != DTYPE_F16 && t != DTYPE_BF16);
    if (atomic_load(&table->is_made[which]))
        return values;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&table->is_made[which])) {
        for (int i = 0; i < VALUES; i++) {
            uint16_t bits = (uint16_t)i;
            float x = which ? bf16_to_f32(bits) : f16_to_f32(bits);
            float y = table->function(t, x);

            values[i] = which ? bf16_from_f32(y) : f16_from_f32(y);
        }
        atomic_store(&table->is_made[which], true);
    }
    pthread_mutex_unlock(&lock);
    return values;
}

/* y = values[x], times `factor` when there is one. */
static void look_up(float *y, const float *x, const float *factor, int64_t n,
                    const uint16_t *values, enum dtype t)
{
    if (rows_use_avx2()) {
        table_row_avx2(y, x, factor, n, values, t);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float v = t == DTYPE_F16 ? f16_to_f32(values[f16_from_f32(x[i])])
                                 : bf16_to_f32(values[bf16_from_f32(x[i])]);

        y[i] = factor ? round_to(t, factor[i] * v) : v;
    }
}

/* ---- in f32; factor may be NULL, and is where there is no use for it ---- */

static void sigmoid_in_f32(float *y, const float *x, const float *factor,
                           int64_t n, enum dtype t)
{
    if (rows_use_avx2()) {
        sigmoid_f32_avx2(y, x, factor, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float v = sigmoid(t, x[i]);

        y[i] = factor ? round_to(t, factor[i] * v) : v;
    }
}

/* silu in f32 whatever t is, its product rounded to t */
static void silu_in_f32(float *y, const float *x, const float *factor,
                        int64_t n, enum dtype t)
{
    if (rows_use_avx2()) {
        silu_f32_avx2(y, x, factor, n, t);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float v = silu(DTYPE_F32, x[i]);

        y[i] = round_to(t, factor ? v * factor[i] : v);
    }
}

static void gelu_tanh_in_f32(float *y, const float *x, const float *unused,
                             int64_t n, enum dtype t)
{
    struct gelu k = gelu_constants(t);

    (void)unused;
    if (rows_use_avx2()) {
        gelu_tanh_f32_avx2(y, x, k.k1, k.k2, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = gelu_tanh(t, x[i]);
}

static void gelu_erf_in_f32(float *y, const float *x, const float *unused,
                            int64_t n, enum dtype t)
{
    (void)unused;
    for (int64_t i = 0; i < n; i++)
        y[i] = gelu_erf(t, x[i]);
}

static void softplus_in_f32(float *y, const float *x, const float *unused,
                            int64_t n, enum dtype t)
{
    (void)unused;
    for (int64_t i = 0; i < n; i++)
        y[i] = softplus(t, x[i]);
}

/* ---- rows ---- */

struct job {
    void (*in_f32)(float *y, const float *x, const float *factor, int64_t n,
                   enum dtype t);
    const uint16_t *values; /* or NULL */
    float *y;
    const float *x, *factor;
    enum dtype t;
};

static void piece(void *ctx, int64_t first, int64_t end)
{
    const struct job *job = ctx;
    const float *factor = job->factor ? job->factor + first : NULL;

    if (job->values)
        look_up(job->y + first, job->x + first, factor, end - first,
                job->values, job->t);
    else
        job->in_f32(job->y + first, job->x + first, factor, end - first,
                    job->t);
}

static void apply(struct job job, struct table *table, int64_t n)
{
    if (table && job.t != DTYPE_F32)
        job.values = table_of(table, job.t);
    threads_for(n, GRAIN, piece, &job);
}

void sigmoid_row(float *y, const float *x, int64_t n, enum dtype t)
{
    apply((struct job){sigmoid_in_f32, NULL, y, x, NULL, t}, &sigmoid_table, n);
}

void silu_row(float *y, const float *x, int64_t n, enum dtype t)
{
    apply((struct job){silu_in_f32, NULL, y, x, NULL, t}, &silu_table, n);
}

void silu_mul_row(float *y, const float *gate, const float *up, int64_t n,
                  enum dtype t)
{
    apply((struct job){silu_in_f32, NULL, y, gate, up, t}, &silu_table, n);
}

void silu_gate_row(float *y, const float *z, const float *u, int64_t n,
                   enum dtype t)
{
    apply((struct job){silu_in_f32, NULL, y, z, u, t}, NULL, n);
}

void mul_sigmoid_row(float *y, const float *x, const float *gate, int64_t n,
                     enum dtype t)
{
    apply((struct job){sigmoid_in_f32, NULL, y, gate, x, t}, &sigmoid_table, n);
}

void gelu_tanh_row(float *y, const float *x, int64_t n, enum dtype t)
{
    apply((struct job){gelu_tanh_in_f32, NULL, y, x, NULL, t}, &gelu_tanh_table,
          n);
}

void gelu_erf_row(float *y, const float *x, int64_t n, enum dtype t)
{
    apply((struct job){gelu_erf_in_f32, NULL, y, x, NULL, t}, &gelu_erf_table,
          n);
}

void softplus_row(float *y, const float *x, int64_t n, enum dtype t)
{
    apply((struct job){softplus_in_f32, NULL, y, x, NULL, t}, &softplus_table,
          n);
}

void decay_rows(float *g, const float *a, const float *dt_bias,
                const float *a_log, int64_t rows, int64_t heads, enum dtype t)
{
    for (int64_t h = 0; h < heads; h++) {
        float rate = -elem_exp_f32(a_log[h]);

        for (int64_t i = h; i < rows * heads; i += heads)
            g[i] = elem_exp_f32(rate *
                                softplus(t, round_to(t, a[i] + dt_bias[h])));
    }
}

/* ---- double ---- */

static double canonical(double x)
{
    return x == x ? x : __builtin_nan("");
}

static double sigmoid_f64(double x)
{
    double q = 1 / (1 + elem_exp(fabs(x)));

    return x < 0 ? q : 1 - q;
}

static double softplus_f64(double x)
{
    return (x > 0 ? x : 0) + elem_log1p(elem_exp(-fabs(x)));
}

static double gelu_tanh_f64(double x)
{
    double u = 0.7978845608028654 * (x + 0.044715 * (x * x * x));

    return 0.5 * x * (1 + elem_tanh(u));
}

static double gelu_erf_f64(double x)
{
    return 0.5 * x * (1 + elem_erf(x / 1.4142135623730951));
}

static double silu_f64(double x)
{
    return x * sigmoid_f64(x);
}

struct job_f64 {
    double (*function)(double x);
    double *y;
    const double *x, *factor;
};

static void piece_f64(void *ctx, int64_t first, int64_t end)
{
    const struct job_f64 *job = ctx;

    for (int64_t i = first; i < end; i++) {
        double v = job->function(job->x[i]);

        job->y[i] = canonical(job->factor ? v * job->factor[i] : v);
    }
}

static void apply_f64(struct job_f64 job, int64_t n)
{
    threads_for(n, GRAIN_F64, piece_f64, &job);
}

void sigmoid_row_f64(double *y, const double *x, int64_t n)
{
    apply_f64((struct job_f64){sigmoid_f64, y, x, NULL}, n);
}

void silu_row_f64(double *y, const double *x, int64_t n)
{
    apply_f64((struct job_f64){silu_f64, y, x, NULL}, n);
}

void gelu_tanh_row_f64(double *y, const double *x, int64_t n)
{
    apply_f64((struct job_f64){gelu_tanh_f64, y, x, NULL}, n);
}

void gelu_erf_row_f64(double *y, const double *x, int64_t n)
{
    apply_f64((struct job_f64){gelu_erf_f64, y, x, NULL}, n);
}

void softplus_row_f64(double *y, const double *x, int64_t n)
{
    apply_f64((struct job_f64){softplus_f64, y, x, NULL}, n);
}

void silu_mul_row_f64(double *y, const double *gate, const double *up,
                      int64_t n)
{
    apply_f64((struct job_f64){silu_f64, y, gate, up}, n);
}

void silu_gate_row_f64(double *y, const double *z, const double *u, int64_t n)
{
    apply_f64((struct job_f64){silu_f64, y, z, u}, n);
}

void mul_sigmoid_row_f64(double *y, const double *x, const double *gate,
                         int64_t n)
{
    apply_f64((struct job_f64){sigmoid_f64, y, gate, x}, n);
}

void decay_rows_f64(double *g, const double *a, const double *dt_bias,
                    const double *a_log, int64_t rows, int64_t heads)
{
    for (int64_t h = 0; h < heads; h++) {
        double rate = -elem_exp(a_log[h]);

        for (int64_t i = h; i < rows * heads; i += heads)
            g[i] = canonical(elem_exp(rate * softplus_f64(a[i] + dt_bias[h])));
    }
}
