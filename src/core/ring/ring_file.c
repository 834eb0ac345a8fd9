#include "ring/ring_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "ring/chunk_reader.h"

int bp_ring_file_read(int fd, uint64_t from, unsigned char *bytes, size_t byte_count,
                      bool *is_unreadable) {
    size_t done = 0;
    bool is_second_try = false;
    while (done < byte_count) {
        ssize_t got = pread(fd, bytes + done, byte_count - done, (off_t)(from + done));
        if (got > 0) {
            done += (size_t)got;
            is_second_try = false;
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

/* True if the ring is not divided, or as one of its capacity is. */
static bool is_division(const bp_frame_page *page) {
    bp_chunk_layout layout;
    return page->chunk_bytes == 0 ||
           (bp_chunk_divide(page->capacity, &layout) && layout.chunk_bytes == page->chunk_bytes);
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
        page.capacity % BP_FRAME_CAPACITY_MIN != 0 || !is_division(&page)) {
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

/* The file of a divided ring, as a source of chunks. */
typedef struct chunk_file {
    int fd;
    bool is_unreadable;
} chunk_file;

static int read_chunk_file(void *context, uint64_t offset, void *bytes, size_t byte_count) {
    chunk_file *file = context;
    return bp_ring_file_read(file->fd, BP_FRAME_DATA_START + offset, bytes, byte_count,
                             &file->is_unreadable);
}

static bp_chunk_source source_of(chunk_file *file, const bp_frame_page *page) {
    bp_chunk_source source = {.seed = page->seed,
                              .begun_count = page->begun_count,
                              .read = read_chunk_file,
                              .context = file};
    (void)bp_chunk_divide(page->capacity, &source.layout);
    return source;
}

uint64_t bp_ring_file_used_bytes(int fd) {
    bp_frame_page page;
    struct stat info;
    bool is_ring = bp_ring_file_read_header(fd, &page, NULL) == BUGPACK_OK;
    if (is_ring && page.chunk_bytes != 0) {
        chunk_file file = {.fd = fd};
        const bp_chunk_source source = source_of(&file, &page);
        return bp_chunk_total_used_bytes(&source);
    }
    if (is_ring && bp_ring_file_has_extent(&page)) {
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
 * Copies each chunk, and then its head as it was before; one that was taken from the pool meanwhile
 * has no records in the copy, and counts them as overwritten.
 */
static bugpack_status copy_chunks(int fd, int to_fd, const bp_frame_page *page,
                                  unsigned char *window, const bp_cancel_token *token,
                                  bugpack_error *error) {
    chunk_file file = {.fd = fd};
    const bp_chunk_source source = source_of(&file, page);
    int failed = write_at(to_fd, page, sizeof *page, 0);
    bugpack_status status = BUGPACK_OK;
    for (uint64_t i = 0; i < source.layout.chunk_count && failed == 0 && status == BUGPACK_OK;
         i++) {
        uint64_t state = 0, again = 0, earlier_count = 0, unused = 0;
        failed = bp_chunk_read_head(&source, i, &state, &earlier_count);
        uint64_t used_bytes = bp_chunk_used_bytes(state);
        if (failed != 0 || state == 0 || used_bytes > page->chunk_bytes) {
            continue;
        }
        status = copy_part(fd, to_fd, bp_chunk_offset(&source.layout, i), used_bytes, window, token,
                           error);
        failed = bp_chunk_read_head(&source, i, &again, &unused);
        if (bp_chunk_turn(again) != bp_chunk_turn(state)) {
            earlier_count += bp_chunk_record_count(state);
            state = bp_chunk_turn(state) << 32;
        }
        const uint64_t head[] = {state, earlier_count, earlier_count};
        failed = failed == 0 ? write_at(to_fd, head, sizeof head,
                                        BP_FRAME_DATA_START + i * sizeof(bp_chunk_head))
                             : failed;
    }
    return failed == 0 ? status : bp_fail_errno(error, failed, "cannot copy a ring");
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
    if (page.chunk_bytes != 0) {
        *ret_is_whole = true;
        return copy_chunks(fd, to_fd, &page, window, token, error);
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

typedef struct recovery {
    int fd;
    uint64_t capacity, seed;
    /* The used space according to the header; all of it where the header contradicts itself. */
    bool has_extent;
    uint64_t tail, head;
    uint64_t sequence; /* of the newest record; 0: not known */
    /* How many more bytes may be hashed for frames that turn out to be none, so that a file full of
     * forged frames costs no more than a few turns of the ring. */
    uint64_t hash_budget_bytes;
    uint64_t window_offset;
    size_t window_bytes;
    unsigned char *window; /* WINDOW_BYTES */
    int read_errno;        /* of a failure that may pass */
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

static void take_extent(recovery *it, const bp_frame_page *page) {
    it->has_extent = bp_ring_file_has_extent(page);
    it->tail = it->has_extent ? page->tail : 0;
    it->head = it->has_extent ? page->head : page->capacity;
    bool is_possible = it->has_extent && page->sequence <= page->head / sizeof(bp_frame);
    it->sequence = is_possible ? page->sequence : 0;
    it->view.is_damaged = !is_possible;
}

static void begin(recovery *it, int fd, const bp_frame_page *page) {
    it->fd = fd;
    it->capacity = page->capacity;
    it->seed = page->seed;
    it->hash_budget_bytes = 4 * page->capacity;
    it->view.refused_count = page->refused_count;
    take_extent(it, page);
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

/*
 * Gives the records from the tail to the head. Where neither a frame nor a pad begins, each word
 * that follows is tried. A whole record that is older than the one before it is what a damaged one
 * has left of an earlier turn.
 */
static bugpack_status give_records(recovery *it) {
    bugpack_status status = BUGPACK_OK;
    uint64_t position = it->tail;
    while (status == BUGPACK_OK && it->read_errno == 0 && position < it->head) {
        uint64_t offset = position % it->capacity;
        bp_ring_record record = {.sequence = 0};
        uint64_t step = read_frame(it, offset, &record);
        bool is_frame = step > 0 && step <= it->head - position;
        if (is_frame && record.sequence > it->view.last_sequence) {
            status = give_frame(it, offset, &record);
            bp_ring_view_add(&it->view, &record);
        } else if (is_pad(it, offset)) {
            step = it->capacity - offset;
        } else {
            step = is_frame ? step : 8;
            it->view.damaged_bytes += it->has_extent ? step : 0;
        }
        position += step;
    }
    return status;
}

/* Adds the records that are missing between and after those that were found. */
static void count_damage(recovery *it) {
    bp_ring_view *view = &it->view;
    uint64_t newest = it->sequence > view->last_sequence ? it->sequence : view->last_sequence;
    /* The oldest record that should be there. */
    uint64_t oldest = it->has_extent && it->tail == 0 ? 1 : view->first_sequence;
    oldest = oldest == 0 ? newest + (newest == 0 || it->head == it->tail) : oldest;
    uint64_t wanted_count = newest + 1 > oldest ? newest + 1 - oldest : 0;
    view->damaged_count = wanted_count > view->record_count ? wanted_count - view->record_count : 0;
    view->is_damaged = view->is_damaged || view->damaged_count > 0 || view->damaged_bytes > 0;
    uint64_t known_count = view->record_count + view->damaged_count;
    view->evicted_count = newest > known_count ? newest - known_count : 0;
}

static bugpack_status recover_chunks(int fd, const bp_frame_page *page, bp_sink *sink,
                                     void *context, bp_ring_view *ret_view, bugpack_error *error) {
    chunk_file file = {.fd = fd};
    const bp_chunk_source source = source_of(&file, page);
    bp_chunk_reading reading = {.until_ns = UINT64_MAX, .max_bytes = UINT64_MAX};
    bugpack_status status = bp_chunk_read(&source, &reading, sink, context, ret_view, error);
    if (status == BUGPACK_OK) {
        ret_view->refused_count = page->refused_count;
        ret_view->is_damaged = ret_view->is_damaged || file.is_unreadable;
    }
    return status;
}

bugpack_status bp_ring_recover(int fd, bp_sink *sink, void *context, bp_ring_view *ret_view,
                               bugpack_error *error) {
    bp_frame_page page;
    recovery it = {.sink = sink, .context = context};
    bugpack_status status = bp_ring_file_read_header(fd, &page, error);
    if (status == BUGPACK_OK && page.chunk_bytes != 0) {
        return recover_chunks(fd, &page, sink, context, ret_view, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    begin(&it, fd, &page);
    it.window = malloc(WINDOW_BYTES);
    if (it.window == NULL) {
        return bp_fail_memory(error, "recover a ring");
    }
    status = give_records(&it);
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
    free(it.window);
    return status;
}
