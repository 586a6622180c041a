/* A decoder's layer over a residual of streams. */
#include "models/hyper_layer.h"

/* norm(the site's input): what a sublayer gets of the streams. */
static struct act site_input(struct decoder_pass *p, const struct hyper *h,
                             const struct hyper_weights *w,
                             const struct param *norm, const struct act *x,
                             const struct hyper_site *site)
{
    for (int64_t k = 0; k < p->count; k++) {
        struct act rows = decoder_rows(p, x, k);
        struct hyper_site part =
            hyper_site_rows(site, decoder_first(p, k), rows.rows);

        op_hyper(&p->ops, h, w, &rows, &part);
    }
    return decoder_norm(p, &site->input, norm);
}

int hyper_layer(struct decoder_pass *p, const struct hyper_sites *sites,
                const struct decoder_weights *w, int64_t layer, struct act *x,
                struct err *err)
{
    const struct hyper *h = sites->hyper;
    struct hyper_site site = hyper_site(&p->ops, h, x->rows, x->dtype);
    struct act y;
    struct act in =
        site_input(p, h, sites->attention, &w->input_norm, x, &site);

    if (decoder_mixer(p, w, layer, &in, &y, err))
        return -1;
    op_hyper_mix(h, &site, &y, x);
    in = site_input(p, h, sites->ffn, &w->post_norm, x, &site);
    if (decoder_mlp(p, w, layer, &in, &y, err))
        return -1;
    op_hyper_mix(h, &site, &y, x);
    return decoder_tap(p, layer, "out", x, err);
}
