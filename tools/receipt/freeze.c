/* freeze, cases: what a run is judged by, copied before anything is computed. */
#include "base/io.h"
#include "base/path.h"
#include "base/publish.h"
#include "cases/cases.h"
#include "cases/protocol.h"
#include "cli/cli.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>

static int put_file(const char *dir, const char *name, const char *data,
                    size_t len, struct err *err)
{
    char *path = path_join(dir, name);
    int ret = io_write_file(path, data, len, err);

    free(path);
    return ret;
}

static int freeze_file(const char *from, const char *dir, const char *name,
                       struct err *err)
{
    char *to = path_join(dir, name);
    int ret = io_copy_file(from, to, err);

    free(to);
    return ret;
}

/* The image's bytes, which have the digest that the case names. */
static int freeze_image(const struct case_image *image, const char *dir,
                        struct err *err)
{
    struct buf bytes = BUF_INIT;
    char *to = path_join(dir, image->file);
    int ret = -1;

    if (path_check(image->file, err))
        goto out;
    ret = case_image_read(image, &bytes, err);
    if (ret == 0 && !io_exists(to))
        ret = put_file(dir, image->file, bytes.data, bytes.len, err);
out:
    free(to);
    buf_release(&bytes);
    return ret;
}

static int freeze_cases(const struct case_list *list, const char *dir,
                        struct err *err)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct test_case *c = &list->cases[i];

        if (path_check_name(c->name, err))
            return -1;
        for (size_t k = 0; k < c->image_count; k++)
            if (freeze_image(&c->images[k], dir, err))
                return err_in(err, "case '%s'", c->name);
    }
    return 0;
}

static int freeze(const char *cases, const char *protocol, const char *gates,
                  const char *out, struct err *err)
{
    struct case_list list = CASE_LIST_INIT;
    struct protocol rules = {0};
    struct publish p = PUBLISH_INIT;
    int ret = -1;

    if (case_list_read(cases, &list, err) ||
        protocol_read(protocol, &rules, err) || publish_begin(&p, out, err))
        goto out;
    if (freeze_file(cases, p.part, "cases.json", err) ||
        freeze_file(protocol, p.part, "protocol.json", err) ||
        freeze_file(gates, p.part, "gates.json", err) ||
        freeze_cases(&list, p.part, err))
        publish_abort(&p);
    else
        ret = publish_commit(&p, err);
out:
    protocol_release(&rules);
    case_list_release(&list);
    return ret;
}

int verb_freeze(int argc, char **argv)
{
    const char *cases = NULL, *protocol = NULL, *gates = NULL, *out = NULL;
    const struct cli_opt options[] = {
        {'c', "cases", "file", "the cases, beside their images", CLI_NEEDED,
         &cases},
        {'p', "protocol", "file", "the rules", CLI_NEEDED, &protocol},
        {'g', "gates", "file", "the limits", CLI_NEEDED, &gates},
        {'o', "out", "dir", "where the copies go; must not exist", CLI_NEEDED,
         &out},
        {0},
    };
    const struct cli_command command = {
        "assay-receipt",
        "freeze",
        "",
        "Copies what a run freezes: cases, images, protocol and gates.",
        options,
        0,
        0};
    struct cli_list rest = {NULL, 0};
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0)
        freeze(cases, protocol, gates, out, &err);
    free(rest.items);
    return cli_finish(&command, &err);
}

int verb_cases(int argc, char **argv)
{
    const struct cli_command command = {"assay-receipt",
                                        "cases",
                                        "CASES",
                                        "Prints the names of the cases.",
                                        NULL,
                                        1,
                                        1};
    struct cli_list rest = {NULL, 0};
    struct case_list list = CASE_LIST_INIT;
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0 &&
        case_list_read(rest.items[0], &list, &err) == 0)
        for (size_t i = 0; i < list.count; i++)
            printf("%s\n", list.cases[i].name);
    case_list_release(&list);
    free(rest.items);
    return cli_finish(&command, &err);
}
