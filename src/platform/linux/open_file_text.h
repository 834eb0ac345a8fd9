/*
 * What a descriptor is, from the texts below /proc/<pid>/fd and fdinfo. Pure.
 */
#ifndef BP_PLATFORM_LINUX_OPEN_FILE_TEXT_H
#define BP_PLATFORM_LINUX_OPEN_FILE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * X(constant, name in the JSON, name of its inode without a file; NULL: none).
 * See anon_inode_getfd and its like in the kernel, and pidfs.
 */
#define BP_OPEN_FILE_KINDS(X)                                                                      \
    X(FILE, "file", NULL)                                                                          \
    X(DIRECTORY, "directory", NULL)                                                                \
    X(CHARACTER_DEVICE, "character_device", NULL)                                                  \
    X(BLOCK_DEVICE, "block_device", NULL)                                                          \
    X(FIFO, "fifo", NULL)                                                                          \
    X(SYMLINK, "symlink", NULL) /* only with O_PATH */                                             \
    X(PIPE, "pipe", NULL)                                                                          \
    X(SOCKET, "socket", NULL)                                                                      \
    X(MEMFD, "memfd", NULL)                                                                        \
    X(NAMESPACE, "namespace", NULL)                                                                \
    X(EPOLL, "epoll", "eventpoll")                                                                 \
    X(EVENTFD, "eventfd", "eventfd")                                                               \
    X(TIMERFD, "timerfd", "timerfd")                                                               \
    X(SIGNALFD, "signalfd", "signalfd")                                                            \
    X(INOTIFY, "inotify", "inotify")                                                               \
    X(FANOTIFY, "fanotify", "fanotify")                                                            \
    X(PIDFD, "pidfd", "pidfd")                                                                     \
    X(IO_URING, "io_uring", "io_uring")                                                            \
    X(USERFAULTFD, "userfaultfd", "userfaultfd")                                                   \
    X(PERF_EVENT, "perf_event", "perf_event")                                                      \
    X(BPF, "bpf", "bpf-map")                                                                       \
    X(OTHER, "other", NULL) /* the target has its name, if it has one */

typedef enum bp_open_file_kind {
#define BP_OPEN_FILE_CONSTANT(constant, name, inode) BP_OPEN_FILE_##constant,
    BP_OPEN_FILE_KINDS(BP_OPEN_FILE_CONSTANT)
#undef BP_OPEN_FILE_CONSTANT
} bp_open_file_kind;

const char *bp_open_file_kind_name(bp_open_file_kind kind);

/* `target` is what the link below fd/ reads; `mode` the st_mode of what it leads to, 0: unknown. */
bp_open_file_kind bp_open_file_kind_of(const char *target, uint32_t mode);

/* The number in "pipe:[12]" or "socket:[12]"; false for any other target. */
bool bp_open_file_inode(const char *target, const char *prefix, uint64_t *ret_inode);

/* fdinfo/<number>, see proc_pid_fdinfo(5). What is not in it is not known. */
typedef struct bp_fd_info {
    bool has_flags, has_position;
    uint64_t flags; /* those of open(2), of this architecture */
    uint64_t position;
    bool has_value; /* of an eventfd */
    uint64_t value;
    bool has_pid; /* of a pidfd */
    int64_t pid;  /* -1: it has ended */
    bool has_signals;
    uint64_t signals; /* of a signalfd: bit 0 is signal 1 */
    bool has_watches; /* of epoll and inotify; not where the text may be cut off */
    uint64_t watch_count;
} bp_fd_info;

/* Lines that are malformed are passed over. `is_cut`: the file may have more. */
void bp_fd_info_parse(const char *text, size_t text_bytes, bool is_cut, bp_fd_info *ret_info);

/* "read", "write", "read_write", "path" (O_PATH); NULL where there is none of these. Static. */
const char *bp_fd_access(uint64_t flags);

/* The names of the other flags, in the table's order: the one after the `index` first ones, or
 * NULL. Static. */
const char *bp_fd_flag(uint64_t flags, size_t index);

#endif
