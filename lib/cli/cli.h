#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/err.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A command line as a table.  Parsing, the usage text and the test against the
 * man page all come from it.  --help (-h) and --version are in every program.
 */
enum cli_type {
    CLI_FLAG,   /* bool */
    CLI_STR,    /* const char * */
    CLI_NEEDED, /* the same, and the usage is wrong without it */
    CLI_INT,    /* int64_t, decimal, at least 0 */
    CLI_LIST,   /* struct cli_list: every word up to the next option; repeats */
};

struct cli_list {
    const char **items; /* words of argv; the array is freed by the caller */
    size_t count;
};

struct cli_opt {
    char letter; /* 0: no short form */
    const char *name;
    const char *arg; /* what the value is called; NULL for a flag */
    const char *help;
    enum cli_type type;
    void *value;
};

struct cli_command {
    const char *program;           /* "assay-forward" */
    const char *verb;              /* "verify", or NULL */
    const char *operands;          /* "RECEIPT PACK", "" */
    const char *about;             /* one sentence */
    const struct cli_opt *options; /* ends with a zero entry; NULL is none */
    size_t min_operands, max_operands;
};

/*
 * Fills the options' values; operands (in order) go to rest, whose array the
 * caller frees.  "--name=value" and "--name value"; "--" ends the options.  An
 * option given twice is refused by its name, unless it is a list; one that is
 * needed and not given is asked for.
 * Returns 0 to go on, 1 when --help or --version was printed, -1 with
 * ERR_USAGE.  argv[0] is skipped (the program, or the verb).
 */
int cli_parse(const struct cli_command *command, int argc, char **argv,
              struct cli_list *rest, struct err *err);

/* Prints the usage text, made from the table. */
void cli_usage(const struct cli_command *command, void *stream);

/* One line on stderr, "program: text", about something that is no error. */
void cli_note(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints a document as json_write() writes it. */
void cli_print_json(const json_t *root);

/*
 * Writes out what was printed.  A program that also publishes files calls this
 * first, so that a full disk under stdout leaves nothing behind.
 */
int cli_flush(struct err *err);

/*
 * The last act of every tool: flushes and checks stdout (a full disk is a 6,
 * not a success), prints err as "program: text" on stderr, with the usage line
 * after an ERR_USAGE, and returns the exit status.
 */
int cli_finish(const struct cli_command *command, struct err *err);
#endif
