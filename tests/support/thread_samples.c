#include "support/thread_samples.h"

static char kernel_stack[] = "[<0>] futex_wait_queue+0x62/0x90\n[<0>] do_futex+0x1/0x2";

static bp_fd_holder holder = {.pid = 4720, .name = "decoder", .number = 1};
static bp_socket connection = {.protocol = "tcp",
                               .state = "established",
                               .local = "127.0.0.1:57808",
                               .remote = "127.0.0.1:5900",
                               .is_accepted = true,
                               .has_queues = true,
                               .receive_queue = 100,
                               .has_peer_queue = true,
                               .peer_queue = 31,
                               .has_times = true,
                               .sent_ms = 1700,
                               .has_received = true,
                               .received_ms = 2500,
                               .peer_inode = 14402192};
static bp_socket pending = {.protocol = "unix", .type = "stream", .listener_inode = 14402193};
static bp_open_file files[] = {
    {.number = 4,
     .kind = BP_OPEN_FILE_PIPE,
     .has_other_end = true,
     .holders = &holder,
     .holder_count = 1,
     .has_more_holders = true},
    {.number = 5, .kind = BP_OPEN_FILE_SOCKET, .socket = &connection, .has_other_end = true},
    {.number = 7, .kind = BP_OPEN_FILE_SOCKET, .socket = &pending, .has_other_end = true}};

static bp_process_wait lock_wait = {.kind = BP_WAIT_FOR_FILE_LOCK,
                                    .fd = 6,
                                    .lock = BP_FILE_LOCK_FLOCK,
                                    .path = "/var/lib/mail/\xff",
                                    .links = {{.pid = 4730,
                                               .name = "backup",
                                               .state = 'S',
                                               .kind = BP_WAIT_FOR_CHILD,
                                               .waits_for = "the end of its child"},
                                              {.pid = 4731, .name = "tar", .state = 'T'}},
                                    .link_count = 2};
static bp_process_wait mutex_wait = {
    .kind = BP_WAIT_FOR_MUTEX, .links = {{.pid = 4740, .name = "cache"}}, .link_count = 1};
static bp_process_wait child_wait = {.kind = BP_WAIT_FOR_CHILD,
                                     .links = {{.pid = 4750, .name = "make", .state = 'T'}},
                                     .link_count = 1};

static bp_process_wait files_wait = {.kind = BP_WAIT_FOR_FILESYSTEM,
                                     .path = "/mnt/\xff",
                                     .type = "fuse.sshfs",
                                     .source = "nas:/export",
                                     .links = {{.pid = 4780, .name = "sshfs", .state = 'S'}},
                                     .link_count = 1};
static bp_process_wait semaphore_wait = {
    .kind = BP_WAIT_FOR_SEMAPHORE, .set = 98304, .fd = 2, .has_holder_ended = true};
static char path_of_call[] = "/mnt/\xff/data";

static bp_thread_state threads[] = {
    {.read = {.tid = 4711, .stat = {.name = "main)\n\xff", .state = '?'}}},
    {.read = {.tid = 4712,
              .measured = 1u << BP_GROUP_STAT | 1u << BP_GROUP_STATUS | 1u << BP_GROUP_SYSCALL,
              .stat = {.name = "locker-1",
                       .state = 'S',
                       .has_scheduling = true,
                       .priority = -2,
                       .policy = 1,
                       .rt_priority = 1,
                       .processor = 3},
              .counters = {[BP_COUNTER_USER_CPU] = 1234567000,
                           [BP_COUNTER_VOLUNTARY_SWITCHES] = 7,
                           [BP_COUNTER_INVOLUNTARY_SWITCHES] = UINT64_MAX},
              .wait_channel = "futex_wait_queue",
              .syscall = {.place = BP_THREAD_IN_CALL,
                          .number = 202,
                          .arguments = {0x7f0000000080, 0x80, 2, 0, 0, UINT64_MAX}},
              .kernel_stack = kernel_stack},
     .is_waiting = true,
     .wait = {.kind = BP_FUTEX_KIND_MUTEX, .address = 0x7f0000000080, .tid = 3},
     .waits_for = 2},
    {.read = {.tid = 4713,
              .measured = 1u << BP_GROUP_SYSCALL,
              .stat = {.name = "locker-2"},
              .syscall = {.place = BP_THREAD_IN_CALL, .number = 9999}},
     .is_waiting = true,
     .is_futex_own = true,
     .wait = {.kind = BP_FUTEX_KIND_MUTEX, .address = 0x7f0000000040, .tid = 2},
     .waits_for = 1},
    {.read = {.tid = 4714, .stat = {.name = "reader"}}, .file = &files[0]},
    {.read = {.tid = 4715, .stat = {.name = "poller"}},
     .fd_wait = {.has_limit = true, .is_timed = true},
     .file = &files[1]},
    {.read = {.tid = 4716, .stat = {.name = "file-lock"}}, .process_wait = &lock_wait},
    {.read = {.tid = 4717, .stat = {.name = "shared"}},
     .wait = {.tid = 4741},
     .process_wait = &mutex_wait},
    {.read = {.tid = 4718, .stat = {.name = "parent"}}, .process_wait = &child_wait},
    {.read = {.tid = 4719, .stat = {.name = "left"}},
     .wait = {.tid = 4760, .address = 0x7f0000000080},
     .other_owner = BP_FUTEX_OWNER_ENDED},
    {.read = {.tid = 4720, .stat = {.name = "client"}}, .file = &files[2]},
    {.read = {.tid = 4721, .stat = {.name = "events"}},
     .fd_wait = {.fds = {5, 7}, .inodes = {0, 14402191}, .count = 2},
     .does_poll = true},
    {.read = {.tid = 4722,
              .measured = 1u << BP_GROUP_SYSCALL,
              .stat = {.name = "opener"},
              .syscall = {.place = BP_THREAD_IN_CALL, .number = 257}},
     .path = path_of_call,
     .process_wait = &files_wait},
    {.read = {.tid = 4723, .stat = {.name = "taker"}}, .process_wait = &semaphore_wait}};

static bp_thread_state bare_threads[] = {{.read = {.tid = 4711}}};

static const bp_process_threads samples[] = {
    {.pid = 4711,
     .name = "viewer\xff",
     .arch = BP_SYSCALL_X86_64,
     .threads = threads,
     .thread_count = 13,
     .has_signals = true,
     .caught_signals = 1ull << 1 | 1ull << 14 | 1ull << 33,
     .blocked_signals = 1ull << 14,
     .tracer = {.pid = 4770, .name = "gdb", .state = 'S'},
     .vanished_count = 1},
    {.pid = 4711, .threads = bare_threads, .thread_count = 1}};

bugpack_status sample_threads_print(bool full, bp_buffer *out, bugpack_error *error) {
    const bp_fd_search search = {.was_needed = full, .process_count = 119, .denied_count = 1};
    return full ? bp_threads_print(samples, 2, &search, out, error)
                : bp_threads_print(&samples[1], 1, &search, out, error);
}
