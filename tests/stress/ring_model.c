/*
 * A model check of appends to a shared ring: ring/chunk.c itself, with a random change of threads
 * at each atomic operation, and everywhere in a copy. Writers, a reader, sometimes a close and
 * always a kill at a random step. It finds wrong orders of operations, of which a run of real
 * threads meets few; what a processor may reorder is ThreadSanitizer's, in ring_threads.
 *
 *     stress_ring_model [INTERLEAVINGS]
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* Beside the one of the library. */
#define bp_chunk_divide model_divide
#define bp_chunks_new model_new
#define bp_chunks_free model_free
#define bp_chunks_append model_append
#define bp_chunks_share model_share
#define bp_chunks_shut model_shut
#define bp_chunks_read_tally model_read_tally
#define bp_chunks_begun_count model_begun_count
#include "base/clock.h"
#include "base/lock.h"
#include "ring/chunk_reader.h"
#include "support/check.h"

static void step(void);
static void yield_thread(void);
static uint64_t read_clock(void);
static void write_frame(unsigned char *data, uint64_t offset, uint64_t seed,
                        const bp_ring_record *record, const struct iovec *parts, size_t part_count);

#include <sched.h>
#include <time.h>

static bool compare_exchange(atomic_uint *object, const unsigned *expected, unsigned value) {
    step();
    bool is_same = *object == *expected;
    if (is_same) {
        *object = value;
    }
    return is_same;
}

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_fetch_add_explicit
#undef atomic_compare_exchange_strong_explicit
#define atomic_load_explicit(object, order) (step(), *(object))
#define atomic_store_explicit(object, value, order)                                                \
    do {                                                                                           \
        step();                                                                                    \
        *(object) = (value);                                                                       \
        step();                                                                                    \
    } while (false)
#define atomic_fetch_add_explicit(object, value, order) ((*(object) += (value)) - (value))
#define atomic_compare_exchange_strong_explicit(object, expected, value, yes, no)                  \
    compare_exchange(object, expected, value)
#define bp_lock_acquire(lock)                                                                      \
    do {                                                                                           \
        yield_thread();                                                                            \
    } while (!bp_lock_try_acquire(lock))
#define sched_yield() (yield_thread(), 0)
#define nanosleep(time, rest) (yield_thread(), 0)
#define bp_clock_monotonic_ns read_clock
#define bp_frame_write write_frame
#include "../../src/core/ring/chunk.c" /* NOLINT(bugprone-suspicious-include) */
#undef bp_frame_write

enum {
    capacity = 256 * 1024,
    writer_max = 4,
    thread_max = writer_max + 2,
    append_count = 24,
    word_max = 5000, /* of a record, which is in up to four chunks */
    stack_bytes = 64 * 1024
};

/* What the schedule follows from. */
static uint64_t random_state;

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* --- threads ------------------------------------------------------------------------------- */

typedef struct thread {
    ucontext_t context;
    void (*run)(unsigned number);
    unsigned char memory_of_writer[sizeof writer];
    bool is_over;
} thread;

static struct {
    thread threads[thread_max];
    unsigned thread_count, running;
    unsigned preempted; /* one that seldom runs */
    ucontext_t scheduler;
    uint64_t step_count, kill_step;
    bool is_checking; /* nobody runs any more */
    uint64_t clock_ns, jump_every;
} model;

static unsigned char stacks[thread_max][stack_bytes];

static void yield_thread(void) {
    if (!model.is_checking) {
        CHECK(swapcontext(&model.threads[model.running].context, &model.scheduler) == 0);
    }
}

static void step(void) {
    if (next_random() % 4 == 0) {
        yield_thread();
    }
}

/* Mostly goes on by nanoseconds, and sometimes beyond the floor. */
static uint64_t read_clock(void) {
    model.clock_ns +=
        next_random() % model.jump_every == 0 ? BP_CHUNK_FLOOR_NS : 1 + next_random() % 3;
    return model.clock_ns;
}

static void begin_thread(void) {
    thread *self = &model.threads[model.running];
    self->run(model.running);
    self->is_over = true;
    yield_thread();
}

static void add_thread(void (*run)(unsigned number)) {
    thread *added = &model.threads[model.thread_count];
    memset(added, 0, sizeof *added);
    added->run = run;
    CHECK(getcontext(&added->context) == 0);
    added->context.uc_stack.ss_sp = stacks[model.thread_count++];
    added->context.uc_stack.ss_size = stack_bytes;
    makecontext(&added->context, begin_thread, 0);
}

/* Until all are over, or are killed. */
static void run_threads(void) {
    unsigned left_count = model.thread_count;
    while (left_count > 0 && model.step_count++ < model.kill_step) {
        do {
            model.running = (unsigned)(next_random() % model.thread_count);
        } while (model.threads[model.running].is_over ||
                 (model.running == model.preempted && next_random() % 200 != 0));
        thread *next = &model.threads[model.running];
        memcpy(&writer, next->memory_of_writer, sizeof writer);
        CHECK(swapcontext(&model.scheduler, &next->context) == 0);
        memcpy(next->memory_of_writer, &writer, sizeof writer);
        left_count -= next->is_over;
    }
}

/* --- the ring ------------------------------------------------------------------------------ */

static struct {
    _Alignas(64) bp_frame_page page;
    _Alignas(64) unsigned char data[capacity];
} file;

static bp_chunks *chunks;
static bp_chunk_layout layout;

/* Of each writer: appends that were begun, and that have returned. */
static uint64_t begun_counts[writer_max], returned_counts[writer_max];
static bool is_shut;

/* The record with the newest stamp. */
static struct {
    uint64_t stamp_ns, count;
    unsigned writer;
    bool is_small; /* it is in two chunks at most */
} newest;

static uint64_t sum(const uint64_t *counts) {
    uint64_t total = 0;
    for (unsigned i = 0; i < writer_max; i++) {
        total += counts[i];
    }
    return total;
}

/* A frame is torn while it is written. */
static void write_frame(unsigned char *data, uint64_t offset, uint64_t seed,
                        const bp_ring_record *record, const struct iovec *parts,
                        size_t part_count) {
    uint64_t payload_bytes = bp_frame_payload_bytes(record);
    memset(data + offset, 0x5a, (size_t)bp_frame_bytes(payload_bytes) / 2 / 8 * 8);
    step();
    bp_frame_write(data, offset, seed, record, parts, part_count);
    bool is_last = (record->payload_bytes & BP_FRAME_GOES_ON) == 0;
    bool is_piece = (record->payload_bytes & BP_FRAME_PIECE) != 0;
    if (is_last && record->monotonic_ns > newest.stamp_ns) {
        const bp_frame_link *link = parts[0].iov_base;
        newest.is_small = !is_piece || link->before_bytes < layout.chunk_bytes - sizeof(bp_frame);
        newest.stamp_ns = record->monotonic_ns;
        newest.writer = record->tag;
        newest.count = begun_counts[record->tag];
    }
    step();
}

static void append_records(unsigned number) {
    static uint64_t payloads[writer_max][word_max];
    for (uint64_t i = 1; i <= append_count; i++) {
        size_t word_count =
            1 + (size_t)(next_random() % (next_random() % 4 == 0 ? word_max : word_max / 4));
        for (size_t word = 0; word < word_count; word++) {
            payloads[number][word] = (uint64_t)number << 32 | i;
        }
        size_t cut = (size_t)(next_random() % word_count);
        const struct iovec parts[] = {{payloads[number], cut * 8},
                                      {payloads[number] + cut, (word_count - cut) * 8}};
        const bp_ring_entry entry = {.tag = number, .parts = parts, .part_count = 2};
        uint64_t stamp_ns = read_clock();
        step();
        begun_counts[number]++;
        if (model_append(chunks, &entry, stamp_ns, word_count * 8) == 0) {
            CHECK(is_shut);
            begun_counts[number]--;
            return;
        }
        returned_counts[number]++;
    }
}

static int read_data(void *context, uint64_t offset, void *bytes, size_t byte_count) {
    (void)context;
    for (size_t done = 0; done < byte_count;) {
        size_t piece = byte_count <= 24 ? 8 : 1024;
        piece = byte_count - done < piece ? byte_count - done : piece;
        step();
        memcpy((unsigned char *)bytes + done, file.data + offset + done, piece);
        done += piece;
    }
    return 0;
}

/* What the records of a reading say. */
typedef struct seen {
    uint64_t until_ns, last_ns, sequence;
    uint64_t newest[writer_max], count;
} seen;

static bugpack_status look_at(void *context, const void *bytes, size_t byte_count) {
    seen *it = context;
    const unsigned char *at = bytes;
    for (size_t offset = 0; offset < byte_count;) {
        const bp_ring_record *record = (const void *)(at + offset);
        const uint64_t *words = (const void *)(record + 1);
        CHECK(record->tag < writer_max && record->payload_bytes % 8 == 0);
        for (size_t word = 0; word < record->payload_bytes / 8; word++) {
            CHECK(words[word] == words[0]); /* not torn */
        }
        CHECK(words[0] >> 32 == record->tag);
        CHECK((uint32_t)words[0] > it->newest[record->tag]); /* in order, and once */
        CHECK(record->monotonic_ns >= it->last_ns && record->monotonic_ns <= it->until_ns);
        CHECK(it->sequence == 0 || record->sequence > it->sequence);
        it->newest[record->tag] = (uint32_t)words[0];
        it->last_ns = record->monotonic_ns;
        it->sequence = record->sequence;
        it->count++;
        offset += sizeof *record + record->payload_bytes;
    }
    return BUGPACK_OK;
}

static bp_ring_view read_ring(bool is_trusted, uint64_t until_ns, seen *ret_seen) {
    const bp_chunk_source source = {.layout = layout,
                                    .seed = file.page.seed,
                                    .is_trusted = is_trusted,
                                    .begun_count = is_trusted ? 0 : file.page.begun_count,
                                    .read = read_data};
    bp_chunk_reading reading = {.until_ns = until_ns, .max_bytes = UINT64_MAX};
    bp_ring_view view;
    *ret_seen = (seen){.until_ns = until_ns};
    CHECK(bp_chunk_read(&source, &reading, look_at, ret_seen, &view, NULL) == BUGPACK_OK);
    CHECK(view.record_count == ret_seen->count);
    return view;
}

static uint64_t copy_count;

static void copy_records(unsigned number) {
    (void)number;
    for (unsigned i = 0; i < 3; i++) {
        seen found;
        uint64_t returned_count = sum(returned_counts);
        bp_ring_view view = read_ring(true, UINT64_MAX, &found);
        uint64_t total_count = view.record_count + view.evicted_count;
        CHECK(total_count >= returned_count && total_count <= sum(begun_counts));
        CHECK(found.sequence <= total_count);
        view = read_ring(true, model.clock_ns, &found); /* no record is later than its instant */
        copy_count += view.record_count > 0;
    }
}

static void shut(unsigned number) {
    (void)number;
    for (unsigned i = 0; i < 200; i++) {
        yield_thread();
    }
    is_shut = true;
    model_shut(chunks);
    uint64_t before[writer_max];
    memcpy(before, returned_counts, sizeof before);
    seen found;
    bp_ring_view view = read_ring(true, UINT64_MAX, &found);
    CHECK(view.record_count + view.evicted_count >= sum(before));
}

/* As a recovery finds it: nothing is torn, nothing is lost but what was overwritten and counted,
 * and the newest record is there, if its append had returned and was within the floor. */
static uint64_t check_killed(void) {
    seen found;
    model.is_checking = true;
    bp_ring_view view = read_ring(false, UINT64_MAX, &found);
    model.is_checking = false;
    uint64_t total_count = view.record_count + view.evicted_count;
    CHECK(!view.is_damaged && view.damaged_bytes == 0);
    CHECK(total_count >= sum(returned_counts) && total_count <= sum(begun_counts));
    bool is_kept = newest.is_small && newest.stamp_ns + BP_CHUNK_FLOOR_NS > model.clock_ns &&
                   newest.count <= returned_counts[newest.writer];
    CHECK(!is_kept || found.newest[newest.writer] >= newest.count);
    return view.evicted_count;
}

static uint64_t run_interleaving(uint64_t number) {
    random_state = (number + 1) * 0x9e3779b97f4a7c15u;
    memset(&file, 0, sizeof file);
    memset(begun_counts, 0, sizeof begun_counts);
    memset(returned_counts, 0, sizeof returned_counts);
    newest.stamp_ns = 0;
    is_shut = false;
    file.page.seed = next_random();
    chunks = model_new(&file.page, file.data, &layout);
    CHECK(chunks != NULL && model_share(chunks));
    model.thread_count = 0;
    model.step_count = 0;
    model.preempted = (unsigned)(next_random() % writer_max);
    model.clock_ns = 10 * BP_NS_PER_SEC;
    model.jump_every = next_random() % 2 == 0 ? 8 : 200;
    model.kill_step = next_random() % 3 == 0 ? UINT64_MAX : next_random() % 1500;
    for (unsigned i = 0; i < writer_max; i++) {
        add_thread(append_records);
    }
    add_thread(copy_records);
    if (number % 4 == 0) {
        add_thread(shut);
    }
    run_threads();
    uint64_t evicted_count = check_killed();
    (void)bp_lock_try_acquire(&chunks->lock); /* else a killed thread holds it */
    bp_lock_release(&chunks->lock);
    model_free(chunks);
    return evicted_count;
}

int main(int argument_count, char **arguments) {
    unsigned long count = run_length(argument_count, arguments, 10000);
    uint64_t turned_count = 0;
    layout = model_divide(capacity);
    for (unsigned long i = 0; i < count; i++) {
        turned_count += run_interleaving(i) > 0;
    }
    CHECK(turned_count > 0 && copy_count > 0);
    (void)printf("%lu interleavings, %llu of them overwrote records, %llu copies\n", count,
                 (unsigned long long)turned_count, (unsigned long long)copy_count);
    return 0;
}
