/* Is an earlier result what the stage would make now? */
#include "evidence/stage_internal.h"

#include "base/buf.h"
#include "base/bug.h"
#include "base/io.h"
#include "base/path.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "(none)";
}

static const json_t *find_path(const json_t *list, const char *path)
{
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (strcmp(text_of(item, "path"), path) == 0)
            return item;
    }
    return NULL;
}

/* The first file in which two lists differ. */
static int tell_file(const char *what, const json_t *then, const json_t *now,
                     struct err *why)
{
    json_t *item;
    size_t i;

    json_array_foreach(now, i, item)
    {
        const char *path = text_of(item, "path");
        const json_t *old = find_path(then, path);

        if (!old)
            return err_set(why, ERR_INPUT, "%s %s is not in its record", what,
                           path);
        if (!json_equal(old, item))
            return err_set(why, ERR_INPUT, "%s %s had SHA-256 %s, is %s", what,
                           path, text_of(old, "sha256"),
                           text_of(item, "sha256"));
    }
    json_array_foreach(then, i, item)
    {
        if (!find_path(now, text_of(item, "path")))
            return err_set(why, ERR_INPUT, "%s %s is not there", what,
                           text_of(item, "path"));
    }
    return err_set(why, ERR_INPUT, "its %ss stand in other order", what);
}

static int tell_difference(const json_t *then, const json_t *now,
                           struct err *why)
{
    static const struct {
        const char *key, *text;
    } parts[] = {
        {"format", "its record is of another form"},
        {"program", "another build of the program made it"},
        {"libraries", "it was made with other libraries"},
        {"arguments", "it was made with other arguments"},
        {"frozen", "it was made under another protocol, cases or gates"},
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (!json_equal(json_object_get(then, parts[i].key),
                        json_object_get(now, parts[i].key)))
            return err_set(why, ERR_INPUT, "%s", parts[i].text);
    if (!json_equal(json_object_get(then, "inputs"),
                    json_object_get(now, "inputs")))
        return tell_file("input", json_object_get(then, "inputs"),
                         json_object_get(now, "inputs"), why);
    if (!json_equal(json_object_get(then, "outputs"),
                    json_object_get(now, "outputs")))
        return tell_file("output", json_object_get(then, "outputs"),
                         json_object_get(now, "outputs"), why);
    return err_set(why, ERR_INPUT, "its record would be other bytes now");
}

/* Everything in the folder but the record. */
static int add_outputs(struct stage *s, const char *dir, struct err *err)
{
    struct io_list list;
    int ret = 0;

    if (io_list(dir, &list, err))
        return -1;
    for (size_t i = 0; i < list.count && ret == 0; i++)
        if (strcmp(list.names[i], "stage.json") != 0)
            ret = stage_output(s, dir, list.names[i], err);
    io_list_release(&list);
    return ret;
}

int stage_holds(const struct stage *s, const char *dir, struct err *why)
{
    struct stage *again = stage_copy(s);
    char *path = path_join(dir, "stage.json");
    struct buf then = BUF_INIT, now = BUF_INIT;
    json_t *root = NULL, *old = NULL;
    int ret = -1;

    BUG_ON(s->outputs.count != 0);
    if (io_read_file(path, IO_JSON_CAP, &then, why) ||
        add_outputs(again, dir, why))
        goto out;
    root = stage_json(again);
    json_write(root, &now);
    if (then.len == now.len && memcmp(then.data, now.data, now.len) == 0) {
        ret = 0;
        goto out;
    }
    old = json_parse(then.data, then.len, why);
    if (old)
        tell_difference(old, root, why);
    else
        err_in(why, "stage.json");
out:
    json_decref(old);
    json_decref(root);
    buf_release(&then);
    buf_release(&now);
    free(path);
    stage_free(again);
    return ret;
}
