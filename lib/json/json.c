/* JSON documents: strict reading, typed getters, stable writing. */
#include "json/json.h"

#include "base/io.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

/* jansson allows 2,048 levels; ours are counted first, strings skipped. */
int json_check_depth(const char *data, size_t len, struct err *err)
{
    size_t depth = 0, line = 1;
    bool in_string = false;

    for (size_t i = 0; i < len; i++) {
        char c = data[i];

        if (c == '\n')
            line++;
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > MAX_DEPTH)
                return err_set(err, ERR_INPUT,
                               "line %zu: nested deeper than %d", line,
                               MAX_DEPTH);
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return 0;
}

json_t *json_parse(const char *data, size_t len, struct err *err)
{
    json_error_t why;

    if (len >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) {
        err_set(err, ERR_INPUT, "line 1: starts with a byte order mark");
        return NULL;
    }
    if (json_check_depth(data, len, err))
        return NULL;
    json_t *root = json_loadb(
        data, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL,
        &why);
    if (!root)
        err_set(err, ERR_INPUT, "line %d, column %d: %s", why.line, why.column,
                why.text);
    return root;
}

json_t *json_read_file(const char *path, struct err *err)
{
    struct buf text = BUF_INIT;
    json_t *root = NULL;

    if (io_read_file(path, IO_JSON_CAP, &text, err) == 0) {
        root = json_parse(text.data, text.len, err);
        if (!root)
            err_in(err, "%s", path);
    }
    buf_release(&text);
    return root;
}

/* The text with ".0" behind each integer of more than 18 digits. */
static void widen_integers(const struct buf *text, struct buf *out)
{
    bool in_string = false;

    for (size_t i = 0; i < text->len;) {
        char c = text->data[i];
        size_t end = i + 1;

        if (in_string && c == '\\' && end < text->len)
            end++;
        else if (c == '"')
            in_string = !in_string;
        while (!in_string && c >= '0' && c <= '9' && end < text->len &&
               strchr("0123456789.eE+-", text->data[end]) && text->data[end])
            end++;
        buf_add(out, text->data + i, end - i);
        if (end - i > 18 && !memchr(text->data + i, '.', end - i) &&
            !memchr(text->data + i, 'e', end - i) &&
            !memchr(text->data + i, 'E', end - i))
            buf_addstr(out, ".0");
        i = end;
    }
}

json_t *json_read_config(const char *path, struct err *err)
{
    struct buf text = BUF_INIT, wide = BUF_INIT;
    struct err first = ERR_INIT;
    json_t *root = NULL;

    if (io_read_file(path, IO_JSON_CAP, &text, err))
        goto out;
    root = json_parse(text.data, text.len, &first);
    if (root)
        goto out;
    widen_integers(&text, &wide);
    root = json_parse(wide.data, wide.len, err);
    if (!root)
        err_in(err, "%s", path);
out:
    buf_release(&wide);
    buf_release(&text);
    return root;
}

static json_t *get(const json_t *object, const char *key, bool is_right,
                   const char *type, struct err *err)
{
    json_t *value = json_object_get(object, key);

    if (!value)
        err_set(err, ERR_INPUT, "no '%s'", key);
    else if (!is_right)
        err_set(err, ERR_INPUT, "'%s' is not %s", key, type);
    else
        return value;
    return NULL;
}

#define GET(test, type) \
    get(object, key, test(json_object_get(object, key)), type, err)

int json_get_str(const json_t *object, const char *key, const char **out,
                 struct err *err)
{
    json_t *value = GET(json_is_string, "a string");

    if (!value)
        return -1;
    if (strlen(json_string_value(value)) != json_string_length(value))
        return err_set(err, ERR_INPUT, "'%s' holds a NUL", key);
    *out = json_string_value(value);
    return 0;
}

int json_get_int(const json_t *object, const char *key, int64_t *out,
                 struct err *err)
{
    json_t *value = GET(json_is_integer, "an integer");

    if (!value)
        return -1;
    *out = json_integer_value(value);
    return 0;
}

int json_get_real(const json_t *object, const char *key, double *out,
                  struct err *err)
{
    json_t *value = GET(json_is_number, "a number");

    if (!value)
        return -1;
    *out = json_number_value(value);
    return 0;
}

int json_get_bool(const json_t *object, const char *key, bool *out,
                  struct err *err)
{
    json_t *value = GET(json_is_boolean, "true or false");

    if (!value)
        return -1;
    *out = json_is_true(value);
    return 0;
}

int json_get_array(const json_t *object, const char *key, json_t **out,
                   struct err *err)
{
    json_t *value = GET(json_is_array, "an array");

    if (!value)
        return -1;
    *out = value;
    return 0;
}

int json_get_object(const json_t *object, const char *key, json_t **out,
                    struct err *err)
{
    json_t *value = GET(json_is_object, "an object");

    if (!value)
        return -1;
    *out = value;
    return 0;
}

bool json_has(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    return value && !json_is_null(value);
}

/* The digits of `text` ("d.ddde-07") one more in the last place. */
static void next_digits(char *text)
{
    for (char *p = strchr(text, 'e') - 1; p >= text; p--) {
        if (*p == '.')
            continue;
        if (*p < '9') {
            ++*p;
            return;
        }
        *p = '0';
    }
}

size_t json_shortest_digits(double value, char digits[20], int *exponent)
{
    char text[40];
    size_t n = 0;
    int two;

    value = fabs(value);
    for (int after = 0; after < 17; after++) {
        snprintf(text, sizeof(text), "%.*e", after, value);
        if (strtod(text, NULL) == value)
            break;
        /* below a power of two the neighbours lie closer: the digits nearest
         * to it may miss where the next ones do not */
        if (frexp(value, &two) == 0.5) {
            next_digits(text);
            if (strtod(text, NULL) == value)
                break;
        }
    }
    for (const char *p = text; *p != 'e'; p++)
        if (*p != '.')
            digits[n++] = *p;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    *exponent = atoi(strchr(text, 'e') + 1);
    return n;
}

void json_format_real(double value, char out[32])
{
    if (isnan(value)) {
        strcpy(out, "NaN");
        return;
    }
    if (isinf(value)) {
        strcpy(out, value > 0 ? "Infinity" : "-Infinity");
        return;
    }
    char digits[20];
    int exponent;
    const char *sign = signbit(value) ? "-" : "";
    int n = (int)json_shortest_digits(value, digits, &exponent);

    if (exponent < -4 || exponent >= n)
        snprintf(out, 32, "%s%c%s%se%c%02d", sign, digits[0], n > 1 ? "." : "",
                 digits + 1, exponent < 0 ? '-' : '+', abs(exponent) % 1000);
    else if (exponent < 0)
        snprintf(out, 32, "%s0.%.*s%s", sign, -exponent - 1, "0000", digits);
    else
        snprintf(out, 32, "%s%.*s%s%s", sign, exponent + 1, digits,
                 n > exponent + 1 ? "." : "", digits + exponent + 1);
}

json_t *json_real_or_text(double value)
{
    char text[32];

    if (isfinite(value))
        return json_real(value);
    json_format_real(value, text);
    return json_string(text);
}

enum { ONE_LINE = -1000 }; /* a depth that stays below 0 */

static void indent(struct buf *out, int depth, const char *else_text)
{
    if (depth < 0) {
        buf_addstr(out, else_text);
        return;
    }
    buf_addch(out, '\n');
    for (int i = 0; i < depth; i++)
        buf_addstr(out, "  ");
}

static void write_text(const json_t *value, struct buf *out)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY);

    buf_addstr(out, text);
    free(text);
}

static void write_real(double value, struct buf *out)
{
    char text[32];

    json_format_real(value, text);
    buf_addstr(out, text);
    if (!strpbrk(text, ".e"))
        buf_addstr(out, ".0");
}

static void write_value(const json_t *value, int depth, struct buf *out)
{
    const char *key;
    json_t *item;
    size_t i, n = 0;

    if (json_is_object(value)) {
        buf_addch(out, '{');
        json_object_foreach((json_t *)value, key, item)
        {
            if (n++)
                buf_addch(out, ',');
            indent(out, depth + 1, n > 1 ? " " : "");
            json_t *name = json_string(key);
            write_text(name, out);
            json_decref(name);
            buf_addstr(out, ": ");
            write_value(item, depth + 1, out);
        }
        if (n)
            indent(out, depth, "");
        buf_addch(out, '}');
    } else if (json_is_array(value)) {
        bool is_flat = true;

        json_array_foreach(value, i, item) if (json_is_array(item) ||
                                               json_is_object(item)) is_flat =
            false;
        buf_addch(out, '[');
        json_array_foreach(value, i, item)
        {
            if (i)
                buf_addstr(out, is_flat ? ", " : ",");
            if (!is_flat)
                indent(out, depth + 1, i ? " " : "");
            write_value(item, depth + 1, out);
        }
        if (i && !is_flat)
            indent(out, depth, "");
        buf_addch(out, ']');
    } else if (json_is_real(value)) {
        write_real(json_real_value(value), out);
    } else {
        write_text(value, out);
    }
}

void json_write(const json_t *value, struct buf *out)
{
    write_value(value, 0, out);
    buf_addch(out, '\n');
}

void json_write_line(const json_t *value, struct buf *out)
{
    write_value(value, ONE_LINE, out);
}

int json_write_file(const json_t *value, const char *path, struct err *err)
{
    struct buf text = BUF_INIT;

    json_write(value, &text);
    int ret = io_write_file(path, text.data, text.len, err);
    buf_release(&text);
    return ret;
}

void json_append_line(json_t *array, const char *format, va_list ap)
{
    struct buf text = BUF_INIT;

    buf_addv(&text, format, ap);
    json_t *line = json_string(text.data);
    json_array_append_new(array, line ? line : json_string("not UTF-8"));
    buf_release(&text);
}
