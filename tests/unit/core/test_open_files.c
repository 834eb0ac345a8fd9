/*
 * Descriptors and sockets, from recorded texts and from hostile ones; and files.json as printed.
 */
#include <fcntl.h>

#include "support/open_file_samples.h"
#include "unit/unit.h"

/* A recording below fixtures/. */
static const char *recorded(const char *name, size_t *ret_bytes) {
    static char text[16384];
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", BUGPACK_FIXTURES, name);
    FILE *file = fopen(path, "rb");
    cr_assert(file != NULL, "%s", path);
    *ret_bytes = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    return text;
}

Test(fd_info, reads_flags_and_position) {
    bp_fd_info info;
    size_t bytes;
    const char *text = recorded("fdinfo/file", &bytes);
    bp_fd_info_parse(text, bytes, &info);
    cr_expect(info.has_flags && info.has_position);
    cr_expect(eq(u64, info.position, 228));
    cr_expect(eq(str, bp_fd_access(info.flags), "write"));
}

Test(fd_info, takes_no_malformed_number) {
    static const char text[] = "pos:\t12x\nflags:\t0100009\nflags:\t02\n";
    bp_fd_info info;
    bp_fd_info_parse(text, sizeof text - 1, &info);
    cr_expect(not(info.has_position));
    cr_expect(info.has_flags && info.flags == 2, "the line that can be read");
}

Test(fd_info, knows_an_exclusive_lock) {
    static const char exclusive[] =
        "flags:\t02\nlock:\t1: POSIX  ADVISORY  WRITE 12 fe:00:7 0 EOF\n";
    static const char shared[] = "flags:\t02\nlock:\t1: POSIX  ADVISORY  READ 12 fe:00:7 128 128\n";
    bp_fd_info info;
    bp_fd_info_parse(exclusive, sizeof exclusive - 1, &info);
    cr_expect(info.has_lock);
    bp_fd_info_parse(shared, sizeof shared - 1, &info);
    cr_expect(not(info.has_lock), "it may wait for more");
}

Test(fd_info, says_what_a_descriptor_is_open_for) {
    cr_expect(eq(str, bp_fd_access(O_RDWR | O_APPEND), "read_write"));
    cr_expect(eq(str, bp_fd_access(02000 | 010000000), "path"));
    cr_expect(bp_fd_access(3) == NULL);
}

Test(open_file, has_the_kind_that_its_link_or_its_mode_says) {
    static const struct {
        const char *target;
        uint32_t mode;
        const char *kind;
    } rows[] = {{"pipe:[12]", 0, "pipe"},
                {"socket:[12]", 0, "socket"},
                {"anon_inode:[eventpoll]", 0, "epoll"},
                {"anon_inode:inotify", 0, "inotify"},
                {"anon_inode:[eventfdx]", 0, "other"},
                {"anon_inode:", 0, "other"},
                {"pidfd:[12]", 0, "pidfd"},
                {"net:[4026531840]", 0, "namespace"},
                {"/memfd:pool (deleted)", 0100600, "memfd"},
                {"/tmp/pipe:[12]", 0100644, "file"},
                {"/tmp", 0040755, "directory"},
                {"/dev/null", 0020666, "character_device"},
                {"/dev/vda", 0060600, "block_device"},
                {"/tmp/f", 0010600, "fifo"},
                {"/tmp/l", 0120777, "symlink"},
                {"/tmp/s", 0140777, "socket"},
                {"", 0, "other"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_expect(eq(str,
                     bp_open_file_kind_name(bp_open_file_kind_of(rows[i].target, rows[i].mode)),
                     rows[i].kind),
                  "%s", rows[i].target);
    }
}

Test(open_file, takes_an_inode_from_a_whole_link_alone) {
    static const char *const broken[] = {
        "pipe:[]",    "pipe:[1", "pipe:[1]x", "pipe:[x]",
        "socket:[1]", "pipe",    "",          "pipe:[99999999999999999999]"};
    uint64_t inode = 0;
    cr_expect(bp_open_file_inode("pipe:[14051113]", "pipe", &inode) && inode == 14051113);
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        cr_expect(not(bp_open_file_inode(broken[i], "pipe", &inode)), "%s", broken[i]);
    }
    cr_expect(eq(u64, inode, 14051113));
}

/* The socket of a recorded table with the inode. */
static bp_socket find(bp_socket_table table, uint64_t inode) {
    char name[64];
    bp_socket socket = {.inode = 0};
    bp_socket found = socket;
    size_t bytes;
    (void)snprintf(name, sizeof name, "net/%s", bp_socket_table_name(table));
    const char *text = recorded(name, &bytes);
    for (size_t at = 0; at < bytes;) {
        const char *newline = memchr(text + at, '\n', bytes - at);
        size_t end = newline == NULL ? bytes : (size_t)(newline - text);
        if (bp_socket_parse(table, text + at, end - at, &socket) && socket.inode == inode) {
            found = socket;
        }
        at = end + 1;
    }
    cr_assert(eq(u64, found.inode, inode));
    cr_expect(eq(str, found.protocol, bp_socket_table_name(table)));
    return found;
}

static void expect_ends(const bp_socket *socket, const char *state, const char *local,
                        const char *remote) {
    cr_expect(eq(str, (socket->state == NULL ? "" : socket->state), state));
    cr_expect(eq(str, socket->local, local));
    cr_expect(eq(str, socket->remote, remote));
}

/* The numbers are those that the program which was recorded had (fstat, getsockname). */
Test(sockets, are_read_from_recorded_tables) {
    bp_socket socket = find(BP_SOCKET_TCP, 14419246);
    expect_ends(&socket, "listening", "127.0.0.1:8080", "");
    cr_expect(socket.is_listening && socket.receive_queue == 1 && !socket.has_send_queue);
    socket = find(BP_SOCKET_TCP, 14419248);
    expect_ends(&socket, "established", "127.0.0.1:8080", "127.0.0.1:60256");
    cr_expect(socket.has_queues && socket.receive_queue == 100 && socket.has_retransmits);
    socket = find(BP_SOCKET_TCP6, 14419254);
    expect_ends(&socket, "close_wait", "[::ffff:127.0.0.1]:8081", "[::ffff:127.0.0.1]:39148");
    socket = find(BP_SOCKET_TCP6, 14419252);
    expect_ends(&socket, "established", "[::1]:8081", "[::1]:33846");
    socket = find(BP_SOCKET_UDP, 14419255);
    expect_ends(&socket, "unconnected", "127.0.0.1:5353", "");
    cr_expect(socket.receive_queue == 832 && socket.has_drops && !socket.has_retransmits);
    socket = find(BP_SOCKET_UDP, 14419256);
    expect_ends(&socket, "established", "127.0.0.1:60049", "127.0.0.1:5353");
    socket = find(BP_SOCKET_UDP6, 14419257);
    expect_ends(&socket, "unconnected", "[::1]:5354", "");
    socket = find(BP_SOCKET_UNIX, 14419258);
    expect_ends(&socket, "listening", "@viewer", "");
    cr_expect(eq(str, socket.type, "stream"));
    socket = find(BP_SOCKET_UNIX, 14419260);
    expect_ends(&socket, "unconnected", "/tmp/viewer.sock", "");
    cr_expect(eq(str, socket.type, "dgram"));
    socket = find(BP_SOCKET_UNIX, 14419244);
    expect_ends(&socket, "established", "", "");
}

Test(sockets, are_none_in_any_truncation_before_the_inode_ends) {
    static const char line[] = "   2: 0100007F:EB60 0100007F:1F90 01 00000001:00000002 00:00000000 "
                               "00000003     0        0 7";
    bp_socket socket = {.inode = 99};
    for (size_t length = 0; length < sizeof line - 1; length++) {
        CLEANUP(free_memory) char *exact = malloc(length + 1);
        memcpy(exact, line, length);
        cr_expect(not(bp_socket_parse(BP_SOCKET_TCP, exact, length, &socket)), "%zu bytes", length);
    }
    cr_expect(eq(u64, socket.inode, 99));
    cr_assert(bp_socket_parse(BP_SOCKET_TCP, line, sizeof line - 1, &socket));
    cr_expect(socket.send_queue == 1 && socket.receive_queue == 2 && socket.retransmits == 3);
}

Test(sockets, of_hostile_lines_are_cut_or_refused) {
    static const char *const broken[] = {
        "0: 0100007:0050 00000000:0000 0A 0:0 0:0 0 0 0 7", /* an address of 7 digits */
        "0: 0100007F:10050 00000000:0000 0A 0:0 0:0 0 0 0 7",
        "0: 0100007F:0050 00000000:0000 0A 0:0 0:0 0 0 0 99999999999999999999",
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid"};
    bp_socket socket;
    char line[400] = "0: 00000002 00000000 00000000 0063 99  7 ";
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        cr_expect(not(bp_socket_parse(BP_SOCKET_TCP, broken[i], strlen(broken[i]), &socket)));
    }
    size_t length = strlen(line);
    memset(line + length, '\xff', sizeof line - length);
    cr_assert(bp_socket_parse(BP_SOCKET_UNIX, line, sizeof line, &socket));
    cr_expect(eq(sz, strlen(socket.local), BP_SOCKET_NAME_BYTES - 1));
    cr_expect(socket.type == NULL && socket.state == NULL, "numbers that this version has not");
}

Test(sockets, have_a_table_by_their_name_in_the_kernel) {
    cr_expect(eq(int, bp_socket_table_of("TCPv6"), BP_SOCKET_TCP6));
    cr_expect(eq(int, bp_socket_table_of("UNIX-STREAM"), BP_SOCKET_UNIX));
    cr_expect(eq(int, bp_socket_table_of("UNIX"), BP_SOCKET_UNIX));
    cr_expect(eq(int, bp_socket_table_of("MPTCP"), BP_SOCKET_TABLE_COUNT));
    cr_expect(eq(int, bp_socket_table_of("NETLINK"), BP_SOCKET_TABLE_COUNT));
    cr_expect(eq(int, bp_socket_table_of(""), BP_SOCKET_TABLE_COUNT));
}

Test(unix_diag, reads_peers_and_queues_until_the_last_message) {
    static const bp_socket_diag expected[] = {
        {.inode = 14419244, .peer_inode = 14419245, .has_queues = true, .send_queue = 768},
        {.inode = 14419259, .has_queues = true},
        {.inode = 14419245, .peer_inode = 14419244, .has_queues = true, .receive_queue = 3},
        {.inode = 14419260, .has_queues = true},
        {.inode = 14419258, .has_queues = true, .receive_queue = 1, .send_queue = 3}};
    size_t bytes;
    size_t at = 0;
    size_t count = 0;
    bool is_last = false;
    const unsigned char *answer = (const unsigned char *)recorded("net/unix_diag", &bytes);
    for (bp_socket_diag diag; bp_socket_diag_take(answer, bytes, &at, &diag, &is_last); count++) {
        cr_assert(lt(sz, count, 5));
        cr_expect(eq(u64, diag.inode, expected[count].inode));
        cr_expect(eq(u64, diag.peer_inode, expected[count].peer_inode));
        cr_expect(eq(u64, diag.receive_queue, expected[count].receive_queue));
    }
    cr_expect(eq(sz, count, 5));
    cr_expect(is_last);
}

/* UNIX_DIAG_ICONS: those who have connected, and were not accepted. */
Test(unix_diag, reads_who_waits_to_be_accepted) {
    unsigned char answer[44] = {
        [0] = 44, [4] = 20, [16] = 1, [20] = 9, [32] = 12, [34] = 3, [36] = 5, [40] = 6};
    bp_socket_diag diag = {.inode = 0};
    bool is_last = false;
    size_t at = 0;
    cr_assert(bp_socket_diag_take(answer, sizeof answer, &at, &diag, &is_last));
    cr_expect(eq(u64, diag.inode, 9));
    cr_expect(diag.pending == answer + 36 && diag.pending_count == 2);
    answer[32] = 16; /* more than there is */
    at = 0;
    cr_assert(bp_socket_diag_take(answer, sizeof answer, &at, &diag, &is_last));
    cr_expect(eq(sz, diag.pending_count, 0));
}

Test(unix_diag, reads_names_with_and_without_a_file) {
    unsigned char answer[40] = {[0] = 40, [4] = 20, [16] = 1, [20] = 9, [32] = 7};
    bp_socket_diag diag = {.inode = 0};
    bool is_last = false;
    size_t at = 0;
    memcpy(answer + 36, "/ab", 4);
    cr_assert(bp_socket_diag_take(answer, sizeof answer, &at, &diag, &is_last));
    cr_expect(eq(str, diag.name, "/ab"));
    memcpy(answer + 36, "\0ab", 4);
    at = 0;
    cr_assert(bp_socket_diag_take(answer, sizeof answer, &at, &diag, &is_last));
    cr_expect(eq(str, diag.name, "@ab"));
    answer[32] = 4; /* of a socket without a name */
    at = 0;
    cr_assert(bp_socket_diag_take(answer, sizeof answer, &at, &diag, &is_last));
    cr_expect(eq(str, diag.name, ""));
}

/* struct tcp_info: 44 and 52 are when data was sent and came in, 152 counts what came in, 156 what
 * was sent. */
Test(unix_diag, reads_when_a_connection_sent_and_received) {
    enum { info = 16 + 72 + 4, info_bytes = 232 };
    unsigned char answer[info + info_bytes] = {
        [0] = (info + info_bytes) & 0xff, [1] = (info + info_bytes) >> 8, [4] = 20, [16] = 2};
    bp_socket_diag diag = {.inode = 0};
    bool is_last = false;
    size_t at = 0;
    answer[info - 4] = info_bytes + 4;
    answer[info - 2] = 2;
    answer[info + 45] = 4;
    answer[info + 53] = 8;
    cr_assert(bp_socket_diag_take(answer, sizeof answer, &at, &diag, &is_last));
    cr_expect(diag.has_times && !diag.has_received);
    cr_expect(eq(u64, diag.sent_ms, 1024));
    cr_expect(eq(u64, diag.received_ms, 2048));
    answer[info + 152] = 1;
    at = 0;
    cr_assert(bp_socket_diag_take(answer, sizeof answer, &at, &diag, &is_last));
    cr_expect(diag.has_received && !diag.has_sent);
    answer[info + 156] = 1;
    at = 0;
    cr_assert(bp_socket_diag_take(answer, sizeof answer, &at, &diag, &is_last));
    cr_expect(diag.has_sent);
    answer[info - 4] = 100; /* of an older kernel */
    at = 0;
    cr_assert(bp_socket_diag_take(answer, sizeof answer, &at, &diag, &is_last));
    cr_expect(not(diag.has_times));
}

/* As the kernel answers for a listener: struct inet_diag_msg has the queues and the inode last. */
Test(unix_diag, reads_the_queues_of_a_listener_of_tcp) {
    unsigned char answer[108] = {[0] = 88, [4] = 20, [16] = 2, [17] = 10};
    const unsigned char queues[] = {5, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0x2a, 1, 0, 0};
    bp_socket_diag diag = {.inode = 0};
    bool is_last = false;
    size_t at = 0;
    memcpy(answer + 16 + 56, queues, sizeof queues);
    cr_assert(bp_socket_diag_take(answer, sizeof answer, &at, &diag, &is_last));
    cr_expect(eq(u64, diag.inode, 0x12a));
    cr_expect(diag.has_queues && diag.receive_queue == 5 && diag.send_queue == 0x104);
    cr_expect(eq(sz, at, 88));
    answer[0] = 84; /* shorter than the structure */
    at = 0;
    cr_expect(not(bp_socket_diag_take(answer, sizeof answer, &at, &diag, &is_last)));
    cr_expect(is_last);
}

/* Under a sanitizer a byte too far is seen. */
Test(unix_diag, reads_no_byte_beyond_what_came) {
    size_t bytes;
    const char *answer = recorded("net/unix_diag", &bytes);
    for (size_t length = 0; length < bytes; length++) {
        for (size_t flipped = 0; flipped < length && flipped < 60; flipped++) {
            unsigned char *exact = malloc(length);
            size_t at = 0;
            bool is_last = false;
            bp_socket_diag diag;
            memcpy(exact, answer, length);
            exact[flipped] ^= 0x81;
            while (at < length && !is_last) {
                size_t before = at;
                (void)bp_socket_diag_take(exact, length, &at, &diag, &is_last);
                cr_assert(at > before && at <= length);
            }
            free(exact);
        }
    }
}

Test(files_json, has_what_is_known_and_nothing_else) {
    BUFFER(text, 65536);
    cr_assert(eq(int, sample_open_files_print(true, &text, &failure), BUGPACK_OK));
    cr_expect(strstr(text.data, "\"used_percent\": 50\n") != NULL);
    cr_expect(strstr(text.data, "\"hard\": null") != NULL);
    cr_expect(strstr(text.data, "\"backlog\": 5") != NULL);
    cr_expect(strstr(text.data, "\"other_end\": []") != NULL, "a pipe that nobody reads");
    cr_expect(strstr(text.data, "\"lock\": \"posix\"") != NULL);
    cr_expect(strstr(text.data, "\"position\": 7") != NULL);
    cr_expect(strstr(text.data, "\"position\": 0") == NULL, "a pipe has none");
    bp_buffer_clear(&text);
    cr_assert(eq(int, sample_open_files_print(false, &text, &failure), BUGPACK_OK));
    cr_expect(strstr(text.data, "limit") == NULL && strstr(text.data, "other_end") == NULL);
}

/* The name of the program is not told by the directory of its session. */
Test(open_file, leaves_the_name_of_the_program_out_of_the_path_of_a_session) {
    static const struct {
        const char *path, *shown;
    } rows[] = {
        {"/run/bugpack/KEY_a1b2-77-0123456789abcdef0123456789abcdef",
         "/run/bugpack/APP-77-0123456789abcdef0123456789abcdef"},
        {"/run/bugpack/KEY_a1b2-77-0123456789abcdef0123456789abcdef/log.ring",
         "/run/bugpack/APP-77-0123456789abcdef0123456789abcdef/log.ring"},
        {"/run/a-b-7-0123456789abcdef0123456789abcdef",
         "/run/APP-7-0123456789abcdef0123456789abcdef"},
        {"/run/x-77-0123456789abcdef0123456789abcde", "/run/x-77-0123456789abcdef0123456789abcde"},
        {"/run/x-0123456789abcdef0123456789abcdef", "/run/x-0123456789abcdef0123456789abcdef"},
        {"/run/-7-0123456789abcdef0123456789abcdef", "/run/-7-0123456789abcdef0123456789abcdef"},
        {"socket:[7]", "socket:[7]"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char wanted[256];
        bp_open_file file = {.number = 3, .target = (char *)(uintptr_t)rows[i].path};
        const bp_open_files files = {.pid = 1, .files = &file, .file_count = 1};
        const bp_fd_search search = {0};
        BUFFER(text, 1 << 16);
        cr_assert(zero(int, bp_open_files_print(&files, 1, &search, &text, NULL)));
        (void)snprintf(wanted, sizeof wanted, "\"target\": \"%s\"", rows[i].shown);
        cr_expect(strstr(bp_buffer_text(&text), wanted) != NULL, "%s", bp_buffer_text(&text));
    }
}
