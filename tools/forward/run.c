/* What one run reads before anything is computed. */
#include "run.h"

#include "arithmetic.h"
#include "base/mem.h"
#include "base/path.h"
#include "kernels/kernels.h"
#include "kernels/threads.h"

#include <stdlib.h>

static int set_kernels(const struct run_options *opt, struct err *err)
{
    int n = opt->threads > 0 ? (int)opt->threads : threads_online();

    return kernels_select(opt->kernel, err) || threads_set(n, err) ? -1 : 0;
}

static int read_parity(struct run *r, struct err *err)
{
    r->parity_dir = path_dir(r->opt->parity);
    return parity_read(r->opt->parity, &r->parity, err);
}

static int read_job(struct run *r, struct err *err)
{
    const struct run_options *opt = r->opt;
    struct job_options o = {.inputs = opt->inputs,
                            .prefix = opt->prefix,
                            .files = opt->files,
                            .local = opt->local,
                            .context = r->protocol.context,
                            .generate = opt->generate};

    return job_read(&r->job, &o, r->model, err);
}

int run_open(struct run *r, struct err *err)
{
    const struct run_options *opt = r->opt;

    if (protocol_read(opt->protocol, &r->protocol, err) ||
        set_kernels(opt, err) || (opt->parity && read_parity(r, err)))
        return -1;
    r->model = model_open(opt->pack, opt->generate > 0, err);
    if (!r->model ||
        arithmetic_choose(opt, &r->protocol, r->model, &r->forward, err))
        return -1;
    return opt->inputs ? read_job(r, err) : 0;
}

void run_release(struct run *r)
{
    struct err ignored = ERR_INIT;

    publish_abort(&r->out);
    job_release(&r->job);
    parity_release(&r->parity);
    free(r->parity_dir);
    model_close(r->model);
    protocol_release(&r->protocol);
    threads_set(1, &ignored);
}

char *run_case_dir(const struct run *r, const char *root, size_t i)
{
    return r->job.is_single ? xstrdup(root)
                            : path_join(root, r->job.sequences[i].name);
}
