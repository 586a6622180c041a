/* A command line as a table: what may be given, and how often. */
#include "cli/cli.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static struct {
    bool flag;
    const char *text;
    int64_t count;
    struct cli_list list;
} opt;

static const struct cli_opt options[] = {
    {'f', "flag", NULL, "a flag", CLI_FLAG, &opt.flag},
    {'t', "text", "string", "a text", CLI_STR, &opt.text},
    {0, "words", "string", "the same text", CLI_STR, &opt.text},
    {'n', "count", "n", "a count", CLI_INT, &opt.count},
    {'l', "list", "word", "words", CLI_LIST, &opt.list},
    {0},
};
static const struct cli_command command = {.program = "x",
                                           .operands = "[A]",
                                           .about = "x",
                                           .options = options,
                                           .max_operands = 1};

static int parse(const char *line, struct cli_list *rest, struct err *err)
{
    static char text[200];
    char *argv[20] = {"x"};
    int argc = 1;

    snprintf(text, sizeof(text), "%s", line);
    for (char *at = strtok(text, " "); at; at = strtok(NULL, " "))
        argv[argc++] = at;
    free(opt.list.items);
    memset(&opt, 0, sizeof(opt));
    return cli_parse(&command, argc, argv, rest, err);
}

/* An option that is needed, before what a verb does with it. */
static void needed(void)
{
    const char *out = NULL;
    const struct cli_opt wanted[] = {
        {'o', "out", "file", "where", CLI_NEEDED, &out},
        {0},
    };
    const struct cli_command verb = {
        .program = "x", .verb = "y", .about = "x", .options = wanted};
    char *none[] = {"y"}, *given[] = {"y", "-o", "f"};
    struct cli_list rest = {0};
    struct err err = ERR_INIT;

    ok(cli_parse(&verb, 1, none, &rest, &err) == -1 && err.code == ERR_USAGE &&
           strcmp(err.text, "--out is needed") == 0,
       "an option that is needed is asked for (%s)", err.text);
    ok(cli_parse(&verb, 3, given, &rest, &err) == 0 && out &&
           strcmp(out, "f") == 0,
       "and taken");
    free(rest.items);
}

int main(void)
{
    static const struct {
        const char *line, *why; /* NULL: it is taken */
    } cases[] = {
        {"--flag --text a --count 3 -l a b -l c d", NULL},
        {"-ta -n 3 o", NULL},
        {"--list=a --list=b --list c", NULL},
        {"--text a -- --text", NULL},
        {"--text a --text b", "--text is given twice"},
        {"--text a --text a", "--text is given twice"},
        {"-t a --text=b", "--text is given twice"},
        {"--text a -tb", "--text is given twice"},
        {"--text a --count 1 --words b",
         "--text and --words are the same option"},
        {"--words a --words b", "--words is given twice"},
        {"--count 1 --count 1", "--count is given twice"},
        {"-n1 -n 2", "--count is given twice"},
        {"--flag --list a --flag", "--flag is given twice"},
        {"-f -f", "--flag is given twice"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct cli_list rest = {0};
        int ret = parse(cases[i].line, &rest, &err);

        if (cases[i].why)
            ok(ret == -1 && err.code == ERR_USAGE &&
                   strcmp(err.text, cases[i].why) == 0,
               "%s: refused by name (%s)", cases[i].line, err.text);
        else
            ok(ret == 0, "%s: taken (%s)", cases[i].line, err.text);
        free(rest.items);
    }
    struct err err = ERR_INIT;
    struct cli_list rest = {0};
    ok(parse("--list=a --list b c", &rest, &err) == 0 && opt.list.count == 3 &&
           strcmp(opt.list.items[2], "c") == 0,
       "a list grows with each time it is given");
    free(rest.items);
    free(opt.list.items);
    needed();
    return done();
}
