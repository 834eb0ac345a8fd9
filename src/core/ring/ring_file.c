#include "ring/ring_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "ring/chunk_reader.h"

/*
 * Reads at most a chunk. Bytes past the end of the file are zeros, and so are all from the first
 * one that the device cannot read at the second try (EIO): that is damage, and sets
 * `*is_unreadable`. Returns 0, or the errno of another failure, which may pass.
 */
static int read_bytes(int fd, uint64_t from, unsigned char *bytes, size_t byte_count,
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

/* CORRUPT when the file is not a ring of this version; IO when it cannot be read. */
static bugpack_status read_header(int fd, bp_frame_page *ret_page, bugpack_error *error) {
    bp_frame_page page;
    bool is_unreadable = false;
    int failed = read_bytes(fd, 0, (unsigned char *)&page, sizeof page, &is_unreadable);
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
        page.capacity % BP_FRAME_CAPACITY_MIN != 0 ||
        page.chunk_bytes != bp_chunk_divide(page.capacity).chunk_bytes) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT,
                       "the file is no ring that this version can read");
    }
    *ret_page = page;
    return BUGPACK_OK;
}

bugpack_status bp_ring_file_check_owner(int fd, const char *session_id, bp_ring_kind kind,
                                        uint32_t number, bugpack_error *error) {
    bp_frame_page page;
    bugpack_status status = read_header(fd, &page, error);
    if (status == BUGPACK_OK && page.owner_check != 0 &&
        (page.kind != (uint32_t)kind || page.number != number ||
         page.owner_check != bp_frame_owner_check(&page, session_id))) {
        status = bp_fail(error, BUGPACK_ERR_CORRUPT, "the file is another ring");
    }
    return status;
}

/* A file as a source of chunks. */
typedef struct chunk_file {
    int fd;
    bool is_unreadable;
} chunk_file;

static int read_chunk_file(void *context, uint64_t offset, void *bytes, size_t byte_count) {
    chunk_file *file = context;
    return read_bytes(file->fd, BP_FRAME_DATA_START + offset, bytes, byte_count,
                      &file->is_unreadable);
}

static bp_chunk_source source_of(chunk_file *file, const bp_frame_page *page) {
    return (bp_chunk_source){.layout = bp_chunk_divide(page->capacity),
                             .seed = page->seed,
                             .begun_count = page->begun_count,
                             .read = read_chunk_file,
                             .context = file};
}

uint64_t bp_ring_file_used_bytes(int fd) {
    bp_frame_page page;
    struct stat info;
    if (read_header(fd, &page, NULL) == BUGPACK_OK) {
        chunk_file file = {.fd = fd};
        const bp_chunk_source source = source_of(&file, &page);
        return bp_chunk_total_used_bytes(&source);
    }
    return fstat(fd, &info) == 0 && info.st_size > 0 ? (uint64_t)info.st_size : 0;
}

bool bp_ring_read_alive(int fd, bp_instant *ret_alive) {
    bp_frame_page page;
    if (read_header(fd, &page, NULL) != BUGPACK_OK || page.alive_ns == 0) {
        return false;
    }
    *ret_alive = (bp_instant){.monotonic_ns = page.alive_ns,
                              .wall_ns = page.alive_ns + page.alive_offset_ns};
    return true;
}

void bp_ring_read_about(int fd, void *about, size_t about_bytes) {
    bp_frame_page page;
    if (read_header(fd, &page, NULL) == BUGPACK_OK) {
        memcpy(about, page.about, about_bytes);
    } else {
        memset(about, 0, about_bytes);
    }
}

/* --- a copy of one that is being written --------------------------------------------------- */

/* The head of a chunk, as it was before any chunk was copied. */
typedef struct first_head {
    uint64_t state, earlier_count;
} first_head;

/*
 * Copies a chunk, and then its head as it was: what is newer does not count. A chunk that was taken
 * from the pool meanwhile has no records in the copy, and counts them as overwritten. 0, or an
 * errno.
 */
static int copy_chunk(const bp_chunk_source *source, int to_fd, uint64_t chunk, first_head head,
                      unsigned char *bytes) {
    uint64_t state = 0, again = 0, unused = 0;
    uint64_t offset = bp_chunk_offset(&source->layout, chunk);
    /* The state of now: a record that counts may have an earlier piece here that was not there. */
    int failed = bp_chunk_read_head(source, chunk, &state, &unused);
    uint64_t used_bytes = bp_chunk_used_bytes(state);
    used_bytes = used_bytes < source->layout.chunk_bytes ? used_bytes : source->layout.chunk_bytes;
    failed = failed == 0 ? source->read(source->context, offset, bytes, used_bytes) : failed;
    failed = failed == 0 ? bp_chunk_read_head(source, chunk, &again, &unused) : failed;
    if (failed != 0 || state == 0) { /* it was never taken */
        return failed;
    }
    failed = bp_file_write_range(to_fd, bytes, used_bytes, BP_FRAME_DATA_START + offset);
    if (bp_chunk_turn(again) != bp_chunk_turn(head.state)) {
        head.earlier_count += bp_chunk_record_count(head.state);
        head.state = bp_chunk_turn(again) << 32;
    }
    const uint64_t words[] = {head.state, head.earlier_count, head.earlier_count};
    return failed == 0 ? bp_file_write_range(to_fd, words, sizeof words,
                                             BP_FRAME_DATA_START + chunk * sizeof(bp_chunk_head))
                       : failed;
}

bugpack_status bp_ring_file_copy(int fd, int to_fd, const bp_cancel_token *token,
                                 bugpack_error *error) {
    bp_frame_page page;
    bugpack_status status = read_header(fd, &page, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    chunk_file file = {.fd = fd};
    const bp_chunk_source source = source_of(&file, &page);
    uint64_t chunk_count = source.layout.chunk_count;
    first_head *heads = calloc(chunk_count, sizeof *heads);
    unsigned char *bytes = malloc(source.layout.chunk_bytes);
    if (heads == NULL || bytes == NULL) {
        status = bp_fail_memory(error, "copy a ring");
        goto out;
    }
    int failed = bp_file_write_range(to_fd, &page, sizeof page, 0);
    for (uint64_t i = 0; failed == 0 && i < chunk_count; i++) {
        failed = bp_chunk_read_head(&source, i, &heads[i].state, &heads[i].earlier_count);
    }
    for (uint64_t i = 0; failed == 0 && status == BUGPACK_OK && i < chunk_count; i++) {
        status = bp_cancel_check(token, error);
        if (status == BUGPACK_OK) {
            failed = copy_chunk(&source, to_fd, i, heads[i], bytes);
        }
    }
    if (failed != 0) {
        status = bp_fail_errno(error, failed, "cannot copy a ring");
    }

out:
    free(bytes);
    free(heads);
    return status;
}

bugpack_status bp_ring_recover(int fd, bp_sink *sink, void *context, bp_ring_view *ret_view,
                               bugpack_error *error) {
    bp_frame_page page;
    bugpack_status status = read_header(fd, &page, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    chunk_file file = {.fd = fd};
    const bp_chunk_source source = source_of(&file, &page);
    bp_chunk_reading reading = {.until_ns = UINT64_MAX, .max_bytes = UINT64_MAX};
    status = bp_chunk_read(&source, &reading, sink, context, ret_view, error);
    if (status == BUGPACK_OK) {
        ret_view->refused_count = page.refused_count;
        ret_view->is_damaged = ret_view->is_damaged || file.is_unreadable;
    }
    return status;
}
