/* SPDX-License-Identifier: Apache-2.0
 *
 * parallel_for of the CPU device: OpenMP, or plain threads in builds for the thread sanitizer (which does not understand libgomp).
 *
 * Work is cut into contiguous pieces by index alone, so who computes what never changes a result. A call from inside a running body
 * runs on its caller. The pool of plain threads sleeps on a condition between calls; it belongs to one device. */
#include "backends/device/cpu/cpu.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(REEL_WITH_OPENMP)
#include <omp.h>
#else
#include <pthread.h>
#endif

static int32_t usable_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int32_t)n : 1;
}

#if defined(REEL_WITH_OPENMP)

reel_status reel_cpu_threads_open(reel_device *device, int32_t n_thread, reel_error *err)
{
    (void)err;
    device->n_thread = n_thread > 0 ? n_thread : usable_cores();
    return REEL_OK;
}

void reel_cpu_threads_close(reel_device *device)
{
    (void)device;
}

void reel_cpu_parallel_for(const reel_device *device, int64_t n, void *context, reel_cpu_body body)
{
    if (n <= 0) return;
    int32_t n_piece = n < device->n_thread ? (int32_t)n : device->n_thread;
    if (n_piece == 1 || omp_in_parallel()) {
        body(context, 0, n, 0);
        return;
    }
#pragma omp parallel num_threads(n_piece)
    {
        int32_t thread = omp_get_thread_num(), count = omp_get_num_threads(); /* the system may grant fewer */
        int64_t begin = n * thread / count, end = n * (thread + 1) / count;
        if (begin < end) body(context, begin, end, thread);
    }
}

void reel_cpu_parallel_dynamic(const reel_device *device, int64_t n, int64_t grain, void *context, reel_cpu_body body)
{
    if (n <= 0) return;
    int64_t n_chunk = (n + grain - 1) / grain;
    int32_t n_piece = n_chunk < device->n_thread ? (int32_t)n_chunk : device->n_thread;
    if (n_piece == 1 || omp_in_parallel()) {
        body(context, 0, n, 0);
        return;
    }
    _Atomic int64_t next = 0;
#pragma omp parallel num_threads(n_piece)
    {
        int32_t thread = omp_get_thread_num();
        for (;;) {
            int64_t begin = atomic_fetch_add(&next, grain);
            if (begin >= n) break;
            body(context, begin, begin + grain < n ? begin + grain : n, thread);
        }
    }
}

#else

typedef struct pool pool;

typedef struct worker {
    pool *owner;
    pthread_t handle;
    int32_t index; /* 1 … n_worker; the caller is thread 0 */
} worker;

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    int32_t n_worker, n_running;
    uint64_t generation;
    bool stops;
    _Atomic bool is_busy; /* set by the caller for the length of a job: a nested call finds it set */
    /* the job */
    void *context;
    reel_cpu_body body;
    int64_t n, grain; /* grain 0: one piece per thread */
    int32_t n_piece;
    _Atomic int64_t next;
    worker workers[];
};

static void run_share(pool *p, int32_t thread)
{
    if (p->grain == 0) {
        int64_t begin = p->n * thread / p->n_piece, end = p->n * (thread + 1) / p->n_piece;
        if (thread < p->n_piece && begin < end) p->body(p->context, begin, end, thread);
        return;
    }
    for (;;) {
        int64_t begin = atomic_fetch_add(&p->next, p->grain);
        if (begin >= p->n) return;
        p->body(p->context, begin, begin + p->grain < p->n ? begin + p->grain : p->n, thread);
    }
}

static void *work(void *argument)
{
    worker *self = argument;
    pool *p = self->owner;
    uint64_t seen = 0;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->stops && p->generation == seen) pthread_cond_wait(&p->wake, &p->lock);
        if (p->stops) break;
        seen = p->generation;
        pthread_mutex_unlock(&p->lock);
        run_share(p, self->index);
        pthread_mutex_lock(&p->lock);
        if (--p->n_running == 0) pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

reel_status reel_cpu_threads_open(reel_device *device, int32_t n_thread, reel_error *err)
{
    int32_t n = n_thread > 0 ? n_thread : usable_cores();
    pool *p = calloc(1, sizeof *p + (size_t)n * sizeof(worker));
    if (!p) return REEL_FAIL(err, REEL_E_MEMORY, "no memory for %d threads\nremedy: ask for fewer threads", n);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    device->pool = p;
    device->n_thread = n;
    for (int32_t i = 0; i + 1 < n; i++) {
        p->workers[i] = (worker){.owner = p, .index = i + 1};
        if (pthread_create(&p->workers[i].handle, NULL, work, &p->workers[i]) != 0) {
            reel_cpu_threads_close(device);
            return REEL_FAIL(err, REEL_E_DEVICE,
                             "thread %d of %d could not be started\nremedy: ask for fewer threads, or raise `ulimit -u`", i + 2, n);
        }
        p->n_worker++;
    }
    return REEL_OK;
}

void reel_cpu_threads_close(reel_device *device)
{
    pool *p = device->pool;
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->stops = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (int32_t i = 0; i < p->n_worker; i++) pthread_join(p->workers[i].handle, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p);
    device->pool = NULL;
}

static void run_job(const reel_device *device, int64_t n, int64_t grain, void *context, reel_cpu_body body)
{
    pool *p = device->pool;
    int64_t n_chunk = grain ? (n + grain - 1) / grain : n;
    if (n <= 0) return;
    if (n_chunk == 1 || !p || p->n_worker == 0 || atomic_exchange(&p->is_busy, true)) {
        body(context, 0, n, 0);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->context = context;
    p->body = body;
    p->n = n;
    p->grain = grain;
    p->n_piece = n_chunk < p->n_worker + 1 ? (int32_t)n_chunk : p->n_worker + 1;
    atomic_store(&p->next, 0);
    p->n_running = p->n_worker;
    p->generation++;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    run_share(p, 0);
    pthread_mutex_lock(&p->lock);
    while (p->n_running > 0) pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
    atomic_store(&p->is_busy, false);
}

void reel_cpu_parallel_for(const reel_device *device, int64_t n, void *context, reel_cpu_body body)
{
    run_job(device, n, 0, context, body);
}

void reel_cpu_parallel_dynamic(const reel_device *device, int64_t n, int64_t grain, void *context, reel_cpu_body body)
{
    run_job(device, n, grain, context, body);
}

#endif
