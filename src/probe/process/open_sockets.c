/* The sockets of a process, from the kernel's tables. */
#include "process/open_files.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "platform/linux/files.h"

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
    unsigned char *listening; /* a bit for each port of TCP */
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
        if (found->state != NULL && strcmp(found->state, "established") == 0) {
            connection->socket->has_peer_queue = true;
            connection->socket->peer_queue = found->receive_queue;
        }
        connection->is_pending = is_pending && connection->socket->peer_inode == 0;
        sockets->has_pending = sockets->has_pending || connection->is_pending;
    }
}

/* Where several listeners have one port, it is not known which of them is meant. */
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

enum { port_count = 1 << 16 };

/* The port at the end of an address; 0: none. */
static uint32_t port_of(const char *address) {
    const char *colon = strrchr(address, ':');
    unsigned long port = colon != NULL ? strtoul(colon + 1, NULL, 10) : 0;
    return port < port_count ? (uint32_t)port : 0;
}

static bool is_listened_to(const struct sockets *sockets, uint32_t port) {
    return (sockets->listening[port / 8] >> port % 8 & 1) != 0;
}

/*
 * Who began a connection: the other end, if there is a listener of our port on this machine, and
 * else the process itself, if there is one of the other port. Ports from 32768 on are given to
 * those who connect (ip_local_port_range in ip(7)): that says it of a listener that was closed, or
 * is on another machine. A unix socket that was accepted has the listener's name.
 */
static void find_accepted(struct sockets *sockets) {
    static const uint32_t first_given = 32768;
    for (size_t i = 0; i < sockets->count; i++) {
        bp_socket *socket = sockets->items[i];
        uint32_t local = port_of(socket->local), remote = port_of(socket->remote);
        if (strncmp(socket->protocol, "tcp", 3) == 0 && !socket->is_listening && remote != 0) {
            socket->is_accepted =
                is_listened_to(sockets, local) ||
                (local < first_given && remote >= first_given && !is_listened_to(sockets, remote));
            socket->has_connected =
                !socket->is_accepted && (remote < first_given || is_listened_to(sockets, remote));
        } else if (socket->type != NULL && socket->state != NULL && socket->local[0] != '\0') {
            socket->is_accepted =
                strcmp(socket->state, "established") == 0 && strcmp(socket->type, "dgram") != 0;
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
    if (!bp_socket_parse(table, line, line_bytes, &found)) {
        return;
    }
    if (found.is_listening && (table == BP_SOCKET_TCP || table == BP_SOCKET_TCP6)) {
        uint32_t port = port_of(found.local);
        sockets->listening[port / 8] |= (unsigned char)(1u << port % 8);
    }
    if (found.inode == 0 && sockets->connections == NULL) {
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
    /* Peers that wait on a unix listener: the sockets that it will accept have no inodes yet. */
    for (size_t k = 0; k < diag->pending_count; k++) {
        uint32_t inode;
        memcpy(&inode, diag->pending + k * sizeof inode, sizeof inode);
        for (size_t i = find_first(sockets, inode);
             i < sockets->count && sockets->items[i]->inode == inode; i++) {
            sockets->items[i]->listener_inode = diag->inode;
        }
    }
    /* The other end of one of ours, if both are connected with each other. */
    for (size_t i = find_first(sockets, diag->peer_inode);
         diag->peer_inode != 0 && i < sockets->count &&
         sockets->items[i]->inode == diag->peer_inode;
         i++) {
        bp_socket *socket = sockets->items[i];
        memcpy(socket->remote, diag->name, sizeof socket->remote);
        socket->has_connected = !socket->is_accepted && diag->name[0] != '\0';
        socket->has_peer_queue = diag->has_queues;
        socket->peer_queue = diag->receive_queue;
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
        socket->has_times = diag->has_times;
        socket->has_sent = diag->has_sent;
        socket->has_received = diag->has_received;
        socket->sent_ms = diag->sent_ms;
        socket->received_ms = diag->received_ms;
    }
}

/* Only our own network namespace can be asked. */
static bool is_our_network(int fds_fd) {
    struct stat ours, theirs;
    return stat("/proc/thread-self/ns/net", &ours) == 0 &&
           fstatat(fds_fd, "../ns/net", &theirs, 0) == 0 && ours.st_dev == theirs.st_dev &&
           ours.st_ino == theirs.st_ino;
}

/* Asks for the sockets that a request of sock_diag(7) is about, or for the one. Best effort. */
static void ask_kernel(struct sockets *sockets, const void *request, size_t request_bytes,
                       bool is_dump) {
    struct {
        struct nlmsghdr header;
        char request[sizeof(struct inet_diag_req_v2)];
    } message = {.header = {.nlmsg_len = (uint32_t)(sizeof message.header + request_bytes),
                            .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                            .nlmsg_flags = NLM_F_REQUEST | (is_dump ? NLM_F_DUMP : 0)}};
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
        is_last = is_last || !is_dump;
    }
    bp_file_close(fd);
}

/* An address of one family, and its port. */
static bool read_address(const char *text, int family, __be32 out[4], __be16 *ret_port) {
    char address[BP_SOCKET_NAME_BYTES];
    size_t bracket = text[0] == '[';
    const char *end = strrchr(text, ':');
    size_t length = end != NULL ? (size_t)(end - text) : 0;
    if (length <= 2 * bracket) {
        return false;
    }
    (void)snprintf(address, sizeof address, "%.*s", (int)(length - 2 * bracket), text + bracket);
    *ret_port = htons((uint16_t)port_of(text));
    return inet_pton(family, address, out) == 1;
}

/* When connections of TCP sent and received, of a few: of those that the process began, and then
 * of those that it accepted. The number of all that were asked for. */
static size_t read_times(struct sockets *sockets, bool of_accepted, size_t asked_count) {
    enum { asked_max = 64 };
    for (size_t i = 0; i < sockets->count && asked_count < asked_max; i++) {
        const bp_socket *socket = sockets->items[i];
        bool is_v6 = strcmp(socket->protocol, "tcp6") == 0;
        struct inet_diag_req_v2 request = {
            .sdiag_family = is_v6 ? AF_INET6 : AF_INET,
            .sdiag_protocol = IPPROTO_TCP,
            .idiag_ext = 1u << (INET_DIAG_INFO - 1),
            .id = {.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}};
        if (strncmp(socket->protocol, "tcp", 3) == 0 &&
            (of_accepted ? socket->is_accepted : socket->has_connected) && socket->state != NULL &&
            strcmp(socket->state, "established") == 0 &&
            read_address(socket->local, request.sdiag_family, request.id.idiag_src,
                         &request.id.idiag_sport) &&
            read_address(socket->remote, request.sdiag_family, request.id.idiag_dst,
                         &request.id.idiag_dport)) {
            ask_kernel(sockets, &request, sizeof request, false);
            asked_count++;
        }
    }
    return asked_count;
}

/* Reads what the tables lack: peers and queues of unix sockets, and how many connections may wait
 * on a listener of TCP. */
static void read_queues(struct sockets *sockets) {
    static const struct unix_diag_req of_unix = {.sdiag_family = AF_UNIX,
                                                 .udiag_states = UINT32_MAX,
                                                 .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER |
                                                               UDIAG_SHOW_ICONS | UDIAG_SHOW_RQLEN};
    if ((sockets->tables >> BP_SOCKET_UNIX & 1u) != 0) {
        ask_kernel(sockets, &of_unix, sizeof of_unix, true);
    }
    for (size_t k = 0; k < 2; k++) {
        enum { listen_state = 10 }; /* TCP_LISTEN */
        const struct inet_diag_req_v2 of_tcp = {.sdiag_family = k == 0 ? AF_INET : AF_INET6,
                                                .sdiag_protocol = IPPROTO_TCP,
                                                .idiag_states = 1u << listen_state};
        bool has_listener = false;
        for (size_t i = 0; i < sockets->count; i++) {
            const bp_socket *socket = sockets->items[i];
            has_listener |=
                socket->is_listening && strcmp(socket->protocol, k == 0 ? "tcp" : "tcp6") == 0;
        }
        if (has_listener) {
            ask_kernel(sockets, &of_tcp, sizeof of_tcp, true);
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

bool bp_open_sockets_read(int fds_fd, uint64_t deadline_ns, bp_open_files *process) {
    struct sockets sockets = {.fds_fd = fds_fd,
                              .deadline_ns = deadline_ns,
                              .process = process,
                              .items = calloc(process->file_count + 1, sizeof *sockets.items),
                              .row_counts = calloc(process->file_count + 1, 1),
                              .piece = malloc(piece_bytes),
                              .listening = calloc(port_count / 8, 1)};
    bool has_memory = sockets.items != NULL && sockets.row_counts != NULL &&
                      sockets.piece != NULL && sockets.listening != NULL && list_sockets(&sockets);
    /* A socket of IPv6 may lead to a listener of IPv4, and the other way round. */
    static const unsigned of_tcp = 1u << BP_SOCKET_TCP | 1u << BP_SOCKET_TCP6;
    sockets.tables |= (sockets.tables & of_tcp) != 0 ? of_tcp : 0;
    for (unsigned table = 0; has_memory && table < BP_SOCKET_TABLE_COUNT; table++) {
        int result =
            (sockets.tables >> table & 1u) != 0 ? read_table(&sockets, (bp_socket_table)table) : 0;
        process->are_sockets_cut = process->are_sockets_cut || result == ETIME;
        process->sockets_errno = result != 0 && result != ETIME ? result : process->sockets_errno;
    }
    if (has_memory) {
        find_accepted(&sockets);
    }
    if (has_memory && sockets.count > 0 && is_our_network(fds_fd)) {
        read_queues(&sockets);
        size_t asked_count = read_times(&sockets, false, 0);
        if (asked_count > 0) { /* a client of others: its own ones may wait for them */
            (void)read_times(&sockets, true, asked_count);
        }
    }
    has_memory = has_memory && read_connections(&sockets);
    free(sockets.items);
    free(sockets.row_counts);
    free(sockets.piece);
    free(sockets.listening);
    return has_memory;
}
