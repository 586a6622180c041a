#ifndef JSON_JSON_H
#define JSON_JSON_H

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * JSON documents, through jansson (this is the one place that includes it),
 * read strictly: UTF-8 without BOM, no duplicate keys, depth at most 64, no
 * NaN.  Errors give line and column.  Objects keep the order of their keys.
 */
json_t *json_parse(const char *data, size_t len, struct err *err);
json_t *json_read_file(const char *path, struct err *err); /* "-": stdin */

/* The same for a pack's config files, in which an integer beyond 64 bits may
 * stand (model_max_length 10^30, written out): it is read as a real. */
json_t *json_read_config(const char *path, struct err *err);

/* Only the depth, for a text that another reader takes apart. */
int json_check_depth(const char *data, size_t len, struct err *err);

/*
 * Typed getters.  The value is borrowed from `object`; a missing key or another
 * type is ERR_INPUT naming the key: "no 'prompt'", "'prompt' is not a string".
 */
int json_get_str(const json_t *object, const char *key, const char **out,
                 struct err *err);
int json_get_int(const json_t *object, const char *key, int64_t *out,
                 struct err *err);
int json_get_real(const json_t *object, const char *key, double *out,
                  struct err *err); /* an integer will do */
int json_get_bool(const json_t *object, const char *key, bool *out,
                  struct err *err);
int json_get_array(const json_t *object, const char *key, json_t **out,
                   struct err *err);
int json_get_object(const json_t *object, const char *key, json_t **out,
                    struct err *err);

/* Present and not null? */
bool json_has(const json_t *object, const char *key);

/*
 * Stable text: two spaces, keys as they were put, shortest numbers that read
 * back the same, LF at the end; NaN and infinities are the strings "NaN",
 * "Infinity", "-Infinity" (json_real_or_text makes them).
 */
void json_write(const json_t *value, struct buf *out);
/* The same in one line, without the LF. */
void json_write_line(const json_t *value, struct buf *out);
int json_write_file(const json_t *value, const char *path, struct err *err);
json_t *json_real_or_text(double value);

/* Appends a formatted line to an array; one that is not UTF-8 (it may hold a
 * file's name) as just those words. */
void json_append_line(json_t *array, const char *format, va_list ap)
    __attribute__((format(printf, 2, 0)));

/* The fewest decimal digits d1 d2 ... that read back as the magnitude of a
 * finite value, d1.d2... times 10^exponent (as Python's repr chooses them);
 * returns how many. */
size_t json_shortest_digits(double value, char digits[20], int *exponent);

/* Shortest decimal text that reads back as value: "0.1", "1e-06", "NaN". */
void json_format_real(double value, char out[32]);
#endif
