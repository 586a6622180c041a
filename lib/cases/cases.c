/* cases.json: read whole, checked key by key before any case is used. */
#include "cases/cases.h"

#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_CASES = 100000, MAX_IMAGES = 10000, MAX_IMAGE_FILE = 1 << 30 };

bool case_is_time(const char *text)
{
    static const char form[] = "dddd-dd-ddTdd:dd:ddZ";
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day, hour, minute, second;

    if (strlen(text) != sizeof(form) - 1)
        return false;
    for (size_t i = 0; form[i]; i++)
        if (form[i] == 'd' ? !isdigit((unsigned char)text[i])
                           : text[i] != form[i])
            return false;
    sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2dZ", &year, &month, &day, &hour,
           &minute, &second);
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return year >= 1 && month >= 1 && month <= 12 && day >= 1 &&
           day <= days[month - 1] && (month != 2 || day < 29 || is_leap) &&
           hour < 24 && minute < 60 && second < 60;
}

static int read_image(json_t *value, const char *dir, struct case_image *out,
                      struct err *err)
{
    const char *key, *digest;
    json_t *member;

    if (!json_is_object(value))
        return err_set(err, ERR_INPUT, "not an object");
    json_object_foreach(value, key, member)
    {
        if (strcmp(key, "file") != 0 && strcmp(key, "sha256") != 0)
            return err_set(err, ERR_UNSUPPORTED, "unknown key '%s'", key);
    }
    if (json_get_str(value, "file", &out->file, err) ||
        json_get_str(value, "sha256", &digest, err) ||
        path_check(out->file, err))
        return -1;
    if (strlen(digest) != HASH_SHA256_HEX - 1 ||
        strspn(digest, "0123456789abcdefABCDEF") != HASH_SHA256_HEX - 1)
        return err_set(err, ERR_INPUT, "'sha256' is not 64 hex digits");
    for (size_t i = 0; i < HASH_SHA256_HEX; i++)
        out->sha256[i] = (char)tolower((unsigned char)digest[i]);
    out->path = path_join(dir, out->file);
    return 0;
}

/* An item of list content that stands for an image, as templates see it. */
static bool is_image(const json_t *item)
{
    const char *type = json_string_value(json_object_get(item, "type"));

    return (type && strcmp(type, "image") == 0) ||
           json_object_get(item, "image") || json_object_get(item, "image_url");
}

static int count_images(const json_t *messages, size_t *count, struct err *err)
{
    const json_t *message, *item;
    size_t i, k;

    *count = 0;
    json_array_foreach(messages, i, message)
    {
        const char *role;

        if (!json_is_object(message))
            return err_set(err, ERR_INPUT, "message %zu is not an object", i);
        if (json_get_str(message, "role", &role, err))
            return err_in(err, "message %zu", i);
        const json_t *content = json_object_get(message, "content");
        if (!json_is_array(content))
            continue;
        json_array_foreach(content, k, item)
        {
            const char *type = json_string_value(json_object_get(item, "type"));

            if (json_object_get(item, "video") ||
                (type && strcmp(type, "video") == 0))
                return err_set(err, ERR_UNSUPPORTED,
                               "message %zu: videos are not supported", i);
            *count += is_image(item);
        }
    }
    return 0;
}

static int read_images(json_t *value, const char *dir, struct test_case *out,
                       struct err *err)
{
    json_t *list = NULL;
    size_t wanted, given = 0;

    if (count_images(out->messages, &wanted, err))
        return -1;
    if (json_has(value, "images")) {
        if (json_get_array(value, "images", &list, err))
            return -1;
        given = json_array_size(list);
    }
    if (given != wanted)
        return err_set(err, ERR_INPUT,
                       "the messages hold %zu images, 'images' lists %zu",
                       wanted, given);
    out->images = mem_array(given, sizeof(*out->images),
                            MAX_IMAGES * sizeof(*out->images), err);
    if (!out->images)
        return -1;
    for (size_t i = 0; i < given; i++) {
        out->image_count = i + 1;
        if (read_image(json_array_get(list, i), dir, &out->images[i], err))
            return err_in(err, "image %zu", i);
    }
    return 0;
}

static int check_keys(const json_t *value, struct err *err)
{
    static const char *const known[] = {
        "name",   "messages", "thinking",  "max_new_tokens", "now",
        "images", "tools",    "documents", "template",
    };
    const char *key;
    json_t *member;

    json_object_foreach((json_t *)value, key, member)
    {
        bool is_known = false;

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            is_known |= strcmp(key, known[i]) == 0;
        if (!is_known)
            return err_set(err, ERR_UNSUPPORTED, "unknown key '%s'", key);
    }
    return 0;
}

static int read_rest(json_t *value, const char *dir, struct test_case *out,
                     struct err *err)
{
    if (check_keys(value, err) ||
        json_get_array(value, "messages", &out->messages, err))
        return -1;
    if (json_array_size(out->messages) == 0)
        return err_set(err, ERR_INPUT, "'messages' is empty");
    out->has_thinking = json_has(value, "thinking");
    if (out->has_thinking &&
        json_get_bool(value, "thinking", &out->thinking, err))
        return -1;
    out->max_new_tokens = -1;
    if (json_has(value, "max_new_tokens")) {
        if (json_get_int(value, "max_new_tokens", &out->max_new_tokens, err))
            return -1;
        if (out->max_new_tokens < 0)
            return err_set(err, ERR_INPUT, "'max_new_tokens' is negative");
    }
    if (json_has(value, "now")) {
        if (json_get_str(value, "now", &out->now, err))
            return -1;
        if (!case_is_time(out->now))
            return err_set(err, ERR_INPUT, "'now' is not YYYY-MM-DDTHH:MM:SSZ");
    }
    if ((json_has(value, "tools") &&
         json_get_array(value, "tools", &out->tools, err)) ||
        (json_has(value, "documents") &&
         json_get_array(value, "documents", &out->documents, err)) ||
        (json_has(value, "template") &&
         json_get_object(value, "template", &out->arguments, err)))
        return -1;
    if (out->has_thinking && json_object_get(out->arguments, "enable_thinking"))
        return err_set(err, ERR_INPUT,
                       "'template' has 'enable_thinking' too, besides "
                       "'thinking'");
    return read_images(value, dir, out, err);
}

static int read_case(json_t *value, const char *dir, size_t at,
                     struct test_case *out, struct err *err)
{
    if (!json_is_object(value)) {
        err_set(err, ERR_INPUT, "not an object");
        return err_in(err, "case %zu", at);
    }
    if (json_get_str(value, "name", &out->name, err) ||
        path_check_name(out->name, err))
        return err_in(err, "case %zu", at);
    if (read_rest(value, dir, out, err))
        return err_in(err, "case '%s'", out->name);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

/* Folders are named after cases, and some file systems ignore case. */
static int check_names(const struct case_list *list, struct err *err)
{
    const char **names = xcalloc(list->count + 1, sizeof(*names));
    int ret = 0;

    for (size_t i = 0; i < list->count; i++)
        names[i] = list->cases[i].name;
    qsort(names, list->count, sizeof(*names), by_name);
    for (size_t i = 1; i < list->count && ret == 0; i++)
        if (strcasecmp(names[i - 1], names[i]) == 0)
            ret =
                err_set(err, ERR_INPUT, "two cases are named '%s'%s", names[i],
                        strcmp(names[i - 1], names[i]) ? " but for case" : "");
    free(names);
    return ret;
}

static int read_all(struct case_list *list, const char *dir, struct err *err)
{
    json_t *array = list->root, *value;
    const char *key;

    if (json_is_object(list->root)) {
        json_object_foreach(list->root, key, value)
        {
            if (strcmp(key, "cases") != 0)
                return err_set(err, ERR_UNSUPPORTED, "unknown key '%s'", key);
        }
        if (json_get_array(list->root, "cases", &array, err))
            return -1;
    }
    if (!json_is_array(array))
        return err_set(err, ERR_INPUT, "neither a list nor an object of cases");
    size_t count = json_array_size(array);
    if (count == 0)
        return err_set(err, ERR_INPUT, "no cases");
    list->cases = mem_array(count, sizeof(*list->cases),
                            MAX_CASES * sizeof(*list->cases), err);
    if (!list->cases)
        return -1;
    for (size_t i = 0; i < count; i++) {
        list->count = i + 1;
        if (read_case(json_array_get(array, i), dir, i, &list->cases[i], err))
            return -1;
    }
    return check_names(list, err);
}

int case_list_read(const char *path, struct case_list *out, struct err *err)
{
    struct buf text = BUF_INIT;
    char *dir = path_dir(path);
    int ret = -1;

    *out = (struct case_list)CASE_LIST_INIT;
    if (io_read_file(path, IO_JSON_CAP, &text, err))
        goto out;
    hash_sha256(text.data, text.len, out->sha256);
    out->size = (int64_t)text.len;
    out->path = xstrdup(path);
    out->root = json_parse(text.data, text.len, err);
    if (!out->root || read_all(out, dir, err)) {
        err_in(err, "%s", path);
        goto out;
    }
    ret = 0;
out:
    if (ret)
        case_list_release(out);
    buf_release(&text);
    free(dir);
    return ret;
}

void case_list_release(struct case_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->count; i++) {
        for (size_t k = 0; k < list->cases[i].image_count; k++)
            free(list->cases[i].images[k].path);
        free(list->cases[i].images);
    }
    free(list->cases);
    free(list->path);
    json_decref(list->root);
    *list = (struct case_list)CASE_LIST_INIT;
}

const struct test_case *case_list_find(const struct case_list *list,
                                       const char *name, struct err *err)
{
    struct buf names = BUF_INIT;

    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->cases[i].name, name) == 0)
            return &list->cases[i];
    for (size_t i = 0; i < list->count && names.len < 200; i++)
        buf_addf(&names, "%s%s", i ? ", " : "", list->cases[i].name);
    err_set(err, ERR_INPUT, "%s: no case '%s'; there are: %s", list->path, name,
            names.data);
    buf_release(&names);
    return NULL;
}

int case_image_read(const struct case_image *image, struct buf *out,
                    struct err *err)
{
    char found[HASH_SHA256_HEX];

    if (io_read_file(image->path, MAX_IMAGE_FILE, out, err))
        return -1;
    hash_sha256(out->data, out->len, found);
    if (strcmp(found, image->sha256) != 0)
        return err_set(err, ERR_INPUT, "%s: sha256 is %s, the case names %s",
                       image->path, found, image->sha256);
    return 0;
}
