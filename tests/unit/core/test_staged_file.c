/*
 * Staged files: what appears, and what does not. The same file is built against the stub platform,
 * which has only temporary names.
 */
#include "support/staged_methods.h"
#include "unit/dir.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

static bool holds(const char *name, const char *text) {
    char bytes[64];
    size_t count = temp_dir_read(&dir, name, bytes, sizeof bytes);
    return count == strlen(text) && memcmp(bytes, text, count) == 0;
}

DIR_SUITE(staged_file);

BOTH_METHODS(staged_file, appears_whole_under_its_name_and_leaves_nothing_else) {
    bp_staged_file *file = start(&dir, method, "whole");
    char name[NAME_MAX + 1] = "";
    cr_assert(bp_staged_file_publish(file, "a-report", ".zip", name, sizeof name, &failure) ==
                  BUGPACK_OK,
              "%s", failure.message);
    cr_expect(eq(str, name, "a-report.zip"));
    cr_expect(holds("a-report.zip", "whole"));
    cr_expect(eq(sz, temp_dir_count(&dir), 1));
    bp_staged_file_free(file);
    cr_expect(holds("a-report.zip", "whole"));
    cr_expect(eq(sz, temp_dir_count(&dir), 1));
}

BOTH_METHODS(staged_file, shows_no_name_of_a_report_before_it_is_published_and_none_when_freed) {
    bp_staged_file *file = start(&dir, method, "unfinished");
    cr_expect(eq(sz, temp_dir_count(&dir), own_names(&dir)));
    if (method == 1) {
        cr_expect(eq(sz, own_names(&dir), 1));
    }
    bp_staged_file_free(file);
    cr_expect(eq(sz, temp_dir_count(&dir), 0));
    bp_staged_file_free(NULL);
}

BOTH_METHODS(staged_file, descriptor_is_private_readable_and_closed_on_exec_whatever_the_umask) {
    static const mode_t masks[] = {0, 0777, 0027};
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        mode_t before = umask(masks[i]);
        bp_staged_file *file = start(&dir, method, "secret");
        (void)umask(before);
        int fd = bp_staged_file_fd(file);
        struct stat info;
        cr_assert(eq(int, fstat(fd, &info), 0));
        cr_expect(eq(int, (int)(info.st_mode & 07777), 0600));
        cr_expect(eq(int, fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC));
        char byte = 0;
        cr_expect(eq(int, pread(fd, &byte, 1, 0), 1));
        char name[64];
        cr_expect(eq(int, bp_staged_file_publish(file, "s", ".zip", name, sizeof name, NULL), 0));
        cr_assert(eq(int, fstatat(dir.fd, name, &info, AT_SYMLINK_NOFOLLOW), 0));
        cr_expect(eq(int, (int)(info.st_mode & 07777), 0600));
        bp_staged_file_free(file);
    }
}

/* Every kind of thing that can sit at the name; each must still be what it was afterwards. */
BOTH_METHODS(staged_file, never_follows_or_replaces_what_holds_the_name) {
    cr_assert(temp_dir_write(&dir, "r.zip", "old", 3));
    cr_assert(temp_dir_write(&dir, "victim", "victim", 6));
    cr_assert(eq(int, symlinkat("victim", dir.fd, "r-2.zip"), 0));
    cr_assert(eq(int, symlinkat("nowhere", dir.fd, "r-3.zip"), 0));
    cr_assert(eq(int, mkfifoat(dir.fd, "r-4.zip", 0600), 0));
    cr_assert(eq(int, mkdirat(dir.fd, "r-5.zip", 0700), 0));
    size_t before = temp_dir_count(&dir);
    char name[64] = "";
    for (int n = 6; n <= 7; n++) {
        char expected[16];
        (void)snprintf(expected, sizeof expected, "r-%d.zip", n);
        bp_staged_file *file = start(&dir, method, "new");
        cr_expect(eq(int, bp_staged_file_publish(file, "r", ".zip", name, sizeof name, NULL), 0));
        bp_staged_file_free(file);
        cr_expect(eq(str, name, expected));
        cr_expect(holds(name, "new"));
    }
    cr_expect(eq(sz, temp_dir_count(&dir), before + 2));
    cr_expect(holds("r.zip", "old"));
    cr_expect(holds("victim", "victim"));
    cr_expect(not(temp_dir_has(&dir, "nowhere")));
    static const struct {
        const char *name;
        mode_t type;
    } kept[] = {
        {"r-2.zip", S_IFLNK}, {"r-3.zip", S_IFLNK}, {"r-4.zip", S_IFIFO}, {"r-5.zip", S_IFDIR}};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        struct stat info;
        cr_assert(eq(int, fstatat(dir.fd, kept[i].name, &info, AT_SYMLINK_NOFOLLOW), 0));
        cr_expect(eq(int, (int)(info.st_mode & S_IFMT), (int)kept[i].type), "%s", kept[i].name);
    }
}

/* A daemon that closed them and prints all the same would print into its report. */
BOTH_METHODS(staged_file, never_takes_the_place_of_a_standard_stream) {
    int saved[3];
    for (int fd = 0; fd < 3; fd++) {
        saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
        (void)close(fd);
    }
    bp_staged_file *file = NULL;
    has_no_tmpfile = method == 1;
    bugpack_status status = bp_staged_file_new(dir.fd, dir.path, &file, NULL);
    int own_fd = status == BUGPACK_OK ? bp_staged_file_fd(file) : -1;
    int flags = fcntl(own_fd, F_GETFD);
    for (int fd = 0; fd < 3; fd++) {
        if (saved[fd] >= 0) {
            (void)dup2(saved[fd], fd);
            (void)close(saved[fd]);
        }
    }
    cr_assert(zero(int, status));
    cr_assert(gt(int, own_fd, STDERR_FILENO));
    cr_assert(ne(int, flags &FD_CLOEXEC, 0));
    bp_staged_file_free(file);
    cr_assert(zero(sz, temp_dir_count(&dir)));
}
