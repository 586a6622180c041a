#ifndef BASE_PATH_H
#define BASE_PATH_H

#include "base/err.h"

#include <stdbool.h>

/* dir "/" name, freed by the caller; an absolute name stands alone. */
char *path_join(const char *dir, const char *name);

/* The part after the last '/', inside path. */
const char *path_base(const char *path);

/* The part before it, freed by the caller; "." when there is none. */
char *path_dir(const char *path);

/*
 * May it stand as a relative path inside evidence?  [A-Za-z0-9._-] and '/'; no
 * component empty or starting with '.' or '-'; 255 bytes a component, 1,000
 * in all.  path_check says what is wrong (ERR_INPUT).
 */
bool path_is_portable(const char *path);
int path_check(const char *path, struct err *err);

/* The same for one component: names of cases, images and runs. */
int path_check_name(const char *name, struct err *err);
#endif
