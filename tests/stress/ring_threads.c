/*
 * Writers append while a reader copies: what the reader gets is whole, in the order of the sequence
 * numbers, without a gap but for what was overwritten under its hands, and counted to the last
 * record. Run under ThreadSanitizer too.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "ring/ring.h"
#include "support/check.h"

/* The ring is small beside a piece of the reader's, so that it is overtaken all the time. */
enum { writer_count = 4, copy_count = 200, ring_bytes = 256 * 1024, text_max_bytes = 900 };

static bp_ring *ring;
static atomic_bool must_stop;
static atomic_uint_fast64_t appended_count;

/* A record says how long it is and repeats one letter, so that a torn one shows. */
typedef struct head {
    uint32_t text_bytes;
    char letter;
} head;

static void *write_records(void *argument) {
    head begin = {.letter = (char)('a' + (uintptr_t)argument)};
    char text[text_max_bytes];
    memset(text, begin.letter, sizeof text);
    for (uint32_t i = 0; !atomic_load(&must_stop); i++) {
        begin.text_bytes = i * 37 % text_max_bytes;
        struct iovec parts[] = {{.iov_base = &begin, .iov_len = sizeof begin},
                                {.iov_base = text, .iov_len = begin.text_bytes}};
        CHECK(bp_ring_append(ring, (bp_instant){.wall_ns = i}, parts, 2) > 0);
        atomic_fetch_add(&appended_count, 1);
    }
    return NULL;
}

/* Until so many more are there: a thread that was made has not begun yet. */
static void wait_for_records(uint64_t count) {
    uint64_t enough = atomic_load(&appended_count) + count;
    while (atomic_load(&appended_count) < enough) {
        (void)sched_yield();
    }
}

static void check_record(const bp_ring_record *record, const void *payload) {
    head begin;
    CHECK(record->payload_bytes >= sizeof begin);
    memcpy(&begin, payload, sizeof begin);
    CHECK(record->payload_bytes == sizeof begin + begin.text_bytes);
    CHECK(begin.letter >= 'a' && begin.letter < 'a' + writer_count);
    const char *text = (const char *)payload + sizeof begin;
    for (uint32_t i = 0; i < begin.text_bytes; i++) {
        CHECK(text[i] == begin.letter);
    }
}

/* Returns how many records were overwritten before the reader came to them. */
static uint64_t check_copy(uint64_t mark, const bp_buffer *copy, const bp_ring_view *view) {
    uint64_t count = 0, last_sequence = 0, gap_count = 0;
    size_t offset = 0;
    const void *payload = NULL;
    const bp_ring_record *record;
    while ((record = bp_ring_next(copy, &offset, &payload)) != NULL) {
        check_record(record, payload);
        CHECK(count > 0 || record->sequence == view->first_sequence);
        CHECK(record->sequence > last_sequence && record->sequence <= mark);
        gap_count += count > 0 ? record->sequence - last_sequence - 1 : 0;
        last_sequence = record->sequence;
        count++;
    }
    CHECK(offset == copy->size);
    CHECK(count == view->record_count && last_sequence == view->last_sequence);
    CHECK(view->record_count + view->evicted_count == mark);
    CHECK(view->refused_count == 0);
    return gap_count;
}

static void whole_records_in_their_order(void) {
    CHECK(bp_ring_new(ring_bytes, &ring, NULL) == BUGPACK_OK);
    pthread_t writers[writer_count];
    for (uintptr_t i = 0; i < writer_count; i++) {
        CHECK(pthread_create(&writers[i], NULL, write_records, (void *)i) == 0);
    }
    wait_for_records(1000);
    bp_buffer copy;
    bp_buffer_init(&copy, (size_t)1 << 20);
    uint64_t gap_count = 0;
    for (unsigned i = 0; i < copy_count; i++) {
        bp_ring_view view;
        bp_buffer_clear(&copy);
        uint64_t mark = bp_ring_mark(ring);
        CHECK(bp_ring_copy(ring, mark, &copy, &view, NULL) == BUGPACK_OK);
        gap_count += check_copy(mark, &copy, &view);
    }
    atomic_store(&must_stop, true);
    for (unsigned i = 0; i < writer_count; i++) {
        CHECK(pthread_join(writers[i], NULL) == 0);
    }
    CHECK(bp_ring_mark(ring) == atomic_load(&appended_count));
    printf("%llu records, %u copies, %llu overwritten under the reader\n",
           (unsigned long long)atomic_load(&appended_count), copy_count,
           (unsigned long long)gap_count);
    bp_buffer_release(&copy);
    bp_ring_free(ring);
}

/* How often the reader has had the lock, and how often while writers waited, over all waits. */
static _Thread_local bool is_reader;
static atomic_uint_fast64_t reader_turn_count, passed_sum, wait_count;

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);

/* Stands between the ring and its lock (ld's --wrap). */
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
    uint64_t before = atomic_load(&reader_turn_count);
    int result = __real_pthread_mutex_lock(mutex);
    if (is_reader) {
        (void)atomic_fetch_add(&reader_turn_count, 1);
        return result;
    }
    uint64_t passed = atomic_load(&reader_turn_count) - before;
    if (passed > 0) {
        (void)atomic_fetch_add(&passed_sum, passed);
        (void)atomic_fetch_add(&wait_count, 1);
    }
    return result;
}

/*
 * A reader takes and gives back the lock once for each piece of 64 KiB. A mutex alone lets it have
 * the lock again before a writer has woken up, so that one call of a host waits for about a
 * thousand turns. Counted in turns of the reader and not in time, and on average, because a writer
 * that the machine gives no CPU is passed by all the same.
 */
static void a_writer_is_let_in_between_two_pieces(void) {
    enum { large_bytes = 32 * 1024 * 1024, copies = 10, most_turns = 64 };
    CHECK(bp_ring_new(large_bytes, &ring, NULL) == BUGPACK_OK);
    bp_buffer copy;
    bp_buffer_init(&copy, 2 * large_bytes);
    char *room = bp_buffer_reserve(&copy, large_bytes);
    CHECK(room != NULL);
    memset(room, 1, large_bytes); /* else page faults interrupt the reader */
    atomic_store(&must_stop, false);
    pthread_t writer;
    CHECK(pthread_create(&writer, NULL, write_records, NULL) == 0);
    wait_for_records(large_bytes / (text_max_bytes / 2));
    is_reader = true;
    for (unsigned i = 0; i < copies; i++) {
        bp_ring_view view;
        bp_buffer_clear(&copy);
        CHECK(bp_ring_copy(ring, UINT64_MAX, &copy, &view, NULL) == BUGPACK_OK);
    }
    is_reader = false;
    atomic_store(&must_stop, true);
    CHECK(pthread_join(writer, NULL) == 0);
    uint64_t waits = atomic_load(&wait_count), passed = atomic_load(&passed_sum);
    (void)printf("%llu waits for %llu of %llu turns of the reader\n", (unsigned long long)waits,
                 (unsigned long long)passed, (unsigned long long)atomic_load(&reader_turn_count));
    CHECK(passed <= most_turns * waits);
    bp_buffer_release(&copy);
    bp_ring_free(ring);
}

int main(void) {
    whole_records_in_their_order();
    a_writer_is_let_in_between_two_pieces();
    return 0;
}
