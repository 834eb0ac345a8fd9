/*
 * Another process truncates the file of a ring while four threads append to it: the host lives, its
 * handlers see no signal, the ring goes on in memory, and nothing of it is lost.
 *
 *     stress_ring_truncate [ROUNDS]
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "recorder/monitor.h"
#include "ring/ring.h"
#include "support/check.h"
#include "support/ring_records.h"
#include "support/temp_dir.h"

enum { writer_count = 4, capacity_bytes = 4 << 20 };

static bp_ring *ring;
static atomic_bool is_over;
static atomic_uint signal_count, task_count;
static _Atomic uint64_t appended_count;

static void count_signal(int number) {
    (void)number;
    atomic_fetch_add(&signal_count, 1);
}

static void die_of_sigbus(int number) {
    (void)number;
    static const char words[] = "the host got SIGBUS\n";
    (void)!write(STDERR_FILENO, words, sizeof words - 1);
    _exit(1);
}

static void *append(void *unused) {
    (void)unused;
    unsigned char bytes[300];
    memset(bytes, 0x5a, sizeof bytes);
    for (size_t i = 0; !atomic_load_explicit(&is_over, memory_order_relaxed); i++) {
        struct iovec part = {.iov_base = bytes, .iov_len = i % sizeof bytes};
        CHECK(bp_ring_append(ring, (uint32_t)part.iov_len, &part, 1) != 0);
        atomic_fetch_add(&appended_count, 1);
    }
    return NULL;
}

static uint64_t yield_ring(void *context, uint64_t now_ns) {
    bool is_moved = bp_ring_move_to_memory(context, NULL) == BUGPACK_OK;
    return is_moved ? UINT64_MAX : now_ns + BP_NS_PER_MS;
}

/* The monitor has other work beside the guard. */
static uint64_t count_run(void *context, uint64_t now_ns) {
    (void)context;
    atomic_fetch_add(&task_count, 1);
    return now_ns + 5 * BP_NS_PER_MS;
}

static void by_open(const char *path) {
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    CHECK(fd >= 0);
    (void)close(fd);
}

static void by_truncate(const char *path) {
    CHECK(truncate(path, 0) == 0);
}

static void by_ftruncate(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
    (void)close(fd);
}

static void by_punching(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && ftruncate(fd, 0) == 0 && ftruncate(fd, capacity_bytes) == 0);
    (void)close(fd);
}

static void nap(long ns) {
    (void)nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static void run_other(void (*harm)(const char *), const char *path) {
    pid_t other = fork();
    CHECK(other >= 0);
    if (other == 0) {
        harm(path);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(other, &status, 0) == other);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void check_records(void) {
    bp_buffer out;
    bp_ring_view view;
    bp_buffer_init(&out, 1u << 30);
    CHECK(bp_ring_copy(ring, UINT64_MAX, keep_in_buffer, &out, &view, NULL) == BUGPACK_OK);
    CHECK(view.last_sequence == atomic_load(&appended_count));
    CHECK(view.record_count > 0 && view.record_count + view.evicted_count == view.last_sequence);
    size_t offset = 0;
    const void *payload = NULL;
    const bp_ring_record *record;
    uint64_t next = view.first_sequence;
    while ((record = next_record(&out, &offset, &payload)) != NULL) {
        CHECK(record->sequence == next++ && record->tag == record->payload_bytes);
        for (size_t i = 0; i < record->payload_bytes; i++) {
            CHECK(((const unsigned char *)payload)[i] == 0x5a);
        }
    }
    bp_buffer_release(&out);
}

static void run_round(temp_dir *dir, bp_file_guard *guard, void (*harm)(const char *)) {
    char path[300];
    (void)snprintf(path, sizeof path, "%s/ring", dir->path);
    int fd = openat(dir->fd, "ring", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK(bp_ring_new_mapped(fd, capacity_bytes, &ring, NULL) == BUGPACK_OK);
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_file_guard_add(guard, fd, yield_ring, ring, &error) != BUGPACK_OK) {
        CHECK(error.status == BUGPACK_ERR_UNSUPPORTED);
        bp_ring_free(ring);
        temp_dir_remove(dir);
        SKIP("no lease can be had here");
    }
    CHECK(close(fd) == 0);
    atomic_store(&is_over, false);
    atomic_store(&appended_count, 0);
    pthread_t writers[writer_count];
    for (int i = 0; i < writer_count; i++) {
        CHECK(pthread_create(&writers[i], NULL, append, NULL) == 0);
    }
    nap(3000000);
    CHECK(bp_ring_is_in_file(ring));
    run_other(harm, path);
    while (bp_ring_is_in_file(ring)) { /* said after the file is left, which lets the other go on */
        nap(100000);
    }
    uint64_t before = atomic_load(&appended_count);
    while (atomic_load(&appended_count) < before + 20000) {
        nap(1000000);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < writer_count; i++) {
        CHECK(pthread_join(writers[i], NULL) == 0);
    }
    check_records();
    bp_file_guard_remove(guard, ring);
    bp_ring_free(ring);
    CHECK(unlinkat(dir->fd, "ring", 0) == 0);
}

int main(int argument_count, char **arguments) {
    unsigned long rounds = run_length(argument_count, arguments, 2);
    static const int watched[] = {SIGIO, SIGUSR1, SIGUSR2, SIGURG, SIGALRM};
    for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++) {
        CHECK(sigaction(watched[i], &(struct sigaction){.sa_handler = count_signal}, NULL) == 0);
    }
    CHECK(sigaction(SIGBUS, &(struct sigaction){.sa_handler = die_of_sigbus}, NULL) == 0);
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    bp_monitor *monitor = NULL;
    CHECK(bp_monitor_new(&monitor, NULL) == BUGPACK_OK);
    bp_monitor_add(monitor, count_run, NULL);
    bp_file_guard *guard = bp_monitor_file_guard(monitor);
    static void (*const harms[])(const char *) = {by_open, by_truncate, by_ftruncate, by_punching};
    for (unsigned long i = 0; i < rounds * 4; i++) {
        run_round(&dir, guard, harms[i % 4]);
    }
    CHECK(atomic_load(&task_count) > 0);
    bp_monitor_remove(monitor, count_run);
    bp_monitor_free(monitor);
    CHECK(atomic_load(&signal_count) == 0);
    temp_dir_remove(&dir);
    (void)printf("%lu truncations, no signal\n", rounds * 4);
    return 0;
}
