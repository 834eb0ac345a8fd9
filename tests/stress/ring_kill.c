/*
 * kill -9 at a random instant while eight threads append to a shared ring, or two to another one:
 * every record whose append had returned, and that had not made room for newer ones, is in the
 * file, in order, and none is torn. What made room is counted.
 *
 *     stress_ring_kill [ROUNDS]
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ring/frame.h"
#include "ring/ring.h"
#include "support/check.h"
#include "support/ring_records.h"
#include "support/temp_dir.h"

enum { capacity_bytes = 256 * 1024, large_bytes = 40000, shared_large_bytes = 17000 };

enum { writer_max = 8 };

/* Shared with the writer, which is killed. */
static struct {
    _Atomic uint64_t begun_count[writer_max], returned_count[writer_max];
    _Atomic uint64_t last_ns[writer_max]; /* before the newest append that has returned */
    atomic_bool is_writing;
} * told;

static bp_ring *ring;
static bool is_shared;
static uint64_t seed;

/* Which payload a record has follows from its tag, because threads do not know their sequence. The
 * lowest bits of a tag are the thread's number. */
static size_t size_of(uint32_t tag) {
    size_t large = is_shared ? shared_large_bytes : large_bytes;
    return tag % 61 == 0 ? large - tag % 512 : tag * 7 % 900;
}

static void *append_forever(void *argument) {
    unsigned thread = (unsigned)(uintptr_t)argument;
    for (uint32_t tag = thread;; tag += writer_max) {
        uint64_t began_ns = bp_clock_monotonic_ns();
        atomic_fetch_add(&told->begun_count[thread], 1);
        CHECK(append_number(ring, tag, tag, size_of(tag)) != 0);
        atomic_fetch_add(&told->returned_count[thread], 1);
        atomic_store(&told->last_ns[thread], began_ns);
        atomic_store(&told->is_writing, true);
    }
    return NULL;
}

static void write_until_killed(int fd) {
    CHECK(bp_ring_new_mapped(fd, capacity_bytes, &ring, NULL) == BUGPACK_OK);
    if (is_shared) {
        CHECK(bp_ring_share(ring, NULL) == BUGPACK_OK);
    }
    for (uintptr_t i = 1; i < (is_shared ? writer_max : 2); i++) {
        pthread_t other;
        CHECK(pthread_create(&other, NULL, append_forever, (void *)i) == 0);
    }
    (void)append_forever((void *)(uintptr_t)0);
}

static uint64_t sum(const _Atomic uint64_t *counts) {
    uint64_t total = 0;
    for (int i = 0; i < writer_max; i++) {
        total += atomic_load(&counts[i]);
    }
    return total;
}

/* Salvages and checks; how many records there were. */
static uint64_t check_file(int fd) {
    bp_buffer out;
    bp_ring_view view;
    bp_buffer_init(&out, 1u << 30);
    CHECK(bp_ring_recover(fd, keep_in_buffer, &out, &view, NULL) == BUGPACK_OK);
    size_t offset = 0;
    const void *payload = NULL;
    const bp_ring_record *record;
    uint64_t next = view.first_sequence, held_bytes = 0, last_ns = 0;
    uint64_t after[writer_max] = {0};
    while ((record = next_record(&out, &offset, &payload)) != NULL) {
        unsigned thread = record->tag % writer_max;
        CHECK(record->sequence == next++);
        CHECK(record->payload_bytes == size_of(record->tag));
        CHECK(is_number(payload, record->payload_bytes, record->tag));
        CHECK(record->tag >= after[thread]); /* each thread's in their order */
        CHECK(record->monotonic_ns >= last_ns);
        after[thread] = (uint64_t)record->tag + 1;
        last_ns = record->monotonic_ns;
        held_bytes += bp_frame_bytes(record->payload_bytes);
    }
    uint64_t newest_ns = 0;
    for (int i = 0; i < writer_max; i++) {
        uint64_t began_ns = atomic_load(&told->last_ns[i]);
        newest_ns = began_ns > newest_ns ? began_ns : newest_ns;
    }
    CHECK(view.last_ns >= newest_ns); /* the newest that had returned, or a newer one */
    CHECK(view.damaged_bytes == 0 && !view.is_damaged);
    uint64_t total_count = view.record_count + view.evicted_count;
    CHECK(total_count >= sum(told->returned_count) && total_count <= sum(told->begun_count));
    /* Nothing went but to make room: for a chunk, for a record of which a piece is left and for one
     * under way, in each lane, and for what is empty at the end of chunks. */
    uint64_t spare_bytes = is_shared ? capacity_bytes / 2 : 3 * (large_bytes + 64);
    CHECK(view.first_sequence <= 1 || held_bytes + spare_bytes > capacity_bytes);
    CHECK(view.record_count == 0 || next == view.last_sequence + 1);
    bp_buffer_release(&out);
    return view.last_sequence;
}

static uint64_t run_round(temp_dir *dir) {
    memset(told, 0, sizeof *told);
    int fd = openat(dir->fd, "ring", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    pid_t writer = fork();
    CHECK(writer >= 0);
    if (writer == 0) {
        write_until_killed(fd);
    }
    while (!atomic_load(&told->is_writing)) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    (void)nanosleep(&(struct timespec){.tv_nsec = (long)(seed >> 33) % 3000000}, NULL);
    CHECK(kill(writer, SIGKILL) == 0);
    int status = 0;
    CHECK(waitpid(writer, &status, 0) == writer);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    uint64_t newest = check_file(fd);
    (void)close(fd);
    CHECK(unlinkat(dir->fd, "ring", 0) == 0);
    return newest;
}

int main(int argument_count, char **arguments) {
    unsigned long rounds = run_length(argument_count, arguments, 300);
    seed = bp_clock_wall_ns();
    told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(told != MAP_FAILED);
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    unsigned long turned = 0;
    uint64_t total = 0;
    for (unsigned long i = 0; i < rounds; i++) {
        is_shared = i % 6 != 0;
        uint64_t newest = run_round(&dir);
        total += newest;
        turned += newest > 700;
    }
    temp_dir_remove(&dir);
    CHECK(total > 0);
    (void)printf("%lu kills, %llu records, %lu rings had turned over, nothing lost or torn\n",
                 rounds, (unsigned long long)total, turned);
    return 0;
}
