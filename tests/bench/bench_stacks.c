/*
 * What the stacks of a process with many blocked threads cost, and for how long a thread of it that
 * runs is held up. Run by tests/bench/stacks.
 *
 *   bench_stacks THREADS [COMMAND...]
 *
 * Best of 7 rounds, in ms, of the spinning first thread: for how long at most it did not get on,
 * but for waits for a processor; for how long at most it neither ran nor was ready to run; and the
 * time on the clock. For nothing, our own stacks, and each command, in which PID is
 * the process. An interrupt in which the kernel takes a sample is a gap, and no stop.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "stacks/stacks.h"

enum { round_count = 7, depth = 12, row_max = 10 };

struct shared {
    _Atomic uint64_t longest_gap_ns;
    _Atomic uint64_t longest_ns; /* of stops */
    atomic_uint blocked_count;
    atomic_uint rounds_to_read; /* of our own stacks */
    _Atomic uint64_t read_ns;
};
static struct shared *shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what) {
    (void)fprintf(stderr, "%s failed\n", what);
    exit(1);
}

static uint64_t thread_cpu_ns(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * BP_NS_PER_SEC + (uint64_t)time.tv_nsec;
}

/* For how long the thread was ready, and another one ran: the second number of schedstat. */
static uint64_t waited_ns(int schedstat_fd) {
    char text[96] = "";
    uint64_t ran_ns, result_ns = 0;
    (void)!pread(schedstat_fd, text, sizeof text - 1, 0);
    if (sscanf(text, "%" SCNu64 " %" SCNu64, &ran_ns, &result_ns) != 2) {
        fail("reading schedstat");
    }
    return result_ns;
}

static void keep_most(_Atomic uint64_t *most_ns, uint64_t value_ns) {
    if (value_ns > atomic_load(most_ns)) {
        atomic_store(most_ns, value_ns);
    }
}

/* On a busy machine a thread is mostly held up by the scheduler, which is not counted. */
static void spin(void) {
    static const uint64_t least_ns = 10000;
    int schedstat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    uint64_t last_ns = bp_clock_monotonic_ns();
    uint64_t last_cpu_ns = thread_cpu_ns();
    uint64_t last_waited_ns = waited_ns(schedstat_fd);
    for (;;) {
        uint64_t now_ns = bp_clock_monotonic_ns();
        uint64_t cpu_ns = thread_cpu_ns();
        uint64_t gap_ns = now_ns - last_ns, ran_ns = cpu_ns - last_cpu_ns;
        if (gap_ns > least_ns) {
            uint64_t now_waited_ns = waited_ns(schedstat_fd);
            uint64_t others_ns = now_waited_ns - last_waited_ns;
            last_waited_ns = now_waited_ns;
            gap_ns = gap_ns > others_ns ? gap_ns - others_ns : 0;
            keep_most(&shared->longest_gap_ns, gap_ns);
            if (gap_ns > ran_ns + least_ns) {
                keep_most(&shared->longest_ns, gap_ns - ran_ns);
            }
            now_ns = bp_clock_monotonic_ns();
            cpu_ns = thread_cpu_ns();
        }
        last_ns = now_ns;
        last_cpu_ns = cpu_ns;
    }
}

static void read_own(void) {
    const bp_stacks_plan plan = {.deadline_ns = UINT64_MAX, .symbols_until_ns = UINT64_MAX};
    bp_stacks stacks;
    uint64_t begin_ns = bp_clock_monotonic_ns();
    if (bp_stacks_read(0, &plan, &stacks, NULL) != BUGPACK_OK) {
        fail("reading our own stacks");
    }
    bp_stacks_release(&stacks);
    atomic_store(&shared->read_ns, bp_clock_monotonic_ns() - begin_ns);
}

__attribute__((noinline)) static unsigned go_down(unsigned left, void (*enter)(void)) {
    volatile unsigned char frame[64] = {(unsigned char)left};
    if (left == 0) {
        enter();
        return frame[0];
    }
    return go_down(left - 1, enter) + frame[0];
}

static void wait_for_mutex(void) {
    atomic_fetch_add(&shared->blocked_count, 1);
    (void)pthread_mutex_lock(&mutex);
}

static void *block(void *unused) {
    (void)go_down(depth, wait_for_mutex);
    return unused;
}

static void *read_on_request(void *unused) {
    for (;;) {
        bp_clock_sleep_until(bp_clock_monotonic_ns() + BP_NS_PER_MS);
        if (atomic_load(&shared->rounds_to_read) > 0) {
            read_own();
            atomic_store(&shared->rounds_to_read, 0);
        }
    }
    return unused;
}

/* The thread that spins is the first one, which pays for what a tool does once. */
static void be_target(size_t thread_count) {
    pthread_t thread;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < thread_count; i++) {
        if (pthread_create(&thread, NULL, block, NULL) != 0) {
            fail("starting a thread");
        }
    }
    if (pthread_create(&thread, NULL, read_on_request, NULL) != 0) {
        fail("starting a thread");
    }
    (void)go_down(depth, spin);
}

static void run(const char *command, pid_t target) {
    char pid_text[24];
    (void)snprintf(pid_text, sizeof pid_text, "%d", (int)target);
    pid_t pid = fork();
    if (pid == 0) {
        (void)setenv("PID", pid_text, 1);
        (void)!freopen("/dev/null", "w", stdout);
        (void)!freopen("/dev/null", "w", stderr);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        fail(command);
    }
}

/* One round. NULL: nothing is done; "": our own stacks. */
static uint64_t take(const char *command, pid_t target) {
    uint64_t begin_ns = bp_clock_monotonic_ns();
    if (command == NULL) {
        bp_clock_sleep_until(begin_ns + 200 * BP_NS_PER_MS);
    } else if (command[0] == '\0') {
        atomic_store(&shared->rounds_to_read, 1);
        while (atomic_load(&shared->rounds_to_read) > 0) {
            bp_clock_sleep_until(bp_clock_monotonic_ns() + BP_NS_PER_MS);
        }
        return atomic_load(&shared->read_ns);
    } else {
        run(command, target);
    }
    return bp_clock_monotonic_ns() - begin_ns;
}

static void keep_least(uint64_t *least_ns, uint64_t value_ns) {
    *least_ns = value_ns < *least_ns ? value_ns : *least_ns;
}

int main(int argument_count, char **arguments) {
    const char *commands[row_max] = {NULL, ""};
    uint64_t gaps_ns[row_max], longest_ns[row_max], times_ns[row_max];
    size_t thread_count = argument_count > 1 ? strtoul(arguments[1], NULL, 10) : 0;
    size_t row_count = 2;
    for (int i = 2; i < argument_count && row_count < row_max; i++) {
        commands[row_count++] = arguments[i];
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t target = shared == MAP_FAILED ? -1 : fork();
    if (target < 0) {
        fail("starting a process");
    } else if (target == 0) {
        be_target(thread_count);
    }
    while (atomic_load(&shared->blocked_count) < thread_count) {
        bp_clock_sleep_until(bp_clock_monotonic_ns() + BP_NS_PER_MS);
    }
    for (size_t i = 0; i < row_max; i++) {
        gaps_ns[i] = longest_ns[i] = times_ns[i] = UINT64_MAX;
    }
    for (unsigned round = 0; round < round_count; round++) {
        for (size_t i = 0; i < row_count; i++) {
            atomic_store(&shared->longest_gap_ns, 0);
            atomic_store(&shared->longest_ns, 0);
            keep_least(&times_ns[i], take(commands[i], target));
            keep_least(&gaps_ns[i], atomic_load(&shared->longest_gap_ns));
            keep_least(&longest_ns[i], atomic_load(&shared->longest_ns));
        }
    }
    for (size_t i = 0; i < row_count; i++) {
        const char *name = i == 0 ? "nothing" : i == 1 ? "in the process itself" : commands[i];
        (void)printf("| %s | %.3f | %.3f | %.0f |\n", name, (double)gaps_ns[i] / 1e6,
                     (double)longest_ns[i] / 1e6, (double)times_ns[i] / 1e6);
    }
    (void)kill(target, SIGKILL);
    return 0;
}
