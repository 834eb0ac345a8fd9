/*
 * Staged files: the failures of a directory, each with its sentence, its errno, and no litter.
 */
#include "support/staged_methods.h"
#include "unit/dir.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#ifdef __linux__
static int directory_errno; /* of fsync on a directory; 0: the system's */

/* Linked before libc's: the objects under test call it. */
int fsync(int fd) {
    struct stat info;
    if (directory_errno != 0 && fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
        errno = directory_errno;
        return -1;
    }
    return fdatasync(fd);
}

DIR_SUITE(staged_refusal);

BOTH_METHODS(staged_refusal, says_when_its_name_may_be_lost_and_leaves_the_file) {
    static const int lost[] = {EIO, ENOSPC, EDQUOT};
    char name[64];
    for (size_t i = 0; i <= 3; i++) {
        bp_staged_file *file = start(&dir, method, "x");
        directory_errno = i < 3 ? lost[i] : EINVAL; /* the last: there is no such sync */
        bugpack_status status =
            bp_staged_file_publish(file, "a", ".zip", name, sizeof name, &failure);
        directory_errno = 0;
        cr_expect(eq(int, status, (int)(i < 3 ? BUGPACK_ERR_IO : BUGPACK_OK)));
        cr_expect(i == 3 || strstr(failure.message, "its name may be lost") != NULL);
        bp_staged_file_free(file);
        cr_expect(eq(sz, temp_dir_count(&dir), i + 1));
    }
}
#endif

/* Publishes "x.zip" and expects it to fail with `system_errno`, untouched output and no litter. */
static void expect_refusal(bp_staged_file *file, const char *stem, int system_errno) {
    failure = (bugpack_error)BUGPACK_ERROR_INIT;
    size_t before = temp_dir_count(&dir);
    size_t own = own_names(&dir);
    char name[NAME_MAX + 64] = "untouched";
    cr_expect(bp_staged_file_publish(file, stem, ".zip", name, sizeof name, &failure) !=
              BUGPACK_OK);
    cr_expect(eq(int, failure.system_errno, system_errno));
    cr_expect(strstr(failure.message, dir.path) != NULL, "%s", failure.message);
    cr_expect(eq(str, name, "untouched"));
    bp_staged_file_free(file);
    cr_expect(eq(sz, temp_dir_count(&dir), before - own));
}

BOTH_METHODS(staged_refusal, refuses_a_name_that_is_too_long) {
    char stem[NAME_MAX + 1];
    memset(stem, 'n', sizeof stem);
    stem[NAME_MAX - 3] = '\0'; /* one over, with ".zip" */
    expect_refusal(start(&dir, method, "x"), stem, ENAMETOOLONG);
    stem[NAME_MAX - 4] = '\0'; /* just fits, but taken it leaves no room for "-2" */
    bp_staged_file *file = start(&dir, method, "x");
    char name[NAME_MAX + 1];
    cr_expect(eq(int, bp_staged_file_publish(file, stem, ".zip", name, sizeof name, NULL), 0));
    bp_staged_file_free(file);
    expect_refusal(start(&dir, method, "x"), stem, ENAMETOOLONG);
    cr_expect(eq(sz, temp_dir_count(&dir), 1));
}

BOTH_METHODS(staged_refusal, refuses_a_name_that_the_caller_has_no_room_for) {
    bp_staged_file *file = start(&dir, method, "x");
    char name[6] = "same";
    cr_expect(ne(int, bp_staged_file_publish(file, "12", ".zip", name, sizeof name, NULL), 0));
    cr_expect(eq(str, name, "same"));
    cr_expect(eq(int, bp_staged_file_publish(file, "1", ".zip", name, sizeof name, NULL), 0));
    cr_expect(eq(str, name, "1.zip"));
    bp_staged_file_free(file);
}

BOTH_METHODS(staged_refusal, refuses_a_path_instead_of_a_name_and_a_second_publishing) {
    bp_staged_file *file = start(&dir, method, "x");
    char name[64] = "untouched";
    static const char *const stems[] = {"", "../up", "a/b", "/abs"};
    for (size_t i = 0; i < sizeof stems / sizeof stems[0]; i++) {
        cr_expect(eq(int, bp_staged_file_publish(file, stems[i], ".zip", name, sizeof name, NULL),
                     BUGPACK_ERR_INVALID));
    }
    cr_expect(eq(int, bp_staged_file_publish(file, "a", "/b", name, sizeof name, NULL),
                 BUGPACK_ERR_INVALID));
    cr_expect(eq(str, name, "untouched"));
    cr_expect(eq(int, bp_staged_file_publish(file, "a", ".zip", name, sizeof name, NULL), 0));
    cr_expect(eq(int, bp_staged_file_publish(file, "b", ".zip", name, sizeof name, NULL),
                 BUGPACK_ERR_INVALID));
    cr_expect(eq(sz, temp_dir_count(&dir), 1));
    bp_staged_file_free(file);
}

/* Root may write anywhere, so it becomes somebody else for these. */
static void become_ordinary_user(void) {
    if (geteuid() == 0) {
        cr_assert(eq(int, fchown(dir.fd, 65534, 65534), 0));
        cr_assert(eq(int, seteuid(65534), 0));
    }
}

BOTH_METHODS(staged_refusal, fails_in_a_directory_that_is_read_only) {
    become_ordinary_user();
    cr_assert(eq(int, fchmod(dir.fd, 0500), 0));
    bp_staged_file *file = NULL;
    has_no_tmpfile = method == 1;
    cr_expect(eq(int, bp_staged_file_new(dir.fd, dir.path, &file, &failure), BUGPACK_ERR_IO));
    cr_expect(eq(int, failure.system_errno, EACCES));
    cr_expect(strstr(failure.message, dir.path) != NULL, "%s", failure.message);
    cr_expect(file == NULL);
    cr_expect(eq(sz, temp_dir_count(&dir), 0));
    (void)seteuid(getuid());
}

BOTH_METHODS(staged_refusal, fails_to_publish_where_the_directory_became_read_only) {
    become_ordinary_user();
    bp_staged_file *file = start(&dir, method, "x");
    size_t own = own_names(&dir);
    cr_assert(eq(int, fchmod(dir.fd, 0500), 0));
    char name[64];
    cr_expect(eq(int, bp_staged_file_publish(file, "r", ".zip", name, sizeof name, &failure),
                 BUGPACK_ERR_IO));
    cr_expect(eq(int, failure.system_errno, EACCES));
    cr_expect(eq(sz, temp_dir_count(&dir), own));
    cr_assert(eq(int, fchmod(dir.fd, 0700), 0));
    bp_staged_file_free(file);
    cr_expect(eq(sz, temp_dir_count(&dir), 0));
    (void)seteuid(getuid());
}

BOTH_METHODS(staged_refusal, fails_where_the_directory_was_removed) {
    bp_staged_file *file = start(&dir, method, "x");
    char command[300];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", dir.path);
    cr_assert(eq(int, system(command), 0));
    char name[64];
    cr_expect(eq(int, bp_staged_file_publish(file, "r", ".zip", name, sizeof name, &failure),
                 BUGPACK_ERR_IO));
    cr_expect(eq(int, failure.system_errno, ENOENT));
    bp_staged_file_free(file);
    file = NULL;
    has_no_tmpfile = method == 1;
    cr_expect(eq(int, bp_staged_file_new(dir.fd, dir.path, &file, &failure), BUGPACK_ERR_IO));
    cr_expect(eq(int, failure.system_errno, ENOENT));
    cr_expect(file == NULL);
}

Test(staged_refusal, descriptor_that_is_no_directory_is_refused) {
    bp_staged_file *file = NULL;
    cr_expect(eq(int, bp_staged_file_new(-1, "/gone", &file, &failure), BUGPACK_ERR_IO));
    cr_expect(eq(int, failure.system_errno, EBADF));
    cr_expect(file == NULL);
}
