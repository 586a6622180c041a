#ifndef CLI_EARLIER_H
#define CLI_EARLIER_H

#include "base/err.h"
#include "cli/cli.h"

/*
 * What comes of an earlier result that --reuse names, with a line on stderr: it
 * is not used again, and why; or it gets the name of the output.
 */
void earlier_decline(const struct cli_command *command, const char *from,
                     const struct err *why);
int earlier_adopt(const struct cli_command *command, const char *from,
                  const char *out, struct err *err);
#endif
