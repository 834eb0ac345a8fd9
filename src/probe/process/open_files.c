#include "process/open_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "model/open_files.h"
#include "platform/linux/files.h"
#include "platform/linux/libc_calls.h"
#include "platform/linux/proc_text.h"

enum { target_bytes_max = 4096, text_bytes_max = 16384, limit_max = 32 };

/* What the kernel says of the sockets of a process. */

static const size_t piece_bytes = (size_t)64 * 1024;

/* The kernel answers at once; this is for what stands in its way. */
static const struct timeval answer_time = {.tv_usec = 200000};

/* A TCP connection whose other end is on this machine too. */
struct connection {
    char ends[BP_SOCKET_CONNECTION_BYTES]; /* as the other socket has them; they are sorted by it */
    bp_socket *socket;
    bool is_pending; /* the other socket has no inode: it was not accepted */
    size_t listener_count;
};

/* The sockets of a process by inode; several descriptors may have the same one. */
struct sockets {
    int fds_fd;
    uint64_t deadline_ns;
    bp_open_files *process;
    bp_socket **items;         /* ascending by inode */
    unsigned char *row_counts; /* of each item, up to 2 */
    size_t count;
    uint32_t tables;                /* a bit for each that is needed */
    char *piece;                    /* piece_bytes */
    struct connection *connections; /* NULL while the process's own sockets are read */
    size_t connection_count;
    bool has_pending, finds_listeners;
};

/* Asks for the protocol, which the kernel says of any socket (sockfs_xattr_get in net/socket.c). */
static bp_socket *new_socket(struct sockets *sockets, const bp_open_file *file) {
    char path[64];
    bp_socket *socket = calloc(1, sizeof *socket);
    if (socket == NULL) {
        return NULL;
    }
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d/%u", sockets->fds_fd,
                   (unsigned)file->number);
    ssize_t length =
        getxattr(path, "system.sockprotoname", socket->protocol, sizeof socket->protocol - 1);
    socket->protocol[length < 0 ? 0 : length] = '\0';
    bp_socket_table table = bp_socket_table_of(socket->protocol);
    if (table < BP_SOCKET_TABLE_COUNT) {
        (void)snprintf(socket->protocol, sizeof socket->protocol, "%s",
                       bp_socket_table_name(table));
        sockets->tables |= 1u << table;
    }
    (void)bp_open_file_inode(file->target, "socket", &socket->inode);
    return socket;
}

static int compare_inodes(const void *one, const void *other) {
    const bp_socket *left = *(bp_socket *const *)one;
    const bp_socket *right = *(bp_socket *const *)other;
    return (left->inode > right->inode) - (left->inode < right->inode);
}

static int compare_inode(const void *inode, const void *item) {
    return bp_array_compare_u64(inode, &(*(bp_socket *const *)item)->inode);
}

/* The index of the first socket with the inode, or of another one. */
static size_t find_first(const struct sockets *sockets, uint64_t inode) {
    return bp_array_find_first(&inode, sockets->items, sockets->count, sizeof *sockets->items,
                               compare_inode);
}

static int compare_connections(const void *one, const void *other) {
    const struct connection *left = one;
    const struct connection *right = other;
    return strcmp(left->ends, right->ends);
}

/* Takes the other socket of a connection, for each descriptor that has the first one. */
static void take_peer(struct sockets *sockets, const bp_socket *found) {
    struct connection key;
    if (!bp_socket_connection(found, false, key.ends)) {
        return;
    }
    bool is_pending =
        found->inode == 0 && found->state != NULL && strcmp(found->state, "established") == 0;
    for (size_t i = bp_array_find_first(&key, sockets->connections, sockets->connection_count,
                                        sizeof key, compare_connections);
         i < sockets->connection_count && compare_connections(&sockets->connections[i], &key) == 0;
         i++) {
        struct connection *connection = &sockets->connections[i];
        if (found->inode != 0) {
            connection->socket->peer_inode = found->inode;
        }
        connection->is_pending = is_pending && connection->socket->peer_inode == 0;
        sockets->has_pending = sockets->has_pending || connection->is_pending;
    }
}

/* Of several listeners of one port it is not known which. */
static void take_listener(struct sockets *sockets, const bp_socket *found) {
    for (size_t i = 0; i < sockets->connection_count; i++) {
        struct connection *connection = &sockets->connections[i];
        bp_socket *socket = connection->socket;
        if (connection->is_pending && socket->listener_inode != found->inode &&
            bp_socket_is_listener_of(found, socket)) {
            bool is_only = connection->listener_count++ == 0;
            socket->listener_inode = is_only ? found->inode : 0;
        }
    }
}

/*
 * Takes a line. The name of a unix socket may hold a newline, and what follows it look like another
 * socket's line: of a socket with two lines nothing is believed.
 */
static void take_line(struct sockets *sockets, bp_socket_table table, const char *line,
                      size_t line_bytes) {
    bp_socket found;
    if (!bp_socket_parse(table, line, line_bytes, &found) ||
        (found.inode == 0 && sockets->connections == NULL)) {
        return;
    }
    if (sockets->finds_listeners) {
        take_listener(sockets, &found);
        return;
    }
    if (sockets->connections != NULL) {
        take_peer(sockets, &found);
        return;
    }
    for (size_t i = find_first(sockets, found.inode);
         i < sockets->count && sockets->items[i]->inode == found.inode; i++) {
        bp_socket *socket = sockets->items[i];
        if (strcmp(socket->protocol, found.protocol) == 0 && sockets->row_counts[i]++ == 0) {
            *socket = found;
        } else if (sockets->row_counts[i] > 1) {
            sockets->row_counts[i] = 2;
            *socket = (bp_socket){.inode = found.inode};
            memcpy(socket->protocol, found.protocol, sizeof socket->protocol);
        }
    }
}

/* Gives each whole line of a table to take_line. 0, an errno, or ETIME. */
static int read_table(struct sockets *sockets, bp_socket_table table) {
    size_t filled = 0;
    ssize_t count = 1;
    int fd = bp_proc_open_at(sockets->fds_fd, O_RDONLY, "../net/%s", bp_socket_table_name(table));
    if (fd < 0) {
        return errno == ENOENT ? 0 : errno;
    }
    int result = 0;
    while (result == 0 && count > 0) {
        count = read(fd, sockets->piece + filled, piece_bytes - filled);
        if (count < 0) {
            result = errno;
        } else if (count > 0 && bp_clock_monotonic_ns() > sockets->deadline_ns) {
            result = ETIME;
        }
        size_t end = filled + (count > 0 ? (size_t)count : 0);
        size_t at = 0;
        for (char *newline; result == 0 && (newline = memchr(sockets->piece + at, '\n', end - at));
             at = (size_t)(newline - sockets->piece) + 1) {
            take_line(sockets, table, sockets->piece + at, (size_t)(newline - sockets->piece) - at);
        }
        filled = at == 0 && end == piece_bytes ? 0 : end - at; /* no line is that long */
        memmove(sockets->piece, sockets->piece + at, filled);
    }
    bp_file_close(fd);
    return result;
}

/*
 * Reads the tables of TCP once more for the other sockets of connections within this machine, if
 * there are such, and for the listeners of those that were not accepted. Best effort; false without
 * memory.
 */
static bool read_connections(struct sockets *sockets) {
    size_t count = 0;
    struct connection *connections = NULL;
    char ends[BP_SOCKET_CONNECTION_BYTES];
    for (size_t i = 0; i < sockets->count; i++) {
        count += bp_socket_connection(sockets->items[i], true, ends) ? 1 : 0;
    }
    if (count == 0) {
        return true;
    }
    connections = calloc(count, sizeof *connections);
    for (size_t i = 0; connections != NULL && i < sockets->count; i++) {
        struct connection *connection = &connections[sockets->connection_count];
        if (bp_socket_connection(sockets->items[i], true, connection->ends)) {
            connection->socket = sockets->items[i];
            sockets->connection_count++;
        }
    }
    if (connections != NULL) {
        qsort(connections, count, sizeof *connections, compare_connections);
        sockets->connections = connections;
        for (unsigned pass = 0; pass < 2 && (pass == 0 || sockets->has_pending); pass++) {
            sockets->finds_listeners = pass == 1;
            (void)read_table(sockets, BP_SOCKET_TCP);
            (void)read_table(sockets, BP_SOCKET_TCP6);
        }
    }
    free(connections);
    return connections != NULL;
}

static void take_diag(struct sockets *sockets, const bp_socket_diag *diag) {
    /* Those that wait on a unix listener: the sockets which it will accept have no inodes yet. */
    for (size_t k = 0; k < diag->pending_count; k++) {
        uint32_t inode;
        memcpy(&inode, diag->pending + k * sizeof inode, sizeof inode);
        for (size_t i = find_first(sockets, inode);
             i < sockets->count && sockets->items[i]->inode == inode; i++) {
            sockets->items[i]->listener_inode = diag->inode;
        }
    }
    for (size_t i = find_first(sockets, diag->inode);
         i < sockets->count && sockets->items[i]->inode == diag->inode; i++) {
        bp_socket *socket = sockets->items[i];
        bool is_unix = strcmp(socket->protocol, "unix") == 0;
        if (is_unix || (strncmp(socket->protocol, "tcp", 3) == 0 && socket->is_listening)) {
            socket->peer_inode = diag->peer_inode;
            socket->has_queues = socket->has_send_queue = diag->has_queues;
            socket->receive_queue = diag->receive_queue;
            socket->send_queue = diag->send_queue;
        }
    }
}

/* Only our own network namespace can be asked. */
static bool is_our_network(int fds_fd) {
    struct stat ours, theirs;
    return stat("/proc/thread-self/ns/net", &ours) == 0 &&
           fstatat(fds_fd, "../ns/net", &theirs, 0) == 0 && ours.st_dev == theirs.st_dev &&
           ours.st_ino == theirs.st_ino;
}

/* Dumps the sockets that a request of sock_diag(7) is about. Best effort. */
static void ask_kernel(struct sockets *sockets, const void *request, size_t request_bytes) {
    struct {
        struct nlmsghdr header;
        char request[64];
    } message = {.header = {.nlmsg_len = (uint32_t)(sizeof message.header + request_bytes),
                            .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                            .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
    memcpy(message.request, request, request_bytes);
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    bool is_last = fd < 0 ||
                   setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &answer_time, sizeof answer_time) != 0 ||
                   send(fd, &message, message.header.nlmsg_len, MSG_NOSIGNAL) !=
                       (ssize_t)message.header.nlmsg_len;
    while (!is_last && bp_clock_monotonic_ns() <= sockets->deadline_ns) {
        ssize_t count = recv(fd, sockets->piece, piece_bytes, 0);
        is_last = count <= 0;
        for (size_t at = 0; !is_last && at < (size_t)count;) {
            bp_socket_diag diag;
            if (bp_socket_diag_take((const unsigned char *)sockets->piece, (size_t)count, &at,
                                    &diag, &is_last)) {
                take_diag(sockets, &diag);
            }
        }
    }
    bp_file_close(fd);
}

/* What the tables do not have: peers and queues of unix sockets, and how many connections may wait
 * on a listener of TCP. */
static void read_queues(struct sockets *sockets) {
    static const struct unix_diag_req of_unix = {.sdiag_family = AF_UNIX,
                                                 .udiag_states = UINT32_MAX,
                                                 .udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_ICONS |
                                                               UDIAG_SHOW_RQLEN};
    bool has_listeners[2] = {false, false};
    if ((sockets->tables >> BP_SOCKET_UNIX & 1u) != 0) {
        ask_kernel(sockets, &of_unix, sizeof of_unix);
    }
    for (size_t i = 0; i < sockets->count; i++) {
        const bp_socket *socket = sockets->items[i];
        for (size_t k = 0; k < 2; k++) {
            has_listeners[k] |=
                socket->is_listening && strcmp(socket->protocol, k == 0 ? "tcp" : "tcp6") == 0;
        }
    }
    for (size_t k = 0; k < 2; k++) {
        enum { listen_state = 10 }; /* TCP_LISTEN */
        const struct inet_diag_req_v2 of_tcp = {.sdiag_family = k == 0 ? AF_INET : AF_INET6,
                                                .sdiag_protocol = IPPROTO_TCP,
                                                .idiag_states = 1u << listen_state};
        if (has_listeners[k]) {
            ask_kernel(sockets, &of_tcp, sizeof of_tcp);
        }
    }
}

static bool list_sockets(struct sockets *sockets) {
    bp_open_files *process = sockets->process;
    for (size_t i = 0; i < process->file_count; i++) {
        bp_open_file *file = &process->files[i];
        if (file->kind == BP_OPEN_FILE_SOCKET) {
            file->socket = new_socket(sockets, file);
            if (file->socket == NULL) {
                return false;
            }
            sockets->items[sockets->count++] = file->socket;
        }
    }
    if (sockets->count > 1) {
        qsort(sockets->items, sockets->count, sizeof *sockets->items, compare_inodes);
    }
    return true;
}

/*
 * Gives each file that is a socket its `socket`: its protocol, and what the tables of the network
 * namespace of the process say. `fds_fd` is /proc/<pid>/fd. False without memory.
 */
static bool open_sockets_read(int fds_fd, uint64_t deadline_ns, bp_open_files *process) {
    struct sockets sockets = {.fds_fd = fds_fd,
                              .deadline_ns = deadline_ns,
                              .process = process,
                              .items = calloc(process->file_count + 1, sizeof *sockets.items),
                              .row_counts = calloc(process->file_count + 1, 1),
                              .piece = malloc(piece_bytes)};
    bool has_memory = sockets.items != NULL && sockets.row_counts != NULL &&
                      sockets.piece != NULL && list_sockets(&sockets);
    for (unsigned table = 0; has_memory && table < BP_SOCKET_TABLE_COUNT; table++) {
        int result =
            (sockets.tables >> table & 1u) != 0 ? read_table(&sockets, (bp_socket_table)table) : 0;
        process->are_sockets_cut = process->are_sockets_cut || result == ETIME;
        process->sockets_errno = result != 0 && result != ETIME ? result : process->sockets_errno;
    }
    if (has_memory && sockets.count > 0 && is_our_network(fds_fd)) {
        read_queues(&sockets);
    }
    has_memory = has_memory && read_connections(&sockets);
    free(sockets.items);
    free(sockets.row_counts);
    free(sockets.piece);
    return has_memory;
}

/* What one descriptor leads to, as it reads twice. */
struct reader {
    int fds_fd; /* /proc/<pid>/fd; everything else is found from there */
    bp_open_files process;
    const uint64_t *wanted; /* ascending; NULL: all */
    size_t wanted_count;
    char target[target_bytes_max], again[target_bytes_max];
    char text[text_bytes_max];
};

/* -1 with errno. */
static int read_target(const struct reader *reader, const char *name, char *target) {
    ssize_t length = readlinkat(reader->fds_fd, name, target, target_bytes_max - 1);
    target[length < 0 ? 0 : length] = '\0';
    return length < 0 ? -1 : 0;
}

/* The kernel's copy will do: to ask a server could take long. */
static void read_inode(const struct reader *reader, const char *name, bp_open_file *file,
                       uint32_t *ret_mode, bool *ret_is_removed) {
    struct statx info;
    if (statx(reader->fds_fd, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_BASIC_STATS,
              &info) != 0) {
        return;
    }
    file->has_inode = true;
    file->inode = info.stx_ino;
    file->device = (uint64_t)info.stx_dev_major << 32 | info.stx_dev_minor;
    file->has_size = S_ISREG(info.stx_mode);
    file->size_bytes = info.stx_size;
    *ret_mode = info.stx_mode;
    *ret_is_removed = info.stx_nlink == 0;
}

/* 0, or an errno: ENOENT when it was closed, EAGAIN when it is another one now. */
static int read_once(struct reader *reader, uint32_t number, bp_open_file *ret_file) {
    char name[40];
    bp_open_file file = {.number = number};
    uint32_t mode = 0;
    bool is_removed = false;
    (void)snprintf(name, sizeof name, "%" PRIu32, number);
    if (read_target(reader, name, reader->target) != 0) {
        return errno;
    }
    read_inode(reader, name, &file, &mode, &is_removed);
    (void)snprintf(name, sizeof name, "../fdinfo/%" PRIu32, number);
    ssize_t length = bp_proc_read_small(reader->fds_fd, name, reader->text, text_bytes_max);
    if (length > 0) {
        bp_fd_info_parse(reader->text, (size_t)length, length == text_bytes_max, &file.info);
    }
    if (read_target(reader, name + strlen("../fdinfo/"), reader->again) != 0) {
        return errno;
    }
    if (strcmp(reader->target, reader->again) != 0) {
        return EAGAIN;
    }
    file.kind = bp_open_file_kind_of(reader->target, mode);
    size_t kept = bp_proc_deleted_path_length(reader->target, strlen(reader->target));
    bool is_marked = is_removed && kept > 0;
    file.is_deleted = is_marked && file.kind != BP_OPEN_FILE_MEMFD; /* which never had a name */
    file.target = is_marked ? strndup(reader->target, kept) : strdup(reader->target);
    if (file.target == NULL) {
        return ENOMEM;
    }
    *ret_file = file;
    return 0;
}

/* A descriptor may be closed and opened again at any time: three attempts, then it is counted as
 * closed. ENOMEM or 0. */
static int read_file(struct reader *reader, uint32_t number) {
    bp_open_files *process = &reader->process;
    int result = EAGAIN;
    for (int attempt = 0; result == EAGAIN && attempt < 3; attempt++) {
        result = read_once(reader, number, &process->files[process->file_count]);
    }
    if (result == 0) {
        process->file_count++;
    } else if (result == ENOENT || result == ESRCH || result == EAGAIN) {
        process->vanished_count++;
    } else if (result != ENOMEM) {
        process->unread_count++;
        process->unread_errno = result;
    }
    return result == ENOMEM ? ENOMEM : 0;
}

static void read_limit(struct reader *reader) {
    bp_resource_limit limits[limit_max];
    ssize_t length = bp_proc_read_small(reader->fds_fd, "../limits", reader->text, text_bytes_max);
    size_t count =
        length > 0 ? bp_proc_parse_limits(reader->text, (size_t)length, limits, limit_max) : 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(limits[i].name, "Max open files") == 0) {
            reader->process.has_limit = true;
            reader->process.limit = limits[i];
        }
    }
}

static bool is_wanted(const struct reader *reader, uint64_t number) {
    return reader->wanted == NULL || bsearch(&number, reader->wanted, reader->wanted_count,
                                             sizeof number, bp_array_compare_u64) != NULL;
}

/* The descriptor of this reading is not one of our own process's list. */
static int read_files(struct reader *reader, bool is_own, size_t file_max, uint64_t deadline_ns) {
    bp_open_files *process = &reader->process;
    bp_proc_list list;
    int result = bp_proc_list_read(reader->fds_fd, NULL, &list);
    if (result == 0) {
        process->open_count = list.count;
        size_t count = 0;
        for (size_t i = 0; i < list.count; i++) {
            bool is_reading = is_own && list.items[i].id == (uint64_t)reader->fds_fd;
            process->open_count -= is_reading;
            if (!is_reading && is_wanted(reader, list.items[i].id)) {
                list.items[count++] = list.items[i];
            }
        }
        list.count = count;
        bp_proc_list_sort(&list);
        size_t wanted = count < file_max ? count : file_max;
        process->files = calloc(wanted + 1, sizeof *process->files);
        result = process->files == NULL ? ENOMEM : 0;
        size_t at = 0;
        while (result == 0 && at < wanted && bp_clock_monotonic_ns() <= deadline_ns) {
            result = read_file(reader, (uint32_t)list.items[at++].id);
        }
        process->passed_over_count = list.count - at;
    }
    bp_proc_list_release(&list);
    return result;
}

bugpack_status bp_open_files_read(pid_t pid, const uint64_t *wanted, size_t file_max,
                                  uint64_t deadline_ns, bp_open_files *ret_process,
                                  bugpack_error *error) {
    struct reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return bp_fail_memory(error, "read the open files of a process");
    }
    reader->wanted = wanted;
    reader->wanted_count = file_max;
    reader->process.pid = (uint64_t)(pid == 0 ? getpid() : pid);
    int process_fd = bp_proc_open_process(pid);
    reader->fds_fd =
        process_fd < 0 ? -1 : openat(process_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = reader->fds_fd < 0 ? errno : 0;
    bp_file_close(process_fd);
    if (result == 0) {
        bp_proc_stat stat;
        if (bp_proc_read_stat(reader->fds_fd, &stat, "../stat") == 0) {
            reader->process.birth = stat.start_ticks;
            memcpy(reader->process.name, stat.name, sizeof reader->process.name);
        }
        read_limit(reader);
        result = read_files(reader, pid == 0, file_max, deadline_ns);
    }
    if (result == 0 && !open_sockets_read(reader->fds_fd, deadline_ns, &reader->process)) {
        result = ENOMEM;
    }
    bugpack_status status = BUGPACK_OK;
    if (result == 0) {
        *ret_process = reader->process;
        reader->process = (bp_open_files){.pid = 0};
    } else if (result == ENOMEM) {
        status = bp_fail_memory(error, "read the open files of a process");
    } else {
        status = bp_fail_process_errno(
            error, result, "cannot list the open files of process %" PRIu64, reader->process.pid);
    }
    bp_open_files_release(&reader->process);
    bp_file_close(reader->fds_fd);
    free(reader);
    return status;
}

/* Who has the other ends of pipes and sockets. */

/* A pass over all processes must not cost a report more than this, nor a busy machine more than
 * this many links. */
static const uint64_t search_max_ns = 250 * BP_NS_PER_MS;
static const size_t link_max = 200000;

/* What a descriptor has to lead to in order to be the other end of `file`. */
struct end {
    bp_open_file_kind kind; /* a pipe, a socket, or a FIFO, which has a path for its name */
    uint64_t inode;
    bool by_reader, by_writer; /* of a pipe: which access the other end has */
    bp_open_file *file;
    uint64_t pid;
};

struct search {
    struct end *ends; /* ascending by kind and inode */
    size_t count;
    size_t fifo_count; /* the last ones */
    uint64_t deadline_ns;
    size_t link_count;
    bp_fd_search found;
    char target[target_bytes_max];
};

static bool make_end(const bp_open_files *process, bp_open_file *file, struct end *ret_end) {
    const char *access = file->info.has_flags ? bp_fd_access(file->info.flags) : NULL;
    struct end end = {.kind = file->kind, .inode = file->inode, .file = file, .pid = process->pid};
    if (file->kind == BP_OPEN_FILE_SOCKET) {
        end.inode =
            file->socket->peer_inode != 0 ? file->socket->peer_inode : file->socket->listener_inode;
        *ret_end = end;
        return end.inode != 0;
    }
    bool is_pipe = file->kind == BP_OPEN_FILE_PIPE || file->kind == BP_OPEN_FILE_FIFO;
    if (!is_pipe || !file->has_inode || access == NULL) {
        return false;
    }
    end.by_reader = strcmp(access, "write") == 0 || strcmp(access, "read_write") == 0;
    end.by_writer = strcmp(access, "read") == 0 || strcmp(access, "read_write") == 0;
    *ret_end = end;
    return end.by_reader || end.by_writer;
}

/* FIFOs last: they are compared by name, one by one. */
static int place_of(const struct end *end) {
    return end->kind == BP_OPEN_FILE_FIFO ? 2 : end->kind == BP_OPEN_FILE_PIPE;
}

static int compare_ends(const void *one, const void *other) {
    const struct end *left = one;
    const struct end *right = other;
    int left_place = place_of(left), right_place = place_of(right);
    return left_place != right_place ? left_place - right_place
                                     : (left->inode > right->inode) - (left->inode < right->inode);
}

static bool list_ends(bp_open_files *processes, size_t count, struct search *search) {
    size_t file_count = 0;
    for (size_t i = 0; i < count; i++) {
        file_count += processes[i].file_count;
    }
    search->ends = calloc(file_count + 1, sizeof *search->ends);
    for (size_t i = 0; search->ends != NULL && i < count; i++) {
        for (size_t j = 0; j < processes[i].file_count; j++) {
            bp_open_file *file = &processes[i].files[j];
            file->has_other_end = make_end(&processes[i], file, &search->ends[search->count]);
            search->fifo_count += file->has_other_end && file->kind == BP_OPEN_FILE_FIFO ? 1 : 0;
            search->count += file->has_other_end ? 1 : 0;
        }
    }
    if (search->ends != NULL) {
        qsort(search->ends, search->count, sizeof *search->ends, compare_ends);
    }
    return search->ends != NULL;
}

/* A process that is being searched. */
struct place {
    int fds_fd;
    uint64_t pid;
    char name[64]; /* "": not yet read */
    char state;
};

/* The link's own mode says for what the descriptor is open (tid_fd_update_inode, fs/proc/fd.c). */
static bool has_access(const struct place *place, uint32_t number, const struct end *end) {
    char name[24];
    struct stat info;
    (void)snprintf(name, sizeof name, "%" PRIu32, number);
    bool is_known = fstatat(place->fds_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
    return is_known && ((end->by_reader && (info.st_mode & S_IRUSR) != 0) ||
                        (end->by_writer && (info.st_mode & S_IWUSR) != 0));
}

/* False without memory. */
static bool take_holder(struct place *place, uint32_t number, const struct end *end) {
    bp_open_file *file = end->file;
    bool is_itself = end->pid == place->pid && file->number == number;
    if (is_itself || (end->kind != BP_OPEN_FILE_SOCKET && !has_access(place, number, end))) {
        return true;
    }
    if (file->holders == NULL) {
        file->holders = calloc(BP_FD_HOLDER_MAX, sizeof *file->holders);
    }
    if (file->holders == NULL) {
        return false;
    }
    if (file->holder_count == BP_FD_HOLDER_MAX) {
        file->has_more_holders = true;
        return true;
    }
    bp_proc_stat stat;
    if (place->name[0] == '\0' && bp_proc_read_stat(place->fds_fd, &stat, "../stat") == 0) {
        memcpy(place->name, stat.name, sizeof place->name);
        place->state = stat.state;
    }
    bp_fd_holder *holder = &file->holders[file->holder_count++];
    *holder = (bp_fd_holder){.pid = place->pid, .state = place->state, .number = number};
    memcpy(holder->name, place->name, sizeof holder->name);
    return true;
}

static bool is_same_fifo(const struct place *place, const char *link, const struct end *end) {
    struct statx info;
    return statx(place->fds_fd, link, AT_STATX_DONT_SYNC, STATX_INO, &info) == 0 &&
           info.stx_ino == end->file->inode &&
           ((uint64_t)info.stx_dev_major << 32 | info.stx_dev_minor) == end->file->device;
}

static bool check_link(struct search *search, struct place *place, uint32_t number) {
    char link[24];
    (void)snprintf(link, sizeof link, "%" PRIu32, number);
    ssize_t length = readlinkat(place->fds_fd, link, search->target, target_bytes_max - 1);
    search->target[length < 0 ? 0 : length] = '\0';
    struct end key = {.inode = 0};
    bool has_memory = true;
    bool is_pipe = bp_open_file_inode(search->target, "pipe", &key.inode);
    if (is_pipe || bp_open_file_inode(search->target, "socket", &key.inode)) {
        key.kind = is_pipe ? BP_OPEN_FILE_PIPE : BP_OPEN_FILE_SOCKET;
        for (size_t i =
                 bp_array_find_first(&key, search->ends, search->count, sizeof key, compare_ends);
             has_memory && i < search->count && compare_ends(&search->ends[i], &key) == 0; i++) {
            has_memory = take_holder(place, number, &search->ends[i]);
        }
        return has_memory;
    }
    for (size_t i = search->count - search->fifo_count; has_memory && i < search->count; i++) {
        const struct end *end = &search->ends[i];
        if (strcmp(search->target, end->file->target) == 0 && is_same_fifo(place, link, end)) {
            has_memory = take_holder(place, number, end);
        }
    }
    return has_memory;
}

/* False without memory. */
static bool search_process(struct search *search, int proc_fd, uint64_t pid) {
    bp_proc_list list = {.count = 0};
    struct place place = {.pid = pid};
    place.fds_fd = bp_proc_open_at(proc_fd, O_RDONLY | O_DIRECTORY, "%" PRIu64 "/fd", pid);
    int result = place.fds_fd < 0 ? errno : bp_proc_list_read(place.fds_fd, NULL, &list);
    bool has_memory = result != ENOMEM;
    size_t at = 0;
    while (has_memory && at < list.count && search->link_count < link_max &&
           bp_clock_monotonic_ns() <= search->deadline_ns) {
        has_memory = check_link(search, &place, (uint32_t)list.items[at++].id);
        search->link_count++;
    }
    search->found.is_cut = search->found.is_cut || at < list.count;
    search->found.process_count += result == 0 && at == list.count ? 1 : 0;
    search->found.denied_count += result == EACCES || result == EPERM ? 1 : 0;
    bp_proc_list_release(&list);
    bp_file_close(place.fds_fd);
    return has_memory;
}

bugpack_status bp_open_files_find_ends(bp_open_files *processes, size_t count, uint64_t deadline_ns,
                                       bp_fd_search *ret_search, bugpack_error *error) {
    uint64_t latest_ns = bp_clock_monotonic_ns() + search_max_ns;
    struct search *search = calloc(1, sizeof *search);
    bp_proc_list pids = {.count = 0};
    int proc_fd = -1;
    bool has_memory = search != NULL && list_ends(processes, count, search);
    if (has_memory && search->count > 0) {
        search->found.was_needed = true;
        search->deadline_ns = deadline_ns < latest_ns ? deadline_ns : latest_ns;
        proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int result = proc_fd < 0 ? errno : bp_proc_list_read(proc_fd, NULL, &pids);
        search->found.is_cut = result != 0;
        has_memory = result != ENOMEM;
    }
    size_t at = 0;
    for (; has_memory && at < pids.count && bp_clock_monotonic_ns() <= search->deadline_ns; at++) {
        has_memory = search_process(search, proc_fd, pids.items[at].id);
    }
    if (has_memory) {
        search->found.is_cut = search->found.is_cut || at < pids.count;
        *ret_search = search->found;
    }
    bp_file_close(proc_fd);
    bp_proc_list_release(&pids);
    if (search != NULL) {
        free(search->ends);
    }
    free(search);
    return has_memory ? BUGPACK_OK : bp_fail_memory(error, "find the other ends of pipes");
}
