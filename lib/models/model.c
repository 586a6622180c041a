/* The table of model families. */
#include "models/model.h"

#include "base/bug.h"
#include "base/path.h"
#include "models/bonsai.h"
#include "models/deepseek_v4.h"
#include "models/glm5_next.h"
#include "models/kimi_k25.h"
#include "models/kimi_k3.h"
#include "models/llama.h"
#include "models/minimax_m2.h"
#include "models/qwen3_5.h"
#include "json/json.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct model_family *const families[] = {
    &bonsai_family,
    &minimax_m2_family,
    &kimi_k25_family,
    &kimi_k2_family,
    &deepseek_v3_family,
    &kimi_k3_family,
    &kimi_linear_family,
    &llama_family,
    &qwen3_family,
    &qwen3_5_family,
    &qwen3_5_text_family,
    &qwen3_5_moe_family,
    &qwen3_5_moe_text_family,
    &glm5_next_family,
    &glm5_next_text_family,
    &deepseek_v4_family,
};
/* clang-format on */

int64_t regime_call_rows(const struct regime *regime, const struct sequence *s,
                         int64_t row)
{
    /* upstream leaves one token for the last call only when it cuts at all */
    bool is_cut = s->prompt > regime->prefill_chunk;
    int64_t chunked = s->prompt - (regime->is_tail_one && is_cut ? 1 : 0);
    int64_t first = row - row % regime->prefill_chunk;
    int64_t end = first + regime->prefill_chunk;

    if (row >= chunked)
        return 1;
    return (end < chunked ? end : chunked) - first;
}

const struct model_family *model_family_find(const char *model_type)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        if (strcmp(families[i]->model_type, model_type) == 0)
            return families[i];
    return NULL;
}

struct model *model_open(const char *pack, bool is_kept, struct err *err)
{
    char *path = path_join(pack, "config.json");
    json_t *root = json_read_file(path, err);
    const struct model_family *family = NULL;
    const char *type;

    if (root && json_get_str(root, "model_type", &type, err)) {
        err_in(err, "%s", path);
    } else if (root) {
        family = model_family_find(type);
        if (!family)
            err_set(err, ERR_UNSUPPORTED,
                    "%s: model_type '%s' is not supported", path, type);
    }
    json_decref(root);
    free(path);
    if (!family)
        return NULL;
    struct model *m = family->open(family, pack, is_kept, err);
    BUG_ON(m && m->family != family);
    return m;
}

void model_close(struct model *m)
{
    if (m)
        m->family->close(m);
}

int64_t model_vocab(const struct model *m)
{
    return m->family->vocab(m);
}

enum sums model_sums(const struct model *m)
{
    return m->family->sums;
}

bool model_is_stop(const struct model *m, int64_t token)
{
    return m->family->is_stop(m, token);
}

int model_check(const struct model *m, const struct sequence *s,
                struct err *err)
{
    return m->family->check(m, s, err);
}

int model_stages(const struct model *m, const struct forward_options *o,
                 const struct sequence *s, stage_visitor *visit, void *ctx,
                 struct err *err)
{
    return m->family->stages(m, o, s, visit, ctx, err);
}

size_t model_memory(struct model *m, const struct forward_options *o,
                    const struct sequence *s, int64_t count)
{
    return m->family->memory(m, o, s, count);
}

int model_forward(struct model *m, const struct forward_options *o,
                  const struct sequence *s, int64_t count,
                  const struct model_tap *tap, struct err *err)
{
    return m->family->forward(m, o, s, count, tap, err);
}

json_t *model_keys(const struct model *m)
{
    return m->family->keys(m);
}

json_t *model_weights(const struct model *m, struct err *err)
{
    return m->family->weights(m, err);
}

int model_begin(struct model *m, const struct forward_options *o,
                const struct sequence *prompt, int64_t capacity,
                const struct model_tap *tap, struct err *err)
{
    return m->family->begin(m, o, prompt, capacity, tap, err);
}

int model_step(struct model *m, int64_t token, const struct model_tap *tap,
               struct err *err)
{
    return m->family->step(m, token, tap, err);
}
