#include "ring/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "ring/frame.h"
#include "support/ring_records.h"
#include "unit/file_ring.h"
#include "unit/unit.h"

Test(ring_file, gives_back_at_any_moment_what_a_copy_gives) {
    static const size_t bases[] = {0, 17, 150, 400};
    for (size_t b = 0; b < sizeof bases / sizeof bases[0]; b++) {
        CLEANUP(remove_file_ring) file_ring it = make_file_ring(2 * page);
        bp_ring_view view = recovery_well(it.fd);
        cr_assert(zero(u64, view.record_count));
        cr_assert(zero(u64, view.damaged_bytes + view.is_damaged));
        for (uint64_t i = 1; i <= 400; i++) {
            append_numbers(it.ring, i, i, bases[b]);
            view = recovery_well(it.fd);
            bp_ring_view live;
            BUFFER(out, 1 << 20);
            cr_assert(zero(
                int, (int)bp_ring_copy(it.ring, UINT64_MAX, keep_in_buffer, &out, &live, NULL)));
            cr_assert(eq(u64, view.last_sequence, i));
            cr_assert(eq(u64, view.record_count, live.record_count));
            cr_assert(eq(u64, view.record_count, view.last_sequence - view.first_sequence + 1));
            cr_assert(eq(u64, view.record_count + view.evicted_count, i));
            cr_assert(zero(u64, view.damaged_bytes + view.is_damaged), "after %llu",
                      (unsigned long long)i);
        }
    }
}

Test(ring_file, salvages_records_that_are_larger_than_its_chunks) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(16u << 20);
    for (uint64_t i = 1; i <= 40; i++) {
        size_t size = i % 2 == 0 ? 300001 + (size_t)i * 40000 : 77;
        cr_assert(ne(u64, append_number(it.ring, (uint32_t)i, i, size), 0));
    }
    bp_ring_view view = recovery_well(it.fd);
    cr_assert(eq(u64, view.last_sequence, 40));
    cr_assert(gt(u64, view.record_count, 10));
    cr_assert(zero(u64, view.damaged_bytes + view.is_damaged));
}

Test(ring_file, carries_what_was_refused_and_outlives_its_ring) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(page);
    append_numbers(it.ring, 1, 10, 20);
    cr_assert(zero(u64, append_number(it.ring, 0, 0, 2000)));
    bp_ring_free(it.ring);
    it.ring = NULL;
    bp_ring_view view = recovery_well(it.fd);
    cr_assert(eq(u64, view.record_count, 10));
    cr_assert(eq(u64, view.refused_count, 1));
}

Test(ring_file, says_when_its_process_was_last_alive) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(4 * page);
    bp_instant alive;
    cr_assert(not(bp_ring_read_alive(it.fd, &alive)));
    bp_ring_note_alive(it.ring, (bp_instant){.monotonic_ns = 1000, .wall_ns = 5000});
    bp_ring_note_alive(it.ring, (bp_instant){.monotonic_ns = 2000, .wall_ns = 6500});
    cr_assert(bp_ring_read_alive(it.fd, &alive));
    cr_assert(eq(u64, alive.monotonic_ns, 2000));
    cr_assert(eq(u64, alive.wall_ns, 6500));
}

Test(ring_file, refuses_what_is_not_an_empty_regular_file_and_leaves_it_open) {
    CLEANUP(temp_dir_remove) temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    cr_assert(temp_dir_write(&dir, "full", "x", 1));
    int fd = openat(dir.fd, "full", O_RDWR | O_CLOEXEC);
    bp_ring *ring = NULL;
    cr_assert(eq(int, bp_ring_new_mapped(fd, page, &ring, NULL), BUGPACK_ERR_INVALID));
    cr_assert(eq(int, bp_ring_new_mapped(dir.fd, page, &ring, NULL), BUGPACK_ERR_INVALID));
    cr_assert(eq(int, bp_ring_new_mapped(fd, 1, &ring, NULL), BUGPACK_ERR_INVALID));
    cr_assert(eq(ptr, ring, NULL));
    cr_assert(zero(int, close(fd)));
}

#ifdef __linux__
static bool is_flaky; /* a device that reads each page at the second try */

/* Linked before libc's: the objects under test call it. */
ssize_t pread(int fd, void *bytes, size_t byte_count, off_t offset) {
    static bool has_failed;
    has_failed = is_flaky && !has_failed;
    if (has_failed) {
        errno = EIO;
        return -1;
    }
    struct iovec part = {bytes, is_flaky && byte_count > page ? page : byte_count};
    return preadv(fd, &part, 1, offset);
}

Test(ring_file, loses_nothing_that_the_device_reads_at_the_second_try) {
    CLEANUP(remove_file_ring) file_ring it = make_file_ring(16 * page);
    append_numbers(it.ring, 1, 200, 100);
    is_flaky = true;
    bp_ring_view view = recovery_well(it.fd);
    is_flaky = false;
    cr_assert(eq(u64, view.record_count, 200));
    cr_assert(zero(u64, view.damaged_bytes + view.is_damaged));
}
#endif
