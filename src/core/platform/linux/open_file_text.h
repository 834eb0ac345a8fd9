/*
 * The kind of a descriptor, from the texts below /proc/<pid>/fd and fdinfo. Pure.
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
    bool has_lock; /* it holds an exclusive lock of the file */
    bool has_event;
    uint64_t event; /* which of all eventfds it is; since Linux 5.2 */
} bp_fd_info;

/* Lines that are malformed are passed over. */
void bp_fd_info_parse(const char *text, size_t text_bytes, bp_fd_info *ret_info);

/* "read", "write", "read_write", "path" (O_PATH); NULL where there is none of these. Static. */
const char *bp_fd_access(uint64_t flags);

/* Sockets as the tables below /proc/<pid>/net and sock_diag(7) show them.
 * X(constant, file and protocol, name of the protocol in the kernel: the `name` of a struct proto)
 */
#define BP_SOCKET_TABLES(X)                                                                        \
    X(TCP, "tcp", "TCP")                                                                           \
    X(TCP6, "tcp6", "TCPv6")                                                                       \
    X(UDP, "udp", "UDP")                                                                           \
    X(UDP6, "udp6", "UDPv6")                                                                       \
    X(UNIX, "unix", "UNIX")

typedef enum bp_socket_table {
#define BP_SOCKET_CONSTANT(constant, name, kernel_name) BP_SOCKET_##constant,
    BP_SOCKET_TABLES(BP_SOCKET_CONSTANT)
#undef BP_SOCKET_CONSTANT
        BP_SOCKET_TABLE_COUNT
} bp_socket_table;

const char *bp_socket_table_name(bp_socket_table table);

/* The table that has the sockets of a protocol, by its name in the kernel; "UNIX-STREAM" is "UNIX".
 * BP_SOCKET_TABLE_COUNT: none has. */
bp_socket_table bp_socket_table_of(const char *kernel_name);

#define BP_SOCKET_NAME_BYTES 109 /* sun_path, and a NUL */

/* One socket. What is not known is 0 and "". */
typedef struct bp_socket {
    uint64_t inode;
    char protocol[24]; /* the table's name, or what the kernel calls it */
    const char *type;  /* "stream"; static, NULL: none */
    const char *state; /* static; NULL: it has none */
    /* "127.0.0.1:80", "[::1]:80", or the name of a unix socket: any bytes, "@" in front of one that
     * is no file. */
    char local[BP_SOCKET_NAME_BYTES], remote[BP_SOCKET_NAME_BYTES];
    bool is_listening; /* then the queues count connections */
    bool has_queues;
    uint64_t receive_queue; /* bytes not yet read; listening: connections not yet accepted */
    uint64_t send_queue;    /* bytes not yet acknowledged, or read; listening: how many may wait */
    bool has_send_queue;
    bool has_retransmits, has_drops;
    uint64_t retransmits; /* timeouts in a row without an answer */
    uint64_t drops;
    uint64_t peer_inode;     /* of the socket at the other end, which is on this machine */
    uint64_t listener_inode; /* of a listener on this machine that has not accepted it */
    bool is_accepted;        /* the other end connected to it */
    bool has_connected;      /* it connected to the other end; neither: that is not known */
    bool has_peer_queue;
    uint64_t peer_queue;           /* bytes that the other end, on this machine, has not read */
    bool has_times;                /* of a few TCP connections */
    uint64_t sent_ms, received_ms; /* since data was sent, and came in; or since it began */
    bool has_sent, has_received;   /* any data */
} bp_socket;

/* A line of a table; its first one has titles and is none. False with the output left alone. */
bool bp_socket_parse(bp_socket_table table, const char *line, size_t line_bytes,
                     bp_socket *ret_socket);

/*
 * The ends of a TCP connection within one machine, as "local remote", or "remote local" for
 * `from_remote`: the same text for its two sockets, in whatever table each is. False for any other
 * socket.
 */
#define BP_SOCKET_CONNECTION_BYTES 192
bool bp_socket_connection(const bp_socket *socket, bool from_remote,
                          char out[BP_SOCKET_CONNECTION_BYTES]);

/*
 * True if a listener is one that the remote end of a TCP socket may belong to: of its port, and of
 * its address or of any.
 */
bool bp_socket_is_listener_of(const bp_socket *listener, const bp_socket *socket);

/* From sock_diag: the queues of a unix socket and of a listener of TCP, the name of a unix socket,
 * "@" in front of one that is no file, and when a TCP socket sent and received. */
typedef struct bp_socket_diag {
    uint64_t inode, peer_inode; /* 0: it has none */
    bool has_queues;
    uint64_t receive_queue, send_queue;
    const unsigned char *pending; /* of a unix listener: 32-bit inodes of those who have connected,
                                     and are not accepted; in the answer, of any alignment */
    size_t pending_count;
    char name[BP_SOCKET_NAME_BYTES];
    bool has_times, has_sent, has_received;
    uint64_t sent_ms, received_ms;
} bp_socket_diag;

/*
 * Takes the next message off an answer to a SOCK_DIAG_BY_FAMILY dump of AF_UNIX, AF_INET or
 * AF_INET6, and advances `*at`.
 * `*ret_is_last` is set where nothing more will come: the end, an error, or a malformed message.
 * False where there is no socket in it.
 */
bool bp_socket_diag_take(const unsigned char *bytes, size_t byte_count, size_t *at,
                         bp_socket_diag *ret_diag, bool *ret_is_last);

#endif
