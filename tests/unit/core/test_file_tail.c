#include <fcntl.h>

#include "base/file.h"
#include "support/not_tried.h"
#include "unit/dir.h"

static bugpack_status append(void *buffer, const void *bytes, size_t byte_count) {
    return bp_buffer_append(buffer, bytes, byte_count);
}

DIR_SUITE(file_tail);

static int open_with(const char *contents, size_t byte_count) {
    cr_assert(temp_dir_write(&dir, "log", contents, byte_count));
    int fd = -1;
    cr_assert(eq(int, bp_file_open_regular(dir.fd, "log", &fd, NULL), BUGPACK_OK));
    return fd;
}

typedef struct tail_case {
    const char *contents;
    uint64_t limit_bytes;
    const char *kept;
    bool cut_inside_line;
} tail_case;

static const tail_case tail_cases[] = {
    {"", 10, "", false},
    {"one\ntwo\n", 100, "one\ntwo\n", false},
    {"one\ntwo\n", 8, "one\ntwo\n", false}, /* fits exactly */
    {"one\ntwo\n", 7, "two\n", false},      /* cut inside the first line */
    {"one\ntwo\n", 4, "two\n", false},      /* the cut falls on a line's start */
    {"one\ntwo\n", 5, "two\n", false},      /* the kept newline belongs to the line before */
    {"one\ntwo", 5, "two", false},          /* a last line without its newline */
    {"one\ntwo", 3, "two", false},          /* the same, on the line's start */
    {"one\n\n\n", 2, "\n\n", false},        /* empty lines are lines */
    {"one\n\n\n", 1, "\n", false},          /**/
    {"one\ntwo\n", 3, "wo\n", true},        /* the last line alone is too long */
    {"one\ntwo", 2, "wo", true},            /**/
    {"a long line", 4, "line", true},       /* there is no newline at all */
    {"x\xE2\x82\xAC"
     "9",
     4,
     "\xE2\x82\xAC"
     "9",
     true}, /* the cut is between characters */
    {"x\xE2\x82\xAC"
     "9",
     3, "9", true}, /* the cut would split a character */
    {"x\xE2\x82\xAC"
     "9",
     2, "9", true}, /**/
};

Test(file_tail, keeps_the_newest_whole_lines_that_fit) {
    for (size_t i = 0; i < sizeof tail_cases / sizeof tail_cases[0]; i++) {
        const tail_case *c = &tail_cases[i];
        CLEANUP(close_fd) int fd = open_with(c->contents, strlen(c->contents));
        BUFFER(out, 1000);
        bp_file_tail tail;
        cr_assert(eq(int, bp_file_read_tail(fd, "log", c->limit_bytes, append, &out, &tail, NULL),
                     BUGPACK_OK));
        cr_assert(eq(str, bp_buffer_text(&out), c->kept), "case %zu", i);
        cr_assert(eq(int, tail.cut_inside_line, c->cut_inside_line), "case %zu", i);
        cr_assert(eq(u64, tail.original_bytes, strlen(c->contents)), "case %zu", i);
        cr_assert(eq(u64, tail.skipped_bytes, strlen(c->contents) - strlen(c->kept)), "case %zu",
                  i);
    }
}

Test(file_tail, never_gives_more_than_the_limit_at_any_limit) {
    static const char contents[] = "first\n\nthird line\nl\xC3\xA4st";
    size_t size = sizeof contents - 1;
    CLEANUP(close_fd) int fd = open_with(contents, size);
    for (uint64_t limit = 1; limit <= size + 2; limit++) {
        BUFFER(out, 1000);
        bp_file_tail tail;
        cr_assert(
            eq(int, bp_file_read_tail(fd, "log", limit, append, &out, &tail, NULL), BUGPACK_OK));
        cr_assert(le(u64, out.size, limit));
        cr_assert(gt(sz, out.size, 0));
        const char *expected = contents + size - out.size;
        cr_assert(eq(str, bp_buffer_text(&out), expected));
        cr_assert(tail.cut_inside_line || expected == contents || expected[-1] == '\n',
                  "limit %d cuts a line", (int)limit);
    }
}

Test(file_tail, keeps_bytes_that_are_no_text) {
    static const char contents[] = "ab\n\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80";
    CLEANUP(close_fd) int fd = open_with(contents, sizeof contents - 1);
    BUFFER(out, 1000);
    bp_file_tail tail;
    cr_assert(eq(int, bp_file_read_tail(fd, "log", 8, append, &out, &tail, NULL), BUGPACK_OK));
    cr_assert(tail.cut_inside_line);
    cr_assert(ge(sz, out.size, 8 - 3), "more than one character's bytes went");
}

Test(file_tail, takes_of_a_file_that_grew_what_it_has_now_and_ends_there) {
    CLEANUP(close_fd) int fd = open_with("one\n", 4);
    int writer = openat(dir.fd, "log", O_WRONLY | O_APPEND | O_CLOEXEC);
    cr_assert(eq(int, write(writer, "two\n", 4), 4));
    (void)close(writer);
    BUFFER(out, 1000);
    bp_file_tail tail;
    cr_assert(eq(int, bp_file_read_tail(fd, "log", 100, append, &out, &tail, NULL), BUGPACK_OK));
    cr_assert(eq(str, bp_buffer_text(&out), "one\ntwo\n"));
    cr_assert(eq(u64, tail.original_bytes, 8));
}

Test(file_tail, refuses_a_limit_of_0_and_passes_on_what_the_sink_says) {
    CLEANUP(close_fd) int fd = open_with("one\ntwo\n", 8);
    BUFFER(out, 4);
    bp_file_tail tail = {.original_bytes = 77};
    cr_assert(eq(int, bp_file_read_tail(fd, "log", 100, append, &out, &tail, &failure),
                 BUGPACK_ERR_LIMIT));
    cr_assert(eq(int, bp_file_read_tail(fd, "log", 0, append, &out, &tail, &failure),
                 BUGPACK_ERR_INVALID));
    cr_assert(eq(u64, tail.original_bytes, 77));
    cr_assert(eq(sz, out.size, 0));
}

Test(file_tail, reads_the_end_of_a_file_that_is_larger_than_memory) {
    cr_assert(temp_dir_write(&dir, "sparse", "x", 1));
    CLEANUP(close_fd) int fd = openat(dir.fd, "sparse", O_RDWR | O_CLOEXEC);
    const off_t huge = (off_t)1 << 40;
    cr_assert(eq(int, ftruncate(fd, huge), 0));
    cr_assert(eq(int, pwrite(fd, "\nthe end\n", 9, huge - 9), 9));
    BUFFER(out, 1000);
    bp_file_tail tail;
    cr_assert(eq(int, bp_file_read_tail(fd, "sparse", 100, append, &out, &tail, NULL), BUGPACK_OK));
    cr_assert(eq(str, bp_buffer_text(&out), "the end\n"));
    cr_assert(eq(u64, tail.original_bytes, (uint64_t)huge));
}

/* What the kernel makes up when it is read has a size of 0 under /proc, and of a page under /sys.
 */
static void reads_the_whole_of(const char *path, uint64_t limit_bytes) {
    bp_file_tail tail;
    CLEANUP(close_fd) int fd = -1;
    BUFFER(whole, 65536);
    BUFFER(out, 65536);
    cr_assert(eq(int, bp_file_read_at(AT_FDCWD, path, &whole, &failure), BUGPACK_OK));
    cr_assert(gt(sz, whole.size, 0));
    cr_assert(eq(int, bp_file_open_regular(AT_FDCWD, path, &fd, &failure), BUGPACK_OK));
    cr_assert(eq(int, bp_file_read_tail(fd, path, limit_bytes, append, &out, &tail, &failure),
                 BUGPACK_OK));
    cr_assert(eq(u64, tail.original_bytes, whole.size));
    cr_assert(eq(u64, tail.skipped_bytes, whole.size - out.size));
    cr_assert(gt(sz, out.size, 0));
    cr_assert(le(u64, out.size, limit_bytes));
    cr_assert(eq(str, bp_buffer_text(&out), whole.data + whole.size - out.size));
}

Test(file_tail, reads_files_that_do_not_tell_their_size) {
    if (access("/proc/self/limits", R_OK) != 0) {
        not_tried("there is no /proc here");
    }
    reads_the_whole_of("/proc/self/limits", 60000);
    reads_the_whole_of("/proc/self/limits", 200);
}

Test(file_tail, reads_files_that_are_shorter_than_they_say) {
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    if (access(path, R_OK) != 0) {
        not_tried("there is no such file under /sys here");
    }
    reads_the_whole_of(path, 60000);
    reads_the_whole_of(path, 100);
}
