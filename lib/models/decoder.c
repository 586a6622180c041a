/* A family of decoders as a model: opening, checks, keys. */
#include "models/decoder.h"

#include "base/mem.h"
#include "base/path.h"
#include "models/decoder_internal.h"

#include <stdio.h>
#include <stdlib.h>

static const struct decoder *decoder_of(const struct model *m)
{
    return (const struct decoder *)m;
}

bool decoder_is_sparse(const struct decoder *d, int64_t layer)
{
    return d->experts.count &&
           (!d->hooks->is_sparse || d->hooks->is_sparse(d, layer));
}

struct experts decoder_experts(const struct decoder *d, int64_t layer)
{
    struct experts e = d->experts;

    snprintf(e.prefix, sizeof(e.prefix), "model.layers.%lld.mlp.experts",
             (long long)layer);
    return e;
}

static int open_pack(struct decoder *d, const char *pack, struct err *err)
{
    char *path = path_join(pack, "config.json");

    d->config = config_open(path, err);
    free(path);
    if (!d->config)
        return -1;
    d->ledger = ledger_new(pack);
    ledger_put(d->ledger, "config.json", d->config);
    if (decoder_check_quantization(config_root(d->config), err) ||
        d->hooks->read(d, err) || decoder_read_stops(d, err))
        return -1;
    d->width = d->width ? d->width : d->hidden;
    d->experts.in = d->experts.in ? d->experts.in : d->hidden;
    d->experts.unit = d->experts.unit ? d->experts.unit : expert_swiglu;
    d->names = (struct checkpoint_names){d->hooks->renames, d->hooks->ignored,
                                         d->layers};
    d->weights = checkpoint_open(pack, &d->names, err);
    d->experts.weights = d->weights;
    return d->weights ? decoder_expect_all(d, err) : -1;
}

struct model *decoder_open(const struct model_family *family, const char *pack,
                           bool is_kept, struct err *err)
{
    (void)is_kept; /* a layer at a time, whatever is asked */
    struct decoder *d = xcalloc(1, family->decoder->size);

    d->model.family = family;
    d->hooks = family->decoder;
    if (open_pack(d, pack, err) == 0)
        return &d->model;
    decoder_close(&d->model);
    return NULL;
}

void decoder_close(struct model *m)
{
    struct decoder *d = (struct decoder *)m;

    if (!d)
        return;
    if (d->hooks->release)
        d->hooks->release(d);
    decoder_generation_free(d->generation);
    checkpoint_close(d->weights);
    ledger_free(d->ledger);
    free(d);
}

int64_t decoder_vocab(const struct model *m)
{
    return decoder_of(m)->vocab;
}

int decoder_check(const struct model *m, const struct sequence *s,
                  struct err *err)
{
    const struct decoder *d = decoder_of(m);

    if (s->images)
        return err_set(err, ERR_UNSUPPORTED,
                       "%s: images are not supported in this family", s->name);
    for (int64_t i = 0; i < s->rows; i++)
        if (s->ids[i] < 0 || s->ids[i] >= d->vocab)
            return err_set(err, ERR_INPUT,
                           "%s: token %lld is %lld, past the vocabulary of "
                           "%lld",
                           s->name, (long long)i, (long long)s->ids[i],
                           (long long)d->vocab);
    return 0;
}

json_t *decoder_keys(const struct model *m)
{
    return ledger_json(decoder_of(m)->ledger);
}

json_t *decoder_weights(const struct model *m, struct err *err)
{
    return checkpoint_ledger(decoder_of(m)->weights, true, err);
}
