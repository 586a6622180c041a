/* Hidden states of the records of a parity input. */
#include "states.h"

#include "base/mem.h"
#include "base/path.h"
#include "sink.h"

#include <inttypes.h>
#include <stdlib.h>

struct records {
    size_t count;
    struct sequence *sequences;
    struct sink *sinks;
    char **names;
    int64_t *positions; /* 0, 1, 2 ... as long as the longest record */
};

static char *file_name(const char *kind, size_t i)
{
    return xasprintf("%s-%zu.safetensors", kind, i);
}

/* What --trace asks for; else, for traces to compare with, the choices of
 * experts and their margins. */
static const char *pattern_of(const struct run *r)
{
    const struct parity_input *input = &r->parity;

    for (size_t i = 0; !r->opt->trace && i < input->count; i++)
        if (input->records[i].trace)
            return "layer*.[em][xa]*";
    return r->opt->trace;
}

static int check_ids(const struct parity_record *r, size_t i, int64_t vocab,
                     struct err *err)
{
    for (size_t k = 0; k < r->count; k++)
        if (r->ids[k] >= vocab)
            return err_set(err, ERR_INPUT,
                           "record %zu holds token id %" PRId64
                           ", past the model's %" PRId64 " tokens",
                           i, r->ids[k], vocab);
    return 0;
}

static int fill(struct records *all, const struct parity_input *input,
                const struct model *m, struct err *err)
{
    size_t longest = 0, n = input->count;

    for (size_t i = 0; i < n; i++)
        longest = input->records[i].count > longest ? input->records[i].count
                                                    : longest;
    all->sequences = xcalloc(n, sizeof(*all->sequences));
    all->sinks = xcalloc(n, sizeof(*all->sinks));
    all->names = xcalloc(n, sizeof(*all->names));
    all->positions = xcalloc(longest, sizeof(*all->positions));
    for (size_t k = 0; k < longest; k++)
        all->positions[k] = (int64_t)k;
    for (size_t i = 0; i < n; i++) {
        const struct parity_record *r = &input->records[i];
        struct sequence *s = &all->sequences[i];

        all->count++;
        all->names[i] = xasprintf("record %zu", i);
        /* a prompt of one token: every row's state is exported */
        *s = (struct sequence){.name = all->names[i],
                               .prompt = 1,
                               .rows = (int64_t)r->count,
                               .ids = r->ids,
                               .positions = all->positions};
        if (check_ids(r, i, model_vocab(m), err) || model_check(m, s, err))
            return -1;
    }
    return 0;
}

static int open_sinks(struct records *all, const struct run *r, struct err *err)
{
    for (size_t i = 0; i < all->count; i++) {
        char *outputs = file_name("states", i), *trace = file_name("trace", i);
        struct sink_options o = {.dir = r->out.part,
                                 .pattern = pattern_of(r),
                                 .inject = r->opt->inject,
                                 .outputs = outputs,
                                 .trace = trace,
                                 .is_states_only = true};
        int ret = sink_open(&all->sinks[i], &o, r->model, &r->forward,
                            &all->sequences[i], NULL, 0, err);

        free(outputs);
        free(trace);
        if (ret)
            return -1;
    }
    return 0;
}

static int tap(void *ctx, const struct tap_piece *piece, struct err *err)
{
    struct records *all = ctx;

    return sink_piece(&all->sinks[piece->sequence], piece, err);
}

int states_forward(const struct run *r, struct err *err)
{
    struct records all = {.count = 0};
    struct model_tap taps = {&all, tap};

    if (r->opt->inject && r->parity.count != 1)
        return err_set(err, ERR_USAGE, "--inject takes one record, not %zu",
                       r->parity.count);
    int ret = fill(&all, &r->parity, r->model, err);
    if (ret == 0)
        ret = open_sinks(&all, r, err);
    if (ret == 0)
        ret = model_forward(r->model, &r->forward, all.sequences,
                            (int64_t)all.count, &taps, err);
    for (size_t i = 0; i < all.count && ret == 0; i++)
        ret = sink_finish(&all.sinks[i], err);
    for (size_t i = 0; i < all.count; i++) {
        sink_release(&all.sinks[i]);
        free(all.names[i]);
    }
    free(all.sequences);
    free(all.sinks);
    free(all.names);
    free(all.positions);
    return ret;
}

static int record_ids(const struct parity_input *input, size_t i,
                      struct stage *s, struct err *err)
{
    const json_t *item =
        json_array_get(json_object_get(input->root, "records"), i);
    const char *file = json_string_value(json_object_get(item, "tokenIdsFile"));
    int ret = 0;

    if (file) {
        char *dir = path_dir(input->path), *path = path_join(dir, file);

        ret = stage_input(s, path, err);
        free(path);
        free(dir);
    }
    return ret;
}

int states_record(const struct run *r, struct stage *s, struct err *err)
{
    const struct parity_input *input = &r->parity;
    int ret = stage_input(s, input->path, err);

    for (size_t i = 0; i < input->count && ret == 0; i++) {
        char *outputs = file_name("states", i), *trace = file_name("trace", i);

        ret = record_ids(input, i, s, err);
        if (ret == 0)
            ret = stage_output(s, r->out.part, outputs, err);
        if (ret == 0 && pattern_of(r))
            ret = stage_output(s, r->out.part, trace, err);
        free(outputs);
        free(trace);
    }
    return ret;
}
