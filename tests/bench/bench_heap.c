/*
 * What a probe costs, and for how long its target does not run. Run by tests/bench/heap.
 *
 *   bench_heap cost STAND-IN THREADS    median µs of a snapshot, and of it per thread
 *   bench_heap pause                    longest gaps of a spinning thread, in µs: left alone, while
 *                                       its process is read without a stop, while it is stopped
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "heap/thread_heap.h"
#include "stacks/thread_stop.h"
#include "support/temp_dir.h"

extern char **environ;

enum { round_count = 21, pause_rounds = 100 };

static int compare(const void *a_value, const void *b_value) {
    const uint64_t *a = a_value;
    const uint64_t *b = b_value;
    return *a < *b ? -1 : *a > *b;
}

/* Waits until the child has written its file; false when it ends before. */
static bool wait_until_ready(const temp_dir *dir, pid_t pid) {
    char text[8];
    while (temp_dir_read(dir, "ready", text, sizeof text) != 6) {
        if (waitpid(pid, NULL, WNOHANG) != 0) {
            return false;
        }
        bp_clock_sleep_until(bp_clock_monotonic_ns() + BP_NS_PER_MS);
    }
    return true;
}

static bool measure_cost(pid_t pid, const char *threads) {
    bp_heap_prober_options options = BP_HEAP_PROBER_OPTIONS_INIT;
    bp_heap_plan plan = BP_HEAP_PLAN_INIT;
    bp_heap_prober *prober = NULL;
    bp_thread_heap_reading reading = {0};
    uint64_t times_ns[round_count];
    size_t stopped_count = 0;
    size_t measured_count = 0;
    if (bp_heap_prober_new(&options, &prober, NULL) != BUGPACK_OK) {
        return false;
    }
    /* The first round also looks at the files. */
    for (int i = -1; i < round_count; i++) {
        uint64_t began_ns = bp_clock_monotonic_ns();
        if (bp_heap_probe(prober, pid, &plan, &reading, NULL) != BUGPACK_OK ||
            reading.failure != BP_HEAP_FAILURE_NONE) {
            bp_heap_prober_free(prober);
            return false;
        }
        if (i >= 0) {
            times_ns[i] = bp_clock_monotonic_ns() - began_ns;
        }
        measured_count = reading.snapshots[0].measured_count;
        stopped_count = reading.snapshots[0].stopped_count;
        bp_thread_heap_reading_release(&reading);
    }
    bp_heap_prober_free(prober);
    qsort(times_ns, round_count, sizeof times_ns[0], compare);
    double median_us = (double)times_ns[round_count / 2] / 1000.0;
    (void)printf("| %s | %.0f | %.2f | %zu |\n", threads, median_us,
                 median_us / (double)measured_count, stopped_count);
    return true;
}

static int cost(char *stand_in, char *threads) {
    temp_dir dir;
    char ready[300];
    pid_t pid;
    if (!temp_dir_make(&dir)) {
        return 1;
    }
    (void)snprintf(ready, sizeof ready, "%s/ready", dir.path);
    char *arguments[] = {stand_in, ready, threads, NULL};
    bool is_measured = false;
    if (posix_spawn(&pid, stand_in, NULL, NULL, arguments, environ) == 0) {
        is_measured = wait_until_ready(&dir, pid) && measure_cost(pid, threads);
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    temp_dir_remove(&dir);
    return is_measured ? 0 : 1;
}

/* This program is its own stand-in for one with a jemalloc inside (support/tsd_stand_in.c): the
 * thread that spins has counters to be read. It needs debug data. */
struct tsd_s {
    char other[64];
    uint64_t thread_allocated;
    uint64_t thread_deallocated;
};
_Thread_local struct tsd_s bench_tsd_tls;

/* The longest gap since it was last set to 0. */
static atomic_uint_fast64_t *gap_ns;

static void spin(void) {
    uint64_t last_ns = bp_clock_monotonic_ns();
    bench_tsd_tls.thread_allocated = 1;
    for (;;) {
        uint64_t now_ns = bp_clock_monotonic_ns();
        if (now_ns - last_ns > atomic_load_explicit(gap_ns, memory_order_relaxed)) {
            atomic_store_explicit(gap_ns, now_ns - last_ns, memory_order_relaxed);
        }
        last_ns = now_ns;
    }
}

/* The median over rounds, each of one look at the target, of its longest gap in there. */
static double pause_us(pid_t pid, int kind) {
    bp_heap_prober_options options = BP_HEAP_PROBER_OPTIONS_INIT;
    bp_heap_plan plan = BP_HEAP_PLAN_INIT;
    bp_heap_prober *prober = NULL;
    uint64_t gaps[pause_rounds] = {0};
    if (bp_heap_prober_new(&options, &prober, NULL) != BUGPACK_OK) {
        return -1;
    }
    for (int i = 0; i < pause_rounds; i++) {
        bp_thread_heap_reading reading = {0};
        uint64_t pointer;
        int failure_errno;
        atomic_store(gap_ns, 0);
        if (kind == 1 && bp_heap_probe(prober, pid, &plan, &reading, NULL) == BUGPACK_OK) {
            if (reading.failure != BP_HEAP_FAILURE_NONE) {
                (void)fprintf(stderr, "bench_heap: %s\n", reading.reason);
            }
            bp_thread_heap_reading_release(&reading);
        } else if (kind == 2) {
            (void)bp_thread_stop_read_pointer(pid, 1000, &pointer, &failure_errno);
        }
        bp_clock_sleep_until(bp_clock_monotonic_ns() + BP_NS_PER_MS);
        gaps[i] = atomic_load(gap_ns);
    }
    bp_heap_prober_free(prober);
    qsort(gaps, pause_rounds, sizeof gaps[0], compare);
    return (double)gaps[pause_rounds / 2] / 1000.0;
}

static int pauses(void) {
    gap_ns = mmap(NULL, sizeof *gap_ns, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = gap_ns != MAP_FAILED ? fork() : -1;
    if (pid < 0) {
        return 1;
    }
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        spin();
    }
    bp_clock_sleep_until(bp_clock_monotonic_ns() + 100 * BP_NS_PER_MS);
    double alone_us = pause_us(pid, 0);
    double read_us = pause_us(pid, 1);
    double stopped_us = pause_us(pid, 2);
    (void)printf("| %.1f | %.1f | %.1f |\n", alone_us, read_us, stopped_us);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return 0;
}

int main(int argument_count, char **arguments) {
    if (argument_count == 4 && strcmp(arguments[1], "cost") == 0) {
        return cost(arguments[2], arguments[3]);
    }
    if (argument_count == 2 && strcmp(arguments[1], "pause") == 0) {
        return pauses();
    }
    (void)fprintf(stderr, "usage: bench_heap cost STAND-IN THREADS | pause\n");
    return 2;
}
