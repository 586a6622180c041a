/* How a run computes, by the options, the protocol and the family. */
#include "arithmetic.h"

#include <string.h>

enum { DEFAULT_CHUNK = 256 };

static int find_precision(const char *name, enum precision *out,
                          struct err *err)
{
    return precision_parse(name, out)
               ? 0
               : err_set(err, ERR_USAGE,
                         "precision '%s' is none of f64, f32, f16, bf16", name);
}

static int find_sums(const char *name, enum sums *out, struct err *err)
{
    static const char *const names[] = {[SUMS_WRITTEN] = "written",
                                        [SUMS_TORCH] = "torch",
                                        [SUMS_TORCH_F32] = "torch-f32",
                                        [SUMS_CHAIN] = "chain"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum sums)i;
            return 0;
        }
    return err_set(err, ERR_USAGE,
                   "--sums is written, torch, torch-f32 or chain, not '%s'",
                   name);
}

int arithmetic_check(const struct run_options *opt, struct err *err)
{
    enum precision precision;
    enum sums sums;

    if (opt->attention && strcmp(opt->attention, "flash") != 0 &&
        strcmp(opt->attention, "flash-exact") != 0)
        return err_set(err, ERR_USAGE,
                       "--attn '%s' is neither flash nor flash-exact",
                       opt->attention);
    return (opt->precision &&
            find_precision(opt->precision, &precision, err)) ||
                   (opt->sums && find_sums(opt->sums, &sums, err))
               ? -1
               : 0;
}

static int choose_sums(const char *name, const struct model *m, enum sums *out,
                       struct err *err)
{
    *out = model_sums(m);
    if (!name)
        return 0;
    if (find_sums(name, out, err))
        return -1;
    if ((*out == SUMS_TORCH || *out == SUMS_TORCH_F32) &&
        !m->family->is_text_only)
        return err_set(err, ERR_UNSUPPORTED,
                       "--sums %s is not supported with model_type '%s'", name,
                       m->family->model_type);
    return 0;
}

int arithmetic_choose(const struct run_options *opt, const struct protocol *p,
                      const struct model *m, struct forward_options *out,
                      struct err *err)
{
    const char *precision = opt->precision ? opt->precision
                            : opt->parity  ? "f32"
                            : p->compute   ? p->compute
                                           : "f16";

    *out = (struct forward_options){
        .regime = {.prefill_chunk = p->prefill_chunk,
                   .is_tail_one = p->tail == PROTOCOL_TAIL_ONE},
        .chunk = opt->chunk > 0 ? opt->chunk : DEFAULT_CHUNK,
        .is_states_only = opt->parity != NULL,
        .is_flash_exact =
            opt->attention && strcmp(opt->attention, "flash-exact") == 0,
    };
    return find_precision(precision, &out->precision, err) ||
                   choose_sums(opt->sums ? opt->sums : p->sums, m, &out->sums,
                               err)
               ? -1
               : 0;
}

json_t *arithmetic_orders(const struct forward_options *f)
{
    if (f->precision == PRECISION_F64)
        return json_pack("{s:s}", "all", "chain128 v1 and lanes16 v1 in f64");
    if (f->sums == SUMS_CHAIN)
        return json_pack("{s:s, s:s, s:s}", "linear layers", "chain v1",
                         "attention and recurrences", "chain128 v1", "rows",
                         "lanes16 v1");
    return json_pack(
        "{s:s, s:s, s:s, s:s}", "packed", "grid24 v1",
        "packed without rotation", "grid32 v1 (f32), grid24 v1", "products",
        f->sums == SUMS_TORCH_F32        ? "torch-mkl v1"
        : f->precision != PRECISION_BF16 ? "chain128 v1"
        : f->sums == SUMS_TORCH ? "torch-amx v1 (bf16 by bf16), chain128 v1"
                                : "blocks32 v1 (bf16 by bf16), chain128 v1",
        "rows", "lanes16 v1; of PyTorch's graphs cascade8 v1");
}
