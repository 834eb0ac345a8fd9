/*
 * Sixteen writers, three readers and a close at once, on a ring in memory, on one in a file, and on
 * both when they are shared: every copy has whole records, in order, without a gap.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ring/ring.h"
#include "support/check.h"
#include "support/ring_records.h"
#include "support/temp_dir.h"

enum { writer_count = 16, reader_count = 3, capacity_bytes = 256 * 1024, most_appends = 20000 };

static bp_ring *ring;
static atomic_bool is_over;
static bool is_shared;
static bool ends_by_itself; /* else a writer goes on until the ring is closed */
static _Atomic uint64_t appended_count, refused_count, copied_count;

/* What a record says of itself; its payload is numbers that follow from it. */
static void *append(void *argument) {
    uint32_t writer = (uint32_t)(uintptr_t)argument;
    uint64_t last_ns = 0;
    for (uint64_t i = 0; i < most_appends || !ends_by_itself; i++) {
        uint64_t number = (uint64_t)writer << 32 | i;
        size_t size = 16 + (size_t)(i * 31 % 700) +
                      (i % 97 == 0 ? i % 89 * (bp_ring_payload_max(ring) / 100) : 0);
        uint64_t words[2] = {number, size};
        static const unsigned char filling[capacity_bytes / 4];
        struct iovec parts[] = {{.iov_base = words, .iov_len = sizeof words},
                                {.iov_base = (void *)(uintptr_t)filling, .iov_len = size - 16}};
        uint64_t stamp_ns = bp_ring_append(ring, writer, parts, 2);
        if (stamp_ns == 0) {
            atomic_fetch_add(&refused_count, 1);
            break;
        }
        CHECK(stamp_ns >= last_ns);
        last_ns = stamp_ns;
        atomic_fetch_add(&appended_count, 1);
    }
    return NULL;
}

/* Copies once and looks at every byte. */
static bp_ring_view check_copy(uint64_t until_ns) {
    bp_buffer out;
    bp_ring_view view;
    bp_buffer_init(&out, 1u << 30);
    CHECK(bp_ring_copy(ring, until_ns, keep_in_buffer, &out, &view, NULL) == BUGPACK_OK);
    uint64_t next[writer_count] = {0};
    uint64_t last = 0, last_ns = 0, count = 0;
    size_t offset = 0;
    const void *payload = NULL;
    const bp_ring_record *record;
    while ((record = next_record(&out, &offset, &payload)) != NULL) {
        uint64_t words[2];
        CHECK(record->payload_bytes >= sizeof words && record->tag < writer_count);
        memcpy(words, payload, sizeof words);
        CHECK(record->sequence > last && record->monotonic_ns <= until_ns);
        CHECK(record->monotonic_ns >= last_ns);
        last_ns = record->monotonic_ns;
        CHECK(words[0] >> 32 == record->tag && words[1] == record->payload_bytes);
        CHECK((words[0] & UINT32_MAX) >= next[record->tag]);
        for (size_t i = sizeof words; i < record->payload_bytes; i++) {
            CHECK(((const unsigned char *)payload)[i] == 0);
        }
        next[record->tag] = (words[0] & UINT32_MAX) + 1;
        last = record->sequence;
        count++;
    }
    CHECK(count == view.record_count && last == view.last_sequence);
    bp_buffer_release(&out);
    return view;
}

static void *copy(void *argument) {
    bool has_limit = (uintptr_t)argument % 2 == 1;
    while (!atomic_load(&is_over)) {
        uint64_t before = atomic_load(&appended_count);
        bp_ring_view view = check_copy(has_limit ? bp_clock_monotonic_ns() : UINT64_MAX);
        CHECK(view.record_count + view.evicted_count >= before || has_limit);
        atomic_fetch_add(&copied_count, view.record_count > 0);
    }
    return NULL;
}

static void end_readers(pthread_t *readers) {
    atomic_store(&is_over, true);
    for (uintptr_t i = 0; i < reader_count; i++) {
        CHECK(pthread_join(readers[i], NULL) == 0);
    }
}

static uint64_t appended_at_close;

/* Readers may not be inside a ring that is closed; writers may. */
static void close_under_writers(pthread_t *readers) {
    end_readers(readers);
    bp_ring_close(ring);
    appended_at_close = atomic_load(&appended_count);
}

static void run(bool is_closed_early) {
    atomic_store(&is_over, false);
    ends_by_itself = !is_closed_early;
    atomic_store(&appended_count, 0);
    atomic_store(&refused_count, 0);
    atomic_store(&copied_count, 0);
    pthread_t writers[writer_count], readers[reader_count];
    for (uintptr_t i = 0; i < reader_count; i++) {
        CHECK(pthread_create(&readers[i], NULL, copy, (void *)i) == 0);
    }
    for (uintptr_t i = 0; i < writer_count; i++) {
        CHECK(pthread_create(&writers[i], NULL, append, (void *)i) == 0);
    }
    while (atomic_load(&appended_count) < 2000) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    if (is_closed_early) {
        close_under_writers(readers);
    }
    for (uintptr_t i = 0; i < writer_count; i++) {
        CHECK(pthread_join(writers[i], NULL) == 0);
    }
    if (is_closed_early) {
        /* A writer counts its record a moment after the append. */
        CHECK(atomic_load(&appended_count) <= appended_at_close + writer_count);
        CHECK(atomic_load(&refused_count) == writer_count);
        bp_ring_free(ring);
        return;
    }
    end_readers(readers);
    bp_ring_view view = check_copy(UINT64_MAX);
    CHECK(view.last_sequence == atomic_load(&appended_count));
    CHECK(view.refused_count == atomic_load(&refused_count));
    CHECK(view.record_count == view.last_sequence - view.first_sequence + 1);
    CHECK(view.record_count + view.evicted_count == view.last_sequence);
    (void)printf("%llu records, %llu copies meanwhile\n", (unsigned long long)view.last_sequence,
                 (unsigned long long)atomic_load(&copied_count));
    bp_ring_free(ring);
}

/* In memory where there is no directory. */
static void run_ring(temp_dir *dir, bool is_closed_early) {
    if (dir == NULL) {
        CHECK(bp_ring_new(capacity_bytes, &ring, NULL) == BUGPACK_OK);
    } else {
        int fd = openat(dir->fd, "ring", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        CHECK(bp_ring_new_mapped(fd, capacity_bytes, &ring, NULL) == BUGPACK_OK);
        CHECK(close(fd) == 0 && unlinkat(dir->fd, "ring", 0) == 0);
    }
    if (is_shared) {
        CHECK(bp_ring_share(ring, NULL) == BUGPACK_OK);
    }
    run(is_closed_early);
}

int main(void) {
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    for (int i = 0; i < 2; i++) {
        is_shared = i == 1;
        run_ring(NULL, false);
        run_ring(NULL, true);
        run_ring(&dir, false);
    }
    temp_dir_remove(&dir);
    return 0;
}
