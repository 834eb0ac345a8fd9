/*
 * Directories to hold on to, and reading files that may be anything: a FIFO, a device, growing,
 * shrinking, endless.
 */
#ifndef BP_BASE_FILE_H
#define BP_BASE_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "base/sink.h"

/*
 * Takes slashes and "." off the end of a directory's path: behind a symbolic link they would make
 * the system follow it, whatever it was told.
 */
void bp_file_trim_directory(char *path);

/* The part after the last slash; the whole path if nothing follows it. musl and glibc declare
 * basename(3) in different headers. */
const char *bp_file_base_name(const char *path);

/* `path` made absolute with the current directory; the text is the caller's to free. INVALID (an
 * empty path), IO, NO_MEMORY. */
bugpack_status bp_file_absolute_path(const char *path, char **ret_path, bugpack_error *error);

/*
 * Opens a directory to hold on to and write to: O_DIRECTORY, O_NOFOLLOW, close-on-exec. With
 * `create`, its last component is made with mode 0700, whatever the umask, when it is missing. The
 * descriptor is the caller's to close. DENIED where everybody can write and it is not sticky:
 * others could replace what is written.
 */
bugpack_status bp_file_open_directory(const char *path, bool create, int *ret_fd,
                                      bugpack_error *error);

/*
 * For a directory that the library chose, and nobody named: DENIED unless it belongs to this user
 * and is closed to others, who could have made it first. `path` is for the sentence.
 */
bugpack_status bp_file_check_private(int fd, const char *path, bugpack_error *error);

/* Makes a directory and whatever is missing above it, each with mode 0700. */
bugpack_status bp_file_make_path(const char *path, bugpack_error *error);

/*
 * Opens a regular file for reading, without ever blocking on a FIFO or becoming a terminal's
 * process. `dir_fd` may be AT_FDCWD. Symbolic links are followed. Anything but a regular file fails
 * with BUGPACK_ERR_IO and a sentence that says what it is.
 */
bugpack_status bp_file_open_regular(int dir_fd, const char *path, int *ret_fd,
                                    bugpack_error *error);

/* The same for a file of which somebody named no more than the beginning: the last `found_bytes` of
 * `path` were found there. No link is followed among these: whoever can write there can make one.
 */
bugpack_status bp_file_open_found(const char *path, size_t found_bytes, int *ret_fd,
                                  bugpack_error *error);

/* Reads `byte_count` bytes at `offset`, whatever signals arrive; fewer only at the end of the file.
 * -1 with errno. */
int64_t bp_file_read_range(int fd, void *bytes, size_t byte_count, uint64_t offset);

/*
 * Appends the whole of a descriptor, from its current offset. Reads until end of file, so it works
 * where st_size is 0 (as under /proc). Fails with LIMIT when the buffer's maximum is passed,
 * and else as bp_fail_process_errno says, because files of a process end with it. `name` is for the
 * sentence.
 */
bugpack_status bp_file_read_fd(int fd, const char *name, bp_buffer *out, bugpack_error *error);

/* Opens `path` below `dir_fd`, reads it whole, and closes it. Not restricted to regular files. */
bugpack_status bp_file_read_at(int dir_fd, const char *path, bp_buffer *out, bugpack_error *error);

/* Writes all of it, whatever signals come: 0, or an errno; ENOSPC where nothing more was taken. */
int bp_file_write_all(int fd, const void *bytes, size_t byte_count);
/* The same at `offset`. */
int bp_file_write_range(int fd, const void *bytes, size_t byte_count, uint64_t offset);

/* Closes a descriptor, unless it is -1, and leaves errno alone. */
void bp_file_close(int fd);

/* Lists a directory, on a descriptor of its own. NULL with errno. */
DIR *bp_file_list_directory(int dir_fd);

/* The part of a file that was kept. */
typedef struct bp_file_tail {
    uint64_t original_bytes; /* its size when it was read */
    uint64_t skipped_bytes;  /* how much was left off at the front */
    bool cut_inside_line;    /* one line alone was over the limit, so its end was kept */
} bp_file_tail;

/*
 * Gives the newest whole lines of a regular file that fit in `limit_bytes` to the sink, in pieces.
 * When nothing has to be cut, all of it. A file that grows meanwhile contributes what it had when
 * it was opened; one that shrinks contributes what is still there. One that tells no size, or a
 * wrong one (as under /proc and /sys), is measured by reading it, up to 64 MiB; beyond that it
 * fails with IO. When the last line alone is too long, its newest `limit_bytes` are kept, cut at a
 * UTF-8 boundary.
 */
bugpack_status bp_file_read_tail(int fd, const char *name, uint64_t limit_bytes, bp_sink *sink,
                                 void *context, bp_file_tail *ret_tail, bugpack_error *error);

#endif
