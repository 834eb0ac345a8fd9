/*
 * The sink under a kernel that interrupts, writes short and fails: this program's own pwrite.
 */
#include "support/archive_file.h"
#include "support/zip_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

static const uint64_t when = 1774751400000000000u;
static char text[50000];

static bool is_odd;       /* interrupts and writes short */
static unsigned calls;    /* how many writes there were */
static unsigned fails_at; /* which fails with EIO; 0 for none */

static void fill(void) {
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)('a' + (i * i) % 23 + i % 3);
    }
}

TestSuite(archive_sink, .init = fill);

/* Linked before libc's: the objects under test call it. */
ssize_t pwrite(int fd, const void *bytes, size_t byte_count, off_t offset) {
    calls++;
    if (calls == fails_at) {
        errno = EIO;
        return -1;
    }
    if (is_odd && calls % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    if (is_odd && byte_count > 1) {
        byte_count = 1 + (byte_count * 7 + calls) % (byte_count - 1);
    }
    struct iovec piece = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = byte_count};
    return pwritev(fd, &piece, 1, offset);
}

static void add_some(archive_file *file) {
    archive_file_add(file, "one", text, sizeof text, when);
    archive_file_add(file, "two", "x", 1, when);
}

Test(archive_sink, writes_everything_through_interruptions_and_short_counts) {
    is_odd = true;
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    add_some(&file);
    archive_file_finish(&file);
    cr_expect(zip_holds(file.path, 2, "one", text, sizeof text));
    cr_expect(zip_holds(file.path, 2, "two", "x", 1));
    cr_expect(zip_passes_unzip(file.path));
    archive_file_end(&file);
}

Test(archive_sink, tells_the_errno_of_whichever_write_fails) {
    archive_file file;
    archive_file_start(&file, NULL, NULL);
    add_some(&file);
    calls = 0;
    archive_file_finish(&file);
    archive_file_end(&file);
    unsigned all_calls = calls;
    cr_assert(gt(int, (int)all_calls, 10));
    for (unsigned n = 1; n <= all_calls; n++) {
        archive_file_start(&file, NULL, NULL);
        add_some(&file);
        calls = 0;
        fails_at = n;
        bugpack_error error = BUGPACK_ERROR_INIT;
        uint64_t bytes = 4711;
        cr_expect(eq(int, bp_archive_finish(file.archive, &bytes, &error), BUGPACK_ERR_IO), "%u",
                  n);
        fails_at = 0;
        cr_expect(eq(int, error.system_errno, EIO));
        cr_expect(strstr(error.message, file.path) != NULL, "%s", error.message);
        cr_expect(eq(u64, bytes, 4711));
        archive_file_end(&file);
    }
}
