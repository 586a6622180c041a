/* A digest on a thread of its own: buffers in a ring. */
#include "hash/queue.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct hash_queue {
    struct hash *hash;
    unsigned char *buffers;
    size_t step, len[HASH_QUEUE_BUFFERS];
    size_t filled, hashed; /* buffers so far; under the mutex */
    bool is_over, has_thread;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

static void hash_one(struct hash_queue *q, size_t number)
{
    size_t i = number % HASH_QUEUE_BUFFERS;

    hash_add(q->hash, q->buffers + i * q->step, q->len[i]);
}

static void *work(void *arg)
{
    struct hash_queue *q = arg;

    pthread_mutex_lock(&q->mutex);
    for (;;) {
        while (q->hashed == q->filled && !q->is_over)
            pthread_cond_wait(&q->changed, &q->mutex);
        if (q->hashed == q->filled)
            break;
        pthread_mutex_unlock(&q->mutex);
        hash_one(q, q->hashed);
        pthread_mutex_lock(&q->mutex);
        q->hashed++;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->mutex);
    return NULL;
}

struct hash_queue *hash_queue_new(enum hash_kind kind, size_t step)
{
    struct hash_queue *q = xcalloc(1, sizeof(*q));

    q->hash = hash_new(kind);
    q->step = step;
    q->buffers = xmalloc(step * HASH_QUEUE_BUFFERS);
    pthread_mutex_init(&q->mutex, NULL);
    pthread_cond_init(&q->changed, NULL);
    q->has_thread = pthread_create(&q->thread, NULL, work, q) == 0;
    return q;
}

void *hash_queue_next(struct hash_queue *q)
{
    pthread_mutex_lock(&q->mutex);
    while (q->filled - q->hashed == HASH_QUEUE_BUFFERS)
        pthread_cond_wait(&q->changed, &q->mutex);
    size_t i = q->filled % HASH_QUEUE_BUFFERS;
    pthread_mutex_unlock(&q->mutex);
    return q->buffers + i * q->step;
}

void hash_queue_add(struct hash_queue *q, size_t len)
{
    pthread_mutex_lock(&q->mutex);
    q->len[q->filled % HASH_QUEUE_BUFFERS] = len;
    if (!q->has_thread) { /* the system has none left */
        hash_one(q, q->filled);
        q->hashed++;
    }
    q->filled++;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->mutex);
}

static void stop(struct hash_queue *q)
{
    pthread_mutex_lock(&q->mutex);
    q->is_over = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->mutex);
    if (q->has_thread)
        pthread_join(q->thread, NULL);
    q->has_thread = false;
}

void hash_queue_hex(struct hash_queue *q, char *out)
{
    stop(q);
    hash_hex(q->hash, out);
}

void hash_queue_free(struct hash_queue *q)
{
    if (!q)
        return;
    stop(q);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->mutex);
    hash_free(q->hash);
    free(q->buffers);
    free(q);
}
