/* --reuse: an earlier result whose records still hold. */
#include "reuse.h"

#include "base/io.h"
#include "cli/earlier.h"
#include "records.h"

#include <stdlib.h>

/* Nothing but a folder for each case. */
static int check_folders(const struct run *r, struct err *why)
{
    struct io_list list;

    if (r->job.is_single)
        return 0;
    if (io_list(r->opt->stage.reuse, &list, why))
        return -1;
    if (list.count != r->job.count)
        err_set(why, ERR_INPUT, "it holds %zu cases, not %zu", list.count,
                r->job.count);
    io_list_release(&list);
    return why->code ? -1 : 0;
}

static int check_case(const struct run *r, const struct stage *common, size_t i,
                      struct err *why)
{
    struct stage *s = records_case(r, common, i, why);
    char *dir = run_case_dir(r, r->opt->stage.reuse, i);
    int ret = s ? stage_holds(s, dir, why) : -1;

    free(dir);
    stage_free(s);
    if (ret && !r->job.is_single)
        return err_in(why, "case '%s'", r->job.sequences[i].name);
    return ret;
}

static int check_all(const struct run *r, const struct stage *common,
                     struct err *why)
{
    if (check_folders(r, why))
        return -1;
    for (size_t i = 0; i < r->job.count; i++)
        if (check_case(r, common, i, why))
            return -1;
    return 0;
}

int reuse_earlier(const struct run *r, struct err *err)
{
    const char *from = r->opt->stage.reuse, *out = r->opt->out;
    struct err why = ERR_INIT;

    if (!from)
        return 0;
    if (io_check_new(out, err))
        return -1;
    struct stage *common = records_common(r, err);
    if (!common)
        return -1;
    int ret = check_all(r, common, &why);
    stage_free(common);
    if (ret) {
        earlier_decline(r->command, from, &why);
        return 0;
    }
    return earlier_adopt(r->command, from, out, err) ? -1 : 1;
}
