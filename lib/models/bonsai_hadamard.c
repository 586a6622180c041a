/*
 * hadamard.json of a Bonsai 2 pack: the signs that an input is multiplied with
 * before it is rotated, a vector for each input width, and the names of the
 * rotated weights.
 */
#include "models/bonsai_config_internal.h"

#include <string.h>

#define PREFIX "prism.hadamard."

/* ---- the names ---- */

/* The rotated module of config.json that an entry of a list names. */
static const struct bonsai_module *find_named(const struct bonsai_config *c,
                                              const char *name, size_t entry,
                                              struct err *err)
{
    static const char head[] = "language_model.", tail[] = ".weight";
    const size_t head_len = strlen(head), tail_len = strlen(tail);
    size_t n = name ? strlen(name) : 0;
    char path[256];

    if (n < sizeof(head) + sizeof(tail) || strncmp(name, head, head_len) != 0 ||
        strcmp(name + n - tail_len, tail) != 0) {
        err_set(err, ERR_INPUT, "entry %zu names no packed weight", entry);
        return NULL;
    }
    n -= head_len + tail_len;
    if (n >= sizeof(path)) {
        err_set(err, ERR_INPUT, "entry %zu is too long", entry);
        return NULL;
    }
    memcpy(path, name + head_len, n);
    path[n] = '\0';
    const struct bonsai_module *m = bonsai_module(c, path);
    if (!m || m->block == 0) {
        err_set(err, ERR_INPUT, "'%s' is no rotated module of config.json",
                name);
        return NULL;
    }
    return m;
}

/* The list must be exactly the rotated modules of that kind. */
static int check_names(const struct bonsai_config *c, const json_t *list,
                       bool is_inverse, struct err *err)
{
    int64_t listed = 0, expected = 0;

    for (int64_t i = 0; i < c->module_count; i++)
        expected += c->modules[i].block != 0 &&
                    c->modules[i].is_embedding == is_inverse;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        const struct bonsai_module *m = find_named(c, name, i, err);

        if (!m)
            return -1;
        if (m->is_embedding == is_inverse) {
            listed++;
            continue;
        }
        /* a tied embedding may stand in both lists: it is also the head */
        if (is_inverse || !c->text.is_tied)
            return err_set(err, ERR_INPUT, "'%s' is of the other kind", name);
    }
    if (listed != expected)
        return err_set(err, ERR_INPUT,
                       "names %lld modules; config.json rotates %lld",
                       (long long)listed, (long long)expected);
    return 0;
}

/* ---- the signs ---- */

/* The width of vector i, of the `left` values that no vector has taken yet. */
static int read_width(const struct bonsai_config *c, const json_t *widths,
                      int64_t i, size_t left, int64_t *out, struct err *err)
{
    const json_t *entry = json_array_get(widths, (size_t)i);

    *out = json_integer_value(entry);
    if (!json_is_integer(entry) || *out < 1 || *out > BONSAI_MAX_DIM ||
        (size_t)*out > left)
        return err_set(err, ERR_INPUT,
                       "'" PREFIX "sign_widths'[%lld] does not fit the sign "
                       "values",
                       (long long)i);
    for (int64_t j = 0; j < i; j++)
        if (c->signs[j].width == *out)
            return err_set(err, ERR_INPUT,
                           "'" PREFIX "sign_widths' names %lld twice",
                           (long long)*out);
    return 0;
}

/* The vector of that width whose first value is values[at]. */
static int read_vector(struct bonsai_config *c, const json_t *values, size_t at,
                       int64_t width, struct bonsai_signs *out, struct err *err)
{
    float *signs = arena_alloc(&c->arena, (size_t)width * sizeof(*signs));
    double *wide = arena_alloc(&c->arena, (size_t)width * sizeof(*wide));

    for (size_t k = 0; k < (size_t)width; k++) {
        double s = json_number_value(json_array_get(values, at + k));

        if (s != 1.0 && s != -1.0)
            return err_set(err, ERR_INPUT,
                           "'" PREFIX "sign_values'[%zu] is neither +1 nor -1",
                           at + k);
        signs[k] = (float)s;
        wide[k] = s;
    }
    *out = (struct bonsai_signs){width, signs, wide};
    return 0;
}

static int read_signs(struct bonsai_config *c, const json_t *widths,
                      const json_t *values, struct err *err)
{
    size_t at = 0, count = json_array_size(widths),
           total = json_array_size(values);

    c->signs = arena_alloc(&c->arena, count * sizeof(*c->signs));
    c->sign_count = (int64_t)count;
    for (int64_t i = 0; i < c->sign_count; i++) {
        int64_t width;

        if (read_width(c, widths, i, total - at, &width, err) ||
            read_vector(c, values, at, width, &c->signs[i], err))
            return -1;
        at += (size_t)width;
    }
    if (at != total)
        return err_set(err, ERR_INPUT,
                       "'" PREFIX "sign_values' has %zu entries, the widths "
                       "add up to %zu",
                       total, at);
    return 0;
}

/* ---- the file ---- */

static int check_block(const struct bonsai_config *c, int64_t block,
                       struct err *err)
{
    bool is_there = false, is_rotated = false;

    for (int64_t i = 0; i < c->module_count; i++) {
        is_rotated |= c->modules[i].block != 0;
        is_there |= c->modules[i].block == block;
    }
    if (is_rotated && !is_there)
        return err_set(err, ERR_INPUT,
                       "'" PREFIX "block_size' is %lld, which no module of "
                       "config.json has",
                       (long long)block);
    return 0;
}

int bonsai_read_hadamard(struct bonsai_config *c, const struct section *root,
                         struct err *err)
{
    json_t *forward, *inverse, *widths, *values;
    int64_t block;

    if (config_want_int(root, PREFIX "version", 1, err) ||
        config_want_text(root, PREFIX "transform",
                         "normalized-sylvester-walsh-hadamard", err) ||
        config_want_text(root, PREFIX "axis", "input-last-dimension", err) ||
        config_want_text(root, PREFIX "sign_mode", "explicit", err) ||
        config_want_flag(root, PREFIX "gdn_v_grouped", true, err) ||
        config_get_int(root, PREFIX "block_size", &block, err) ||
        config_get_list(root, PREFIX "weight_names", &forward, err) ||
        config_get_list(root, PREFIX "inverse_weight_names", &inverse, err) ||
        config_get_list(root, PREFIX "sign_widths", &widths, err) ||
        config_get_list(root, PREFIX "sign_values", &values, err) ||
        read_signs(c, widths, values, err))
        return -1;
    if (check_names(c, forward, false, err))
        return err_in(err, "'" PREFIX "weight_names'");
    if (check_names(c, inverse, true, err))
        return err_in(err, "'" PREFIX "inverse_weight_names'");
    return check_block(c, block, err);
}

const struct bonsai_signs *bonsai_signs(const struct bonsai_config *config,
                                        int64_t width)
{
    for (int64_t i = 0; i < config->sign_count; i++)
        if (config->signs[i].width == width)
            return &config->signs[i];
    return NULL;
}
