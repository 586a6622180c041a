/* The teacher-forced pass of all cases, each into its sink. */
#include "pass.h"

#include "base/io.h"
#include "base/mem.h"
#include "cli/progress.h"
#include "sink.h"

#include <stdlib.h>

struct pass {
    const struct run *run;
    struct sink *sinks; /* one a case */
    struct progress progress;
    int64_t done; /* rows of stages, each counted at its first column */
};

static int open_sink(struct pass *p, size_t i, struct err *err)
{
    const struct run *r = p->run;
    const struct job *job = &r->job;
    char *dir = run_case_dir(r, r->out.part, i);
    struct sink_options o = {.dir = dir,
                             .pattern = r->opt->trace,
                             .local = job->local,
                             .inject = r->opt->inject};
    int ret = io_make_dirs(dir, err);

    if (ret == 0)
        ret = sink_open(&p->sinks[i], &o, r->model, &r->forward,
                        &job->sequences[i], job->continuations[i],
                        job->lengths[i], err);
    free(dir);
    return ret;
}

static int open_sinks(struct pass *p, struct err *err)
{
    const struct run_options *opt = p->run->opt;
    size_t count = p->run->job.count, traced = 0;

    if (opt->inject && count != 1)
        return err_set(err, ERR_USAGE, "--inject takes one case, not %zu",
                       count);
    for (size_t i = 0; i < count; i++) {
        if (open_sink(p, i, err))
            return -1;
        traced += p->sinks[i].traced;
    }
    if (opt->trace && traced == 0)
        return err_set(err, ERR_USAGE, "--trace '%s' matches no stage",
                       opt->trace);
    return 0;
}

static int take_piece(void *ctx, const struct tap_piece *piece, struct err *err)
{
    struct pass *p = ctx;

    if (piece->column == 0)
        progress_at(&p->progress, p->done += piece->values.rows);
    return sink_piece(&p->sinks[piece->sequence], piece, err);
}

static int compute(struct pass *p, struct err *err)
{
    const struct run *r = p->run;
    struct model_tap tap = {p, take_piece};
    int64_t rows = 0;

    for (size_t i = 0; i < r->job.count; i++)
        rows += p->sinks[i].rows;
    progress_begin(&p->progress, "forward", rows);
    int ret = model_forward(r->model, &r->forward, r->job.sequences,
                            (int64_t)r->job.count, &tap, err);
    progress_end(&p->progress);
    for (size_t i = 0; i < r->job.count && ret == 0; i++)
        ret = sink_finish(&p->sinks[i], err);
    return ret;
}

int pass_forced(const struct run *r, struct err *err)
{
    struct pass p = {.run = r,
                     .sinks = xcalloc(r->job.count, sizeof(*p.sinks))};
    int ret = open_sinks(&p, err) || compute(&p, err) ? -1 : 0;

    for (size_t i = 0; i < r->job.count; i++)
        sink_release(&p.sinks[i]);
    free(p.sinks);
    return ret;
}
