/*
 * Threads that wait for each other, in every way that is told and in some that are not: read from
 * another process, from the process itself, and across a pid namespace.
 *
 * With the name of a scenario as its argument it hangs in it, after the line "ready".
 */
#include "support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "model/threads.h"
#include "process/threads.h"

enum { thread_max = 4 };

static pthread_mutex_t mutexes[thread_max];
static pthread_rwlock_t locks[2] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static pthread_barrier_t all_hold;
static pthread_t threads[thread_max];
static atomic_size_t blocking_count;

typedef struct scenario {
    const char *name;
    size_t thread_count;
    void (*hold)(size_t index);
    void (*block)(size_t index);
    int mutex_types[thread_max];
    bool is_shared, is_robust, inherits;
    size_t waits, timed_waits, deadlock_length; /* what is to be found */
    const char *sentence;                       /* part of it; NULL: none */
} scenario;

static const scenario *current;

static void lock_own(size_t index) {
    CHECK(pthread_mutex_lock(&mutexes[index]) == 0);
}

static void lock_next(size_t index) {
    (void)pthread_mutex_lock(&mutexes[(index + 1) % current->thread_count]);
}

static void lock_next_for_an_hour(size_t index) {
    struct timespec until;
    CHECK(clock_gettime(CLOCK_REALTIME, &until) == 0);
    until.tv_sec += 3600;
    (void)pthread_mutex_timedlock(&mutexes[(index + 1) % current->thread_count], &until);
}

static void write_own(size_t index) {
    CHECK(pthread_rwlock_wrlock(&locks[index]) == 0);
}

static void write_next(size_t index) {
    (void)pthread_rwlock_wrlock(&locks[(index + 1) % 2]);
}

static void read_next(size_t index) {
    (void)pthread_rwlock_rdlock(&locks[(index + 1) % 2]);
}

static void read_all(size_t index) {
    (void)index;
    CHECK(pthread_rwlock_rdlock(&locks[0]) == 0);
}

static void write_first(size_t index) {
    (void)(index == 0 ? pause() : pthread_rwlock_wrlock(&locks[0]));
}

static void write_one_lock_one(size_t index) {
    CHECK((index == 0 ? pthread_rwlock_wrlock(&locks[0]) : pthread_mutex_lock(&mutexes[0])) == 0);
}

static void lock_one_read_one(size_t index) {
    (void)(index == 0 ? pthread_mutex_lock(&mutexes[0]) : pthread_rwlock_rdlock(&locks[0]));
}

static void lock_first(size_t index) {
    CHECK(index != 0 || pthread_mutex_lock(&mutexes[0]) == 0);
}

static void join_or_lock(size_t index) {
    (void)(index == 0 ? pthread_join(threads[1], NULL) : pthread_mutex_lock(&mutexes[0]));
}

static void pause_or_lock(size_t index) {
    (void)(index == 0 ? pause() : pthread_mutex_lock(&mutexes[0]));
}

static void wait_for_condition(size_t index) {
    (void)pthread_cond_wait(&condition, &mutexes[index]);
}

static void wait_for_semaphore(size_t index) {
    (void)index;
    (void)sem_wait(&semaphore);
}

enum {
    NORMAL = PTHREAD_MUTEX_NORMAL,
    RECURSIVE = PTHREAD_MUTEX_RECURSIVE,
    CHECKED = PTHREAD_MUTEX_ERRORCHECK,
    ADAPTIVE = PTHREAD_MUTEX_ADAPTIVE_NP
};

static const scenario scenarios[] = {
    {"two", 2, lock_own, lock_next, .waits = 2, .deadlock_length = 2,
     .sentence = "each other's mutexes"},
    {"three", 3, lock_own, lock_next, .waits = 3, .deadlock_length = 3,
     .sentence = ", which waits for"},
    {"four",
     4,
     lock_own,
     lock_next,
     {NORMAL, RECURSIVE, CHECKED, ADAPTIVE},
     .waits = 4,
     .deadlock_length = 4,
     .sentence = "w-0 ("},
    {"self", 1, lock_own, lock_next, .waits = 1, .deadlock_length = 1,
     .sentence = "waits for a mutex that it holds itself"},
    {"shared", 2, lock_own, lock_next, .is_shared = true, .waits = 2, .deadlock_length = 2},
    {"robust", 2, lock_own, lock_next, .is_robust = true, .waits = 2, .deadlock_length = 2},
    {"timed", 2, lock_own, lock_next_for_an_hour, .waits = 2, .timed_waits = 2},
    {"inheriting", 2, lock_first, pause_or_lock, .inherits = true, .waits = 1},
    {"writers", 2, write_own, write_next, .waits = 2, .deadlock_length = 2,
     .sentence = "each other's rwlocks"},
    {"readers", 2, write_own, read_next, .waits = 2, .deadlock_length = 2},
    {"mixed", 2, write_one_lock_one, lock_one_read_one, .waits = 2, .deadlock_length = 2,
     .sentence = "waits for an rwlock of w-0"},
    {"held_by_readers", 2, read_all, write_first, .waits = 0},
    {"join", 2, lock_first, join_or_lock, .waits = 2, .deadlock_length = 2,
     .sentence = "waits for the end of w-1"},
    {"condition", 2, lock_own, wait_for_condition, .waits = 0},
    {"semaphore", 2, lock_own, wait_for_semaphore, .waits = 0}};

static void *run_thread(void *argument) {
    size_t index = (size_t)((pthread_mutex_t *)argument - mutexes);
    char name[16];
    (void)snprintf(name, sizeof name, "w-%zu", index);
    CHECK(pthread_setname_np(pthread_self(), name) == 0);
    current->hold(index);
    (void)pthread_barrier_wait(&all_hold);
    (void)atomic_fetch_add(&blocking_count, 1);
    current->block(index);
    (void)pause();
    return NULL;
}

static bool is_worker(const bp_thread_state *thread) {
    return strncmp(thread->read.stat.name, "w-", 2) == 0;
}

static void take(pid_t pid, bp_process_threads *process) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_threads_read(pid, UINT64_MAX, process, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
}

/* In this process: starts the threads, and returns when all of them are blocked for good. */
static void hang(void) {
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    CHECK(pthread_barrier_init(&all_hold, NULL, (unsigned)current->thread_count) == 0);
    for (size_t i = 0; i < thread_max; i++) {
        pthread_mutexattr_t attributes;
        CHECK(pthread_mutexattr_init(&attributes) == 0);
        CHECK(pthread_mutexattr_settype(&attributes, current->mutex_types[i]) == 0);
        CHECK(pthread_mutexattr_setpshared(&attributes, current->is_shared) == 0);
        CHECK(pthread_mutexattr_setrobust(&attributes, current->is_robust) == 0);
        CHECK(pthread_mutexattr_setprotocol(
                  &attributes, current->inherits ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE) == 0);
        CHECK(pthread_mutex_init(&mutexes[i], &attributes) == 0);
    }
    for (size_t i = 0; i < current->thread_count; i++) {
        CHECK(pthread_create(&threads[i], NULL, run_thread, &mutexes[i]) == 0);
    }
    size_t blocked_count = 0;
    while (blocked_count < current->thread_count) {
        bp_process_threads process;
        blocked_count = 0;
        bool are_all_there = atomic_load(&blocking_count) == current->thread_count;
        take(0, &process);
        for (size_t i = 0; are_all_there && i < process.thread_count; i++) {
            const bp_thread_state *thread = &process.threads[i];
            blocked_count += is_worker(thread) && thread->read.stat.state == 'S';
        }
        bp_process_threads_release(&process);
    }
}

/* What is known of the process is what the scenario has. */
static void expect_waits(pid_t pid) {
    bp_process_threads process;
    unsigned char is_seen[64] = {0};
    bp_buffer sentence;
    size_t waits = 0, timed_waits = 0;
    bp_buffer_init(&sentence, 1024);
    take(pid, &process);
    CHECK(process.thread_count < sizeof is_seen);
    for (size_t i = 0; i < process.thread_count; i++) {
        const bp_thread_state *thread = &process.threads[i];
        CHECK(thread->read.stat.state != 0 && thread->read.stat.has_scheduling &&
              bp_thread_has(&thread->read, BP_GROUP_STATUS));
        if (is_worker(thread)) {
            CHECK(bp_thread_has(&thread->read, BP_GROUP_SYSCALL) &&
                  thread->read.syscall.place == BP_THREAD_IN_CALL);
            waits += thread->is_waiting;
            timed_waits += thread->is_waiting && thread->wait.is_timed;
        }
    }
    size_t first = bp_deadlock_next(&process, is_seen);
    size_t length = first == SIZE_MAX ? 0 : bp_deadlock_length(&process, first);
    if (first != SIZE_MAX) {
        CHECK(bp_deadlock_describe(&process, first, &sentence) == BUGPACK_OK);
    }
    (void)printf("%s: %zu waits (%zu timed), deadlock of %zu: %s\n", current->name, waits,
                 timed_waits, length, bp_buffer_text(&sentence));
    (void)fflush(stdout);
    CHECK(waits == current->waits && timed_waits == current->timed_waits);
    CHECK(length == current->deadlock_length);
    CHECK(current->sentence == NULL ||
          strstr(bp_buffer_text(&sentence), current->sentence) != NULL);
    CHECK(bp_deadlock_next(&process, is_seen) == SIZE_MAX);
    bp_buffer_release(&sentence);
    bp_process_threads_release(&process);
}

/* A process that hangs and has looked at itself; its first process in a pid namespace of its own
 * where `is_inside`, if that is allowed. 0: it is not. */
static pid_t start(bool is_inside) {
    int ready[2], go[2];
    char byte = 0;
    pid_t inner = 0;
    CHECK(pipe(ready) == 0 && pipe(go) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (is_inside) {
            if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
                _exit(0);
            }
            inner = fork();
            CHECK(inner >= 0);
            if (inner != 0) {
                CHECK(write(ready[1], &inner, sizeof inner) == sizeof inner);
                CHECK(write(go[1], "", 1) == 1); /* the child's byte comes after these */
                CHECK(waitpid(inner, NULL, 0) == inner);
                _exit(0);
            }
            CHECK(read(go[0], &byte, 1) == 1);
        }
        hang();
        if (!is_inside) { /* there /proc has other ids than the process */
            expect_waits(0);
        }
        CHECK(write(ready[1], "", 1) == 1);
        (void)pause();
    }
    (void)close(ready[1]);
    (void)close(go[0]);
    (void)close(go[1]);
    bool is_started = !is_inside || read(ready[0], &inner, sizeof inner) == sizeof inner;
    CHECK(!is_started || read(ready[0], &byte, 1) == 1);
    (void)close(ready[0]);
    return is_inside ? (is_started ? inner : 0) : pid;
}

static void finish(pid_t pid) {
    CHECK(kill(pid, SIGKILL) == 0);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {}
}

#ifdef __GLIBC__
/* Between the two looks at w-0 something happens to w-1, with which it shares a deadlock. */
static enum { NOTHING, RUNS, OTHER_OWNER } meanwhile;
static pid_t tids[2];
static unsigned look_count, open_count;

static unsigned long switches_of(pid_t tid, char *ret_state) {
    char path[64], line[256];
    unsigned long count = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        (void)sscanf(line, "State: %c", ret_state);
        (void)sscanf(line, "voluntary_ctxt_switches: %lu", &count);
    }
    (void)fclose(file);
    return count;
}

static void happen(void) {
    char state = 0;
    if (meanwhile == OTHER_OWNER) {
        mutexes[0].__data.__owner = getpid();
    } else if (meanwhile == RUNS) { /* and waits again for the same mutex */
        unsigned long before = switches_of(tids[1], &state);
        CHECK(pthread_kill(threads[1], SIGUSR1) == 0);
        while (switches_of(tids[1], &state) == before || state != 'S') {}
    }
}

/* Linked before libc's: the objects under test call it. */
int openat(int dir_fd, const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int fd = (int)syscall(SYS_openat, dir_fd, path, flags, va_arg(rest, int));
    va_end(rest);
    open_count++;
    char *end;
    if (tids[0] != 0 && strtol(path, &end, 10) == tids[0] && strcmp(end, "/syscall") == 0 &&
        look_count++ == 1) {
        happen();
    }
    return fd;
}

static void do_nothing(int number) {
    (void)number;
}

static void expect_second_looks(void) {
    static const scenario of_two = {"second looks", 2, lock_own, lock_next, .waits = 0};
    CHECK(signal(SIGUSR1, do_nothing) != SIG_ERR);
    current = &of_two;
    hang();
    for (int what = NOTHING; what <= OTHER_OWNER; what++) {
        bp_process_threads process;
        meanwhile = what;
        look_count = 0;
        take(0, &process);
        for (size_t i = 0; i < process.thread_count; i++) {
            const bp_thread_state *thread = &process.threads[i];
            size_t index = (size_t)(thread->read.stat.name[2] - '0');
            if (is_worker(thread)) {
                CHECK(thread->is_waiting == (index == 0 || what == NOTHING));
                tids[index] = (pid_t)thread->read.tid;
            }
        }
        bp_process_threads_release(&process);
    }
    CHECK(look_count > 1);
    (void)puts("second looks: each ends the accusation");
}

enum { queue_length = 7, waiter_count = 12 };
static int turns_fd;

static int lock_turn(int command, size_t turn) {
    const struct flock byte = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)turn, .l_len = 1};
    return fcntl(turns_fd, command, &byte);
}

static void *want_turn(void *turn) {
    (void)lock_turn(F_SETLKW, *(const size_t *)turn);
    return NULL;
}

static bool do_all_wait(pid_t pid) {
    bp_process_threads process;
    size_t count = 0;
    take(pid, &process);
    for (size_t i = 0; i < process.thread_count; i++) {
        count += process.threads[i].read.syscall.place == BP_THREAD_IN_CALL &&
                 process.threads[i].read.syscall.number == SYS_fcntl;
    }
    bp_process_threads_release(&process);
    return count == waiter_count;
}

/* Many threads of each process wait for a lock of the next process, which is looked at once for all
 * of them: not twelve times as often for each further process. */
static void expect_few_looks(void) {
    enum { open_max = 100 * queue_length * waiter_count };
    pid_t pids[queue_length];
    bp_process_threads processes[queue_length];
    FILE *file = tmpfile();
    CHECK(file != NULL);
    turns_fd = fileno(file);
    CHECK(lock_turn(F_SETLK, queue_length) == 0);
    for (size_t i = queue_length; i-- > 0;) {
        size_t next = i + 1;
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] == 0) {
            CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && lock_turn(F_SETLK, i) == 0);
            for (size_t k = 1; k < waiter_count; k++) {
                CHECK(pthread_create(&threads[0], NULL, want_turn, &next) == 0);
            }
            (void)want_turn(&next);
            _exit(1);
        }
        while (!do_all_wait(pids[i])) {}
    }
    for (size_t i = 0; i < queue_length; i++) {
        take(pids[i], &processes[i]);
    }
    open_count = 0;
    CHECK(bp_threads_find_processes(processes, queue_length, UINT64_MAX, NULL) == BUGPACK_OK);
    (void)printf("a queue of processes: %u files opened\n", open_count);
    CHECK(processes[0].threads[0].process_wait != NULL && open_count > 0 && open_count < open_max);
    for (size_t i = 0; i < queue_length; i++) {
        bp_process_threads_release(&processes[i]);
        CHECK(kill(pids[i], SIGKILL) == 0 && waitpid(pids[i], NULL, 0) == pids[i]);
    }
    (void)fclose(file);
}
#endif

int main(int argument_count, char **arguments) {
    bool has_namespaces = true;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        current = &scenarios[i];
        if (argument_count > 1) {
            if (strcmp(arguments[1], current->name) == 0) {
                hang();
                (void)puts("ready");
                (void)fflush(stdout);
                return pause();
            }
            continue;
        }
        pid_t pid = start(false);
        expect_waits(pid);
        finish(pid);
        pid = has_namespaces ? start(true) : 0;
        has_namespaces = pid != 0;
        if (has_namespaces) {
            expect_waits(pid);
            finish(pid);
        }
    }
#ifdef __GLIBC__
    if (argument_count == 1) {
        expect_few_looks();
        expect_second_looks();
    }
#endif
    (void)printf("pid namespaces: %s\n", has_namespaces ? "tested" : "not allowed here");
    return 0;
}
