#include "ring/chunk.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/lock.h"

enum { lane_free, lane_busy, lane_shut };

static const uint32_t no_chunk = UINT32_MAX, no_lane = UINT32_MAX;

/* The records of a chunk are of this thread alone; of several: 0. */
typedef uint32_t writer_id;

typedef struct lane_tally {
    _Atomic uint64_t record_count, amount, last_ns;
} lane_tally;

/* The members after `state` belong to the thread that made it busy. */
typedef struct lane {
    _Alignas(64) atomic_uint state;
    uint32_t chunk;       /* where its writers append; no_chunk: none yet, or it was taken */
    uint64_t offset, end; /* in the data area: of the next frame, and of the chunk's end */
    uint64_t chunk_state; /* as the chunk's head has it */
    uint64_t number;      /* of the newest record of the chunk */
    uint64_t last_ns;     /* the newest stamp; stamps never descend in a lane */
    writer_id writer;
    /* The chunk before, and when it was full. Under the lock. */
    writer_id earlier_writer;
    uint32_t earlier_chunk;
    uint64_t full_ns;
    lane_tally tallies[BP_RING_TALLY_COUNT]; /* written by who is inside, read by others */
} lane;

/* Our own copy of what the file has, which others might write to. */
typedef struct owned_chunk {
    uint64_t record_count; /* of all turns, once no lane appends to it */
    uint64_t begun_ns;     /* when its turn began */
    uint32_t turn;
    uint32_t lane; /* that appends to it, or did before its present one; no_lane */
    uint32_t next; /* the next newer one; no_chunk */
} owned_chunk;

enum { place_count = 8 };

struct bp_chunks {
    unsigned char *data;
    bp_frame_page *page;
    uint64_t seed;
    bp_chunk_layout layout;
    uint32_t lane_count; /* a power of two */
    uint32_t place;      /* of its writers' places; few rings share one */
    lane *lanes;
    /* Of what follows. Taken inside a lane; whoever holds it enters no lane that is not free. */
    _Alignas(64) bp_lock lock;
    owned_chunk *owned;
    uint32_t oldest, newest; /* the pool, which all chunks are in, by the beginning of their turn */
    _Atomic uint64_t begun_count;
};

bp_chunk_layout bp_chunk_divide(uint64_t capacity) {
    uint64_t chunk_bytes = BP_CHUNK_BYTES_MIN;
    /* 16 to 31 up to 16 KiB each, and then 256 to 511 until they are as large as they may be. */
    while (chunk_bytes < BP_CHUNK_BYTES_MAX &&
           chunk_bytes * (chunk_bytes < 16384 ? 32 : 512) <= capacity) {
        chunk_bytes *= 2;
    }
    uint64_t chunk_count = capacity / (chunk_bytes + sizeof(bp_chunk_head));
    return (bp_chunk_layout){chunk_bytes, chunk_count, chunk_count * sizeof(bp_chunk_head)};
}

/* Lanes without a chunk. NULL without memory. */
static lane *new_lanes(uint32_t lane_count) {
    lane *lanes = aligned_alloc(64, lane_count * sizeof *lanes);
    for (uint32_t i = 0; lanes != NULL && i < lane_count; i++) {
        lanes[i] = (lane){.chunk = no_chunk, .earlier_chunk = no_chunk};
    }
    return lanes;
}

bp_chunks *bp_chunks_new(bp_frame_page *page, unsigned char *data, const bp_chunk_layout *layout) {
    bp_chunks *chunks = aligned_alloc(64, sizeof *chunks);
    lane *lanes = new_lanes(1);
    owned_chunk *owned = calloc(layout->chunk_count, sizeof *owned);
    if (chunks == NULL || lanes == NULL || owned == NULL) {
        free(chunks);
        free(lanes);
        free(owned);
        return NULL;
    }
    *chunks = (bp_chunks){.data = data,
                          .page = page,
                          .seed = page->seed,
                          .layout = *layout,
                          .lane_count = 1,
                          .lanes = lanes,
                          .owned = owned};
    bp_lock_init(&chunks->lock, BP_LOCK_RING);
    for (uint32_t i = 0; i < layout->chunk_count; i++) {
        owned[i] = (owned_chunk){.lane = no_lane, .next = i + 1};
    }
    chunks->newest = (uint32_t)layout->chunk_count - 1;
    owned[chunks->newest].next = no_chunk;
    return chunks;
}

bool bp_chunks_share(bp_chunks *chunks) {
    static atomic_uint shared_count; /* the first is the log of the first session */
    unsigned before = atomic_fetch_add_explicit(&shared_count, 1, memory_order_relaxed);
    chunks->place = before == 0 ? 0 : 1 + (before - 1) % (place_count - 1);
    /* With two chunks for each lane, at least half of them can always be taken. */
    uint32_t lane_count = 1;
    while (lane_count < BP_CHUNK_LANE_COUNT_MAX &&
           lane_count * 2 <= chunks->layout.chunk_count / 4) {
        lane_count *= 2;
    }
    lane *lanes = new_lanes(lane_count);
    if (lanes != NULL) {
        free(chunks->lanes);
        chunks->lanes = lanes;
        chunks->lane_count = lane_count;
    }
    return lanes != NULL;
}

void bp_chunks_free(bp_chunks *chunks) {
    if (chunks != NULL) {
        bp_lock_destroy(&chunks->lock);
        free(chunks->lanes);
        free(chunks->owned);
        free(chunks);
    }
}

static bp_chunk_head *head_of(const bp_chunks *chunks, uint64_t chunk) {
    return (bp_chunk_head *)(void *)chunks->data + chunk;
}

/* --- lanes --------------------------------------------------------------------------------- */

/*
 * Which lane a thread enters first, by the place that rings have: a thread that is noisy in one is
 * quiet in another. Every fourth lane is for quiet threads, so that one that fills chunk after
 * chunk does not fill theirs. Which class a lane is of does not depend on the number of lanes.
 */
typedef struct writer_place {
    uint32_t lane;
    bool is_noisy;
    uint64_t full_ns; /* when it last filled a chunk */
} writer_place;
static _Thread_local struct {
    writer_id id; /* 0: not known yet */
    writer_place places[place_count];
} writer;

static bool is_for_quiet(uint32_t number) {
    return number % 4 == 0;
}

/* A thread is noisy while it fills a second chunk within the time of the floor. */
static void note_full(writer_place *place, uint64_t now_ns) {
    bool is_noisy = now_ns - place->full_ns < BP_CHUNK_FLOOR_NS;
    place->full_ns = now_ns;
    if (is_noisy != place->is_noisy) {
        place->is_noisy = is_noisy;
        place->lane = place->lane / 4 * 4 + (is_noisy ? 1 + place->lane / 4 % 3 : 0);
    }
}

static bool try_enter(lane *at) {
    unsigned expected = lane_free;
    return atomic_load_explicit(&at->state, memory_order_relaxed) == lane_free &&
           atomic_compare_exchange_strong_explicit(&at->state, &expected, lane_busy,
                                                   memory_order_acquire, memory_order_relaxed);
}

static void leave(lane *at) {
    atomic_store_explicit(&at->state, lane_free, memory_order_release);
}

/* For a lane to become free, whose writer may have been preempted. */
static void wait_a_little(unsigned attempt) {
    if (attempt < 16) {
        (void)sched_yield();
    } else { /* the writer may have a lower priority */
        int before;
        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
        (void)nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        (void)pthread_setcancelstate(before, &before);
    }
}

/* A lane that is free: the thread's own, or else the next of its class, or else any. NULL when they
 * are shut. */
static lane *enter(bp_chunks *chunks) {
    static atomic_uint writer_count;
    uint32_t last = chunks->lane_count - 1;
    while (writer.id == 0) {
        writer.id = 1 + atomic_fetch_add_explicit(&writer_count, 1, memory_order_relaxed);
        for (unsigned i = 0; i < place_count; i++) {
            writer.places[i].lane = 4 * writer.id;
        }
    }
    writer_place *place = &writer.places[chunks->place];
    for (unsigned attempt = 0;; attempt++) {
        for (uint32_t i = 0; i <= last; i++) {
            uint32_t number = (place->lane + i) & last;
            lane *at = &chunks->lanes[number];
            bool is_of_class = is_for_quiet(number) != place->is_noisy;
            if ((is_of_class || attempt > 0) && try_enter(at)) {
                place->lane = is_of_class ? number : place->lane;
                return at;
            }
            if (atomic_load_explicit(&at->state, memory_order_relaxed) == lane_shut) {
                return NULL;
            }
        }
        if (attempt > 0) {
            wait_a_little(attempt);
        }
    }
}

void bp_chunks_shut(bp_chunks *chunks) {
    for (uint32_t i = 0; i < chunks->lane_count; i++) {
        atomic_uint *state = &chunks->lanes[i].state;
        for (unsigned attempt = 0; atomic_load_explicit(state, memory_order_relaxed) != lane_shut;
             attempt++) {
            if (try_enter(&chunks->lanes[i])) {
                atomic_store_explicit(state, lane_shut, memory_order_relaxed);
            } else {
                wait_a_little(attempt);
            }
        }
    }
    bp_lock_acquire(&chunks->lock);
    free(chunks->owned);
    chunks->owned = NULL;
    bp_lock_release(&chunks->lock);
}

/* --- the pool ------------------------------------------------------------------------------ */

/*
 * True if a record was logged within the floor. For the only writer of a chunk that counts only if
 * the next chunk would cost it older records: it has all of the ring, in order.
 */
static bool is_kept(const bp_chunks *chunks, uint32_t chunk, writer_id of, uint64_t last_ns,
                    uint64_t now_ns) {
    uint32_t next = chunks->owned[chunk].next;
    bool is_in_order = next != no_chunk && last_ns <= chunks->owned[next].begun_ns;
    return (of != writer.id || !is_in_order) && now_ns < last_ns + BP_CHUNK_FLOOR_NS;
}

/*
 * True if the chunk is free, or was taken from the lane that has it. A lane keeps its two newest
 * chunks while they have records within the floor, and the newest while a writer is inside.
 */
static bool take_from_lane(bp_chunks *chunks, uint32_t chunk, const lane *mine, uint64_t now_ns) {
    owned_chunk *owned = &chunks->owned[chunk];
    if (owned->lane == no_lane) {
        return true;
    }
    lane *holder = &chunks->lanes[owned->lane];
    if (holder->earlier_chunk == chunk) {
        if (is_kept(chunks, chunk, holder->earlier_writer, holder->full_ns, now_ns)) {
            return false;
        }
        holder->earlier_chunk = no_chunk;
        return true;
    }
    if (holder == mine || !try_enter(holder)) {
        return false;
    }
    bool is_taken = !is_kept(chunks, chunk, holder->writer, holder->last_ns, now_ns);
    if (is_taken) {
        owned->record_count = holder->number;
        holder->chunk = no_chunk;
        holder->offset = holder->end = 0;
    }
    leave(holder);
    return is_taken;
}

/* The oldest chunk that can be taken, which becomes the newest. Lanes hold half of them at most, so
 * there is one. */
static uint32_t take_oldest(bp_chunks *chunks, const lane *mine, uint64_t now_ns) {
    uint32_t *link = &chunks->oldest;
    while (!take_from_lane(chunks, *link, mine, now_ns)) {
        link = &chunks->owned[*link].next;
    }
    uint32_t chunk = *link;
    if (chunk != chunks->newest) {
        *link = chunks->owned[chunk].next;
        chunks->owned[chunk].next = no_chunk;
        chunks->owned[chunks->newest].next = chunk;
        chunks->newest = chunk;
    }
    return chunk;
}

/* Begins the next turn of a chunk: its records are overwritten from here on, and counted. */
static uint64_t begin_turn(bp_chunks *chunks, uint32_t chunk) {
    owned_chunk *owned = &chunks->owned[chunk];
    bp_chunk_head *head = head_of(chunks, chunk);
    uint64_t chunk_state = (uint64_t)++owned->turn << 32;
    atomic_store_explicit(&head->earlier_count[owned->turn % 2], owned->record_count,
                          memory_order_relaxed);
    /* Release: who sees the turn sees its count. */
    atomic_store_explicit(&head->state, chunk_state, memory_order_release);
    /* Readers see the turn before the first byte is overwritten. */
    bp_frame_fence(memory_order_release);
    uint64_t begun_count = atomic_load_explicit(&chunks->begun_count, memory_order_relaxed) + 1;
    atomic_store_explicit(&chunks->begun_count, begun_count, memory_order_relaxed);
    atomic_store_explicit(&chunks->page->begun_count, begun_count, memory_order_relaxed);
    return chunk_state;
}

/* Gives a lane the oldest chunk instead of the one that is full. */
static void replace_chunk(bp_chunks *chunks, lane *mine, uint64_t now_ns) {
    bool was_full = mine->chunk != no_chunk;
    bp_lock_acquire(&chunks->lock);
    if (was_full) {
        chunks->owned[mine->chunk].record_count = mine->number;
        if (mine->earlier_chunk != no_chunk) {
            chunks->owned[mine->earlier_chunk].lane = no_lane;
        }
        mine->earlier_chunk = mine->chunk;
        mine->earlier_writer = mine->writer;
        mine->full_ns = now_ns;
    }
    uint32_t chunk = take_oldest(chunks, mine, now_ns);
    chunks->owned[chunk].lane = (uint32_t)(mine - chunks->lanes);
    chunks->owned[chunk].begun_ns = now_ns;
    mine->chunk = chunk;
    mine->writer = writer.id;
    mine->number = chunks->owned[chunk].record_count;
    mine->chunk_state = begin_turn(chunks, chunk);
    bp_lock_release(&chunks->lock);
    mine->offset = bp_chunk_offset(&chunks->layout, chunk);
    mine->end = mine->offset + chunks->layout.chunk_bytes;
    if (was_full && chunks->lane_count > 1) {
        note_full(&writer.places[chunks->place], now_ns);
    }
}

/* Appends a frame, for which there is room, and `record_count` (1, or 0 for a piece) to what the
 * chunk has. */
static void append_frame(bp_chunks *chunks, lane *mine, const bp_ring_record *record,
                         const struct iovec *parts, size_t part_count, uint64_t record_count) {
    bp_frame_write(chunks->data, mine->offset, chunks->seed, record, parts, part_count);
    uint64_t frame_bytes = bp_frame_bytes(bp_frame_payload_bytes(record));
    mine->offset += frame_bytes;
    mine->number += record_count;
    mine->chunk_state += (record_count << 16) + frame_bytes / 8;
    /* Release: who sees the state sees the records that it counts. */
    atomic_store_explicit(&head_of(chunks, mine->chunk)->state, mine->chunk_state,
                          memory_order_release);
}

/* The bytes of an entry from one on, as parts; how many. */
static size_t cut_parts(const bp_ring_entry *entry, uint64_t from, uint64_t byte_count,
                        struct iovec *ret_parts) {
    size_t count = 0;
    for (size_t i = 0; i < entry->part_count && byte_count > 0; i++) {
        const struct iovec *part = &entry->parts[i];
        uint64_t skipped = from < part->iov_len ? from : part->iov_len;
        uint64_t left = part->iov_len - skipped;
        left = left < byte_count ? left : byte_count;
        ret_parts[count++] = (struct iovec){(char *)part->iov_base + skipped, (size_t)left};
        from -= skipped;
        byte_count -= left;
    }
    return count;
}

/* Appends a record in pieces, all but the last up to the end of their chunks. */
static void append_pieces(bp_chunks *chunks, lane *mine, const bp_ring_entry *entry,
                          bp_ring_record *record, uint64_t payload_bytes) {
    bp_frame_link link = {.before_bytes = 0};
    bool goes_on = true;
    while (goes_on) {
        if (mine->end - mine->offset < bp_chunk_rest_bytes(&chunks->layout)) {
            replace_chunk(chunks, mine, record->monotonic_ns);
        }
        uint64_t left = payload_bytes - link.before_bytes;
        uint64_t most = mine->end - mine->offset - sizeof(bp_frame) - sizeof link;
        goes_on = left > most;
        uint64_t byte_count = goes_on ? most : left;
        struct iovec parts[1 + BP_RING_PART_COUNT_MAX] = {{&link, sizeof link}};
        size_t part_count = 1 + cut_parts(entry, link.before_bytes, byte_count, parts + 1);
        record->sequence = mine->number + 1;
        record->payload_bytes = (uint32_t)(sizeof link + byte_count) | BP_FRAME_PIECE |
                                (goes_on ? BP_FRAME_GOES_ON : 0);
        uint64_t offset = mine->offset - bp_chunk_offset(&chunks->layout, mine->chunk);
        append_frame(chunks, mine, record, parts, part_count, goes_on ? 0 : 1);
        link = (bp_frame_link){.turn = (uint32_t)bp_chunk_turn(mine->chunk_state),
                               .chunk = (uint16_t)mine->chunk,
                               .word = (uint16_t)(offset / 8),
                               .before_bytes = link.before_bytes + byte_count};
    }
}

/* Only who is inside a lane writes its tallies, so plain loads and stores do: an atomic addition
 * would cost 6 ns. */
static void add_to_tally(lane_tally *tally, uint64_t amount, uint64_t stamp_ns) {
    uint64_t count = atomic_load_explicit(&tally->record_count, memory_order_relaxed);
    uint64_t sum = atomic_load_explicit(&tally->amount, memory_order_relaxed);
    atomic_store_explicit(&tally->record_count, count + 1, memory_order_relaxed);
    atomic_store_explicit(&tally->amount, sum + amount, memory_order_relaxed);
    atomic_store_explicit(&tally->last_ns, stamp_ns, memory_order_relaxed);
}

uint64_t bp_chunks_append(bp_chunks *chunks, const bp_ring_entry *entry, uint64_t stamp_ns,
                          uint64_t payload_bytes) {
    lane *mine = enter(chunks);
    if (mine == NULL) {
        return 0;
    }
    if (stamp_ns < mine->last_ns) {
        stamp_ns = bp_clock_monotonic_ns();
    }
    uint64_t needed = bp_frame_bytes(payload_bytes), rest = mine->end - mine->offset;
    bool is_divided = needed > rest && (needed > chunks->layout.chunk_bytes ||
                                        rest >= bp_chunk_rest_bytes(&chunks->layout));
    if (needed > rest && !is_divided) {
        replace_chunk(chunks, mine, stamp_ns);
    }
    mine->last_ns = stamp_ns;
    bp_ring_record record = {.sequence = mine->number + 1,
                             .monotonic_ns = stamp_ns,
                             .payload_bytes = (uint32_t)payload_bytes,
                             .tag = entry->tag};
    mine->writer = mine->writer == writer.id ? writer.id : 0; /* before a piece leaves the chunk */
    if (is_divided) {
        append_pieces(chunks, mine, entry, &record, payload_bytes);
    } else {
        append_frame(chunks, mine, &record, entry->parts, entry->part_count, 1);
    }
    if (entry->tally != 0) {
        add_to_tally(&mine->tallies[entry->tally - 1], entry->amount, stamp_ns);
    }
    leave(mine);
    return stamp_ns;
}

bp_ring_tally bp_chunks_read_tally(const bp_chunks *chunks, uint32_t tally) {
    bp_ring_tally total = {.record_count = 0};
    for (uint32_t i = 0; i < chunks->lane_count; i++) {
        const lane_tally *of = &chunks->lanes[i].tallies[tally - 1];
        uint64_t last_ns = atomic_load_explicit(&of->last_ns, memory_order_relaxed);
        total.record_count += atomic_load_explicit(&of->record_count, memory_order_relaxed);
        total.amount += atomic_load_explicit(&of->amount, memory_order_relaxed);
        total.last_ns = last_ns > total.last_ns ? last_ns : total.last_ns;
    }
    return total;
}

uint64_t bp_chunks_begun_count(const bp_chunks *chunks) {
    return atomic_load_explicit(&chunks->begun_count, memory_order_relaxed);
}
