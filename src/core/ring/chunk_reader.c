#include "ring/chunk_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/status.h"

static const size_t piece_bytes = 64 * 1024;

/* As many as lanes, whose chunks follow each other. Beyond, as in a forged file, order is lost. */
enum { open_max = BP_CHUNK_LANE_COUNT_MAX };

/* The records of one chunk. */
typedef struct run {
    uint64_t chunk, chunk_state;
    uint64_t next_ns;     /* the stamp of the next record */
    uint64_t number;      /* of the last one that was found, in its chunk */
    uint64_t left_count;  /* how many should be left */
    uint64_t seen_number; /* those up to this one are not wanted, or were given or counted */
    bool has_numbers;     /* else its head is damaged, and a gap says nothing */
    unsigned char *bytes; /* NULL: not copied yet */
    size_t size, at;      /* of the copy; of the next frame in it */
    size_t frame_bytes;
} run;

/* The beginning of a frame that is a piece. */
typedef struct piece {
    bp_frame frame;
    bp_frame_link link;
} piece;

typedef struct merging {
    const bp_chunk_source *source;
    bp_chunk_reading *reading;
    run *runs; /* by the stamp of their first record */
    size_t run_count, next_run;
    run *open[open_max];
    size_t open_count;
    uint64_t number; /* of the newest record that was given or is missing */
    /* For frames that are none and for pieces, so that forged ones cost little. */
    uint64_t budget_bytes;
    unsigned char *chunk; /* for pieces; NULL: not needed yet */
    uint64_t given_bytes;
    bp_buffer out;
    bp_sink *sink;
    void *context;
    bp_ring_view view;
    /* The failures that end it, with that of `out`. */
    int read_errno;
    bugpack_status sink_status;
} merging;

static bool has_failed(const merging *it) {
    return it->read_errno != 0 || it->out.status != BUGPACK_OK || it->sink_status != BUGPACK_OK;
}

int bp_chunk_read_head(const bp_chunk_source *source, uint64_t chunk, uint64_t *ret_state,
                       uint64_t *ret_earlier_count) {
    uint64_t offset = chunk * sizeof(bp_chunk_head);
    uint64_t words[3], state, again;
    unsigned attempts_left = 1000; /* a file may change as fast as it is read */
    int failed;
    do {
        /* The state first, and again last: the count is of this turn if both have it. */
        failed = source->read(source->context, offset, &state, sizeof state);
        failed = failed == 0 ? source->read(source->context, offset, words, sizeof words) : failed;
        failed = failed == 0 ? source->read(source->context, offset, &again, sizeof again) : failed;
    } while (failed == 0 && bp_chunk_turn(state) != bp_chunk_turn(again) && attempts_left-- > 0);
    if (failed == 0) {
        *ret_state = state;
        *ret_earlier_count = words[1 + bp_chunk_turn(state) % 2];
    }
    return failed;
}

uint64_t bp_chunk_total_used_bytes(const bp_chunk_source *source) {
    uint64_t total = 0, state = 0, earlier_count = 0;
    for (uint64_t i = 0; i < source->layout.chunk_count; i++) {
        if (bp_chunk_read_head(source, i, &state, &earlier_count) == 0) {
            total += bp_chunk_used_bytes(state);
        }
    }
    return total;
}

/* --- one chunk ----------------------------------------------------------------------------- */

/* True if a frame of a file begins here and is as it was written. */
static bool is_undamaged(merging *it, const run *from, const bp_frame *frame,
                         uint64_t frame_bytes) {
    uint64_t offset = bp_chunk_offset(&it->source->layout, from->chunk) + from->at;
    uint64_t mark = atomic_load_explicit(&frame->mark, memory_order_relaxed);
    if (frame->record.sequence <= from->number || frame_bytes > it->budget_bytes ||
        !bp_frame_is_beginning(mark, it->source->seed, offset, &frame->record)) {
        return false;
    }
    bool is_same = mark == bp_frame_mark(it->source->seed, offset, &frame->record,
                                         (const unsigned char *)frame + sizeof *frame);
    it->budget_bytes -= is_same ? 0 : frame_bytes;
    return is_same;
}

/* Moves to the next record that is wanted. False at the end of the chunk. */
static bool find_record(merging *it, run *from) {
    while (from->size - from->at >= sizeof(bp_frame)) {
        const bp_frame *frame = (const void *)(from->bytes + from->at);
        uint64_t frame_bytes = bp_frame_bytes(bp_frame_payload_bytes(&frame->record));
        bool fits = frame_bytes <= from->size - from->at;
        bool is_frame =
            fits && (it->source->is_trusted || is_undamaged(it, from, frame, frame_bytes));
        if (is_frame && (frame->record.payload_bytes & BP_FRAME_GOES_ON) == 0) {
            from->number = frame->record.sequence;
            from->next_ns = frame->record.monotonic_ns;
            from->frame_bytes = (size_t)frame_bytes;
            if (from->number > from->seen_number) {
                return true;
            }
        } else if (!is_frame && it->source->is_trusted) { /* somebody has written to the file */
            return false;
        } else if (!is_frame) {
            frame_bytes = 8;
            it->view.damaged_bytes += from->left_count > 0 ? frame_bytes : 0;
        }
        from->at += (size_t)frame_bytes;
    }
    it->view.damaged_bytes +=
        from->left_count > 0 && !it->source->is_trusted ? from->size - from->at : 0;
    from->at = from->size;
    return false;
}

/* Copies a chunk and finds its first record. False where it has none any more, or on failure. */
static bool open_run(merging *it, run *from) {
    uint64_t state = from->chunk_state, earlier_count = 0;
    from->bytes = malloc(from->size);
    if (from->bytes == NULL) {
        it->out.status = BUGPACK_ERR_NO_MEMORY;
        return false;
    }
    it->read_errno =
        it->source->read(it->source->context, bp_chunk_offset(&it->source->layout, from->chunk),
                         from->bytes, from->size);
    if (it->read_errno == 0) {
        it->read_errno = bp_chunk_read_head(it->source, from->chunk, &state, &earlier_count);
    }
    if (it->read_errno != 0 || bp_chunk_turn(state) != bp_chunk_turn(from->chunk_state)) {
        return false;
    }
    return find_record(it, from);
}

/* Counts records that should be there and are not: overwritten while we read or, in a file,
 * damaged. */
static void count_lost(merging *it, run *from, uint64_t count) {
    count = count < from->left_count ? count : from->left_count;
    from->left_count -= count;
    from->seen_number += count;
    it->number += count;
    if (it->reading->seen_counts != NULL) {
        it->reading->seen_counts[from->chunk] += count;
    }
    if (it->source->is_trusted) {
        it->reading->lost_count += count;
        it->view.evicted_count += count;
    } else {
        it->view.damaged_count += count;
    }
}

static void close_run(merging *it, run *from) {
    count_lost(it, from, from->left_count);
    free(from->bytes);
    from->bytes = NULL;
}

/* --- pieces -------------------------------------------------------------------------------- */

static bool is_piece(const bp_ring_record *record) {
    return (record->payload_bytes & BP_FRAME_PIECE) != 0 &&
           bp_frame_payload_bytes(record) >= sizeof(bp_frame_link);
}

/* Reads a piece, or of memory the beginning alone, into it->chunk. NULL where there is none. */
static const piece *read_piece(merging *it, uint64_t chunk, uint64_t word, bool is_link_enough) {
    const bp_chunk_layout *layout = &it->source->layout;
    uint64_t offset = bp_chunk_offset(layout, chunk) + word * 8;
    uint64_t size = layout->chunk_bytes - word * 8;
    it->chunk = it->chunk == NULL ? malloc(layout->chunk_bytes) : it->chunk;
    if (it->chunk == NULL) {
        it->out.status = BUGPACK_ERR_NO_MEMORY;
        return NULL;
    }
    size_t byte_count = it->source->is_trusted && is_link_enough ? sizeof(piece) : (size_t)size;
    it->read_errno = it->source->read(it->source->context, offset, it->chunk, byte_count);
    const piece *found = (const void *)it->chunk;
    const bp_ring_record *record = &found->frame.record;
    bool is_there = it->read_errno == 0 && is_piece(record) &&
                    sizeof(bp_frame) + bp_frame_payload_bytes(record) <= size;
    bool is_whole =
        is_there && (it->source->is_trusted ||
                     found->frame.mark == bp_frame_mark(it->source->seed, offset, record,
                                                        (const unsigned char *)&found->link));
    return is_whole ? found : NULL;
}

/* The piece before, by its link: it is there, or was overwritten, or nothing is known of it. */
typedef enum link_state { LINK_IS_THERE, LINK_IS_OVERWRITTEN, LINK_IS_BROKEN } link_state;

static link_state look_at_link(merging *it, const bp_frame_link *link) {
    const bp_chunk_layout *layout = &it->source->layout;
    uint64_t state = 0, earlier_count = 0;
    if (link->chunk >= layout->chunk_count ||
        link->word * 8u + sizeof(piece) > layout->chunk_bytes ||
        it->budget_bytes < layout->chunk_bytes) {
        return LINK_IS_BROKEN;
    }
    it->budget_bytes -= layout->chunk_bytes;
    it->read_errno = bp_chunk_read_head(it->source, link->chunk, &state, &earlier_count);
    if (it->read_errno != 0 || bp_chunk_turn(state) == 0) {
        return LINK_IS_BROKEN;
    }
    return bp_chunk_turn(state) == link->turn ? LINK_IS_THERE : LINK_IS_OVERWRITTEN;
}

/* True if a chunk begins with the last piece of a record of which another piece was overwritten. */
static bool is_rest_of_overwritten(merging *it, uint64_t chunk) {
    const piece *at = read_piece(it, chunk, 0, true);
    bool is_last = at != NULL && (at->frame.record.payload_bytes & BP_FRAME_GOES_ON) == 0;
    link_state state = is_last ? LINK_IS_THERE : LINK_IS_BROKEN;
    while (state == LINK_IS_THERE && at != NULL && at->link.before_bytes > 0) {
        const bp_frame_link link = at->link;
        state = look_at_link(it, &link);
        if (state == LINK_IS_THERE) {
            at = read_piece(it, link.chunk, link.word, true);
        }
    }
    return state == LINK_IS_OVERWRITTEN;
}

/* Copies the piece before to its place in the payload. False where it is not there any more, or on
 * failure. */
static bool copy_piece(merging *it, bp_frame_link *link, uint64_t stamp_ns, char *payload) {
    if (look_at_link(it, link) != LINK_IS_THERE) {
        return false;
    }
    const piece *before = read_piece(it, link->chunk, link->word, false);
    if (before == NULL || look_at_link(it, link) != LINK_IS_THERE) {
        return false;
    }
    uint64_t byte_count = bp_frame_payload_bytes(&before->frame.record) - sizeof *link;
    if (before->frame.record.monotonic_ns != stamp_ns || byte_count == 0 ||
        byte_count > link->before_bytes ||
        before->link.before_bytes != link->before_bytes - byte_count) {
        return false;
    }
    *link = before->link;
    memcpy(payload + link->before_bytes, before + 1, (size_t)byte_count);
    return true;
}

/* --- all chunks ---------------------------------------------------------------------------- */

/* The first frame of a chunk; zeros where it is damaged. */
static bp_frame read_first(merging *it, uint64_t chunk) {
    uint64_t offset = bp_chunk_offset(&it->source->layout, chunk);
    bp_frame frame;
    it->read_errno = it->source->read(it->source->context, offset, &frame, sizeof frame);
    bool is_known = it->read_errno == 0 &&
                    (it->source->is_trusted ||
                     bp_frame_is_beginning(frame.mark, it->source->seed, offset, &frame.record));
    return is_known ? frame : (bp_frame){.mark = 0};
}

/* True if a chunk's head contradicts neither itself nor the number of chunks that were begun. */
static bool is_possible(const bp_chunk_source *source, uint64_t chunk, uint64_t state,
                        uint64_t earlier_count) {
    uint64_t count = bp_chunk_record_count(state), used_bytes = bp_chunk_used_bytes(state);
    uint64_t most = source->layout.chunk_bytes / sizeof(bp_frame);
    return used_bytes <= source->layout.chunk_bytes && count * sizeof(bp_frame) <= used_bytes &&
           (used_bytes == 0 || used_bytes >= sizeof(bp_frame)) &&
           earlier_count <= bp_chunk_turn(state) * most &&
           (state != 0 || chunk >= source->begun_count);
}

/* Adds the records of a chunk that are wanted, and counts the others. */
static void add_run(merging *it, uint64_t chunk) {
    uint64_t *seen_counts = it->reading->seen_counts;
    uint64_t state = 0, earlier_count = 0;
    it->read_errno = bp_chunk_read_head(it->source, chunk, &state, &earlier_count);
    if (it->read_errno != 0) {
        return;
    }
    uint64_t count = bp_chunk_record_count(state), size = bp_chunk_used_bytes(state);
    bool is_damaged = !is_possible(it->source, chunk, state, earlier_count);
    if (is_damaged) { /* whatever is whole in it */
        it->view.is_damaged = true;
        earlier_count = 0;
        count = state == 0 ? 1 : 0; /* a chunk is begun for a record that follows at once */
        size = it->source->layout.chunk_bytes;
    }
    const bp_frame first = read_first(it, chunk);
    size_t skipped_bytes = 0;
    if (count > 0 && is_piece(&first.record) && is_rest_of_overwritten(it, chunk)) {
        skipped_bytes = (size_t)bp_frame_bytes(bp_frame_payload_bytes(&first.record));
        skipped_bytes = skipped_bytes < size ? skipped_bytes : (size_t)size;
        earlier_count++;
        count--;
    }
    uint64_t last = earlier_count + count, unwanted = earlier_count;
    if (seen_counts != NULL && seen_counts[chunk] > earlier_count) {
        unwanted = seen_counts[chunk];
    } else if (seen_counts != NULL) {
        it->reading->lost_count += earlier_count - seen_counts[chunk];
        seen_counts[chunk] = earlier_count;
    }
    uint64_t left_count = last > unwanted ? last - unwanted : 0;
    it->view.evicted_count += earlier_count;
    it->number += last - left_count;
    if (left_count > 0 || is_damaged) {
        it->runs[it->run_count++] = (run){.chunk = chunk,
                                          .chunk_state = state,
                                          .next_ns = first.record.monotonic_ns,
                                          .number = earlier_count,
                                          .left_count = left_count,
                                          .seen_number = unwanted,
                                          .has_numbers = !is_damaged,
                                          .size = (size_t)size,
                                          .at = skipped_bytes};
    }
}

static int compare_runs(const void *left, const void *right) {
    const run *a = left, *b = right;
    return a->next_ns != b->next_ns ? (a->next_ns > b->next_ns) - (a->next_ns < b->next_ns)
                                    : (a->chunk > b->chunk) - (a->chunk < b->chunk);
}

/* The open run with the oldest record, and how far it goes before others have their turn; after
 * those that may be older are open. NULL at the end. */
static run **pick_oldest(merging *it, uint64_t *ret_limit_ns) {
    for (;;) {
        run **oldest = NULL;
        uint64_t limit_ns = UINT64_MAX;
        for (size_t i = 0; i < it->open_count; i++) {
            run **at = &it->open[i];
            if (oldest == NULL || (*at)->next_ns < (*oldest)->next_ns) {
                limit_ns = oldest == NULL ? UINT64_MAX : (*oldest)->next_ns;
                oldest = at;
            } else if ((*at)->next_ns < limit_ns) {
                limit_ns = (*at)->next_ns;
            }
        }
        run *next = it->next_run < it->run_count ? &it->runs[it->next_run] : NULL;
        bool is_due = next != NULL && it->open_count < open_max &&
                      (oldest == NULL || next->next_ns <= (*oldest)->next_ns);
        if (!is_due) {
            bool waits = next != NULL && it->open_count < open_max; /* else until one is closed */
            *ret_limit_ns = waits && next->next_ns < limit_ns ? next->next_ns : limit_ns;
            return oldest;
        }
        it->next_run++;
        if (open_run(it, next)) {
            it->open[it->open_count++] = next;
        } else if (!has_failed(it)) {
            close_run(it, next);
        } else {
            return NULL;
        }
    }
}

static void flush(merging *it) {
    if (it->out.size > 0) {
        it->sink_status = it->sink(it->context, it->out.data, it->out.size);
        bp_buffer_clear(&it->out);
    }
}

/* Puts the record of an open run behind `out`; its size. 0 where it was divided and is not whole
 * any more, or without memory. */
static size_t put_record(merging *it, const run *from) {
    const piece *last = (const void *)(from->bytes + from->at);
    bp_ring_record record = last->frame.record;
    const char *bytes = (const char *)(&last->frame + 1);
    bp_frame_link link = {.before_bytes = 0};
    uint64_t byte_count = bp_frame_payload_bytes(&record);
    if (is_piece(&record)) {
        link = last->link;
        bytes += sizeof link;
        byte_count -= sizeof link;
    }
    uint64_t payload_bytes = link.before_bytes + byte_count;
    if (link.before_bytes > BP_RING_PAYLOAD_MAX || payload_bytes > BP_RING_PAYLOAD_MAX ||
        link.before_bytes % 8 != 0) {
        return 0;
    }
    size_t record_bytes = sizeof record + (size_t)bp_frame_padded(payload_bytes);
    if (it->out.size + record_bytes > piece_bytes) {
        flush(it);
    }
    char *to = bp_buffer_reserve(&it->out, record_bytes);
    if (to == NULL || has_failed(it)) {
        return 0;
    }
    record.payload_bytes = (uint32_t)payload_bytes;
    record.sequence = it->number + 1;
    memcpy(to, &record, sizeof record);
    to += sizeof record;
    memcpy(to + link.before_bytes, bytes, (size_t)bp_frame_padded(byte_count));
    while (link.before_bytes > 0) {
        if (!copy_piece(it, &link, record.monotonic_ns, to)) {
            return 0;
        }
    }
    return record_bytes;
}

static void add_to_view(bp_ring_view *view, const bp_ring_record *record) {
    if (view->record_count++ == 0) {
        view->first_sequence = record->sequence;
        view->first_ns = view->last_ns = record->monotonic_ns;
    }
    view->last_sequence = record->sequence;
    view->first_ns = record->monotonic_ns < view->first_ns ? record->monotonic_ns : view->first_ns;
    view->last_ns = record->monotonic_ns > view->last_ns ? record->monotonic_ns : view->last_ns;
}

static void give_record(merging *it, run *from) {
    count_lost(it, from, from->has_numbers ? from->number - from->seen_number - 1 : 0);
    size_t record_bytes = put_record(it, from);
    if (has_failed(it)) {
        return;
    }
    if (record_bytes == 0) {
        count_lost(it, from, 1);
        return;
    }
    const bp_ring_record *record = (const void *)(it->out.data + it->out.size);
    bp_buffer_commit(&it->out, record_bytes);
    it->number++;
    add_to_view(&it->view, record);
    it->given_bytes += record_bytes;
    from->left_count -= from->left_count > 0;
    from->seen_number = from->number;
    if (it->reading->seen_counts != NULL) {
        it->reading->seen_counts[from->chunk] = from->number;
    }
}

/* Gives the records of an open run up to a stamp, and closes it at its end. False where the reading
 * ends. */
static bool give_run(merging *it, run **open, uint64_t limit_ns) {
    run *from = *open;
    do {
        if (from->next_ns > it->reading->until_ns) {
            return false;
        }
        if (it->given_bytes >= it->reading->max_bytes) {
            it->reading->is_rest = true;
            return false;
        }
        give_record(it, from);
        if (has_failed(it)) {
            return false;
        }
        from->at += from->frame_bytes;
        if (!find_record(it, from)) {
            close_run(it, from);
            *open = it->open[--it->open_count];
            return true;
        }
    } while (from->next_ns <= limit_ns);
    return true;
}

static void merge(merging *it) {
    uint64_t limit_ns = 0;
    run **oldest = pick_oldest(it, &limit_ns);
    while (oldest != NULL && give_run(it, oldest, limit_ns)) {
        oldest = pick_oldest(it, &limit_ns);
    }
    if (!has_failed(it)) {
        flush(it);
    }
}

bugpack_status bp_chunk_read(const bp_chunk_source *source, bp_chunk_reading *reading,
                             bp_sink *sink, void *context, bp_ring_view *ret_view,
                             bugpack_error *error) {
    uint64_t chunk_count = source->layout.chunk_count;
    merging it = {.source = source,
                  .reading = reading,
                  .budget_bytes = 8 * chunk_count * source->layout.chunk_bytes,
                  .sink = sink,
                  .context = context};
    bp_buffer_init(&it.out, BP_FRAME_CAPACITY_MAX);
    it.runs = malloc(chunk_count * sizeof *it.runs);
    if (it.runs == NULL) {
        return bp_fail_memory(error, "copy a ring");
    }
    for (uint64_t i = 0; i < chunk_count && it.read_errno == 0; i++) {
        add_run(&it, i);
    }
    qsort(it.runs, it.run_count, sizeof it.runs[0], compare_runs);
    if (!has_failed(&it)) {
        merge(&it);
    }
    bugpack_status status = it.sink_status;
    if (it.out.status != BUGPACK_OK) {
        status = bp_fail_memory(error, "copy a ring");
    } else if (it.read_errno != 0) {
        status = bp_fail_errno(error, it.read_errno, "the file cannot be read");
    } else if (status != BUGPACK_OK) {
        (void)bp_fail(error, status, "a ring's records could not be written");
    }
    for (size_t i = 0; i < it.run_count; i++) {
        free(it.runs[i].bytes);
    }
    free(it.runs);
    free(it.chunk);
    bp_buffer_release(&it.out);
    it.view.is_damaged =
        it.view.is_damaged || it.view.damaged_count > 0 || it.view.damaged_bytes > 0;
    if (status == BUGPACK_OK) {
        *ret_view = it.view;
    }
    return status;
}
