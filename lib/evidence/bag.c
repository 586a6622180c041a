/* Evidence as a BagIt 1.0 bag: reading it from disk, and judging what was
 * read, from there or from a bundle. */
#include "evidence/bag_internal.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_CAP = 512 << 20 };

const char *const bag_tag_names[BAG_TAGS] = {"bagit.txt", "bag-info.txt",
                                             "manifest-sha256.txt",
                                             "tagmanifest-sha256.txt"};

void bag_release(struct bag *bag)
{
    bag_files_release(&bag->payload);
    bag_files_release(&bag->tags);
    for (int i = 0; i < BAG_TAGS; i++)
        buf_release(&bag->text[i]);
    *bag = (struct bag)BAG_INIT;
}

/* ------------------------------------------------------------- judging */

/* A manifest's lines; nothing but a fault when it could not be read. */
static void parse(const struct bag *bag, enum bag_tag tag,
                  struct bag_files *out, json_t *faults)
{
    const struct buf *text = &bag->text[tag];
    struct buf copy = BUF_INIT;

    if (!text->data) {
        bag_fault(faults, "%s: cannot be read", bag_tag_names[tag]);
        return;
    }
    buf_add(&copy, text->data, text->len);
    bag_manifest_parse(copy.data, copy.len, bag_tag_names[tag], out, faults);
    buf_release(&copy);
}

static void judge_declaration(const struct bag *bag, json_t *faults)
{
    static const char want[] = BAG_DECLARATION_TEXT;
    const struct buf *text = &bag->text[BAG_DECLARATION];

    if (!text->data)
        bag_fault(faults, "bagit.txt: cannot be read");
    else if (text->len != sizeof(want) - 1 ||
             memcmp(text->data, want, text->len) != 0)
        bag_fault(faults, "bagit.txt: not the declaration of a BagIt 1.0 bag");
}

static void judge_payload(const struct bag *bag, json_t *faults)
{
    struct bag_files listed = BAG_FILES_INIT;

    parse(bag, BAG_MANIFEST, &listed, faults);
    for (size_t i = 0; i < listed.count; i++) {
        const struct bag_file *f = &listed.items[i];
        const struct bag_file *here = bag_find(&bag->payload, f->path);

        if (strncmp(f->path, "data/", 5) != 0)
            bag_fault(faults, "%s: '%s' is no payload",
                      bag_tag_names[BAG_MANIFEST], f->path);
        else if (!here)
            bag_fault(faults, "%s: missing", f->path);
        else if (strcmp(here->sha256, f->sha256) != 0)
            bag_fault(faults, "%s: its SHA-256 is %s, the manifest says %s",
                      f->path, here->sha256, f->sha256);
    }
    for (size_t i = 0; i < bag->payload.count; i++)
        if (!bag_find(&listed, bag->payload.items[i].path))
            bag_fault(faults, "%s: in no manifest", bag->payload.items[i].path);
    bag_files_release(&listed);
}

static void judge_tags(const struct bag *bag, json_t *faults)
{
    const char *name = bag_tag_names[BAG_TAG_MANIFEST];
    struct bag_files listed = BAG_FILES_INIT;

    parse(bag, BAG_TAG_MANIFEST, &listed, faults);
    for (size_t i = 0; i < listed.count; i++) {
        const struct bag_file *f = &listed.items[i];
        const struct bag_file *here = bag_find(&bag->tags, f->path);

        if (!path_is_portable(f->path) || strncmp(f->path, "data/", 5) == 0)
            bag_fault(faults, "%s: '%s' is no tag file", name, f->path);
        else if (!here)
            bag_fault(faults, "%s: missing", f->path);
        else if (strcmp(here->sha256, f->sha256) != 0)
            bag_fault(faults, "%s: its SHA-256 is %s, the tag manifest says %s",
                      f->path, here->sha256, f->sha256);
    }
    for (int i = 0; i < BAG_TAG_MANIFEST; i++)
        if (!bag_find(&listed, bag_tag_names[i]))
            bag_fault(faults, "%s: not in %s", bag_tag_names[i], name);
    bag_files_release(&listed);
}

static void judge_info(const struct bag *bag, json_t *faults)
{
    const struct buf *text = &bag->text[BAG_INFO];
    char size[64], *save = NULL;
    const char *listed = NULL;
    struct buf copy = BUF_INIT;

    if (!text->data) {
        bag_fault(faults, "bag-info.txt: cannot be read");
        return;
    }
    bag_oxum(&bag->payload, size);
    buf_add(&copy, text->data, text->len);
    for (char *line = strtok_r(copy.data, "\r\n", &save); line;
         line = strtok_r(NULL, "\r\n", &save))
        if (strncmp(line, "Payload-Oxum: ", 14) == 0)
            listed = line + 14;
    if (!listed)
        bag_fault(faults, "bag-info.txt: no Payload-Oxum");
    else if (strcmp(listed, size) != 0)
        bag_fault(faults, "bag-info.txt: Payload-Oxum is %s, found %s", listed,
                  size);
    buf_release(&copy);
}

void bag_judge(const struct bag *bag, json_t *faults)
{
    judge_declaration(bag, faults);
    judge_payload(bag, faults);
    judge_tags(bag, faults);
    judge_info(bag, faults);
}

/* ------------------------------------------------------- reading a folder */

static int tag_of(const char *name)
{
    int i = 0;

    while (i < BAG_TAGS && strcmp(name, bag_tag_names[i]) != 0)
        i++;
    return i;
}

/* A file beside data/: its digest, and its text when it is of the bag. */
static void read_tag(const char *dir, const char *name, struct bag *bag)
{
    int tag = tag_of(name);
    struct buf other = BUF_INIT;
    struct buf *text = tag < BAG_TAGS ? &bag->text[tag] : &other;
    char *path = path_join(dir, name);
    struct err why = ERR_INIT;

    buf_addstr(text, "");
    if (io_read_file(path, TAG_CAP, text, &why)) {
        buf_release(text);
    } else {
        struct bag_file *f = bag_add(&bag->tags, name);

        f->size = (int64_t)text->len;
        hash_sha256(text->data, text->len, f->sha256);
    }
    buf_release(&other);
    free(path);
}

/* Beside the payload: tag files, signatures, timing.json. */
static int read_beside(const char *dir, struct bag *bag, json_t *faults,
                       struct err *err)
{
    struct io_list list;

    if (io_list(dir, &list, err))
        return -1;
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.names[i];
        size_t n = strlen(name);

        if (strcmp(name, "data") == 0 || strcmp(name, "timing.json") == 0 ||
            (n > 4 && strcmp(name + n - 4, ".sig") == 0))
            continue;
        if (tag_of(name) == BAG_TAGS)
            bag_fault(faults, "%s: does not belong there", name);
        read_tag(dir, name, bag);
    }
    io_list_release(&list);
    return 0;
}

int bag_check(const char *dir, struct bag_files *files, json_t *faults,
              struct err *err)
{
    struct bag bag = BAG_INIT;
    char *data = path_join(dir, "data");
    int ret = -1;

    if (read_beside(dir, &bag, faults, err))
        goto out;
    if (!io_is_dir(data)) {
        err_set(err, ERR_INPUT, "%s: no data/: not the evidence of a run", dir);
        goto out;
    }
    if (bag_load_payload(dir, &bag.payload, faults, err))
        goto out;
    bag_judge(&bag, faults);
    *files = bag.payload;
    bag.payload = (struct bag_files)BAG_FILES_INIT;
    ret = 0;
out:
    free(data);
    bag_release(&bag);
    return ret;
}
