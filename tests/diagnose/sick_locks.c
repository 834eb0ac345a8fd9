/* Programs that wait for a lock: of a thread, of another process, of a file. */
#include "sick.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t rwlocks[2] = {PTHREAD_RWLOCK_INITIALIZER, PTHREAD_RWLOCK_INITIALIZER};
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t all_hold;

/* --- held by a thread --------------------------------------------------------------------- */

static void *hold_lock(void *lock) {
    check(pthread_mutex_lock(lock));
    (void)pthread_barrier_wait(&all_hold);
    (void)sleep(1000);
    return NULL;
}

static void *want_lock(void *lock) {
    check(pthread_mutex_lock(lock));
    check(pthread_mutex_unlock(lock));
    return NULL;
}

/* A thread that holds the lock when this returns. */
static pid_t start_holder(void *(*hold)(void *), void *lock) {
    check(pthread_barrier_init(&all_hold, NULL, 2));
    pid_t holder = start(hold, lock, "holder");
    (void)pthread_barrier_wait(&all_hold);
    tell("holder=%d", (int)holder);
    return holder;
}

static pid_t start_waiter(void *(*want)(void *), void *lock, const char *name) {
    pid_t waiter = start(want, lock, name);
    await_call(waiter, SYS_futex);
    return waiter;
}

static void lock_held(void) {
    (void)start_holder(hold_lock, &locks[0]);
    for (int i = 0; i < 6; i++) {
        (void)start_waiter(want_lock, &locks[0], "worker");
    }
    say_ready();
    wait_for_ever();
}

static void *hold_second_want_first(void *unused) {
    check(pthread_mutex_lock(&locks[1]));
    (void)want_lock(&locks[0]);
    return unused;
}

/* Those that wait for the second lock wait for the holder of the first. */
static void lock_chain(void) {
    (void)start_holder(hold_lock, &locks[0]);
    (void)start_waiter(hold_second_want_first, NULL, "middle");
    (void)start_waiter(want_lock, &locks[1], "last");
    say_ready();
    wait_for_ever();
}

static void *hold_and_read(void *lock) {
    int ends[2];
    char byte;
    check(pipe(ends));
    check(pthread_mutex_lock(lock));
    (void)pthread_barrier_wait(&all_hold);
    (void)!read(ends[0], &byte, 1);
    return NULL;
}

static void lock_held_in_read(void) {
    await_call(start_holder(hold_and_read, &locks[0]), SYS_read);
    (void)start_waiter(want_lock, &locks[0], "worker");
    say_ready();
    wait_for_ever();
}

static void *hold_rwlock(void *lock) {
    check(pthread_rwlock_wrlock(lock));
    (void)pthread_barrier_wait(&all_hold);
    (void)sleep(1000);
    return NULL;
}

static void *want_rwlock(void *lock) {
    check(pthread_rwlock_rdlock(lock));
    return NULL;
}

static void rwlock_held(void) {
    (void)start_holder(hold_rwlock, &rwlocks[0]);
    for (int i = 0; i < 3; i++) {
        (void)start_waiter(want_rwlock, &rwlocks[0], "reader");
    }
    say_ready();
    wait_for_ever();
}

static void *read_rwlock(void *lock) {
    check(pthread_rwlock_rdlock(lock));
    (void)pthread_barrier_wait(&all_hold);
    (void)sleep(1000);
    return NULL;
}

static void *write_rwlock(void *lock) {
    check(pthread_rwlock_wrlock(lock));
    return NULL;
}

static void rwlock_read(void) {
    (void)start_holder(read_rwlock, &rwlocks[0]);
    for (int i = 0; i < 2; i++) {
        check(pthread_rwlock_rdlock(&rwlocks[i]));
        (void)start_waiter(write_rwlock, &rwlocks[i], "writer");
    }
    say_ready();
    wait_for_ever();
}

static void *lock_and_end(void *lock) {
    check(pthread_mutex_lock(lock));
    (void)pthread_barrier_wait(&all_hold);
    return NULL;
}

/* Its owner is a thread that is not there any more. */
static void lock_of_ended(void) {
    pid_t holder = start_holder(lock_and_end, &locks[0]);
    while (syscall(SYS_tgkill, getpid(), holder, 0) == 0) {
        (void)usleep(1000);
    }
    (void)start_waiter(want_lock, &locks[0], "worker");
    say_ready();
    wait_for_ever();
}

/* --- a circle ----------------------------------------------------------------------------- */

static void *lock_both_ways(void *second) {
    check(pthread_mutex_lock(second == &locks[1] ? &locks[0] : &locks[1]));
    (void)pthread_barrier_wait(&all_hold);
    check(pthread_mutex_lock(second));
    return NULL;
}

static void deadlock_of_two(void) {
    pid_t tids[2];
    check(pthread_barrier_init(&all_hold, NULL, 2));
    for (unsigned i = 0; i < 2; i++) {
        tids[i] = start(lock_both_ways, &locks[i], "philosopher");
    }
    /* The barrier is a futex, too, but the last to arrive does not wait there. */
    for (unsigned i = 0; i < 2; i++) {
        tell("tid%u=%d", i, (int)tids[i]);
        await_call(tids[i], SYS_futex);
    }
    say_ready();
    wait_for_ever();
}

static void *lock_twice(void *lock) {
    check(pthread_mutex_lock(lock));
    check(pthread_mutex_lock(lock));
    return NULL;
}

static void deadlock_of_one(void) {
    pid_t tid = start_waiter(lock_twice, &locks[0], "forgetful");
    tell("tid0=%d", (int)tid);
    say_ready();
    wait_for_ever();
}

static void *hold_file(void *file) {
    flockfile(file);
    (void)pthread_barrier_wait(&all_hold);
    (void)sleep(1000);
    return NULL;
}

static void *log_request(void *file) {
    (void)fputs("request\n", file);
    return NULL;
}

/* The lock of a stream of stdio. */
static void stream_locked(void) {
    (void)start_holder(hold_file, stderr);
    (void)start_waiter(log_request, stderr, "worker");
    say_ready();
    wait_for_ever();
}

static int turn_listener;

static void *accept_in_turn(void *lock) {
    check(pthread_mutex_lock(lock));
    (void)accept(turn_listener, NULL, NULL);
    check(pthread_mutex_unlock(lock));
    return NULL;
}

/* Healthy: workers of a server, one of which accepts at a time. */
static void threads_accept_in_turn(void) {
    struct sockaddr_in address;
    turn_listener = listen_here(4, &address);
    await_call(start(accept_in_turn, &locks[0], "worker"), SYS_accept);
    (void)start_waiter(accept_in_turn, &locks[0], "worker");
    (void)start_waiter(accept_in_turn, &locks[0], "worker");
    say_ready();
    wait_for_ever();
}

/* A server that keeps a lock while it waits for a client, and a worker that needs the lock. */
static void lock_held_in_accept(void) {
    struct sockaddr_in address;
    turn_listener = listen_here(4, &address);
    pid_t holder = start(accept_in_turn, &locks[0], "server");
    tell("holder=%d", (int)holder);
    await_call(holder, SYS_accept);
    (void)start_waiter(want_lock, &locks[0], "worker");
    say_ready();
    wait_for_ever();
}

/* --- held by a process -------------------------------------------------------------------- */

static pthread_mutex_t *shared;
static int pipe_ends[2];

static void tell_held(void) {
    check(write(pipe_ends[1], "", 1) == 1 ? 0 : -1);
}

static void await_held(void) {
    char byte;
    check(read(pipe_ends[0], &byte, 1) == 1 ? 0 : -1);
    check(close(pipe_ends[0]));
    check(close(pipe_ends[1]));
}

static void hold_shared(void) {
    check(pthread_mutex_lock(shared));
    tell_held();
}

static void accept_once(void) {
    (void)accept_in_turn(shared);
}

/* Healthy: the same of processes. */
static void processes_accept_in_turn(void) {
    struct sockaddr_in address;
    pthread_mutexattr_t attributes;
    turn_listener = listen_here(4, &address);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(pthread_mutexattr_init(&attributes));
    check(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
    check(pthread_mutex_init(shared, &attributes));
    await_call(start_child(accept_once), SYS_accept);
    await_call(start_child(accept_once), SYS_futex);
    say_ready();
    (void)accept_in_turn(shared);
}

static void want_shared(int robust, int protocol) {
    pthread_mutexattr_t attributes;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(pthread_mutexattr_init(&attributes));
    check(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
    check(pthread_mutexattr_setrobust(&attributes, robust));
    check(pthread_mutexattr_setprotocol(&attributes, protocol));
    check(pthread_mutex_init(shared, &attributes));
    check(pipe(pipe_ends));
    tell("holder=%d", (int)start_child(hold_shared));
    await_held();
    (void)start_waiter(want_lock, shared, "worker");
    say_ready();
    wait_for_ever();
}

static void want_process_shared(void) {
    want_shared(PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
}

static void want_robust(void) {
    want_shared(PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
}

static void want_inheriting(void) {
    want_shared(PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
}

/* --- of a file ---------------------------------------------------------------------------- */

static const char *const locked_file = "locked-file";

static int open_locked_file(void) {
    int fd = open(locked_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    check(fd < 0 ? -1 : 0);
    return fd;
}

static void lock_by_flock(void) {
    int fd = open_locked_file();
    say_ready();
    check(flock(fd, LOCK_EX));
}

static void lock_by_fcntl(int command) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open_locked_file();
    say_ready();
    check(fcntl(fd, command, &whole));
}

static void lock_by_posix(void) {
    lock_by_fcntl(F_SETLKW);
}

static void lock_by_description(void) {
    lock_by_fcntl(F_OFD_SETLKW);
}

/* Holds the lock, in a child, that `want` says "ready" about and waits for. */
static void hold_flock(void) {
    check(flock(open_locked_file(), LOCK_EX));
    tell_held();
}

static void hold_fcntl(int command) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    check(fcntl(open_locked_file(), command, &whole));
    tell_held();
}

static void hold_posix(void) {
    hold_fcntl(F_SETLK);
}

static void hold_description(void) {
    hold_fcntl(F_OFD_SETLK);
}

static void hold_lease(void) {
    check(signal(SIGIO, SIG_IGN) == SIG_ERR ? -1 : 0);
    check(fcntl(open_locked_file(), F_SETLEASE, F_WRLCK));
    tell_held();
}

static void held_file(void (*hold)(void), void (*want)(void)) {
    check(pipe(pipe_ends));
    tell("holder=%d", (int)start_child(hold));
    await_held();
    want();
}

static void flock_held(void) {
    held_file(hold_flock, lock_by_flock);
}

static void posix_lock_held(void) {
    held_file(hold_posix, lock_by_posix);
}

static void description_lock_held(void) {
    held_file(hold_description, lock_by_description);
}

/* Until lease-break-time is over, 45 s: open(2) of another waits. */
static void open_leased(void) {
    say_ready();
    (void)open_locked_file();
}

static void lease_held(void) {
    held_file(hold_lease, open_leased);
}

/* --- healthy ------------------------------------------------------------------------------ */

static void *lock_and_work(void *lock) {
    for (;;) {
        check(pthread_mutex_lock(lock));
        (void)usleep(500);
        check(pthread_mutex_unlock(lock));
        (void)usleep(500);
    }
    return NULL;
}

static void lock_in_use(void) {
    for (int i = 0; i < 4; i++) {
        (void)start(lock_and_work, &locks[0], "worker");
    }
    say_ready();
    wait_for_ever();
}

static void *wait_for_work(void *lock) {
    check(pthread_mutex_lock(lock));
    for (;;) {
        check(pthread_cond_wait(&never, lock));
    }
    return NULL;
}

static void idle_pool(void) {
    for (int i = 0; i < 16; i++) {
        (void)start_waiter(wait_for_work, &locks[0], "pool");
    }
    say_ready();
    wait_for_ever();
}

/* --- nobody can wake them ----------------------------------------------------------------- */

static sem_t done;

__attribute__((noinline)) static void wait_until_done(void) {
    check(sem_wait(&done));
}

static void semaphore_never_posted(void) {
    check(sem_init(&done, 0, 0));
    tell("waiter=%d", (int)getpid());
    say_ready();
    wait_until_done();
}

/* The signal came before anybody waited for it. */
static void wakeup_lost(void) {
    check(pthread_cond_signal(&never));
    for (int i = 0; i < 3; i++) {
        (void)start_waiter(wait_for_work, &locks[0], "worker");
    }
    say_ready();
    wait_until_done();
}

static void *wait_for_phase(void *barrier) {
    (void)pthread_barrier_wait(barrier);
    return NULL;
}

static void barrier_one_short(void) {
    static pthread_barrier_t barrier;
    check(pthread_barrier_init(&barrier, NULL, 4));
    for (int i = 0; i < 3; i++) {
        (void)start_waiter(wait_for_phase, &barrier, "worker");
    }
    say_ready();
    wait_until_done();
}

/* Healthy: who wakes it is not a thread of its own. */
static void post_done(int number) {
    (void)number;
    check(sem_post(&done));
}

static void woken_by_signal(void) {
    const struct sigaction action = {.sa_handler = post_done};
    check(sigaction(SIGUSR1, &action, NULL));
    semaphore_never_posted();
}

static void shared_semaphore(void) {
    sem_t *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(shared == MAP_FAILED ? -1 : sem_init(shared, 1, 0));
    (void)start_child(wait_for_ever);
    say_ready();
    check(sem_wait(shared));
}

/* The child that took it has ended; nobody else has it. */
static void semaphore_of_ended(void) {
    sem_t *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(shared == MAP_FAILED ? -1 : sem_init(shared, 1, 0));
    outlive_child();
    say_ready();
    check(sem_wait(shared));
}

static sem_t *open_named(void) {
    char name[32];
    (void)snprintf(name, sizeof name, "/sick-%d", (int)getpid());
    sem_t *named = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
    check(named == SEM_FAILED ? -1 : 0);
    tell("semaphore=sem.%s", name + 1);
    return named;
}

static void named_semaphore(void) {
    sem_t *named = open_named();
    say_ready();
    check(sem_wait(named));
}

/* Healthy: its child has it open, too. */
static void named_semaphore_shared(void) {
    sem_t *named = open_named();
    (void)start_child(wait_for_ever);
    say_ready();
    check(sem_wait(named));
}

const sick_program sick_locks[] = {{"lock-held", lock_held},
                                   {"lock-chain", lock_chain},
                                   {"lock-held-in-read", lock_held_in_read},
                                   {"rwlock-held", rwlock_held},
                                   {"rwlock-read", rwlock_read},
                                   {"lock-of-ended", lock_of_ended},
                                   {"stream-locked", stream_locked},
                                   {"threads-accept-in-turn", threads_accept_in_turn},
                                   {"lock-held-in-accept", lock_held_in_accept},
                                   {"processes-accept-in-turn", processes_accept_in_turn},
                                   {"deadlock-of-two", deadlock_of_two},
                                   {"deadlock-of-one", deadlock_of_one},
                                   {"process-shared", want_process_shared},
                                   {"robust", want_robust},
                                   {"inheriting", want_inheriting},
                                   {"flock-held", flock_held},
                                   {"posix-lock-held", posix_lock_held},
                                   {"description-lock-held", description_lock_held},
                                   {"lease-held", lease_held},
                                   {"lock-in-use", lock_in_use},
                                   {"idle-pool", idle_pool},
                                   {"semaphore-never-posted", semaphore_never_posted},
                                   {"wakeup-lost", wakeup_lost},
                                   {"barrier-one-short", barrier_one_short},
                                   {"woken-by-signal", woken_by_signal},
                                   {"shared-semaphore", shared_semaphore},
                                   {"semaphore-of-ended", semaphore_of_ended},
                                   {"named-semaphore", named_semaphore},
                                   {"named-semaphore-shared", named_semaphore_shared},
                                   {NULL, NULL}};
