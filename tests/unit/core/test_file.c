#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/file.h"
#include "unit/dir.h"

DIR_SUITE(file, .timeout = 60);

static void expect_says(const bugpack_error *error, const char *words) {
    cr_assert(ne(ptr, strstr(error->message, words), NULL), "\"%s\" says nothing of \"%s\"",
              error->message, words);
}

static void in_dir(const char *name, char path[512]) {
    (void)snprintf(path, 512, "%s/%s", dir.path, name);
}

/* Root may do anything; a rule about permissions is seen as somebody else. */
static void become_nobody(void) {
    if (geteuid() == 0) {
        cr_assert(eq(int, fchown(dir.fd, 65534, 65534), 0));
        cr_assert(eq(int, seteuid(65534), 0));
    }
}

static void become_root_again(void) {
    if (getuid() == 0) {
        cr_assert(eq(int, seteuid(0), 0));
    }
}

static void expect_makes_0700_under(mode_t umask_bits, const char *name) {
    char path[512];
    in_dir(name, path);
    become_nobody();
    mode_t before = umask(umask_bits);
    CLEANUP(close_fd) int fd = -1;
    bugpack_status status = bp_file_open_directory(path, true, &fd, &failure);
    (void)umask(before);
    become_root_again();
    cr_assert(eq(int, status, BUGPACK_OK), "%s", failure.message);
    struct stat info;
    cr_assert(eq(int, fstat(fd, &info), 0));
    cr_assert(eq(uint, info.st_mode & 07777, 0700));
}

Test(file, makes_a_directory_of_0700_whatever_the_umask) {
    expect_makes_0700_under(0, "open");
    expect_makes_0700_under(0777, "closed");
}

Test(file, leaves_the_mode_of_a_directory_that_is_there) {
    char path[512];
    in_dir("mine", path);
    cr_assert(eq(int, mkdir(path, 0755), 0));
    cr_assert(eq(int, chmod(path, 0755), 0));
    CLEANUP(close_fd) int fd = -1;
    cr_assert(eq(int, bp_file_open_directory(path, true, &fd, NULL), BUGPACK_OK));
    cr_assert(ne(int, fcntl(fd, F_GETFD) & FD_CLOEXEC, 0));
    struct stat info;
    cr_assert(eq(int, fstat(fd, &info), 0));
    cr_assert(eq(uint, info.st_mode & 07777, 0755));
}

Test(file, makes_only_the_last_component) {
    char path[512];
    in_dir("a/b", path);
    int fd = 77;
    cr_assert(eq(int, bp_file_open_directory(path, true, &fd, &failure), BUGPACK_ERR_IO));
    cr_assert(eq(int, failure.system_errno, ENOENT));
    expect_says(&failure, "a/b");
    cr_assert(eq(int, fd, 77));
}

Test(file, refuses_a_link_to_a_directory_and_says_so) {
    char real[512], link[512];
    in_dir("real", real);
    in_dir("link", link);
    cr_assert(eq(int, mkdir(real, 0755), 0));
    cr_assert(eq(int, chmod(real, 0755), 0));
    cr_assert(eq(int, symlink(real, link), 0));
    for (int create = 0; create < 2; create++) {
        int fd = 77;
        cr_assert(
            eq(int, bp_file_open_directory(link, create == 1, &fd, &failure), BUGPACK_ERR_IO));
        expect_says(&failure, "symbolic link");
        cr_assert(eq(int, fd, 77));
    }
    struct stat info;
    cr_assert(eq(int, stat(real, &info), 0));
    cr_assert(eq(uint, info.st_mode & 07777, 0755), "the link was followed");
}

Test(file, refuses_a_file_where_a_directory_belongs) {
    char path[512];
    in_dir("file", path);
    cr_assert(temp_dir_write(&dir, "file", "x", 1));
    int fd = 77;
    cr_assert(eq(int, bp_file_open_directory(path, true, &fd, &failure), BUGPACK_ERR_IO));
    cr_assert(eq(int, failure.system_errno, ENOTDIR));
    cr_assert(eq(int, fd, 77));
}

Test(file, opens_a_regular_file_close_on_exec_also_through_a_link) {
    cr_assert(temp_dir_write(&dir, "file", "x", 1));
    cr_assert(eq(int, symlinkat("file", dir.fd, "link"), 0));
    static const char *const names[] = {"file", "link"};
    for (size_t i = 0; i < 2; i++) {
        CLEANUP(close_fd) int fd = -1;
        cr_assert(eq(int, bp_file_open_regular(dir.fd, names[i], &fd, NULL), BUGPACK_OK));
        cr_assert(ne(int, fcntl(fd, F_GETFD) & FD_CLOEXEC, 0));
    }
}

static int open_found(const char *found) {
    failure = (bugpack_error)BUGPACK_ERROR_INIT;
    char path[600];
    int fd = -1;
    (void)snprintf(path, sizeof path, "%s/named/%s", dir.path, found);
    if (bp_file_open_found(path, strlen(found), &fd, &failure) != BUGPACK_OK) {
        cr_expect(eq(int, fd, -1));
        return failure.system_errno;
    }
    (void)close(fd);
    return 0;
}

Test(file, opens_what_nobody_named_without_following_a_link) {
    cr_assert(eq(int, mkdirat(dir.fd, "directory", 0700), 0));
    cr_assert(eq(int, mkdirat(dir.fd, "directory/below", 0700), 0));
    cr_assert(eq(int, symlinkat("directory", dir.fd, "named"), 0));
    cr_assert(eq(int, symlinkat("below", dir.fd, "directory/around"), 0));
    cr_assert(eq(int, symlinkat("file", dir.fd, "directory/below/link"), 0));
    cr_assert(temp_dir_write(&dir, "directory/below/file", "x", 1));
    cr_expect(zero(int, open_found("below/file")), "of what was named, a link is followed");
    cr_expect(eq(int, open_found("below/link"), ELOOP));
    cr_expect(eq(int, open_found("around/file"), ELOOP));
    cr_expect(eq(int, open_found("below/none"), ENOENT));
}

static void expect_refused(int dir_fd, const char *path, const char *words) {
    int fd = 77;
    cr_assert(eq(int, bp_file_open_regular(dir_fd, path, &fd, &failure), BUGPACK_ERR_IO));
    expect_says(&failure, words);
    expect_says(&failure, path);
    cr_assert(eq(int, fd, 77));
}

/* With a FIFO that nobody writes to, a plain open would hang for good. */
Test(file, refuses_a_fifo_without_hanging) {
    cr_assert(eq(int, mkfifoat(dir.fd, "fifo", 0600), 0));
    expect_refused(dir.fd, "fifo", "a FIFO");
}

Test(file, refuses_what_else_is_not_a_regular_file) {
    expect_refused(dir.fd, ".", "a directory");
    expect_refused(AT_FDCWD, "/dev/null", "a device");
    expect_refused(dir.fd, "missing", "No such file");
    char path[512];
    in_dir("socket", path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    cr_assert(lt(sz, strlen(path), sizeof address.sun_path));
    memcpy(address.sun_path, path, strlen(path) + 1);
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(eq(int, bind(fd, (struct sockaddr *)&address, sizeof address), 0));
    expect_refused(dir.fd, "socket", "socket"); /* open(2) says ENXIO, whose words differ */
}

Test(file, reads_a_whole_file_behind_what_is_there) {
    cr_assert(temp_dir_write(&dir, "file", "12\0\xFF", 4));
    BUFFER(out, 6);
    (void)bp_buffer_append_text(&out, ">>");
    cr_assert(eq(int, bp_file_read_at(dir.fd, "file", &out, NULL), BUGPACK_OK));
    cr_assert(eq(sz, out.size, 6));
    cr_assert(eq(int, memcmp(out.data, ">>12\0\xFF", 7), 0));
}

Test(file, refuses_one_byte_over_the_limit) {
    cr_assert(temp_dir_write(&dir, "file", "12345", 5));
    BUFFER(out, 4);
    cr_assert(eq(int, bp_file_read_at(dir.fd, "file", &out, &failure), BUGPACK_ERR_LIMIT));
    expect_says(&failure, "file");
    expect_says(&failure, "4 bytes");
}

Test(file, reads_a_large_file_and_files_that_have_no_size) {
    static char large[300000];
    memset(large, 'L', sizeof large);
    cr_assert(temp_dir_write(&dir, "large", large, sizeof large));
    BUFFER(out, 1 << 20);
    cr_assert(eq(int, bp_file_read_at(dir.fd, "large", &out, NULL), BUGPACK_OK));
    cr_assert(eq(sz, out.size, sizeof large));
    cr_assert(eq(int, memcmp(out.data, large, sizeof large), 0));
    bp_buffer_clear(&out);
    int pipe_fds[2];
    cr_assert(eq(int, pipe(pipe_fds), 0));
    cr_assert(eq(int, write(pipe_fds[1], "from a pipe", 11), 11));
    (void)close(pipe_fds[1]);
    cr_assert(eq(int, bp_file_read_fd(pipe_fds[0], "pipe", &out, NULL), BUGPACK_OK));
    cr_assert(eq(str, bp_buffer_text(&out), "from a pipe"));
    (void)close(pipe_fds[0]);
}

Test(file, says_that_a_file_is_missing_or_cannot_be_read) {
    BUFFER(out, 100);
    cr_assert(eq(int, bp_file_read_at(dir.fd, "gone", &out, &failure), BUGPACK_ERR_NO_PROCESS));
    cr_assert(eq(int, failure.system_errno, ENOENT));
    cr_assert(eq(int, bp_file_read_at(dir.fd, ".", &out, &failure), BUGPACK_ERR_IO));
    cr_assert(eq(int, failure.system_errno, EISDIR));
    cr_assert(eq(sz, out.size, 0));
}

Test(file, closes_a_descriptor_or_none_and_leaves_errno_alone) {
    int fd = open(dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert(ge(int, fd, 0));
    errno = EXDEV;
    bp_file_close(-1);
    bp_file_close(fd);
    cr_expect(eq(int, errno, EXDEV));
    cr_expect(eq(int, fcntl(fd, F_GETFD), -1));
}
