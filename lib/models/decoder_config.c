/* What decoder families read of config.json alike. */
#include "models/decoder.h"

int decoder_check_groups(const struct decoder *d, const struct section *s,
                         const char *groups_key, const char *chosen_key,
                         struct err *err)
{
    const struct routing *r = &d->routing;
    int64_t of_group = d->experts.count / r->groups;

    if (r->groups_kept > r->groups || d->experts.count % r->groups ||
        (r->groups > 1 && of_group < 2))
        return config_refuse(s, groups_key, err,
                             "does not divide the experts into groups of two "
                             "or more, or is less than topk_group");
    if (r->chosen > of_group * r->groups_kept)
        return config_refuse(s, chosen_key, err,
                             "is more than the experts of the groups kept");
    return 0;
}

int decoder_read_routing(struct decoder *d, const struct section *s,
                         struct err *err)
{
    struct experts *e = &d->experts;
    struct routing *r = &d->routing;
    int64_t shared;

    r->eps = 1e-20;
    if (config_count(s, "n_routed_experts|num_local_experts", e->count,
                     &e->count, err) ||
        config_count(s, "moe_intermediate_size", 2048, &e->width, err) ||
        config_count(s, "n_shared_experts", 1, &shared, err) ||
        config_count(s, "num_experts_per_tok", 8, &r->chosen, err) ||
        config_count(s, "n_group", r->groups, &r->groups, err) ||
        config_count(s, "topk_group", r->groups_kept, &r->groups_kept, err) ||
        config_flag(s, "norm_topk_prob", true, &r->is_normalised, err) ||
        config_real(s, "routed_scaling_factor", 2.5, &r->scale, err) ||
        config_expect_text(s, "scoring_func", "sigmoid", err) ||
        config_expect_text(s, "topk_method", "noaux_tc", err))
        return -1;
    d->shared_width = shared * e->width;
    return decoder_check_groups(d, s, "n_group", "num_experts_per_tok", err);
}
