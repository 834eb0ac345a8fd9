/*
 * Publishing on file systems without hard links: link and rename of this program refuse as such a
 * file system would.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "platform/staged_file.h"
#include "support/no_tmpfile.h"
#include "support/not_tried.h"
#include "unit/dir.h"

static int link_errno;
static int rename_errno;

/* Linked before libc's: the objects under test call these. */
int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    if (link_errno != 0) {
        errno = link_errno;
        return -1;
    }
    return (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    if (rename_errno != 0) {
        errno = rename_errno;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

static bugpack_status publish(char *name, size_t name_bytes, bugpack_error *error) {
    bp_staged_file *file = NULL;
    has_no_tmpfile = true;
    cr_assert(eq(int, bp_staged_file_new(dir.fd, dir.path, &file, NULL), 0));
    cr_assert(eq(int, write(bp_staged_file_fd(file), "new", 3), 3));
    bugpack_status status = bp_staged_file_publish(file, "r", ".zip", name, name_bytes, error);
    bp_staged_file_free(file);
    return status;
}

DIR_SUITE(staged_link);

Test(staged_link, renames_without_replacing_where_links_are_refused) {
    cr_assert(temp_dir_write(&dir, "r.zip", "old", 3));
    static const int refusals[] = {EPERM, EOPNOTSUPP, EMLINK, ENOSYS};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        link_errno = refusals[i];
        char name[32] = "";
        char expected[32];
        (void)snprintf(expected, sizeof expected, "r-%zu.zip", i + 2);
        cr_expect(publish(name, sizeof name, &failure) == BUGPACK_OK, "%s", failure.message);
        cr_expect(eq(str, name, expected));
        cr_expect(eq(sz, temp_dir_count(&dir), i + 2));
    }
    char bytes[4] = "";
    cr_expect(eq(sz, temp_dir_read(&dir, "r.zip", bytes, sizeof bytes), 3));
    cr_expect(eq(int, memcmp(bytes, "old", 3), 0));
}

Test(staged_link, says_so_where_nothing_can_name_a_file_without_replacing) {
    link_errno = EPERM;
    static const int refusals[] = {EINVAL, ENOSYS, EOPNOTSUPP};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        rename_errno = refusals[i];
        char name[32] = "untouched";
        cr_expect(eq(int, publish(name, sizeof name, &failure), BUGPACK_ERR_UNSUPPORTED));
        cr_expect(strstr(failure.message, "never replaces") != NULL, "%s", failure.message);
        cr_expect(eq(str, name, "untouched"));
        cr_expect(eq(sz, temp_dir_count(&dir), 0));
    }
}

Test(staged_link, does_not_try_to_rename_after_another_failure) {
    link_errno = ENOSPC;
    char name[32] = "untouched";
    cr_expect(eq(int, publish(name, sizeof name, &failure), BUGPACK_ERR_IO));
    cr_expect(eq(int, failure.system_errno, ENOSPC));
    cr_expect(eq(sz, temp_dir_count(&dir), 0));
}

Test(staged_link, has_no_name_at_all_where_the_file_system_can) {
    int fd = openat(dir.fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        not_tried("the temporary directory's file system has no O_TMPFILE");
    }
    (void)close(fd);
    bp_staged_file *file = NULL;
    cr_assert(eq(int, bp_staged_file_new(dir.fd, dir.path, &file, NULL), 0));
    cr_expect(eq(sz, temp_dir_count(&dir), 0));
    bp_staged_file_free(file);
}
