/* A pack's JSON files by name, each with its ledger. */
#include "ledger/ledger.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"

#include <stdlib.h>
#include <string.h>

struct ledger {
    char *pack;
    struct file {
        char *name;
        struct config *config; /* NULL: not there */
    } * files;
    size_t count;
};

struct ledger *ledger_new(const char *pack)
{
    struct ledger *l = xcalloc(1, sizeof(*l));

    l->pack = xstrdup(pack);
    return l;
}

void ledger_free(struct ledger *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->count; i++) {
        free(l->files[i].name);
        config_close(l->files[i].config);
    }
    free(l->files);
    free(l->pack);
    free(l);
}

static struct file *find(const struct ledger *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->files[i].name, name) == 0)
            return &l->files[i];
    return NULL;
}

static struct file *add(struct ledger *l, const char *name,
                        struct config *config)
{
    l->files = xrealloc(l->files, (l->count + 1) * sizeof(*l->files));
    l->files[l->count] = (struct file){xstrdup(name), config};
    return &l->files[l->count++];
}

int ledger_file(struct ledger *l, const char *name, const struct section **out,
                struct err *err)
{
    struct file *f = find(l, name);

    *out = NULL;
    if (!f) {
        char *path = path_join(l->pack, name);
        bool is_there = io_exists(path);
        struct config *config = is_there ? config_open(path, err) : NULL;

        free(path);
        if (is_there && !config)
            return -1;
        f = add(l, name, config);
    }
    if (f->config)
        *out = config_root(f->config);
    return 0;
}

int ledger_need(struct ledger *l, const char *name, const struct section **out,
                struct err *err)
{
    if (ledger_file(l, name, out, err))
        return -1;
    if (*out)
        return 0;
    char *path = path_join(l->pack, name);
    struct config *config =
        config_open(path, err); /* says what the system says */

    free(path);
    if (!config)
        return -1;
    ledger_put(l, name, config);
    *out = config_root(config);
    return 0;
}

void ledger_put(struct ledger *l, const char *name, struct config *config)
{
    struct file *f = find(l, name);

    if (!f) {
        add(l, name, config);
        return;
    }
    config_close(f->config);
    f->config = config;
}

int ledger_finish(struct ledger *l, const char *name, struct err *err)
{
    struct file *f = find(l, name);

    return f && f->config ? config_finish(f->config, err) : 0;
}

json_t *ledger_json(const struct ledger *l)
{
    json_t *out = json_object();

    for (size_t i = 0; i < l->count; i++)
        if (l->files[i].config)
            json_object_set_new(out, l->files[i].name,
                                config_ledger(l->files[i].config));
    return out;
}
