/*
 * Reading files that may be anything, and may change meanwhile.
 */
#ifndef BP_PLATFORM_LINUX_FILES_H
#define BP_PLATFORM_LINUX_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/export.h>

#include "platform/linux/proc_list.h"
#include "platform/linux/proc_text.h"
#include "platform/process_facts.h"

/* Reads a whole small file. The length, or -1 with errno; one that fills `out` may be cut off. */
ssize_t bp_proc_read_small(int dir_fd, const char *path, char *out, size_t out_bytes);

/* The same by a path that is made as by printf, of at most 127 bytes. */
ssize_t bp_proc_read_at(int dir_fd, char *out, size_t out_bytes, const char *format, ...)
    BUGPACK_PRINTF(4, 5);

/* A number below /proc/sys that is not negative. */
bp_known_uint bp_proc_read_setting(const char *path);

/* Opens such a path, close-on-exec. -1 with errno. */
int bp_proc_open_at(int dir_fd, int flags, const char *format, ...) BUGPACK_PRINTF(3, 4);

/* Reads a stat at such a path. 0, or an errno: EBADMSG where it makes no sense. */
int bp_proc_read_stat(int dir_fd, bp_proc_stat *ret_stat, const char *format, ...)
    BUGPACK_PRINTF(3, 4);

/*
 * How many arguments a process was given: the first word of its stack, which no program has a
 * reason to change. 0 where it cannot be read.
 */
uint64_t bp_proc_read_argument_count(pid_t pid, uint64_t stack_start);

/* Reads `byte_count` bytes at `offset`, all of them or it returns false, with an errno: 0 when the
 * file is too short. */
bool bp_read_exactly(int fd, uint64_t offset, void *out, size_t byte_count);

/*
 * Opens a regular file for reading, close-on-exec, by a name that another user may have chosen. The
 * type is checked through an O_PATH descriptor, so that a device (a tape, a watchdog) or a FIFO
 * notices nothing. Symbolic links are followed. -1 with errno; ESTALE when it is no regular file.
 */
int bp_open_regular(const char *path);

/* The same for the file of an O_PATH descriptor, which it closes. */
int bp_reopen_regular(int path_fd);

/* Opens a path below `root_fd`, close-on-exec, and with links that cannot lead out of it. -1 with
 * errno: ENOSYS before Linux 5.6, EAGAIN while others rename or mount without end. */
int bp_open_below(int root_fd, const char *path, int flags);

/*
 * Opens a path as the process sees it whose /proc/<pid> is `process_fd`: below its root, and with
 * links that cannot lead out of it; close-on-exec. With O_PATH nothing is opened, so that a device
 * or a FIFO in that place notices nothing. -1 with errno.
 */
int bp_open_in_root(int process_fd, const char *path, int flags);

/* The build id of an open file (build_id.h); "" when it has none. Returns 0, or the errno for which
 * the file could not be read. */
int bp_read_build_id(int fd, char out[65]);

#endif
