/* The names of tensors, as files spell them and as a family does. */
#include "models/weight_names.h"

#include "base/bug.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void rename_once(const struct rename *rule, char *name)
{
    char from[WEIGHT_NAME_SIZE], tail[WEIGHT_NAME_SIZE];
    size_t n = strlen(rule->from), len = strlen(name);
    bool at_start = rule->from[0] == '^';
    bool at_end = n > 0 && rule->from[n - 1] == '$';
    char *at;

    n -= (size_t)at_start + (size_t)at_end;
    BUG_ON(n >= sizeof(from));
    memcpy(from, rule->from + at_start, n);
    from[n] = '\0';
    if (at_start)
        at = strncmp(name, from, n) == 0 ? name : NULL;
    else if (at_end)
        at = len >= n && strcmp(name + len - n, from) == 0 ? name + len - n
                                                           : NULL;
    else
        at = strstr(name, from);
    if (!at || len - n + strlen(rule->to) >= WEIGHT_NAME_SIZE)
        return;
    strcpy(tail, at + n);
    strcpy(at, rule->to);
    strcat(at, tail);
}

static bool is_past_layers(const struct checkpoint_names *names,
                           const char *name)
{
    static const char prefix[] = "model.layers.";
    char *end;

    if (names->layers == 0 || strncmp(name, prefix, strlen(prefix)) != 0)
        return false;
    long long n = strtoll(name + strlen(prefix), &end, 10);
    return *end == '.' && n >= names->layers;
}

const char *weight_name(const struct checkpoint_names *names,
                        const char *stored, struct arena *arena)
{
    char name[WEIGHT_NAME_SIZE];

    for (size_t i = 0; names->ignored && names->ignored[i]; i++)
        if (fnmatch(names->ignored[i], stored, 0) == 0)
            return NULL;
    if (strlen(stored) >= WEIGHT_NAME_SIZE) /* nothing that is ever wanted */
        return arena_strdup(arena, stored);
    strcpy(name, stored);
    for (const struct rename *r = names->renames; r && r->from; r++)
        rename_once(r, name);
    return is_past_layers(names, name) ? NULL : arena_strdup(arena, name);
}
