#include "support/open_file_samples.h"

static bp_socket connection = {.inode = 77,
                               .protocol = "tcp6",
                               .state = "established",
                               .local = "[::1]:8080",
                               .remote = "[::1]:5000",
                               .has_queues = true,
                               .receive_queue = 100,
                               .has_send_queue = true,
                               .has_retransmits = true,
                               .retransmits = 3,
                               .is_accepted = true,
                               .has_peer_queue = true,
                               .peer_queue = 31,
                               .has_times = true,
                               .sent_ms = 1700,
                               .has_received = true,
                               .received_ms = 2500};
static bp_socket listener = {.inode = 78,
                             .protocol = "unix",
                             .type = "stream",
                             .state = "listening",
                             .local = "@viewer\xff",
                             .is_listening = true,
                             .has_queues = true,
                             .receive_queue = 1,
                             .has_send_queue = true,
                             .send_queue = 5};
static bp_socket peer = {
    .inode = 79, .protocol = "unix", .type = "dgram", .has_drops = true, .peer_inode = 80};
static bp_fd_holder holder = {.pid = 1, .name = "init\n", .number = 9};

static bp_open_file files[] = {
    {.number = 0,
     .kind = BP_OPEN_FILE_FILE,
     .target = (char[]){"/tmp/a\n"},
     .is_deleted = true,
     .has_inode = true,
     .inode = 4711,
     .has_size = true,
     .size_bytes = UINT64_MAX,
     .info = {.has_flags = true, .flags = 02002001, .has_position = true, .position = 7},
     .locked_by = {.pid = 4712, .name = "backup\n", .state = 'S'}},
    {.number = 1,
     .kind = BP_OPEN_FILE_SOCKET,
     .target = (char[]){"socket:[77]"},
     .socket = &connection},
    {.number = 2,
     .kind = BP_OPEN_FILE_SOCKET,
     .target = (char[]){"socket:[78]"},
     .socket = &listener,
     .is_shared = true},
    {.number = 3,
     .kind = BP_OPEN_FILE_SOCKET,
     .target = (char[]){"socket:[79]"},
     .socket = &peer,
     .has_other_end = true,
     .holders = &holder,
     .holder_count = 1,
     .has_more_holders = true},
    {.number = 4,
     .kind = BP_OPEN_FILE_PIPE,
     .target = (char[]){"pipe:[81]"},
     .info = {.has_flags = true, .flags = 1, .has_position = true},
     .has_other_end = true},
    {.number = 5, .kind = BP_OPEN_FILE_EPOLL, .target = (char[]){"anon_inode:[eventpoll]"}}};
static bp_open_file bare_files[] = {
    {.number = 3, .kind = BP_OPEN_FILE_OTHER, .target = (char[]){""}}};

static const bp_open_files samples[] = {
    {.pid = 4711,
     .name = "viewer",
     .files = files,
     .file_count = sizeof files / sizeof files[0],
     .open_count = 512,
     .vanished_count = 1,
     .inotify_count = 2,
     .watch_count = 300,
     .inotify_max = {true, 128},
     .watch_max = {true, 65536},
     .has_limit = true,
     .limit = {.soft = 1024, .hard_unlimited = true}},
    {.pid = 4712, .files = bare_files, .file_count = 1, .open_count = 1}};

bugpack_status sample_open_files_print(bool full, bp_buffer *out, bugpack_error *error) {
    const bp_fd_search search = {.was_needed = full, .process_count = 119, .denied_count = 1};
    return full ? bp_open_files_print(samples, 2, &search, out, error)
                : bp_open_files_print(&samples[1], 1, &search, out, error);
}
