#ifndef LEDGER_CONFIG_H
#define LEDGER_CONFIG_H

#include "base/err.h"
#include "json/json.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A JSON file of a pack, and what became of each of its keys: read, defaulted
 * (absent, or null), without effect on what is computed, or unread.  Of a
 * model's config.json an unread key that has meaning is refused; what nobody
 * knows is listed.
 *
 *     struct config *c = config_open(path, err);
 *     const struct section *s = config_root(c);
 *     config_count(s, "hidden_size", 3072, &hidden, err)
 *     config_expect_text(s, "hidden_act", "silu", err)
 *     config_ignore(s, (const char *[]){"use_mtp", NULL});
 *     config_finish(c, err)
 *
 * `keys` may name alternatives, "num_local_experts|num_experts": all that are
 * there must agree.  Errors name the file and the key.
 */
struct config;
struct section; /* an object of it: the root, or one below */

struct config *config_open(const char *path, struct err *err);
/* Of a document that was read already, which it takes over. */
struct config *config_new(const char *path, json_t *root);
void config_close(struct config *c); /* NULL is fine */

const struct section *config_root(struct config *c);
const char *config_path(const struct section *s); /* of its file */

/* The object under a key into *out, NULL when it is absent or null. */
int config_section(const struct section *s, const char *key,
                   const struct section **out, struct err *err);

/* Present and not null?  Marks nothing. */
bool config_has(const struct section *s, const char *key);

/* Present and null, where that says another thing than absence? */
bool config_is_null(const struct section *s, const char *key);

/* The value, or the fallback.  A count is 1 to 2^24; with a fallback below 0
 * (of a real: NaN) the key must be there. */
int config_count(const struct section *s, const char *keys, int64_t fallback,
                 int64_t *out, struct err *err);
/* A count that may be 0. */
int config_amount(const struct section *s, const char *keys, int64_t fallback,
                  int64_t *out, struct err *err);
int config_real(const struct section *s, const char *keys, double fallback,
                double *out, struct err *err);
/* The same of a key whose null says that there is none: NaN. */
int config_real_or_null(const struct section *s, const char *keys,
                        double fallback, double *out, struct err *err);
int config_flag(const struct section *s, const char *keys, bool fallback,
                bool *out, struct err *err);
int config_text(const struct section *s, const char *keys, const char *fallback,
                const char **out, struct err *err); /* fallback may be NULL */

/* The value itself, read, or NULL; for lists and the like. */
const json_t *config_value(const struct section *s, const char *key);

/* The object itself, for whoever asks for keys by a rule: each as
 * config_value(). */
const json_t *config_object(const struct section *s);

/*
 * As json_get_str() and its like (json/json.h): the key must be there, errors
 * name the key alone.  A text may hold NUL; len may be NULL.
 */
int config_get_text(const struct section *s, const char *key, const char **out,
                    size_t *len, struct err *err);
int config_get_int(const struct section *s, const char *key, int64_t *out,
                   struct err *err);
int config_get_real(const struct section *s, const char *key, double *out,
                    struct err *err);
int config_get_flag(const struct section *s, const char *key, bool *out,
                    struct err *err);
int config_get_list(const struct section *s, const char *key, json_t **out,
                    struct err *err);
int config_get_section(const struct section *s, const char *key,
                       const struct section **out, struct err *err);
/* Item i of a list: "key[i]." */
int config_get_item(const struct section *s, const char *key, size_t i,
                    const struct section **out, struct err *err);

/* An integer from low to high. */
int config_get_within(const struct section *s, const char *key, int64_t low,
                      int64_t high, int64_t *out, struct err *err);

/* This value; any other is ERR_UNSUPPORTED. */
int config_want_text(const struct section *s, const char *key,
                     const char *value, struct err *err);
int config_want_int(const struct section *s, const char *key, int64_t value,
                    struct err *err);
int config_want_flag(const struct section *s, const char *key, bool value,
                     struct err *err);

/* Absent, or this value; any other is ERR_UNSUPPORTED. */
int config_expect_text(const struct section *s, const char *keys,
                       const char *value, struct err *err);
int config_expect_flag(const struct section *s, const char *keys, bool value,
                       struct err *err);

/* Notes what an absent key was taken for; takes the value over. */
void config_default(const struct section *s, const char *key, json_t *value);

/* Keys that do not change what is computed; a NULL ends the list. */
void config_ignore(const struct section *s, const char *const *keys);

/* The same for all that nobody has read yet, in every section. */
void config_ignore_rest(const struct section *s);

/* Those that any checkpoint may have: architectures, dtype, token ids ... */
void config_ignore_common(const struct section *s);

/* "config.json: 'rope_type' ": the start of a refusal of a read value. */
int config_refuse(const struct section *s, const char *key, struct err *err,
                  const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Refuses by name (ERR_UNSUPPORTED) the first key that nobody asked for, is
 * not off (null; do_...: false), and has meaning: words of model settings
 * (meaning.c). */
int config_finish(struct config *c, struct err *err);

/*
 * [{"key": "text_config.hidden_size", "state": "read", "value": 64}, ...], in
 * the order of the calls, the unread last; a new reference.  A value that is
 * long, or whose keys stand by themselves, is left out.
 */
json_t *config_ledger(const struct config *c);
#endif
