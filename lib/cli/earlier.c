/* --reuse: an earlier result takes the place of a new one, or does not. */
#include "cli/earlier.h"

#include "base/publish.h"

void earlier_decline(const struct cli_command *command, const char *from,
                     const struct err *why)
{
    cli_note(command, "%s: not used again: %s", from, why->text);
}

int earlier_adopt(const struct cli_command *command, const char *from,
                  const char *out, struct err *err)
{
    if (publish_adopt(from, out, err))
        return -1;
    cli_note(command, "%s: used again, its record holds", from);
    return 0;
}
