#include "ring/ring_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

int bp_ring_file_read(bp_ring_place place, uint64_t from, unsigned char *bytes, size_t byte_count,
                      bool *is_unreadable) {
    size_t done = 0;
    bool is_second_try = false;
    while (done < byte_count) {
        ssize_t got =
            pread(place.fd, bytes + done, byte_count - done, (off_t)(place.base + from + done));
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

bugpack_status bp_ring_file_read_header(bp_ring_place place, bp_frame_page *ret_page,
                                        bugpack_error *error) {
    bp_frame_page page;
    bool is_unreadable = false;
    int failed = bp_ring_file_read(place, 0, (unsigned char *)&page, sizeof page, &is_unreadable);
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

bugpack_status bp_ring_file_check_owner(bp_ring_place place, const char *session_id,
                                        bp_ring_kind kind, uint32_t number, bugpack_error *error) {
    bp_frame_page page;
    bugpack_status status = bp_ring_file_read_header(place, &page, error);
    if (status == BUGPACK_OK && page.owner_check != 0 &&
        (page.kind != (uint32_t)kind || page.number != number ||
         page.owner_check != bp_frame_owner_check(&page, session_id))) {
        status = bp_fail(error, BUGPACK_ERR_CORRUPT, "the file is another ring");
    }
    return status;
}

uint64_t bp_ring_file_used_bytes(bp_ring_place place) {
    bp_frame_page page;
    struct stat info;
    if (bp_ring_file_read_header(place, &page, NULL) == BUGPACK_OK &&
        bp_ring_file_has_extent(&page)) {
        return page.head - page.tail;
    }
    return fstat(place.fd, &info) == 0 && info.st_size > 0 ? (uint64_t)info.st_size : 0;
}

bool bp_ring_read_alive(bp_ring_place place, bp_instant *ret_alive) {
    bp_frame_page page;
    if (bp_ring_file_read_header(place, &page, NULL) != BUGPACK_OK || page.alive_ns == 0) {
        return false;
    }
    *ret_alive = (bp_instant){.monotonic_ns = page.alive_ns,
                              .wall_ns = page.alive_ns + page.alive_offset_ns};
    return true;
}

void bp_ring_read_about(bp_ring_place place, void *about, size_t about_bytes) {
    bp_frame_page page;
    if (bp_ring_file_read_header(place, &page, NULL) == BUGPACK_OK) {
        memcpy(about, page.about, about_bytes);
    } else {
        memset(about, 0, about_bytes);
    }
}
