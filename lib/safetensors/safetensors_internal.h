#ifndef SAFETENSORS_SAFETENSORS_INTERNAL_H
#define SAFETENSORS_SAFETENSORS_INTERNAL_H

#include "safetensors/safetensors.h"

enum {
    ST_HEADER_CAP = 100000000, /* bytes, upstream's limit */
    ST_TENSOR_CAP = 1000000,   /* tensors of one file, ours */
    ST_NAME_CAP = 65536,       /* bytes of a name, ours */
    ST_SHOWN = 96              /* bytes of a name in a message */
};

struct st_pair {
    const char *key, *value;
};

/*
 * What one header says.  Names, keys and values point into the text that was
 * parsed.  infos are in byte order of names, offsets count from the start of
 * the data area; metadata in byte order of keys.
 */
struct st_header {
    struct tensor_info *infos;
    size_t count, cap;
    struct st_pair *metadata;
    size_t metadata_count, metadata_cap;
};

/* Parses text[0..len) in place (text[len] must be writable).  Release out's
 * arrays with st_header_release(), whatever it returned. */
int st_header_parse(char *text, size_t len, struct st_header *out,
                    struct err *err);
void st_header_release(struct st_header *h);

/* The header's length, which the file's first 8 bytes tell, against the size of
 * the whole file. */
int st_header_length(const unsigned char prefix[8], int64_t size, int64_t *out,
                     struct err *err);

/* Are the tensors side by side, from the data area's start to its end? */
int st_check_ranges(const struct st_header *h, int64_t data_size,
                    struct err *err);

/* The name as it may stand in a message: escaped, shortened. */
const char *st_show(const char *name, char out[ST_SHOWN]);

struct st_file {
    char *path;
    int fd;
    char *header; /* the names' bytes */
};

struct safetensors {
    struct st_file *files;
    size_t file_count;
    struct tensor_info *infos; /* by name */
    size_t count;
    struct st_pair *metadata; /* of the first file, by key */
    size_t metadata_count;
    char *warning;
};
#endif
