/* Many files side by side. */
#include "hash/files.h"

#include "hash/sha256_pair.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { MAX_THREADS = 8 };

struct job {
    struct hash_file *files;
    size_t count;
    enum hash_kind kind;
    bool is_paired;
    atomic_size_t next;
    pthread_mutex_t start; /* held until every worker has its first file */
    pthread_mutex_t mutex; /* of what follows */
    size_t failed;         /* the first file that could not be read */
    struct err *err;
};

struct worker {
    struct job *job;
    size_t first;
};

static void fail(struct job *j, const struct hash_file *f,
                 const struct err *err)
{
    size_t i = (size_t)(f - j->files);

    pthread_mutex_lock(&j->mutex);
    if (i < j->failed) {
        j->failed = i;
        *j->err = *err;
    }
    pthread_mutex_unlock(&j->mutex);
}

static void one(struct job *j, struct hash_file *f)
{
    struct err err = ERR_INIT;

    f->git_blob[0] = '\0';
    if (hash_file(f->path, j->kind, f->sha256,
                  f->wants_blob ? f->git_blob : NULL, &f->size, &err))
        fail(j, f, &err);
}

static void two(struct job *j, struct hash_file *a, struct hash_file *b)
{
    struct sha256_file pair[2] = {{.path = a->path}, {.path = b->path}};
    struct hash_file *files[2] = {a, b};

    sha256_pair(&pair[0], &pair[1]);
    for (int i = 0; i < 2; i++) {
        memcpy(files[i]->sha256, pair[i].sha256, HASH_SHA256_HEX);
        files[i]->git_blob[0] = '\0';
        files[i]->size = pair[i].size;
        if (pair[i].err.code)
            fail(j, files[i], &pair[i].err);
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct job *j = w->job;
    struct hash_file *waiting = NULL; /* for a second */

    pthread_mutex_lock(&j->start);
    pthread_mutex_unlock(&j->start);
    for (size_t i = w->first; i < j->count; i = atomic_fetch_add(&j->next, 1)) {
        struct hash_file *f = &j->files[i];

        if (f->wants_blob || !j->is_paired) {
            one(j, f);
        } else if (waiting) {
            two(j, waiting, f);
            waiting = NULL;
        } else {
            waiting = f;
        }
    }
    if (waiting)
        one(j, waiting);
    return NULL;
}

static size_t processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);

    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (size_t)n;
}

int hash_files(struct hash_file *files, size_t count, enum hash_kind kind,
               struct err *err)
{
    struct job j = {.files = files,
                    .count = count,
                    .kind = kind,
                    .is_paired = sha256_pair_helps(),
                    .failed = count,
                    .err = err};
    struct worker workers[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    size_t want = processors(), n = 0;

    pthread_mutex_init(&j.start, NULL);
    pthread_mutex_init(&j.mutex, NULL);
    pthread_mutex_lock(&j.start);
    for (; n + 1 < want && n + 1 < count; n++) {
        workers[n] = (struct worker){&j, n + 1};
        if (pthread_create(&threads[n], NULL, work, &workers[n]))
            break;
    }
    atomic_store(&j.next, n + 1);
    pthread_mutex_unlock(&j.start);
    work(&(struct worker){&j, 0});
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&j.mutex);
    pthread_mutex_destroy(&j.start);
    return j.failed == count ? 0 : -1;
}
