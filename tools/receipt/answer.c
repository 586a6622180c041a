/* The header of an answer. */
#include "answer.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CAP = 256 << 10 };

/* The length of the block up to and with its empty line; 0: it is not there. */
static size_t block_end(const char *text, size_t len)
{
    for (size_t i = 0; i + 1 < len; i++) {
        if (text[i] != '\n')
            continue;
        if (text[i + 1] == '\n')
            return i + 2;
        if (i + 2 < len && text[i + 1] == '\r' && text[i + 2] == '\n')
            return i + 3;
    }
    return 0;
}

/* "bytes 100-199/1000" */
static void read_range(struct answer *a, const char *value)
{
    long long first, last, whole;

    if (sscanf(value, "bytes %lld-%lld/%lld", &first, &last, &whole) == 3 &&
        first >= 0 && last >= first && whole > last) {
        a->is_range = true;
        a->first = first;
        a->whole = whole;
    }
}

static void read_line(struct answer *a, const char *line, int64_t *length)
{
    if (strncmp(line, "HTTP/", 5) == 0)
        a->status = atoi(line + strcspn(line, " "));
    else if (strncasecmp(line, "content-length:", 15) == 0)
        *length = strtoll(line + 15, NULL, 10);
    else if (strncasecmp(line, "content-range:", 14) == 0)
        read_range(a, line + 14 + strspn(line + 14, " \t"));
}

static void read_block(struct answer *a, char *block, int64_t asked)
{
    char *save = NULL;
    int64_t length = -1;

    *a = (struct answer){.whole = -1};
    for (char *line = strtok_r(block, "\r\n", &save); line;
         line = strtok_r(NULL, "\r\n", &save))
        read_line(a, line, &length);
    if (a->status == 0) /* a file: what was asked for */
        a->first = asked;
    if (!a->is_range && length >= 0)
        a->whole = a->first + length;
}

int answer_read(struct answer *a, const char *text, size_t len, int64_t asked,
                size_t *body, struct err *err)
{
    *body = 0;
    for (;;) {
        size_t n = block_end(text + *body, len - *body);

        if (n == 0 && len > CAP)
            return err_set(err, ERR_SYSTEM, "the answer has no header");
        if (n == 0)
            return 0;
        char *block = xstrndup(text + *body, n);
        read_block(a, block, asked);
        free(block);
        *body += n;
        bool is_redirection =
            a->status >= 300 && a->status < 400 && a->status != 304;
        bool is_interim = a->status >= 100 && a->status < 200;
        /* the block of where it leads to follows at once */
        if (is_interim || (is_redirection && len - *body >= 5 &&
                           strncmp(text + *body, "HTTP/", 5) == 0))
            continue;
        return is_redirection && len == *body ? 0 : 1;
    }
}
