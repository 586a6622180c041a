/* seal, publish: the last acts of a run. */
#include "base/io.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/publish.h"
#include "cases/protocol.h"
#include "cli/cli.h"
#include "evidence/bag.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

/* The day that the protocol's clock says; "" when it says none. */
static int protocol_date(const char *run, char out[11], struct err *err)
{
    char *path = path_join(run, "data/inputs/protocol.json");
    struct protocol rules;
    int ret = 0;

    out[0] = '\0';
    if (io_exists(path)) {
        ret = protocol_read(path, &rules, err);
        if (ret == 0 && rules.now)
            snprintf(out, 11, "%.10s", rules.now);
        if (ret == 0)
            protocol_release(&rules);
    }
    free(path);
    return ret;
}

/* The day of SOURCE_DATE_EPOCH. */
static int epoch_date(char out[11], struct err *err)
{
    const char *text = getenv("SOURCE_DATE_EPOCH");
    char *end;
    struct tm day;

    if (!text)
        return 0;
    time_t at = (time_t)strtoll(text, &end, 10);
    if (*end || !*text || !gmtime_r(&at, &day) ||
        strftime(out, 11, "%Y-%m-%d", &day) != 10)
        return err_set(err, ERR_USAGE, "SOURCE_DATE_EPOCH '%s' is no time",
                       text);
    return 0;
}

int verb_seal(int argc, char **argv)
{
    const struct cli_command command = {
        "assay-receipt",
        "seal",
        "RUN",
        "Makes a run a bag: manifests, the last act of a run.",
        NULL,
        1,
        1};
    struct cli_list rest = {NULL, 0};
    struct err err = ERR_INIT;
    char date[11];

    if (cli_parse(&command, argc, argv, &rest, &err) == 0 &&
        protocol_date(rest.items[0], date, &err) == 0 &&
        (date[0] || epoch_date(date, &err) == 0))
        bag_seal(rest.items[0], date[0] ? date : NULL, &err);
    free(rest.items);
    return cli_finish(&command, &err);
}

/* What a finished run holds is not to be written again; its own folder stays
 * open for a signature. */
static int protect(const char *path, bool is_top, struct err *err)
{
    struct io_list list;
    int ret = 0;

    if (!io_is_dir(path))
        return chmod(path, 0444) ? err_sys(err, "%s", path) : 0;
    if (io_list(path, &list, err))
        return -1;
    for (size_t i = 0; i < list.count && ret == 0; i++) {
        char *entry = path_join(path, list.names[i]);

        ret = protect(entry, false, err);
        free(entry);
    }
    io_list_release(&list);
    if (ret == 0 && !is_top && chmod(path, 0555))
        ret = err_sys(err, "%s", path);
    return ret;
}

int verb_publish(int argc, char **argv)
{
    const struct cli_command command = {
        "assay-receipt",
        "publish",
        "PART FINAL",
        "Flushes a finished folder to storage and gives it its name.",
        NULL,
        2,
        2};
    struct cli_list rest = {NULL, 0};
    struct err err = ERR_INIT;

    if (cli_parse(&command, argc, argv, &rest, &err) == 0) {
        const char *part = rest.items[0], *final = rest.items[1];

        if (io_check_new(final, &err) == 0 && protect(part, true, &err) == 0) {
            struct publish p = {xstrdup(final), xstrdup(part), -1, 0};

            publish_commit(&p, &err);
        }
    }
    free(rest.items);
    return cli_finish(&command, &err);
}
