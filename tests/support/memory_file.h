#ifndef SUPPORT_MEMORY_FILE_H
#define SUPPORT_MEMORY_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The bytes as a file that has a path, for readers that take one.  Returns its
 * descriptor; the file is gone when that is closed. */
static inline int memory_file(const void *data, size_t len, char path[64])
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, len) != (ssize_t)len)
        abort();
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}
#endif
