/* A command line as a table. */
#include "cli/cli.h"

#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTION_COLUMN 26

static void list_add(struct cli_list *list, const char *word)
{
    list->items =
        xrealloc(list->items, (list->count + 1) * sizeof(*list->items));
    list->items[list->count++] = word;
}

static const struct cli_opt *find_long(const struct cli_command *command,
                                       const char *name, size_t len)
{
    for (const struct cli_opt *o = command->options; o && o->name; o++)
        if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
            return o;
    return NULL;
}

static const struct cli_opt *find_letter(const struct cli_command *command,
                                         char letter)
{
    for (const struct cli_opt *o = command->options; o && o->name; o++)
        if (o->letter && o->letter == letter)
            return o;
    return NULL;
}

static int store_int(const struct cli_opt *o, const char *word, struct err *err)
{
    char *end;

    errno = 0;
    long long value = strtoll(word, &end, 10);
    if (errno || end == word || *end || word[0] < '0' || word[0] > '9')
        return err_set(err, ERR_USAGE, "--%s takes a whole number, not '%s'",
                       o->name, word);
    *(int64_t *)o->value = value;
    return 0;
}

/* Takes the option's value from `inlined` ("--x=v") or the next words. */
static int store(const struct cli_opt *o, const char *inlined, int argc,
                 char **argv, int *at, struct err *err)
{
    if (o->type == CLI_FLAG) {
        if (inlined)
            return err_set(err, ERR_USAGE, "--%s takes no value", o->name);
        *(bool *)o->value = true;
        return 0;
    }
    const char *word = inlined;
    if (!word) {
        if (*at + 1 >= argc)
            return err_set(err, ERR_USAGE, "--%s needs a %s", o->name, o->arg);
        word = argv[++*at];
    }
    switch (o->type) {
    case CLI_INT:
        return store_int(o, word, err);
    case CLI_LIST:
        list_add(o->value, word);
        while (!inlined && *at + 1 < argc && argv[*at + 1][0] != '-')
            list_add(o->value, argv[++*at]);
        return 0;
    default:
        *(const char **)o->value = word;
        return 0;
    }
}

/* Only a list may come again; a second name of an option counts as it. */
static int check_once(const struct cli_command *command,
                      const struct cli_opt *o, bool *given, struct err *err)
{
    const struct cli_opt *all = command->options;

    if (o->type == CLI_LIST)
        return 0;
    for (size_t i = 0; all[i].name; i++) {
        if (!given[i] || all[i].value != o->value)
            continue;
        return &all[i] == o
                   ? err_set(err, ERR_USAGE, "--%s is given twice", o->name)
                   : err_set(err, ERR_USAGE,
                             "--%s and --%s are the same option", all[i].name,
                             o->name);
    }
    given[o - all] = true;
    return 0;
}

static int check_needed(const struct cli_command *command, const bool *given,
                        struct err *err)
{
    const struct cli_opt *all = command->options;

    for (size_t i = 0; all && all[i].name; i++)
        if (all[i].type == CLI_NEEDED && !given[i])
            return err_set(err, ERR_USAGE, "--%s is needed", all[i].name);
    return 0;
}

static size_t count_options(const struct cli_command *command)
{
    size_t n = 0;

    while (command->options && command->options[n].name)
        n++;
    return n;
}

/* Options and operands of argv; 1 when --help or --version was printed. */
static int parse_words(const struct cli_command *command, int argc, char **argv,
                       bool *given, struct cli_list *rest, struct err *err)
{
    bool options_ended = false;

    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = NULL;
        const struct cli_opt *o;

        if (options_ended || word[0] != '-' || word[1] == '\0') {
            list_add(rest, word);
            continue;
        }
        if (strcmp(word, "--") == 0) {
            options_ended = true;
            continue;
        }
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            cli_usage(command, stdout);
            return 1;
        }
        if (strcmp(word, "--version") == 0) {
            printf("%s %s\n", command->program, ASSAY_VERSION);
            return 1;
        }
        if (word[1] == '-') {
            size_t len = strcspn(word + 2, "=");

            o = find_long(command, word + 2, len);
            value = word[2 + len] ? word + 3 + len : NULL;
        } else {
            o = find_letter(command, word[1]);
            value = word[2] ? word + 2 : NULL;
        }
        if (!o)
            return err_set(err, ERR_USAGE, "unknown option '%s'", word);
        if (check_once(command, o, given, err) ||
            store(o, value, argc, argv, &i, err))
            return -1;
    }
    return 0;
}

int cli_parse(const struct cli_command *command, int argc, char **argv,
              struct cli_list *rest, struct err *err)
{
    bool *given = xcalloc(count_options(command) + 1, sizeof(*given));
    int ret = parse_words(command, argc, argv, given, rest, err);

    if (ret == 0)
        ret = check_needed(command, given, err);
    free(given);
    if (ret)
        return ret;
    if (rest->count < command->min_operands)
        return err_set(err, ERR_USAGE, "missing operand: %s",
                       command->operands);
    if (rest->count > command->max_operands)
        return err_set(err, ERR_USAGE, "unexpected operand '%s'",
                       rest->items[command->max_operands]);
    return 0;
}

static void usage_line(const struct cli_command *command, FILE *f)
{
    bool has_others = false;

    fprintf(f, "usage: %s%s%s", command->program, command->verb ? " " : "",
            command->verb ? command->verb : "");
    for (const struct cli_opt *o = command->options; o && o->name; o++) {
        if (o->type == CLI_NEEDED)
            fprintf(f, " --%s %s", o->name, o->arg);
        else
            has_others = true;
    }
    if (has_others)
        fputs(" [options]", f);
    if (command->operands && command->operands[0])
        fprintf(f, " %s", command->operands);
    fputc('\n', f);
}

void cli_usage(const struct cli_command *command, void *stream)
{
    FILE *f = stream;

    usage_line(command, f);
    fprintf(f, "%s\n\n", command->about);
    for (const struct cli_opt *o = command->options; o && o->name; o++) {
        char left[80], letter[8] = "    ";

        if (o->letter)
            snprintf(letter, sizeof(letter), "-%c, ", o->letter);
        snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name,
                 o->arg ? " " : "", o->arg ? o->arg : "");
        fprintf(f, "  %-*s %s\n", OPTION_COLUMN, left, o->help);
    }
    fprintf(f, "  %-*s %s\n", OPTION_COLUMN, "-h, --help", "this text");
    fprintf(f, "  %-*s %s\n", OPTION_COLUMN, "    --version",
            "name and version");
}

void cli_note(const struct cli_command *command, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    fprintf(stderr, "%s: ", command->program);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
}

void cli_print_json(const json_t *root)
{
    struct buf text = BUF_INIT;

    json_write(root, &text);
    fwrite(text.data, 1, text.len, stdout); /* cli_flush() checks stdout */
    buf_release(&text);
}

int cli_flush(struct err *err)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    /* An earlier write may have failed, whose reason is gone. */
    return err_set(err, ERR_SYSTEM, "standard output: %s",
                   errno ? strerror(errno) : "a write failed");
}

int cli_finish(const struct cli_command *command, struct err *err)
{
    struct err why = ERR_INIT;

    if (cli_flush(&why) && (err->code == ERR_NONE || err->code == ERR_NO))
        *err = why;
    if (err->text[0])
        fprintf(stderr, "%s: %s\n", command->program, err->text);
    if (err->code == ERR_USAGE)
        usage_line(command, stderr);
    return (int)err->code;
}
