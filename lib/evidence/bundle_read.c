/* Reading a bundle, entry by entry against the manifest. */
#include "evidence/bag_internal.h"
#include "evidence/bundle_internal.h"

#include "archive/tar.h"
#include "base/mem.h"
#include "base/path.h"

#include <stdlib.h>
#include <string.h>

enum { SLACK = 64 << 20 };

struct reading {
    struct tar_reader *tar;
    const struct bundle_visitor *visitor;
    struct bundle *out;
    struct plan plan;
    struct bag_files listed;
    struct tar_entry entry; /* at hand */
    int64_t mtime, limit;
    char *block;
    size_t entries;
};

/* Steps to the next entry: 1, 0 at the end, -1. */
static int next(struct reading *r, struct err *err)
{
    int state = tar_reader_next(r->tar, &r->entry, err);

    if (state <= 0)
        return state;
    if (r->entries++ == 0)
        r->mtime = r->entry.mtime;
    if (r->entry.mtime != r->mtime)
        return err_set(err, ERR_INPUT, "entry %zu has a time of its own",
                       r->entries);
    return 1;
}

/* Is the entry at hand the one of that name and kind? */
static bool is_at(const struct reading *r, const char *path, bool is_dir)
{
    size_t n = strlen(r->out->name);
    const char *name = r->entry.name;
    size_t len = strlen(path);

    return r->entry.is_dir == is_dir && strncmp(name, r->out->name, n) == 0 &&
           name[n] == '/' && strncmp(name + n + 1, path, len) == 0 &&
           strcmp(name + n + 1 + len, is_dir && len ? "/" : "") == 0;
}

/* The file at hand: hashed, given to the visitor, kept in `text` if wanted. */
static int take_file(struct reading *r, const char *path, struct buf *text,
                     char sha256[HASH_SHA256_HEX], struct err *err)
{
    const struct bundle_visitor *v = r->visitor;
    struct hash *hash = hash_new(HASH_SHA256);
    int64_t n = -1;

    if (v && v->begin && v->begin(v->context, path, false, r->entry.size, err))
        goto out;
    while ((n = tar_reader_data(r->tar, r->block, BUNDLE_STEP, err)) > 0) {
        hash_add(hash, r->block, (size_t)n);
        if (text)
            buf_add(text, r->block, (size_t)n);
        if (v && v->data && v->data(v->context, r->block, (size_t)n, err)) {
            n = -1;
            goto out;
        }
    }
    if (n == 0 && v && v->end)
        n = v->end(v->context, err);
    hash_hex(hash, sha256);
out:
    hash_free(hash);
    return n == 0 ? 0 : -1;
}

static int take_folder(struct reading *r, const char *path, struct err *err)
{
    const struct bundle_visitor *v = r->visitor;

    return v && v->begin ? v->begin(v->context, path, true, 0, err) : 0;
}

static int take_top(struct reading *r, struct err *err)
{
    int state = next(r, err);
    size_t n;

    if (state <= 0)
        return state < 0 ? -1 : err_set(err, ERR_INPUT, "holds nothing");
    n = strlen(r->entry.name);
    if (!r->entry.is_dir || n < 2 || r->entry.name[n - 1] != '/')
        return err_set(err, ERR_INPUT, "the first entry is no folder");
    r->out->name = xstrndup(r->entry.name, n - 1);
    if (path_check_name(r->out->name, err))
        return -1;
    plan_add(&r->plan, "", 0)->is_dir = true;
    return take_folder(r, "", err);
}

/* Payload-Oxum "BYTES.FILES" sets the limit when none was given. */
static int set_limit(struct reading *r, const struct buf *info, struct err *err)
{
    size_t len;
    const char *text = bundle_info(info, "Payload-Oxum: ", &len);
    char *end;
    long long bytes = text ? strtoll(text, &end, 10) : -1;

    if (bytes < 0 || bytes > INT64_MAX - SLACK || *end != '.')
        return err_set(err, ERR_INPUT, "bag-info.txt: no Payload-Oxum");
    tar_reader_limit(r->tar, r->limit ? r->limit : bytes + SLACK);
    return 0;
}

static int take_manifest(struct reading *r, const struct buf *text,
                         struct err *err)
{
    const struct bundle_visitor *v = r->visitor;
    json_t *faults = json_array();
    struct bag_files *listed = &r->listed;
    struct buf copy = BUF_INIT;
    int ret = 0;

    buf_add(&copy, text->data, text->len);
    bag_manifest_parse(copy.data, copy.len, bag_tag_names[BAG_MANIFEST], listed,
                       faults);
    for (size_t i = 0; i < listed->count && ret == 0; i++)
        ret = path_check(listed->items[i].path, err);
    bag_check_folded(listed, faults);
    if (ret == 0 && json_array_size(faults))
        ret = err_set(err, ERR_INPUT, "%s",
                      json_string_value(json_array_get(faults, 0)));
    for (size_t i = 0; i < listed->count && ret == 0; i++)
        if (strncmp(listed->items[i].path, "data/", 5) != 0)
            ret = err_set(err, ERR_INPUT, "%s: '%s' is no payload",
                          bag_tag_names[BAG_MANIFEST], listed->items[i].path);
    if (ret == 0 && listed->count == 0)
        ret = err_set(err, ERR_INPUT, "%s: lists nothing",
                      bag_tag_names[BAG_MANIFEST]);
    if (ret == 0 && v && v->listed)
        ret = v->listed(v->context, listed, err);
    json_decref(faults);
    buf_release(&copy);
    return ret;
}

static void add_found(struct bag_files *files, const char *path,
                      const char *sha256, int64_t size)
{
    struct bag_file *f = bag_add(files, path);

    f->size = size;
    memcpy(f->sha256, sha256, HASH_SHA256_HEX);
}

/* One tag file, its text into `text`. */
static int take_tag(struct reading *r, const char *name, struct buf *text,
                    struct err *err)
{
    char sha256[HASH_SHA256_HEX];

    if (r->entry.size > BUNDLE_TAG_CAP)
        return err_set(err, ERR_INPUT, "%s: longer than %d bytes", name,
                       (int)BUNDLE_TAG_CAP);
    buf_addstr(text, "");
    plan_add(&r->plan, name, strlen(name))->size = r->entry.size;
    if (take_file(r, name, text, sha256, err))
        return -1;
    add_found(&r->out->bag.tags, name, sha256, r->entry.size);
    return 0;
}

static int misplaced(const struct reading *r, const char *want, int state,
                     struct err *err)
{
    if (state < 0)
        return -1;
    if (state == 0)
        return err_set(err, ERR_INPUT, "ends where %s should stand", want);
    /* the name is the bundle's: print it only when it is fit to print */
    size_t n = strlen(r->entry.name);
    char *name = xstrndup(r->entry.name, n - (n > 0 && r->entry.is_dir));
    bool is_fit = path_is_portable(name);

    free(name);
    return is_fit
               ? err_set(err, ERR_INPUT, "'%s' stands where %s should",
                         r->entry.name, want)
               : err_set(err, ERR_INPUT,
                         "a name outside the rules stands where %s should",
                         want);
}

/* The tag files; 1 when the entry behind them is at hand, 0 at the end. */
static int take_tags(struct reading *r, struct err *err)
{
    struct buf signature = BUF_INIT;
    int state = 1;

    for (int i = 0; i < BAG_TAGS; i++) {
        struct buf *text = &r->out->bag.text[i];

        state = next(r, err);
        if (state <= 0 || !is_at(r, bag_tag_names[i], false))
            return misplaced(r, bag_tag_names[i], state, err);
        if (take_tag(r, bag_tag_names[i], text, err) ||
            (i == BAG_INFO && set_limit(r, text, err)) ||
            (i == BAG_MANIFEST && take_manifest(r, text, err)))
            return -1;
    }
    state = next(r, err);
    if (state == 1 && is_at(r, BUNDLE_SIGNATURE, false))
        state =
            take_tag(r, BUNDLE_SIGNATURE, &signature, err) ? -1 : next(r, err);
    buf_release(&signature);
    bag_sort(&r->out->bag.tags);
    return state;
}

/* `state` tells whether the first payload entry is at hand. */
static int take_payload(struct reading *r, int state, struct err *err)
{
    struct plan *p = &r->plan;
    size_t first = p->count;

    if (state < 0 || plan_payload(p, &r->listed, err))
        return -1;
    for (size_t i = first; i < p->count; i++) {
        struct step *s = &p->steps[i];
        char sha256[HASH_SHA256_HEX];

        if (state <= 0 || !is_at(r, s->path, s->is_dir))
            return misplaced(r, s->path, state, err);
        if (s->is_dir ? take_folder(r, s->path, err)
                      : take_file(r, s->path, NULL, sha256, err))
            return -1;
        if (!s->is_dir) {
            s->size = r->entry.size;
            add_found(&r->out->bag.payload, s->path, sha256, s->size);
            if (strcmp(sha256, s->sha256) != 0 && !r->out->first_other)
                r->out->first_other = xstrdup(s->path);
        }
        state = next(r, err);
    }
    return state == 0 ? 0 : misplaced(r, "the end", state, err);
}

static int read_all(struct reading *r, const char *path, struct err *err)
{
    int64_t canonical;

    if (take_top(r, err) || take_payload(r, take_tags(r, err), err))
        return -1;
    tar_reader_identity(r->tar, r->out->sha256, &r->out->size);
    if (plan_tar_size(&r->plan, r->out->name, path, &canonical, err))
        return -1;
    return r->out->size == canonical
               ? 0
               : err_set(err, ERR_INPUT,
                         "its tar is %lld bytes long, that of these files "
                         "%lld",
                         (long long)r->out->size, (long long)canonical);
}

int bundle_read(const char *path, int64_t limit,
                const struct bundle_visitor *visitor, struct bundle *out,
                struct err *err)
{
    struct reading r = {.visitor = visitor,
                        .out = out,
                        .listed = BAG_FILES_INIT,
                        .limit = limit};
    int ret = -1;

    *out = (struct bundle){.bag = BAG_INIT};
    r.tar = tar_reader_open(path, err);
    if (!r.tar)
        return -1;
    if (limit)
        tar_reader_limit(r.tar, limit);
    r.block = xmalloc(BUNDLE_STEP);
    ret = read_all(&r, path, err);
    if (ret) {
        if (strncmp(err->text, path, strlen(path)) != 0)
            err_in(err, "%s", path);
        bundle_release(out);
    }
    free(r.block);
    plan_release(&r.plan);
    bag_files_release(&r.listed);
    tar_reader_close(r.tar);
    return ret;
}
