/* Mixture of experts: routing, and experts run over the rows that took them. */
#include "models/moe.h"

#include "base/bug.h"
#include "base/mem.h"
#include "kernels/cascade.h"
#include "kernels/round.h"
#include "kernels/topk.h"
#include "models/eager_ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- routing ---- */

struct route_scratch {
    double *choice;          /* [experts] score + bias */
    struct topk_pair *pairs; /* [experts] */
    int64_t *groups;         /* [experts] */
};

static double value_at(const struct act *a, int64_t i)
{
    return act_is_wide(a) ? act_d(a)[i] : (double)act_f(a)[i];
}

static void put(const struct act *a, int64_t i, double v)
{
    if (act_is_wide(a))
        act_d(a)[i] = v;
    else
        act_f(a)[i] = round_to(a->dtype, (float)v);
}

/* The sum of the two best of a group, in the precision at hand. */
static double group_score(const double *choice, int64_t n, bool is_wide)
{
    double first = -INFINITY, second = -INFINITY;

    for (int64_t i = 0; i < n; i++) {
        if (choice[i] > first) {
            second = first;
            first = choice[i];
        } else if (choice[i] > second) {
            second = choice[i];
        }
    }
    return is_wide ? first + second : (double)((float)first + (float)second);
}

/* Experts of the groups that are left out become -infinity. */
static void limit_groups(const struct routing *how, int64_t experts,
                         bool is_wide, struct route_scratch *s)
{
    int64_t width = experts / how->groups;
    double *scores = xmalloc((size_t)how->groups * sizeof(*scores));

    for (int64_t g = 0; g < how->groups; g++)
        scores[g] = group_score(s->choice + g * width, width, is_wide);
    topk_torch(scores, how->groups, how->groups_kept, s->groups, s->pairs);
    for (int64_t g = 0; g < how->groups; g++) {
        bool is_kept = false;

        for (int64_t i = 0; i < how->groups_kept; i++)
            is_kept |= s->groups[i] == g;
        for (int64_t i = 0; i < width && !is_kept; i++)
            s->choice[g * width + i] = -INFINITY;
    }
    free(scores);
}

static double margin_of(const double *choice, int64_t n, const int64_t *chosen,
                        int64_t k)
{
    double least = INFINITY, best = -INFINITY;

    for (int64_t s = 0; s < k; s++)
        least = choice[chosen[s]] < least ? choice[chosen[s]] : least;
    for (int64_t e = 0; e < n; e++) {
        bool is_chosen = false;

        for (int64_t s = 0; s < k; s++)
            is_chosen |= chosen[s] == e;
        if (!is_chosen && choice[e] > best)
            best = choice[e];
    }
    return least - best;
}

/* sum + eps of a row's weights, each step rounded; floats in PyTorch's order */
static double weight_sum(const struct act *weight, int64_t row, double eps)
{
    int64_t k = weight->cols;
    double sum = 0;

    if (act_is_wide(weight)) {
        for (int64_t s = 0; s < k; s++)
            sum += act_d(weight)[row * k + s];
        return sum + eps;
    }
    float narrow =
        round_to(weight->dtype, cascade_sum(act_f(weight) + row * k, k));
    return (double)round_to(weight->dtype, narrow + (float)eps);
}

/* The weights of one row, from the scores of its experts. */
static void weigh(const struct act *scores, int64_t row,
                  const struct routing *how, const int64_t *chosen,
                  const struct act *weight)
{
    int64_t k = how->chosen, at = row * k;
    bool is_wide = act_is_wide(scores);

    for (int64_t s = 0; s < k; s++)
        put(weight, at + s, value_at(scores, row * scores->cols + chosen[s]));
    double sum = weight_sum(weight, row, how->eps);
    for (int64_t s = 0; s < k; s++) {
        double v = value_at(weight, at + s);

        if (how->is_normalised)
            put(weight, at + s, is_wide ? v / sum : (float)v / (float)sum);
        v = value_at(weight, at + s);
        if (how->scale != 1)
            put(weight, at + s,
                is_wide ? v * how->scale : (float)v * (float)how->scale);
    }
}

static struct routed new_routed(struct ops *o, const struct act *scores,
                                const struct routing *how, int64_t **expert)
{
    enum dtype wide = ops_dtype(o->precision, DTYPE_F32);
    /* 8 bytes an index, whatever the workspace's numbers are */
    struct act place = ops_new(o, scores->rows, 2 * how->chosen, scores->dtype);

    *expert = place.data;
    return (struct routed){
        .chosen = how->chosen,
        .expert = place.data,
        .weight = ops_new(o, scores->rows, how->chosen, scores->dtype),
        .chosen_ids = ops_new(o, scores->rows, how->chosen, wide),
        .margin = ops_new(o, scores->rows, 1, wide)};
}

static void put_ids(const struct routed *r, int64_t row)
{
    for (int64_t i = row * r->chosen; i < (row + 1) * r->chosen; i++)
        put(&r->chosen_ids, i, (double)r->expert[i]);
}

struct routed op_route(struct ops *o, const struct act *scores,
                       const struct param *bias, const struct routing *how)
{
    int64_t n = scores->cols, *expert;
    bool is_wide = act_is_wide(scores);
    struct routed r = new_routed(o, scores, how, &expert);
    struct route_scratch s = {xmalloc((size_t)n * sizeof(*s.choice)),
                              xmalloc((size_t)n * sizeof(*s.pairs)),
                              xmalloc((size_t)n * sizeof(*s.groups))};

    BUG_ON(how->chosen > n || n % how->groups || (bias && bias->count != n));
    for (int64_t row = 0; row < scores->rows; row++) {
        int64_t *chosen = expert + row * how->chosen;

        for (int64_t e = 0; e < n; e++) {
            double v = value_at(scores, row * n + e);

            if (bias)
                v = is_wide ? v + bias->d[e] : (double)((float)v + bias->f[e]);
            s.choice[e] = v;
        }
        if (how->groups > how->groups_kept)
            limit_groups(how, n, is_wide, &s);
        topk_torch(s.choice, n, how->chosen, chosen, s.pairs);
        put(&r.margin, row, margin_of(s.choice, n, chosen, how->chosen));
        put_ids(&r, row);
        weigh(scores, row, how, chosen, &r.weight);
    }
    free(s.choice);
    free(s.pairs);
    free(s.groups);
    return r;
}

struct routed op_route_given(struct ops *o, const struct act *scores,
                             const int64_t *experts, const struct routing *how)
{
    int64_t *expert;
    struct routed r = new_routed(o, scores, how, &expert);

    memcpy(expert, experts,
           (size_t)(scores->rows * how->chosen) * sizeof(*expert));
    for (int64_t row = 0; row < scores->rows; row++) {
        weigh(scores, row, how, expert + row * how->chosen, &r.weight);
        put(&r.margin, row, INFINITY);
        put_ids(&r, row);
    }
    return r;
}

/* ---- experts in a checkpoint ---- */

void expert_part(struct expert *e, struct part *p, int64_t width, int64_t in,
                 const char *prefix)
{
    part_dense(p, &e->gate, width, in, "%s.gate_proj.weight", prefix);
    part_dense(p, &e->up, width, in, "%s.up_proj.weight", prefix);
    part_dense(p, &e->down, in, width, "%s.down_proj.weight", prefix);
}

static void want_expert(const struct experts *e, int64_t i, struct part *p,
                        struct expert *out)
{
    const struct checkpoint *c = e->weights;

    part_clear(p);
    if (checkpoint_has(c, "%s.gate_up_proj", e->prefix)) {
        part_slice(p, &out->gate, e->count, i, 2 * e->width, 0, e->width, e->in,
                   "%s.gate_up_proj", e->prefix);
        part_slice(p, &out->up, e->count, i, 2 * e->width, e->width, e->width,
                   e->in, "%s.gate_up_proj", e->prefix);
        part_slice(p, &out->down, e->count, i, e->in, 0, e->in, e->width,
                   "%s.down_proj", e->prefix);
    } else if (checkpoint_has(c, "%s.gate_proj.weight", e->prefix)) {
        part_slice(p, &out->gate, e->count, i, e->width, 0, e->width, e->in,
                   "%s.gate_proj.weight", e->prefix);
        part_slice(p, &out->up, e->count, i, e->width, 0, e->width, e->in,
                   "%s.up_proj.weight", e->prefix);
        part_slice(p, &out->down, e->count, i, e->in, 0, e->in, e->width,
                   "%s.down_proj.weight", e->prefix);
    } else {
        part_dense(p, &out->gate, e->width, e->in, "%s.%lld.gate_proj.weight",
                   e->prefix, (long long)i);
        part_dense(p, &out->up, e->width, e->in, "%s.%lld.up_proj.weight",
                   e->prefix, (long long)i);
        part_dense(p, &out->down, e->in, e->width, "%s.%lld.down_proj.weight",
                   e->prefix, (long long)i);
    }
}

int experts_expect(const struct experts *e, struct err *err)
{
    struct part p = PART_INIT;
    struct expert ignored;
    int ret = 0;

    for (int64_t i = 0; i < e->count && ret == 0; i++) {
        want_expert(e, i, &p, &ignored);
        ret = checkpoint_expect(e->weights, &p, err);
    }
    part_release(&p);
    return ret;
}

size_t experts_bytes(const struct experts *e)
{
    struct part p = PART_INIT;
    struct expert ignored;

    want_expert(e, 0, &p, &ignored);
    size_t bytes = checkpoint_bytes(e->weights, &p);
    part_release(&p);
    return bytes;
}

/* ---- running them ---- */

struct act expert_swiglu(struct ops *o, const struct act *gate,
                         const struct act *up, const void *ctx)
{
    (void)ctx;
    return op_swiglu(o, gate, up);
}

static void clamp(const struct act *x, double low, double high)
{
    const float low_f = round_to(x->dtype, (float)low);
    const float high_f = round_to(x->dtype, (float)high);

    for (int64_t i = 0; i < x->rows * x->cols; i++) {
        if (act_is_wide(x)) {
            double v = act_d(x)[i];

            act_d(x)[i] = v > high ? high : v < low ? low : v;
        } else {
            float v = act_f(x)[i];

            act_f(x)[i] = v > high_f ? high_f : v < low_f ? low_f : v;
        }
    }
}

struct act expert_swiglu_limited(struct ops *o, const struct act *gate,
                                 const struct act *up, const void *ctx)
{
    const double limit = *(const double *)ctx;

    if (!isnan(limit)) {
        clamp(gate, -INFINITY, limit);
        clamp(up, -limit, limit);
    }
    return op_swiglu(o, gate, up);
}

/* gate and up are `parts` of one product of upstream's. */
static struct act run_unit(struct ops *o, const struct act *x,
                           const struct expert *w, const struct experts *e,
                           int64_t parts)
{
    int64_t out = w->gate.out * parts;
    struct act gate = op_dense_part(o, x, &w->gate, NULL, x->rows, out);
    struct act up = op_dense_part(o, x, &w->up, NULL, x->rows, out);
    struct act unit = e->unit(o, &gate, &up, e->ctx);

    return op_dense(o, &unit, &w->down, NULL);
}

struct act op_expert(struct ops *o, const struct act *x, const struct expert *w,
                     const struct experts *e)
{
    return run_unit(o, x, w, e, 1);
}

static void copy_row(const struct act *to, int64_t to_row,
                     const struct act *from, int64_t from_row)
{
    struct act target = act_rows(to, to_row, 1);
    struct act source = act_rows(from, from_row, 1);

    act_copy(&target, &source);
}

/* Rows that one expert is given together: of whole pieces of upstream's calls,
 * each piece a call. */
struct block {
    struct act x;
    const int64_t *expert; /* [x.rows, chosen] */
    int64_t chosen;
    const int64_t *pieces; /* their rows, which sum to x.rows */
};

/* The expert on each piece; taken[k] of the rows are of piece k. */
static struct act run_pieces(struct ops *o, const struct act *x,
                             const struct expert *w, const struct experts *e,
                             const int64_t *taken)
{
    struct act y = ops_new(o, x->rows, w->down.out, x->dtype);

    for (int64_t first = 0, n; first < y.rows; first += n) {
        size_t mark = ops_mark(o);
        struct act rows = act_rows(x, first, n = *taken++);
        struct act to = act_rows(&y, first, n);
        struct act of = run_unit(o, &rows, w, e, 2);

        y.dtype = of.dtype;
        act_copy(&to, &of);
        ops_release(o, mark);
    }
    return y;
}

/* What one expert gives the slots that took it, into their places. */
static int run_expert(struct ops *o, const struct block *b, int64_t which,
                      const struct experts *e, struct part *p, int64_t *taken,
                      struct act *slots, struct err *err)
{
    int64_t rows = 0, at = 0, slot = 0;
    size_t mark = ops_mark(o);
    struct expert w;

    for (int64_t k = 0, end = 0; slot < b->x.rows * b->chosen; k++) {
        taken[k] = 0;
        for (end += b->pieces[k] * b->chosen; slot < end; slot++)
            taken[k] += b->expert[slot] == which;
        rows += taken[k];
    }
    if (rows == 0)
        return 0;
    want_expert(e, which, p, &w);
    if (checkpoint_load(e->weights, p, CHECKPOINT_EXPERT, err))
        return -1;
    struct act gathered = ops_new(o, rows, b->x.cols, b->x.dtype);
    for (int64_t i = 0; i < slot; i++)
        if (b->expert[i] == which)
            copy_row(&gathered, at++, &b->x, i / b->chosen);
    struct act y = run_pieces(o, &gathered, &w, e, taken);
    slots->dtype = y.dtype;
    at = 0;
    for (int64_t i = 0; i < slot; i++)
        if (b->expert[i] == which)
            copy_row(slots, i, &y, at++);
    ops_release(o, mark);
    return 0;
}

/* One after the other, or as PyTorch's sum over rows takes a column. */
static float slots_sum(const float *x, int64_t k, int64_t column,
                       int64_t columns, enum sums sums)
{
    float sum = 0;

    if (sums == SUMS_TORCH || sums == SUMS_TORCH_F32)
        return cascade_column_sum(x, k, column, columns);
    for (int64_t s = 0; s < k; s++)
        sum += x[s];
    return sum;
}

static void combine(const struct act *slots, const struct act *weight,
                    int64_t first, const struct act *out, enum sums sums)
{
    int64_t k = weight->cols, n = out->cols;
    enum dtype t = ops_promote(slots->dtype, weight->dtype);
    float *x = xmalloc((size_t)k * sizeof(*x) + 1);

    for (int64_t r = 0; r < out->rows; r++)
        for (int64_t i = 0; i < n; i++) {
            double wide = 0;

            for (int64_t s = 0; s < k; s++) {
                int64_t at = (r * k + s) * n + i, w = (first + r) * k + s;

                if (act_is_wide(out))
                    wide += act_d(slots)[at] * act_d(weight)[w];
                else
                    x[s] = round_to(t, act_f(slots)[at] * act_f(weight)[w]);
            }
            if (act_is_wide(out))
                act_d(out)[r * n + i] = wide;
            else
                act_f(out)[r * n + i] = slots_sum(x, k, i, n, sums);
        }
    free(x);
    op_round(out);
}

/* The rows of upstream's calls in pieces of at most EXPERT_ROWS; their number.
 */
static int64_t cut(const struct experts *e, int64_t rows, int64_t *pieces)
{
    int64_t n = 0;

    for (int64_t call = 0, at = 0; at < rows; call++) {
        int64_t left = e->call_rows ? e->call_rows[call] : rows;

        for (at += left; left > 0; left -= pieces[n++])
            pieces[n] = left < EXPERT_ROWS ? left : EXPERT_ROWS;
    }
    return n;
}

int op_experts(struct ops *o, const struct act *x, const struct routed *r,
               const struct experts *e, struct act *out, struct err *err)
{
    int64_t *pieces = xcalloc((size_t)x->rows + 1, sizeof(*pieces));
    int64_t *taken = xcalloc((size_t)x->rows + 1, sizeof(*taken));
    int64_t count = cut(e, x->rows, pieces);
    struct part p = PART_INIT;
    int ret = 0;

    BUG_ON(x->cols != e->in);
    *out = ops_new(o, x->rows, x->cols, x->dtype);
    for (int64_t first = 0, k = 0, n; k < count && ret == 0; first += n) {
        struct block b = {.expert = r->expert + first * r->chosen,
                          .chosen = r->chosen,
                          .pieces = pieces + k};

        for (n = 0; k < count && n + pieces[k] <= EXPERT_ROWS; k++)
            n += pieces[k];
        size_t mark = ops_mark(o);
        struct act to = act_rows(out, first, n);
        struct act slots = ops_new(o, n * r->chosen, x->cols, x->dtype);

        b.x = act_rows(x, first, n);
        for (int64_t i = 0; i < e->count && ret == 0; i++)
            ret = run_expert(o, &b, i, e, &p, taken, &slots, err);
        if (ret == 0)
            combine(&slots, &r->weight, first, &to, o->sums);
        ops_release(o, mark);
    }
    part_release(&p);
    free(pieces);
    free(taken);
    return ret;
}

size_t moe_values(const struct experts *e, const struct routing *how,
                  int64_t rows)
{
    int64_t block = rows < EXPERT_ROWS ? rows : EXPERT_ROWS;

    /* scores, indices and weights; the sum; slots; one expert's rows: a row
     * may choose one expert more than once when the choice is given */
    return (size_t)(rows * (2 * e->count + 4 * how->chosen + 1 + e->in) +
                    block * how->chosen * (3 * e->in + 5 * e->width));
}
