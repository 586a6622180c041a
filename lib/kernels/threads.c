/* A pool of POSIX threads that work through the pieces of one loop at a time.
 */
#include "kernels/threads.h"

#include "base/bug.h"
#include "base/mem.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 1024 };

struct loop {
    int64_t count, piece;
    void (*fn)(void *ctx, int64_t first, int64_t end);
    void *ctx;
    atomic_int_fast64_t next; /* first index not yet taken */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t start, finished;
    pthread_t *ids; /* size - 1 of them */
    int size;
    uint64_t turn; /* counts the loops; a thread waits for it to move */
    int running;   /* threads still in the loop */
    bool is_ending;
    struct loop loop;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .start = PTHREAD_COND_INITIALIZER,
          .finished = PTHREAD_COND_INITIALIZER,
          .size = 1};

static _Thread_local bool is_inside;
static _Thread_local struct {
    void *data;
    size_t size;
} scratch[SCRATCH_COUNT];

void *threads_scratch(enum threads_slot slot, size_t bytes)
{
    if (bytes > scratch[slot].size) {
        struct err err = ERR_INIT;

        free(scratch[slot].data);
        scratch[slot].data = mem_array(bytes, 1, SIZE_MAX, &err);
        if (!scratch[slot].data) { /* as xmalloc: there is no going on */
            fprintf(stderr, "%s\n", err.text);
            exit(ERR_SYSTEM);
        }
        scratch[slot].size = bytes;
    }
    return scratch[slot].data;
}

static void release_scratch(void)
{
    for (int i = 0; i < SCRATCH_COUNT; i++)
        free(scratch[i].data);
    memset(scratch, 0, sizeof(scratch));
}

static void work(struct loop *loop)
{
    for (;;) {
        int64_t first = atomic_fetch_add(&loop->next, loop->piece), end;

        if (first >= loop->count)
            return;
        end = loop->count - first > loop->piece ? first + loop->piece
                                                : loop->count;
        loop->fn(loop->ctx, first, end);
    }
}

static void *serve(void *unused)
{
    uint64_t seen = 0;

    (void)unused;
    is_inside = true;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.turn == seen && !pool.is_ending)
            pthread_cond_wait(&pool.start, &pool.lock);
        if (pool.is_ending)
            break;
        seen = pool.turn;
        pthread_mutex_unlock(&pool.lock);
        work(&pool.loop);
        pthread_mutex_lock(&pool.lock);
        if (--pool.running == 0)
            pthread_cond_signal(&pool.finished);
    }
    pthread_mutex_unlock(&pool.lock);
    release_scratch();
    return NULL;
}

static void end_threads(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.is_ending = true;
    pthread_cond_broadcast(&pool.start);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < pool.size - 1; i++)
        pthread_join(pool.ids[i], NULL);
    free(pool.ids);
    pool.ids = NULL;
    pool.size = 1;
    pool.is_ending = false;
    pool.turn = 0;
    release_scratch();
}

int threads_set(int n, struct err *err)
{
    BUG_ON(is_inside);
    if (n < 1 || n > MOST_THREADS)
        return err_set(err, ERR_USAGE, "%d threads: 1 to %d can be had", n,
                       MOST_THREADS);
    if (n == pool.size && n > 1)
        return 0;
    end_threads();
    if (n == 1)
        return 0;
    pool.ids = xcalloc((size_t)n - 1, sizeof(*pool.ids));
    while (pool.size < n) {
        int failed =
            pthread_create(&pool.ids[pool.size - 1], NULL, serve, NULL);

        if (failed) {
            end_threads();
            return err_set(err, ERR_SYSTEM, "thread %d of %d: %s",
                           pool.size + 1, n, strerror(failed));
        }
        pool.size++;
    }
    return 0;
}

int threads_count(void)
{
    return pool.size;
}

int threads_online(void)
{
    cpu_set_t set;
    int n = 1;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > MOST_THREADS ? MOST_THREADS : n;
}

void threads_for(int64_t count, int64_t grain,
                 void (*fn)(void *ctx, int64_t first, int64_t end), void *ctx)
{
    int64_t piece;

    if (count <= 0)
        return;
    if (grain < 1)
        grain = 1;
    if (is_inside || pool.size == 1 || count <= grain) {
        fn(ctx, 0, count);
        return;
    }
    /* A few pieces a thread even out their unequal speed. */
    piece = count / (4 * pool.size) / grain * grain;
    if (piece < grain)
        piece = grain;
    pthread_mutex_lock(&pool.lock);
    pool.loop.count = count;
    pool.loop.piece = piece;
    pool.loop.fn = fn;
    pool.loop.ctx = ctx;
    atomic_store(&pool.loop.next, 0);
    pool.running = pool.size - 1;
    pool.turn++;
    pthread_cond_broadcast(&pool.start);
    pthread_mutex_unlock(&pool.lock);

    is_inside = true;
    work(&pool.loop);
    is_inside = false;

    pthread_mutex_lock(&pool.lock);
    while (pool.running > 0)
        pthread_cond_wait(&pool.finished, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}
