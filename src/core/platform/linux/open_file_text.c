#include "platform/linux/open_file_text.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "platform/linux/file_locks.h"
#include "platform/linux/proc_text.h"

static const struct {
    const char *name, *inode_name;
} kinds[] = {
#define KIND(constant, name, inode) {name, inode},
    BP_OPEN_FILE_KINDS(KIND)
#undef KIND
};

const char *bp_open_file_kind_name(bp_open_file_kind kind) {
    return kinds[kind].name;
}

static bool begins_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* "anon_inode:[eventfd]"; older ones, as inotify, have no brackets. */
static bp_open_file_kind kind_of_inode(const char *name) {
    name += name[0] == '[' ? 1 : 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t bytes = kinds[i].inode_name == NULL ? 0 : strlen(kinds[i].inode_name);
        if (bytes > 0 && strncmp(name, kinds[i].inode_name, bytes) == 0 &&
            (name[bytes] == '\0' || strcmp(name + bytes, "]") == 0)) {
            return (bp_open_file_kind)i;
        }
    }
    return BP_OPEN_FILE_OTHER;
}

/* The type bits of st_mode, as every kernel has them (include/uapi/linux/stat.h). */
static bp_open_file_kind kind_of_mode(uint32_t mode) {
    static const struct {
        uint32_t type;
        bp_open_file_kind kind;
    } rows[] = {{001, BP_OPEN_FILE_FIFO},      {002, BP_OPEN_FILE_CHARACTER_DEVICE},
                {004, BP_OPEN_FILE_DIRECTORY}, {006, BP_OPEN_FILE_BLOCK_DEVICE},
                {010, BP_OPEN_FILE_FILE},      {012, BP_OPEN_FILE_SYMLINK},
                {014, BP_OPEN_FILE_SOCKET}};
    size_t i = 0, count = sizeof rows / sizeof rows[0];
    while (i < count && rows[i].type != mode >> 12) {
        i++;
    }
    return i < count ? rows[i].kind : BP_OPEN_FILE_OTHER;
}

bp_open_file_kind bp_open_file_kind_of(const char *target, uint32_t mode) {
    static const char anonymous[] = "anon_inode:";
    static const struct {
        const char *prefix;
        bp_open_file_kind kind;
    } rows[] = {{"pipe:[", BP_OPEN_FILE_PIPE},        {"socket:[", BP_OPEN_FILE_SOCKET},
                {"pidfd:[", BP_OPEN_FILE_PIDFD},      {"/memfd:", BP_OPEN_FILE_MEMFD},
                {"mnt:[", BP_OPEN_FILE_NAMESPACE},    {"net:[", BP_OPEN_FILE_NAMESPACE},
                {"pid:[", BP_OPEN_FILE_NAMESPACE},    {"user:[", BP_OPEN_FILE_NAMESPACE},
                {"ipc:[", BP_OPEN_FILE_NAMESPACE},    {"uts:[", BP_OPEN_FILE_NAMESPACE},
                {"cgroup:[", BP_OPEN_FILE_NAMESPACE}, {"time:[", BP_OPEN_FILE_NAMESPACE}};
    if (begins_with(target, anonymous)) {
        return kind_of_inode(target + sizeof anonymous - 1);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (begins_with(target, rows[i].prefix)) {
            return rows[i].kind;
        }
    }
    return kind_of_mode(mode);
}

bool bp_open_file_inode(const char *target, const char *prefix, uint64_t *ret_inode) {
    bp_proc_scan scan = {target, target + strlen(target)};
    uint64_t inode;
    if (!bp_proc_take_text(&scan, prefix) || !bp_proc_take_text(&scan, ":[") ||
        !bp_proc_take_number(&scan, 10, &inode) || !bp_proc_is(scan, "]")) {
        return false;
    }
    *ret_inode = inode;
    return true;
}

/* The number of a line, if that is all it has. */
static bool take_value(bp_proc_scan line, unsigned base, uint64_t *ret_value) {
    uint64_t value;
    bp_proc_skip_blanks(&line);
    if (!bp_proc_take_number(&line, base, &value)) {
        return false;
    }
    bp_proc_skip_blanks(&line);
    if (line.next != line.end) {
        return false;
    }
    *ret_value = value;
    return true;
}

void bp_fd_info_parse(const char *text, size_t text_bytes, bp_fd_info *ret_info) {
    bp_fd_info info = {.flags = 0};
    bp_file_lock lock;
    const struct {
        const char *key;
        unsigned base;
        uint64_t *value;
        bool *is_known;
    } rows[] = {{"flags:", 8, &info.flags, &info.has_flags},
                {"pos:", 10, &info.position, &info.has_position},
                {"eventfd-id:", 10, &info.event, &info.has_event}};
    bp_proc_scan scan = {text, text + text_bytes};
    bp_proc_scan line;
    while (bp_proc_take_line(&scan, &line)) {
        bool is_lock = bp_proc_take_text(&line, "lock:") &&
                       bp_file_lock_parse(line.next, (size_t)(line.end - line.next), &lock);
        info.has_lock = info.has_lock || (is_lock && lock.is_exclusive);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            bp_proc_scan rest = line;
            if (!*rows[i].is_known && bp_proc_take_text(&rest, rows[i].key)) {
                *rows[i].is_known = take_value(rest, rows[i].base, rows[i].value);
            }
        }
    }
    *ret_info = info;
}

static const uint64_t path_flag = 010000000;

const char *bp_fd_access(uint64_t flags) {
    static const char *const names[] = {"read", "write", "read_write", NULL};
    return (flags & path_flag) != 0 ? "path" : names[flags & 3];
}

static const struct {
    const char *name, *kernel_name;
} tables[] = {
#define ROW(constant, name, kernel_name) {name, kernel_name},
    BP_SOCKET_TABLES(ROW)
#undef ROW
};

const char *bp_socket_table_name(bp_socket_table table) {
    return tables[table].name;
}

bp_socket_table bp_socket_table_of(const char *kernel_name) {
    size_t table = 0;
    size_t bytes = strcmp(kernel_name, "UNIX-STREAM") == 0 ? strlen("UNIX") : strlen(kernel_name);
    while (table < BP_SOCKET_TABLE_COUNT &&
           (strlen(tables[table].kernel_name) != bytes ||
            memcmp(tables[table].kernel_name, kernel_name, bytes) != 0)) {
        table++;
    }
    return (bp_socket_table)table;
}

/* The next word, which must be a number as a whole. */
static bool take_number(bp_proc_scan *line, unsigned base, uint64_t *ret_value) {
    bp_proc_scan word;
    return bp_proc_take_word(line, &word) && bp_proc_take_number(&word, base, ret_value) &&
           word.next == word.end;
}

/* Two numbers of base 16 with a colon between them. */
static bool take_pair(bp_proc_scan *line, uint64_t *ret_first, uint64_t *ret_second) {
    bp_proc_scan word;
    return bp_proc_take_word(line, &word) && bp_proc_take_number(&word, 16, ret_first) &&
           bp_proc_take_byte(&word, ':') && bp_proc_take_number(&word, 16, ret_second) &&
           word.next == word.end;
}

/* Words of 8 digits, each 32 bits in the order of this machine; 1 of IPv4, 4 of IPv6. All zero is
 * no address. */
static bool take_address(bp_proc_scan *line, bool is_v6, char *out, size_t out_bytes) {
    bp_proc_scan word;
    uint32_t parts[4] = {0};
    uint64_t port;
    char text[INET6_ADDRSTRLEN];
    if (!bp_proc_take_word(line, &word)) {
        return false;
    }
    for (size_t i = 0; i < (is_v6 ? 4 : 1); i++) {
        bp_proc_scan digits = {word.next, word.next + 8};
        uint64_t part;
        if (word.end - word.next < 8 || !bp_proc_take_number(&digits, 16, &part) ||
            digits.next != digits.end) {
            return false;
        }
        parts[i] = (uint32_t)part;
        word.next += 8;
    }
    if (!bp_proc_take_byte(&word, ':') || !bp_proc_take_number(&word, 16, &port) ||
        word.next != word.end || port > UINT16_MAX ||
        inet_ntop(is_v6 ? AF_INET6 : AF_INET, parts, text, sizeof text) == NULL) {
        return false;
    }
    if ((port | parts[0] | parts[1] | parts[2] | parts[3]) != 0) {
        (void)snprintf(out, out_bytes, is_v6 ? "[%s]:%u" : "%s:%u", text, (unsigned)port);
    }
    return true;
}

/* include/net/tcp_states.h */
static const char *tcp_state(uint64_t state) {
    static const char *const names[] = {NULL,         "established", "syn_sent",  "syn_received",
                                        "fin_wait_1", "fin_wait_2",  "time_wait", "closed",
                                        "close_wait", "last_ack",    "listening", "closing"};
    return state < sizeof names / sizeof names[0] ? names[state] : NULL;
}

/* "sl local remote st tx:rx tr:when retrnsmt uid timeout inode …"; of UDP, "ref pointer
 * drops" follow (tcp4_seq_show, udp4_format_sock and their like). */
static bool parse_inet(bp_socket_table table, bp_proc_scan line, bp_socket *socket) {
    bool is_tcp = table == BP_SOCKET_TCP || table == BP_SOCKET_TCP6;
    bool is_v6 = table == BP_SOCKET_TCP6 || table == BP_SOCKET_UDP6;
    bp_proc_scan word;
    uint64_t state, unused;
    if (!bp_proc_take_word(&line, &word) ||
        !take_address(&line, is_v6, socket->local, sizeof socket->local) ||
        !take_address(&line, is_v6, socket->remote, sizeof socket->remote) ||
        !take_number(&line, 16, &state) ||
        !take_pair(&line, &socket->send_queue, &socket->receive_queue) ||
        !take_pair(&line, &unused, &unused) || !take_number(&line, 16, &socket->retransmits) ||
        !take_number(&line, 10, &unused) || !take_number(&line, 10, &unused) ||
        !take_number(&line, 10, &socket->inode)) {
        return false;
    }
    socket->has_queues = socket->has_send_queue = true;
    socket->has_retransmits = is_tcp;
    if (is_tcp) {
        socket->state = tcp_state(state);
        socket->is_listening = state == 10;
        socket->has_send_queue = !socket->is_listening; /* how many may wait is not said here */
    } else {
        socket->state = state == 1 ? "established" : "unconnected";
        socket->has_drops = take_number(&line, 10, &unused) && bp_proc_take_word(&line, &word) &&
                            take_number(&line, 10, &socket->drops);
    }
    return true;
}

/* include/uapi/linux/net.h and include/linux/net.h */
static const char *type_name(uint64_t type) {
    static const char *const names[] = {NULL, "stream", "dgram", "raw", NULL, "seqpacket"};
    return type < sizeof names / sizeof names[0] ? names[type] : NULL;
}

/* "pointer: refcount protocol flags type state inode name" (unix_seq_show). */
static bool parse_unix(bp_proc_scan line, bp_socket *socket) {
    static const char *const states[] = {NULL, "unconnected", "connecting", "established",
                                         "disconnecting"};
    static const uint64_t accepts = 0x10000; /* __SO_ACCEPTCON */
    bp_proc_scan word;
    uint64_t unused, flags, type, state;
    if (!bp_proc_take_word(&line, &word) || !take_number(&line, 16, &unused) ||
        !take_number(&line, 16, &unused) || !take_number(&line, 16, &flags) ||
        !take_number(&line, 16, &type) || !take_number(&line, 16, &state) ||
        !take_number(&line, 10, &socket->inode)) {
        return false;
    }
    socket->is_listening = (flags & accepts) != 0;
    socket->type = type_name(type);
    if (socket->is_listening) {
        socket->state = "listening";
    } else if (state < sizeof states / sizeof states[0]) {
        socket->state = states[state];
    }
    if (bp_proc_take_byte(&line, ' ')) {
        (void)snprintf(socket->local, sizeof socket->local, "%.*s", (int)(line.end - line.next),
                       line.next);
    }
    return true;
}

bool bp_socket_parse(bp_socket_table table, const char *line, size_t line_bytes,
                     bp_socket *ret_socket) {
    bp_socket socket = {.inode = 0};
    bp_proc_scan scan = {line, line + line_bytes};
    bool is_parsed =
        table == BP_SOCKET_UNIX ? parse_unix(scan, &socket) : parse_inet(table, scan, &socket);
    if (!is_parsed) {
        return false;
    }
    (void)snprintf(socket.protocol, sizeof socket.protocol, "%s", tables[table].name);
    *ret_socket = socket;
    return true;
}

/* The port of an address, and how many bytes are in front of it; an address of IPv4 within IPv6 is
 * one of IPv4. NULL where there is none. */
static const char *split_address(const char **address, size_t *ret_bytes) {
    static const char mapped[] = "[::ffff:";
    const char *port = strrchr(*address, ':');
    if (port == NULL) {
        return NULL;
    }
    *ret_bytes = (size_t)(port - *address);
    if (strncmp(*address, mapped, strlen(mapped)) == 0 && strchr(*address, '.') != NULL) {
        *address += strlen(mapped);
        *ret_bytes -= strlen(mapped) + 1; /* the bracket */
    }
    return port;
}

bool bp_socket_connection(const bp_socket *socket, bool from_remote,
                          char out[BP_SOCKET_CONNECTION_BYTES]) {
    const char *local = socket->local, *remote = socket->remote;
    size_t local_bytes = 0, remote_bytes = 0;
    const char *local_port = split_address(&local, &local_bytes);
    const char *remote_port = split_address(&remote, &remote_bytes);
    if (strncmp(socket->protocol, "tcp", 3) != 0 || socket->is_listening || local_port == NULL ||
        remote_port == NULL ||
        (strncmp(remote, "127.", 4) != 0 &&
         (local_bytes != remote_bytes || memcmp(local, remote, local_bytes) != 0))) {
        return false;
    }
    int length = from_remote
                     ? snprintf(out, BP_SOCKET_CONNECTION_BYTES, "%.*s%s %.*s%s", (int)remote_bytes,
                                remote, remote_port, (int)local_bytes, local, local_port)
                     : snprintf(out, BP_SOCKET_CONNECTION_BYTES, "%.*s%s %.*s%s", (int)local_bytes,
                                local, local_port, (int)remote_bytes, remote, remote_port);
    return length > 0 && length < BP_SOCKET_CONNECTION_BYTES;
}

bool bp_socket_is_listener_of(const bp_socket *listener, const bp_socket *socket) {
    const char *local = listener->local, *remote = socket->remote;
    size_t local_bytes = 0, remote_bytes = 0;
    const char *local_port = split_address(&local, &local_bytes);
    const char *remote_port = split_address(&remote, &remote_bytes);
    if (!listener->is_listening || strncmp(listener->protocol, "tcp", 3) != 0 ||
        local_port == NULL || remote_port == NULL || strcmp(local_port, remote_port) != 0) {
        return false;
    }
    bool is_any = strncmp(local, "0.0.0.0:", 8) == 0 || strncmp(local, "[::]:", 5) == 0;
    return is_any || (local_bytes == remote_bytes && memcmp(local, remote, local_bytes) == 0);
}

/* A number of `size` bytes in the order of this machine, as netlink(7) has it; 0 beyond the end. */
static uint64_t number_at(const unsigned char *bytes, size_t end, size_t at, size_t size) {
    uint16_t small = 0;
    uint32_t large = 0;
    if (at > end || end - at < size) {
        return 0;
    }
    memcpy(size == 2 ? (void *)&small : (void *)&large, bytes + at, size);
    return size == 2 ? small : large;
}

/* struct nlmsghdr, struct unix_diag_msg, struct nlattr: their sizes, and what is aligned to 4. */
enum { header_bytes = 16, diag_bytes = 16, attribute_bytes = 4 };

/* An abstract name begins with a NUL (unix(7)). */
static void take_name(const unsigned char *name, size_t length, bp_socket_diag *diag) {
    bool is_abstract = length > 0 && name[0] == '\0';
    (void)snprintf(diag->name, sizeof diag->name, "%s%.*s", is_abstract ? "@" : "",
                   (int)(length - is_abstract), (const char *)name + is_abstract);
}

/* struct tcp_info in linux/tcp.h */
static void take_tcp_info(const unsigned char *info, size_t length, bp_socket_diag *diag) {
    enum {
        last_data_sent = 44,
        last_data_received = 52,
        segments_received = 152,
        segments_sent = 156
    };
    if (length >= segments_sent + 4) {
        diag->has_times = true;
        diag->sent_ms = number_at(info, length, last_data_sent, 4);
        diag->received_ms = number_at(info, length, last_data_received, 4);
        diag->has_received = number_at(info, length, segments_received, 4) > 0;
        diag->has_sent = number_at(info, length, segments_sent, 4) > 0;
    }
}

static void take_attributes(const unsigned char *bytes, size_t at, size_t end, bool is_inet,
                            bp_socket_diag *diag) {
    enum { info = 2 }; /* INET_DIAG_INFO */
    /* UNIX_DIAG_NAME, …_PEER, …_ICONS, …_RQLEN */
    enum { name = 0, peer = 2, pending = 3, queues = 4 };
    while (end - at >= attribute_bytes) {
        size_t length = (size_t)number_at(bytes, end, at, 2);
        uint64_t type = number_at(bytes, end, at + 2, 2);
        if (length < attribute_bytes || length > end - at) {
            return;
        }
        if (is_inet) {
            if (type == info) {
                take_tcp_info(bytes + at + attribute_bytes, length - attribute_bytes, diag);
            }
        } else if (type == name) {
            take_name(bytes + at + attribute_bytes, length - attribute_bytes, diag);
        } else if (type == peer && length >= attribute_bytes + 4) {
            diag->peer_inode = number_at(bytes, end, at + attribute_bytes, 4);
        } else if (type == queues && length >= attribute_bytes + 8) {
            diag->has_queues = true;
            diag->receive_queue = number_at(bytes, end, at + attribute_bytes, 4);
            diag->send_queue = number_at(bytes, end, at + attribute_bytes + 4, 4);
        } else if (type == pending) {
            diag->pending = bytes + at + attribute_bytes;
            diag->pending_count = (length - attribute_bytes) / 4;
        }
        size_t step = (length + 3) & ~(size_t)3;
        at = step < end - at ? at + step : end;
    }
}

/* The queues and the inode are the last of struct inet_diag_msg. */
enum { inet_diag_bytes = 72, inet_receive = 56, inet_send = 60, inet_inode = 68 };

bool bp_socket_diag_take(const unsigned char *bytes, size_t byte_count, size_t *at,
                         bp_socket_diag *ret_diag, bool *ret_is_last) {
    enum { by_family = 20, family_unix = 1, family_inet = 2, family_inet6 = 10 };
    size_t start = *at;
    size_t left = byte_count - start;
    size_t length = (size_t)number_at(bytes, byte_count, start, 4);
    uint64_t type = number_at(bytes, byte_count, start + 4, 2);
    *at = byte_count;
    size_t body = start + header_bytes;
    bool is_whole = left > header_bytes && length <= left && length > header_bytes;
    unsigned char family = is_whole ? bytes[body] : 0;
    bool is_inet = family == family_inet || family == family_inet6;
    if (type != by_family || (!is_inet && family != family_unix) ||
        length < header_bytes + (size_t)(is_inet ? inet_diag_bytes : diag_bytes)) {
        *ret_is_last = true;
        return false;
    }
    size_t step = (length + 3) & ~(size_t)3;
    *at = step < left ? start + step : byte_count;
    bp_socket_diag diag = {.inode =
                               number_at(bytes, byte_count, body + (is_inet ? inet_inode : 4), 4)};
    if (is_inet) {
        diag.has_queues = true;
        diag.receive_queue = number_at(bytes, byte_count, body + inet_receive, 4);
        diag.send_queue = number_at(bytes, byte_count, body + inet_send, 4);
    }
    take_attributes(bytes, body + (is_inet ? inet_diag_bytes : diag_bytes), start + length, is_inet,
                    &diag);
    *ret_diag = diag;
    return true;
}
