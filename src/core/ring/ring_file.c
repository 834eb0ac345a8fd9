#include "ring/ring_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"

int bp_ring_file_read(int fd, uint64_t from, unsigned char *bytes, size_t byte_count,
                      bool *is_unreadable) {
    size_t done = 0;
    bool is_second_try = false;
    while (done < byte_count) {
        ssize_t got = pread(fd, bytes + done, byte_count - done, (off_t)(from + done));
        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0 || (errno == EIO && is_second_try) || errno == EISDIR) {
            *is_unreadable = *is_unreadable || got < 0;
            break;
        } else if (errno == EIO) {
            is_second_try = true;
        } else if (errno != EINTR) {
            return errno;
        }
    }
    memset(bytes + done, 0, byte_count - done);
    return 0;
}

bugpack_status bp_ring_file_read_header(int fd, bp_frame_page *ret_page, bugpack_error *error) {
    bp_frame_page page;
    bool is_unreadable = false;
    int failed = bp_ring_file_read(fd, 0, (unsigned char *)&page, sizeof page, &is_unreadable);
    if (failed != 0) {
        return bp_fail_errno(error, failed, "the file cannot be read");
    }
    if (is_unreadable) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT, "the device cannot read the file's beginning");
    }
    if (page.magic != BP_FRAME_MAGIC || page.check != bp_frame_page_check(&page)) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT, "the file does not begin like a ring");
    }
    if (page.version != BP_FRAME_VERSION || page.data_start != BP_FRAME_DATA_START ||
        page.capacity < BP_FRAME_CAPACITY_MIN || page.capacity > BP_FRAME_CAPACITY_MAX ||
        page.capacity % BP_FRAME_CAPACITY_MIN != 0) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT,
                       "the file is no ring that this version can read");
    }
    *ret_page = page;
    return BUGPACK_OK;
}

bool bp_ring_file_has_extent(const bp_frame_page *page) {
    uint64_t head = page->head;
    uint64_t tail = page->tail;
    return tail <= head && head - tail <= page->capacity && (head | tail) % 8 == 0;
}

bugpack_status bp_ring_file_check_owner(int fd, const char *session_id, bp_ring_kind kind,
                                        uint32_t number, bugpack_error *error) {
    bp_frame_page page;
    bugpack_status status = bp_ring_file_read_header(fd, &page, error);
    if (status == BUGPACK_OK && page.owner_check != 0 &&
        (page.kind != (uint32_t)kind || page.number != number ||
         page.owner_check != bp_frame_owner_check(&page, session_id))) {
        status = bp_fail(error, BUGPACK_ERR_CORRUPT, "the file is another ring");
    }
    return status;
}

uint64_t bp_ring_file_used_bytes(int fd) {
    bp_frame_page page;
    struct stat info;
    if (bp_ring_file_read_header(fd, &page, NULL) == BUGPACK_OK && bp_ring_file_has_extent(&page)) {
        return page.head - page.tail;
    }
    return fstat(fd, &info) == 0 && info.st_size > 0 ? (uint64_t)info.st_size : 0;
}

bool bp_ring_read_alive(int fd, bp_instant *ret_alive) {
    bp_frame_page page;
    if (bp_ring_file_read_header(fd, &page, NULL) != BUGPACK_OK || page.alive_ns == 0) {
        return false;
    }
    *ret_alive = (bp_instant){.monotonic_ns = page.alive_ns,
                              .wall_ns = page.alive_ns + page.alive_offset_ns};
    return true;
}

void bp_ring_read_about(int fd, void *about, size_t about_bytes) {
    bp_frame_page page;
    if (bp_ring_file_read_header(fd, &page, NULL) == BUGPACK_OK) {
        memcpy(about, page.about, about_bytes);
    } else {
        memset(about, 0, about_bytes);
    }
}

/* --- a copy of one that is being written --------------------------------------------------- */

#define WINDOW_BYTES (256u * 1024)
enum { attempt_max = 3 };

/* 0, or an errno. */
static int write_at(int fd, const void *bytes, size_t byte_count, uint64_t offset) {
    return lseek(fd, (off_t)offset, SEEK_SET) < 0 ? errno
                                                  : bp_file_write_all(fd, bytes, byte_count);
}

/* Copies a part of the data area, to the same place. */
static bugpack_status copy_part(int fd, int to_fd, uint64_t offset, uint64_t byte_count,
                                unsigned char *window, const bp_cancel_token *token,
                                bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    bool is_unreadable = false; /* then it is zeros, which are damage */
    while (status == BUGPACK_OK && byte_count > 0) {
        size_t piece = byte_count < WINDOW_BYTES ? (size_t)byte_count : WINDOW_BYTES;
        uint64_t at = BP_FRAME_DATA_START + offset;
        status = bp_cancel_check(token, error);
        int failed =
            status == BUGPACK_OK ? bp_ring_file_read(fd, at, window, piece, &is_unreadable) : 0;
        if (status == BUGPACK_OK && failed == 0) {
            failed = write_at(to_fd, window, piece, at);
        }
        if (failed != 0) {
            status = bp_fail_errno(error, failed, "cannot copy a ring");
        }
        offset += piece;
        byte_count -= piece;
    }
    return status;
}

/*
 * Each part of the header is read when it is safe: the sequence before the head, which covers it,
 * and the tail last, because the records that it has passed may be torn.
 */
static bugpack_status try_copy(int fd, int to_fd, unsigned char *window,
                               const bp_cancel_token *token, bool *ret_is_whole,
                               bugpack_error *error) {
    bp_frame_page first, page, last;
    bugpack_status status = bp_ring_file_read_header(fd, &first, error);
    if (status == BUGPACK_OK) {
        status = bp_ring_file_read_header(fd, &page, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    uint64_t used = page.head - page.tail < page.capacity ? page.head - page.tail : page.capacity;
    uint64_t from = (page.head - used) % page.capacity;
    uint64_t part = used < page.capacity - from ? used : page.capacity - from;
    status = copy_part(fd, to_fd, from, part, window, token, error);
    if (status == BUGPACK_OK) {
        status = copy_part(fd, to_fd, 0, used - part, window, token, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_ring_file_read_header(fd, &last, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    page.sequence = first.sequence;
    page.tail = last.tail;
    *ret_is_whole = page.tail <= page.head;
    int failed = write_at(to_fd, &page, sizeof page, 0);
    return failed == 0 ? BUGPACK_OK : bp_fail_errno(error, failed, "cannot copy a ring");
}

bugpack_status bp_ring_file_copy(int fd, int to_fd, const bp_cancel_token *token,
                                 bugpack_error *error) {
    unsigned char *window = malloc(WINDOW_BYTES);
    bugpack_status status = window == NULL ? bp_fail_memory(error, "copy a ring") : BUGPACK_OK;
    bool is_whole = false;
    for (int i = 0; status == BUGPACK_OK && !is_whole && i < attempt_max; i++) {
        status = try_copy(fd, to_fd, window, token, &is_whole, error);
    }
    free(window);
    return status == BUGPACK_OK && !is_whole
               ? bp_fail(error, BUGPACK_ERR_CORRUPT, "the ring changes faster than it is read")
               : status;
}

/* --- recovery of its records --------------------------------------------------------------- */

/* More runs than this are damage: an intact ring has two, and a few per tear. */
#define RUN_MAX 4096

/* Frames that follow each other without a gap, in place and in sequence. */
typedef struct run {
    uint64_t offset, end;
    uint64_t first_sequence, last_sequence;
    bool is_free; /* in space that the header calls free */
    bool is_wanted;
} run;

typedef struct recovery {
    int fd;
    uint64_t capacity, seed;
    /* The used space according to the header. Only a hint, because after a loss of power one page
     * of the file may be older than another. False when the header contradicts itself. */
    bool has_hint;
    uint64_t head_offset, tail_offset, free_bytes;
    bool has_wrapped;  /* records were evicted */
    uint64_t sequence; /* of the newest record; 0: not known */
    /* How many more bytes may be hashed for frames that turn out to be none, so that a file full of
     * forged frames costs no more than a few turns of the ring. */
    uint64_t hash_budget_bytes;
    uint64_t window_offset;
    size_t window_bytes;
    unsigned char *window; /* WINDOW_BYTES */
    run *runs;             /* RUN_MAX */
    size_t run_count;
    int read_errno; /* of a failure that may pass */
    bp_sink *sink;
    void *context;
    bp_ring_view view;
} recovery;

/* The bytes at `offset`, at most WINDOW_BYTES, valid until the next call. */
static const unsigned char *see(recovery *it, uint64_t offset, size_t byte_count) {
    if (offset < it->window_offset || offset + byte_count > it->window_offset + it->window_bytes) {
        uint64_t left = it->capacity - offset;
        it->window_offset = offset;
        it->window_bytes = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
        int failed = bp_ring_file_read(it->fd, BP_FRAME_DATA_START + offset, it->window,
                                       it->window_bytes, &it->view.is_damaged);
        if (failed != 0) {
            it->read_errno = failed;
            memset(it->window, 0, it->window_bytes);
        }
    }
    return it->window + (size_t)(offset - it->window_offset);
}

static void take_hint(recovery *it, const bp_frame_page *page) {
    uint64_t head = page->head;
    uint64_t tail = page->tail;
    it->has_hint = bp_ring_file_has_extent(page);
    it->head_offset = head % page->capacity;
    it->tail_offset = tail % page->capacity;
    it->free_bytes = page->capacity - (head - tail);
    it->has_wrapped = tail > 0;
    /* `head` is stored before `sequence`, so it is never the older of the two. */
    bool is_possible = it->has_hint && page->sequence <= head / sizeof(bp_frame);
    it->sequence = is_possible ? page->sequence : 0;
    it->view.is_damaged = !is_possible;
}

static bugpack_status read_header(recovery *it, int fd, bugpack_error *error) {
    bp_frame_page page;
    bugpack_status status = bp_ring_file_read_header(fd, &page, error);
    if (status == BUGPACK_OK) {
        it->fd = fd;
        it->capacity = page.capacity;
        it->seed = page.seed;
        it->hash_budget_bytes = 4 * page.capacity;
        it->view.refused_count = page.refused_count;
        take_hint(it, &page);
    }
    return status;
}

/* Hashes a payload that does not fit into the window, piece by piece. */
static uint64_t mark_in_pieces(recovery *it, uint64_t offset, const bp_ring_record *record) {
    bp_frame_hash hash;
    bp_frame_hash_begin(&hash, it->seed, offset, record);
    uint64_t at = offset + sizeof(bp_frame);
    uint64_t end = at + record->payload_bytes;
    while (at < end) {
        uint64_t piece_end = (at / WINDOW_BYTES + 1) * WINDOW_BYTES;
        size_t piece = (size_t)((piece_end < end ? piece_end : end) - at);
        bp_frame_hash_add(&hash, at, see(it, at, piece), piece);
        at += piece;
    }
    return bp_frame_hash_end(&hash);
}

/* The size of the whole and undamaged frame at `offset`, and its record; 0 when there is none. */
static uint64_t read_frame(recovery *it, uint64_t offset, bp_ring_record *ret_record) {
    uint64_t left = it->capacity - offset;
    if (left < sizeof(bp_frame)) {
        return 0;
    }
    const unsigned char *at = see(it, offset, sizeof(bp_frame));
    uint64_t mark;
    bp_ring_record record;
    memcpy(&mark, at, sizeof mark);
    memcpy(&record, at + offsetof(bp_frame, record), sizeof record);
    uint64_t frame_bytes = bp_frame_bytes(record.payload_bytes);
    if (!bp_frame_is_beginning(mark, it->seed, offset, &record) || record.sequence == 0 ||
        frame_bytes > left || frame_bytes > it->capacity / 4 ||
        frame_bytes > it->hash_budget_bytes) {
        return 0;
    }
    uint64_t found;
    if (frame_bytes <= WINDOW_BYTES) {
        at = see(it, offset, (size_t)frame_bytes);
        found = bp_frame_mark(it->seed, offset, &record, at + sizeof(bp_frame));
    } else {
        found = mark_in_pieces(it, offset, &record);
    }
    if (found != mark) {
        it->hash_budget_bytes -= frame_bytes;
        return 0;
    }
    *ret_record = record;
    return frame_bytes;
}

static bool is_pad(recovery *it, uint64_t offset) {
    uint64_t mark;
    memcpy(&mark, see(it, offset, sizeof mark), sizeof mark);
    return mark == bp_frame_pad_mark(it->seed, offset);
}

/* The distance of `offset` from the start of the free space, which may wrap. */
static uint64_t into_free(const recovery *it, uint64_t offset) {
    return offset >= it->head_offset ? offset - it->head_offset
                                     : offset + it->capacity - it->head_offset;
}

/* The end of the free space that contains `offset`, or `offset`. */
static uint64_t skip_free(const recovery *it, uint64_t offset) {
    if (!it->has_hint) {
        return offset;
    }
    uint64_t into = into_free(it, offset);
    if (into >= it->free_bytes) {
        return offset;
    }
    uint64_t end = offset + (it->free_bytes - into);
    return end < it->capacity ? end : it->capacity;
}

/* Whether the word at `offset`, which is in no frame, should be in one. */
static bool is_damage(recovery *it, uint64_t offset) {
    if (it->has_hint) {
        return into_free(it, offset) >= it->free_bytes;
    }
    uint64_t word;
    memcpy(&word, see(it, offset, sizeof word), sizeof word);
    return word != 0;
}

/* Gives record, payload and padding to the sink. */
static bugpack_status give_frame(recovery *it, uint64_t offset, const bp_ring_record *record) {
    uint64_t frame_bytes = bp_frame_bytes(record->payload_bytes);
    if (frame_bytes <= WINDOW_BYTES) {
        const unsigned char *at = see(it, offset, (size_t)frame_bytes);
        return it->sink(it->context, at + offsetof(bp_frame, record),
                        (size_t)frame_bytes - offsetof(bp_frame, record));
    }
    bugpack_status status = it->sink(it->context, record, sizeof *record);
    uint64_t at = offset + sizeof(bp_frame);
    uint64_t end = offset + frame_bytes;
    while (status == BUGPACK_OK && at < end) {
        uint64_t left = end - at;
        size_t piece = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
        status = it->sink(it->context, see(it, at, piece), piece);
        at += piece;
    }
    return status;
}

/* Adds a frame to the last run or begins one. False when there are too many. */
static bool note_frame(recovery *it, uint64_t offset, uint64_t end, uint64_t sequence) {
    run *last = it->run_count > 0 ? &it->runs[it->run_count - 1] : NULL;
    bool is_free = skip_free(it, offset) != offset;
    if (last != NULL && last->end == offset && last->last_sequence + 1 == sequence &&
        last->is_free == is_free) {
        last->end = end;
        last->last_sequence = sequence;
        return true;
    }
    if (it->run_count == RUN_MAX) {
        return false;
    }
    it->runs[it->run_count++] = (run){offset, end, sequence, sequence, is_free, false};
    return true;
}

/*
 * Finds the runs from offset 0, where a frame begins in every turn, to the end. Where no frame
 * begins it tries each following word, but skips what the header calls free.
 */
static void find_runs(recovery *it) {
    uint64_t offset = 0;
    while (offset < it->capacity) {
        bp_ring_record record;
        uint64_t frame_bytes = read_frame(it, offset, &record);
        if (frame_bytes > 0 && note_frame(it, offset, offset + frame_bytes, record.sequence)) {
            offset += frame_bytes;
            continue;
        }
        uint64_t next = skip_free(it, offset);
        if (next == offset && is_pad(it, offset)) {
            next = it->capacity;
        } else if (next == offset) {
            it->view.damaged_bytes += is_damage(it, offset) ? 8 : 0;
            next += 8;
        }
        offset = next;
    }
}

/* Insertion sort: runs are few and nearly in order. */
static void sort_runs(run *runs, size_t run_count) {
    for (size_t i = 1; i < run_count; i++) {
        run moving = runs[i];
        size_t to = i;
        while (to > 0 && runs[to - 1].first_sequence > moving.first_sequence) {
            runs[to] = runs[to - 1];
            to--;
        }
        runs[to] = moving;
    }
}

/*
 * Runs in used space are wanted. A run in free space was evicted; it is wanted only when its
 * sequence continues that of a wanted run: before it (not overwritten yet) or after it (the header
 * is older than the data, as after a loss of power). Frames of an earlier turn that survive after a
 * pad are not. When nothing is in use, the header is not believed at all.
 */
static void choose_runs(run *runs, size_t run_count) {
    bool has_used = false;
    for (size_t i = 0; i < run_count; i++) {
        has_used = has_used || !runs[i].is_free;
    }
    for (size_t i = run_count; i-- > 0;) {
        bool precedes_wanted = i + 1 < run_count && runs[i + 1].is_wanted &&
                               runs[i].last_sequence + 1 == runs[i + 1].first_sequence;
        runs[i].is_wanted = !runs[i].is_free || !has_used || precedes_wanted;
    }
    for (size_t i = 1; i < run_count; i++) {
        bool follows =
            runs[i - 1].is_wanted && runs[i - 1].last_sequence + 1 == runs[i].first_sequence;
        runs[i].is_wanted = runs[i].is_wanted || follows;
    }
}

/* Gives the sink those records of a run that are newer than all it got. */
static bugpack_status give_run(recovery *it, const run *from) {
    uint64_t offset = from->offset;
    while (offset < from->end) {
        /* Checked again: the file may have changed since. */
        bp_ring_record record;
        uint64_t frame_bytes = read_frame(it, offset, &record);
        if (frame_bytes == 0) {
            it->view.damaged_bytes += from->end - offset;
            return BUGPACK_OK;
        }
        if (record.sequence > it->view.last_sequence) {
            bugpack_status status = give_frame(it, offset, &record);
            if (status != BUGPACK_OK) {
                return status;
            }
            bp_ring_view_add(&it->view, &record);
        }
        offset += frame_bytes;
    }
    return BUGPACK_OK;
}

/* Whether the record at the tail, where the used space begins, is whole. */
static bool is_tail_whole(recovery *it) {
    bp_ring_record record;
    uint64_t tail = it->tail_offset;
    if (it->free_bytes < it->capacity && it->capacity - tail >= 8 && is_pad(it, tail)) {
        tail = 0;
    }
    return it->has_hint && (it->free_bytes == it->capacity || read_frame(it, tail, &record) > 0);
}

/* Adds the records that are missing between and after those that were found. */
static void count_damage(recovery *it) {
    bp_ring_view *view = &it->view;
    uint64_t newest = it->sequence > view->last_sequence ? it->sequence : view->last_sequence;
    /* The oldest record that should be there. */
    uint64_t oldest = it->has_hint && !it->has_wrapped ? 1 : view->first_sequence;
    oldest = oldest == 0 ? newest + (newest == 0 || it->free_bytes == it->capacity) : oldest;
    uint64_t wanted_count = newest + 1 > oldest ? newest + 1 - oldest : 0;
    view->damaged_count = wanted_count > view->record_count ? wanted_count - view->record_count : 0;
    view->is_damaged = view->is_damaged || view->damaged_count > 0 || view->damaged_bytes > 0 ||
                       !is_tail_whole(it);
    uint64_t known_count = view->record_count + view->damaged_count;
    view->evicted_count = newest > known_count ? newest - known_count : 0;
}

bugpack_status bp_ring_recover(int fd, bp_sink *sink, void *context, bp_ring_view *ret_view,
                               bugpack_error *error) {
    recovery it = {.sink = sink, .context = context};
    bugpack_status status = read_header(&it, fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    it.window = malloc(WINDOW_BYTES);
    it.runs = malloc(RUN_MAX * sizeof it.runs[0]);
    if (it.window == NULL || it.runs == NULL) {
        status = bp_fail_memory(error, "recover a ring");
        goto out;
    }
    find_runs(&it);
    sort_runs(it.runs, it.run_count);
    choose_runs(it.runs, it.run_count);
    it.window_bytes = 0; /* read again in the second pass */
    it.hash_budget_bytes = 4 * it.capacity;
    for (size_t i = 0; status == BUGPACK_OK && i < it.run_count; i++) {
        status = it.runs[i].is_wanted ? give_run(&it, &it.runs[i]) : BUGPACK_OK;
    }
    if (status != BUGPACK_OK) {
        (void)bp_fail(error, status, "a ring's records could not be written");
        goto out;
    }
    count_damage(&it);
    if (it.read_errno != 0) {
        status = bp_fail_errno(error, it.read_errno, "the file cannot be read");
        goto out;
    }
    *ret_view = it.view;

out:
    free(it.runs);
    free(it.window);
    return status;
}
