/* The stage records of a run. */
#include "records.h"

#include "arithmetic.h"
#include "base/io.h"
#include "base/path.h"
#include "safetensors/safetensors.h"
#include "states.h"

#include <stdlib.h>

/* ---- what they have in common ---- */

static int add_shards(struct stage *s, const char *pack, struct err *err)
{
    struct safetensors *st = safetensors_open_pack(pack, err);
    int ret = 0;

    if (!st)
        return -1;
    for (size_t i = 0; i < safetensors_count(st) && ret == 0; i++)
        ret = stage_input(s, safetensors_path(st, safetensors_at(st, i)), err);
    safetensors_close(st);
    return ret;
}

static int add_pack(struct stage *s, const char *pack, struct err *err)
{
    static const char *const names[] = {"config.json", "hadamard.json",
                                        "generation_config.json"};
    int ret = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && ret == 0; i++) {
        char *path = path_join(pack, names[i]);

        if (io_exists(path))
            ret = stage_input(s, path, err);
        free(path);
    }
    return ret ? -1 : add_shards(s, pack, err);
}

struct stage *records_common(const struct run *r, struct err *err)
{
    const struct run_options *opt = r->opt;
    struct stage *s =
        stage_new("assay-forward", r->argc, r->argv, &opt->stage, err);

    if (!s)
        return NULL;
    stage_role(s, "PACK", opt->pack);
    stage_role(s, "INPUTS", opt->inputs);
    stage_role(s, "PREFIX", opt->prefix);
    stage_role(s, "LOCAL", opt->local);
    stage_role(s, "INJECT", opt->inject);
    stage_role(s, "PARITY", r->parity_dir);
    stage_role(s, "OUT", opt->out);
    if (add_pack(s, opt->pack, err) ||
        (opt->inject && stage_input(s, opt->inject, err)) ||
        (opt->protocol && stage_input(s, opt->protocol, err))) {
        stage_free(s);
        return NULL;
    }
    stage_set(s, "precision",
              json_string(precision_name(r->forward.precision)));
    stage_set(s, "orders", arithmetic_orders(&r->forward));
    stage_set(s, "ledger", model_keys(r->model));
    return s;
}

/* ---- of a case ---- */

static int add_file(const char *path, void *stage, struct err *err)
{
    return stage_input(stage, path, err);
}

static int add_captures(struct stage *s, const struct capture_set *set,
                        const char *name, struct err *err)
{
    return set ? capture_set_files(set, name, add_file, s, err) : 0;
}

struct stage *records_case(const struct run *r, const struct stage *common,
                           size_t i, struct err *err)
{
    struct stage *s = stage_copy(common);
    const char *name = r->job.sequences[i].name, *from = r->job.inputs_dirs[i];

    if ((io_is_dir(from) ? stage_input_dir(s, from, err)
                         : stage_input(s, from, err)) == 0 &&
        add_captures(s, r->job.prefix, name, err) == 0 &&
        add_captures(s, r->job.local, name, err) == 0)
        return s;
    stage_free(s);
    return NULL;
}

static int write_case(const struct run *r, const struct stage *common, size_t i,
                      struct err *err)
{
    struct stage *s = records_case(r, common, i, err);
    char *dir = run_case_dir(r, r->out.part, i);
    int ret = s ? stage_output(s, dir, "outputs.safetensors", err) : -1;

    if (ret == 0 && r->opt->trace)
        ret = stage_output(s, dir, "trace.safetensors", err);
    if (ret == 0)
        ret = stage_write(s, dir, err);
    free(dir);
    stage_free(s);
    return ret;
}

int records_write(const struct run *r, struct err *err)
{
    struct stage *s = records_common(r, err);
    int ret = s ? 0 : -1;

    if (s && r->opt->parity)
        ret = states_record(r, s, err) || stage_write(s, r->out.part, err) ? -1
                                                                           : 0;
    for (size_t i = 0; i < r->job.count && ret == 0; i++)
        ret = write_case(r, s, i, err);
    stage_free(s);
    return ret;
}
