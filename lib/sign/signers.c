/*
 * An allowed_signers file:
 *
 *     PRINCIPALS [OPTION[,OPTION]...] KEYTYPE BASE64 [COMMENT]
 */
#include "base/base64.h"
#include "base/io.h"
#include "base/mem.h"
#include "sign/sign.h"
#include "sign/sign_internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { FILE_CAP = 16 << 20 };

/* Steps over a word, in which quoted parts may hold blanks; its end. */
static char *word_end(char *at, const char *stops)
{
    bool is_quoted = false;

    for (; *at && (is_quoted || !strchr(stops, *at)); at++) {
        if (at[0] == '\\' && at[1] == '"')
            at++;
        else if (*at == '"')
            is_quoted = !is_quoted;
    }
    return at;
}

static char *skip_blanks(char *at)
{
    return at + strspn(at, " \t");
}

/* "*" and "?" as in a shell's pattern: only the last "*" ever gives way. */
static bool matches(const char *pattern, size_t n, const char *text)
{
    const char *again = NULL; /* where the last "*" stops, for now */
    size_t at = 0, star = 0;

    while (*text) {
        if (at < n && pattern[at] == '*') {
            star = ++at;
            again = text;
        } else if (at < n && (pattern[at] == '?' || pattern[at] == *text)) {
            at++;
            text++;
        } else if (again) {
            at = star;
            text = ++again;
        } else {
            return false;
        }
    }
    while (at < n && pattern[at] == '*')
        at++;
    return at == n;
}

/* A list of patterns; one that begins with '!' forbids. */
static bool in_list(const char *list, const char *text)
{
    bool found = false;

    while (*list) {
        size_t n = strcspn(list, ",");

        if (*list == '!' && matches(list + 1, n - 1, text))
            return false;
        found |= *list != '!' && matches(list, n, text);
        list += n + (list[n] == ',');
    }
    return found;
}

/* YYYYMMDD[HHMM[SS]][Z]; without Z it is local time. */
static bool parse_time(const char *text, int64_t *out)
{
    static const char *const forms[] = {"%Y%m%d%H%M%S", "%Y%m%d%H%M", "%Y%m%d"};
    static const size_t lengths[] = {14, 12, 8};
    size_t n = strspn(text, "0123456789");
    bool is_utc = strcmp(text + n, "Z") == 0;

    for (size_t i = 0; i < 3; i++) {
        struct tm t = {.tm_isdst = -1};
        char *digits = xstrndup(text, n);
        char *end = n == lengths[i] ? strptime(digits, forms[i], &t) : NULL;
        bool is_good = end && !*end && (is_utc || !text[n]);

        free(digits);
        if (is_good) {
            *out = (int64_t)(is_utc ? timegm(&t) : mktime(&t));
            return true;
        }
    }
    return false;
}

/* The value of NAME="value", unquoted in place; NULL when it is another option,
 * or not quoted. */
static char *option_value(char *option, const char *name)
{
    size_t n = strlen(name), len = strlen(option);

    if (strncasecmp(option, name, n) != 0 || option[n] != '=')
        return NULL;
    if (len < n + 3 || option[n + 1] != '"' || option[len - 1] != '"')
        return NULL;
    option[len - 1] = '\0';
    return option + n + 2;
}

/* Why a line's options do not let it apply; NULL when they do, "?" when they
 * cannot be read. */
static const char *options_fault(char *options, const char *space, int64_t when)
{
    while (*options) {
        char *end = word_end(options, ","), *value;
        int64_t at;
        bool is_last = !*end;

        *end = '\0';
        if (strcasecmp(options, "cert-authority") == 0)
            return "stands for a certificate authority";
        if ((value = option_value(options, "namespaces"))) {
            if (!in_list(value, space))
                return "is not allowed this namespace";
        } else if ((value = option_value(options, "valid-after"))) {
            if (!parse_time(value, &at))
                return "?";
            if (when < at)
                return "is not valid yet";
        } else if ((value = option_value(options, "valid-before"))) {
            if (!parse_time(value, &at))
                return "?";
            if (when > at)
                return "is no longer valid";
        } else {
            return "?";
        }
        options = end + !is_last;
    }
    return NULL;
}

static bool is_key_type(const char *word, size_t n)
{
    return (n > 4 && strncmp(word, "ssh-", 4) == 0) ||
           (n > 6 && strncmp(word, "ecdsa-", 6) == 0) ||
           (n > 3 && strncmp(word, "sk-", 3) == 0);
}

/* Is base64 the signature's key? */
static bool is_key(const struct signature *s, const char *text, size_t len)
{
    struct buf blob = BUF_INIT;
    struct wire_string type, key;
    bool same = false;

    if (base64_decode(text, len, &blob) && blob.data) {
        struct wire w = {(const unsigned char *)blob.data, blob.len};

        same = wire_string(&w, &type) && wire_is(&type, "ssh-ed25519") &&
               wire_string(&w, &key) && key.len == SIGN_KEY_BYTES && !w.left &&
               memcmp(key.data, s->key, SIGN_KEY_BYTES) == 0;
    }
    buf_release(&blob);
    return same;
}

/* The principals of a line that holds the key; *fault when it does not apply.
 * NULL and no fault: another key. */
static char *read_line(const struct signature *s, char *line, const char *space,
                       int64_t when, const char **fault)
{
    char *who = skip_blanks(line), *options = NULL, *end, *type, *key;

    *fault = NULL;
    if (!*who || *who == '#')
        return NULL;
    end = word_end(who, " \t");
    type = skip_blanks(end);
    *end = '\0';
    end = word_end(type, " \t");
    if (!is_key_type(type, (size_t)(end - type))) {
        options = type;
        type = skip_blanks(end);
        if (*end)
            *end = '\0';
        end = word_end(type, " \t");
    }
    key = skip_blanks(end);
    if (!is_key_type(type, (size_t)(end - type)) || !*key) {
        *fault = "?";
        return NULL;
    }
    if (!is_key(s, key, strcspn(key, " \t")))
        return NULL;
    *fault = options ? options_fault(options, space, when) : NULL;
    if (*fault)
        return NULL;
    size_t n = strlen(who);
    if (n > 1 && who[0] == '"' && who[n - 1] == '"')
        return xstrndup(who + 1, n - 2);
    return xstrdup(who);
}

char *signature_principals(const struct signature *s, const char *space,
                           const char *signers_file, int64_t when,
                           struct err *err)
{
    struct buf text = BUF_INIT;
    char *who = NULL, *save = NULL;
    const char *why = "is in no line of it";
    size_t number = 0, unread = 0; /* the first line that is none */

    if (io_read_file(signers_file, FILE_CAP, &text, err))
        goto out;
    if (text.len && memchr(text.data, '\0', text.len)) {
        err_set(err, ERR_INPUT, "%s: holds a NUL", signers_file);
        goto out;
    }
    for (char *line = text.len ? text.data : NULL; line && !who; line = save) {
        const char *fault;
        char *end = line + strcspn(line, "\n");

        save = *end ? end + 1 : NULL;
        *end = '\0';
        line[strcspn(line, "\r")] = '\0';
        number++;
        who = read_line(s, line, space, when, &fault);
        if (fault && strcmp(fault, "?") == 0)
            unread = unread ? unread : number; /* it allows nobody */
        else if (fault)
            why = fault;
    }
    if (!who && unread)
        err_set(err, ERR_NO, "%s: the key %s %s; line %zu cannot be read",
                signers_file, s->fingerprint, why, unread);
    else if (!who)
        err_set(err, ERR_NO, "%s: the key %s %s", signers_file, s->fingerprint,
                why);
out:
    buf_release(&text);
    return who;
}
