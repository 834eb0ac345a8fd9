#include "support/model_samples.h"

/* 2026-11-21T00:36:51.123456Z, give or take seconds. */
#define AT(seconds) (1795221411123456000u + (seconds)*BP_NS_PER_SEC)
#define KNOWN(number)                                                                              \
    { true, number }

static const bugpack_region sample_region = {0, 12, 16384, 1};

static const bp_exit sample_exit = {.signal = 11, .has_core = true, .cpu_ns = 1500000000};

static const bp_tag sample_tags[] = {{"gpu", "none"}, {"server.version", "7 \"b\"\xff"}};

static const bp_metadata_target sample_others[] = {{.pid = 4713, .name = "worker"},
                                                   {.pid = 4720, .name = "odd\n\xff"}};

const bp_metadata sample_metadata_full = {
    .report_id = "00112233445566778899aabbccddeeff",
    .session_id = "ffeeddccbbaa99887766554433221100",
    .sequence = 3,
    .app_name = "viewer",
    .app_version = "1.2 \"beta\"",
    .app_build_id = "4f\xff",
    .platform = "linux",
    .arch = "x86_64",
    .kernel = "6.1.0",
    .machine = "desk-17\xff",
    .pid = 4711,
    .started_wall_ns = AT(-120),
    .target_uptime_ns = 123000000000,
    .kind = BP_REPORT_PEDANTIC,
    .gap_key = "display:unimpl:draw_rop3",
    .suppressed_count = 2,
    .channel = "display",
    .region = &sample_region,
    .exit = &sample_exit,
    .description = "black squares\nafter resize",
    .session_opened = {.monotonic_ns = 5000000000, .wall_ns = AT(0)},
    .triggered = {.monotonic_ns = 6500000000, .wall_ns = AT(1)},
    .written = {.monotonic_ns = 8123456789, .wall_ns = AT(3)},
    .target = {.pid = 4712, .name = "worker)\n\xff"},
    .others = sample_others,
    .other_count = 2,
    .tags = sample_tags,
    .tag_count = 2,
};

const bp_metadata sample_metadata_bare = {
    .report_id = "00112233445566778899aabbccddeeff",
    .sequence = 1,
    .app_name = "viewer",
    .platform = "linux",
    .arch = "",
    .pid = 4711,
    .triggered = {.monotonic_ns = 6500000000, .wall_ns = AT(1)},
    .written = {.monotonic_ns = 8123456789, .wall_ns = AT(3)},
};

static bp_thread_metrics threads[] = {
    {.tid = 4711,
     .name = "viewer",
     .cpu_percent = 9.375,
     .has_cpu = true,
     .cpu_ns = 190000000,
     .has_times = true,
     .user_ns = 150000000,
     .system_ns = 40000000,
     .has_switches = true,
     .voluntary_switches = 184,
     .involuntary_switches = 3},
    {.tid = 4712,
     .name = "net)\n\xff",
     .cpu_percent = 3.1,
     .has_cpu = true,
     .cpu_ns = 62093000,
     .is_born = true,
     .has_age = true,
     .age_ns = 70000000},
    {.tid = 4713, .name = "", .cpu_percent = 0.0},
};

const bp_metrics sample_metrics_full = {
    .sample_window_ms = 2003,
    .cpu_percent = 12.5,
    .vanished_count = 3,
    .has_memory = true,
    .rss_kb = 48211,
    .vm_size_kb = 912345,
    .has_uptime = true,
    .uptime_secs = 61.23456,
    .memory = {{.taken_ns = 5000000,
                .rss_kb = 40000,
                .vm_size_kb = 90000,
                .thread_count = 2,
                .file_count = 17},
               {.taken_ns = 1005000000, .rss_kb = 44000, .thread_count = 3},
               {.taken_ns = 2005000000, .rss_kb = 48211, .thread_count = 3, .file_count = 19}},
    .memory_count = 3,
    .children =
        {.look_count = 20,
         .ended_count = 9,
         .has_counts = true,
         .first_count = 1,
         .last_count = 2,
         .commands = {{.name = "one",
                       .count = 4,
                       .longest_ns = 5000000,
                       .failed_count = 3,
                       .succeeded_count = 1,
                       .status = 3 << 8},
                      {.name = "two", .is_own = true, .count = 1, .failed_count = 1, .status = 11}},
         .command_count = 2,
         .has_more_commands = true},
    .threads = threads,
    .thread_count = 3,
};

static const bp_exit sample_failure = {.status = 126,
                                       .not_executed = "it is for another processor"};

const bp_metadata sample_metadata_without_process = {
    .report_id = "00112233445566778899aabbccddeeff",
    .sequence = 1,
    .app_name = "viewer",
    .platform = "linux",
    .arch = "",
    .pid = 4711,
    .is_about_none = true,
    .kind = BP_REPORT_EXIT,
    .exit = &sample_failure,
    .triggered = {.monotonic_ns = 6500000000, .wall_ns = AT(1)},
    .written = {.monotonic_ns = 8123456789, .wall_ns = AT(3)},
};

const bp_metrics sample_metrics_bare = {.sample_window_ms = 1};

static char command_line[] = "viewer\0--name\0\0caf\xe9";
static char executable[] = "/usr/bin/viewer";
static char directory[] = "/home/someone";
static char cgroup[] = "/user.slice/app.scope";
static char library[] = "/usr/lib/libfoo.so.1\xff";
static bp_loaded_object objects[] = {
    {.path = executable, .address = 0x555555554000, .build_id = "0123456789abcdef"},
    {.path = library, .address = UINT64_C(0xffffffffff600000), .deleted = true},
};
static bp_resource_limit limits[] = {
    {.name = "Max open files", .unit = "files", .soft = 1024, .hard = UINT64_MAX - 1},
    {.name = "Max nice priority", .soft_unlimited = true, .hard_unlimited = true},
};

const bp_process_facts sample_process_full = {
    .pid = 4711,
    .parent_pid = KNOWN(1),
    .uid = KNOWN(1000),
    .gid = KNOWN(100),
    .name = "view)\xff",
    .state = 'S',
    .command_line = {.data = command_line, .size = sizeof command_line - 1},
    .executable = executable,
    .working_directory = directory,
    .started_wall_ns = KNOWN(AT(0)),
    .start_ticks = KNOWN(3949755),
    .boot_id = "00112233-4455",
    .thread_count = KNOWN(3),
    .fd_count = KNOWN(17),
    .user_thread_count = KNOWN(900),
    .map_count = KNOWN(250),
    .map_max = KNOWN(65530),
    .voluntary_switches = KNOWN(100),
    .involuntary_switches = KNOWN(7),
    .minor_faults = KNOWN(2000),
    .major_faults = KNOWN(0),
    .rss_kb = KNOWN(40000),
    .peak_rss_kb = KNOWN(50000),
    .swap_kb = KNOWN(0),
    .vm_size_kb = KNOWN(90000),
    .data_kb = KNOWN(60000),
    .zombie_count = KNOWN(21),
    .zombie_name = "worker",
    .read_bytes = KNOWN(4096),
    .written_bytes = KNOWN(UINT64_MAX),
    .read_chars = KNOWN(5000),
    .written_chars = KNOWN(6000),
    .read_calls = KNOWN(10),
    .write_calls = KNOWN(20),
    .cgroup = cgroup,
    .has_oom = true,
    .oom_score = 666,
    .oom_score_adj = -17,
    .limits = limits,
    .limit_count = 2,
    .objects = objects,
    .object_count = 2,
    .objects_known = true,
};

const bp_process_facts sample_process_bare = {
    .pid = 2, .name = "kthreadd", .is_kernel_thread = true, .voluntary_switches = KNOWN(5)};

const bugpack_heap_state sample_heap_state_full = {.struct_size = sizeof sample_heap_state_full,
                                                   .allocator = "jemalloc",
                                                   .allocated_bytes = 0,
                                                   .active_bytes = UINT64_MAX - 1,
                                                   .resident_bytes = 2097152,
                                                   .mapped_bytes = 4194304,
                                                   .narenas = 64};
const bugpack_heap_state sample_heap_state_bare = {.struct_size = sizeof sample_heap_state_bare,
                                                   .allocator = "other",
                                                   .allocated_bytes = BUGPACK_HEAP_UNKNOWN,
                                                   .active_bytes = BUGPACK_HEAP_UNKNOWN,
                                                   .resident_bytes = BUGPACK_HEAP_UNKNOWN,
                                                   .mapped_bytes = BUGPACK_HEAP_UNKNOWN,
                                                   .narenas = BUGPACK_HEAP_UNKNOWN};

static const bp_redaction_count sample_redactions[] = {{.rule = "password", .count = 2}};

const bp_manifest_line sample_ledger[SAMPLE_LEDGER_COUNT] = {
    {.name = "metadata.json",
     .status = BP_ARTEFACT_OK,
     .bytes = 700,
     .captured_wall_ns = AT(3),
     .duration_ns = 1234567,
     .is_unsearched = true,
     .exact_channels = "display\0usb\0",
     .redactions = sample_redactions,
     .redaction_count = 1},
    {.name = "logs.jsonl",
     .status = BP_ARTEFACT_TRUNCATED,
     .bytes = UINT64_MAX,
     .has_original_bytes = true,
     .original_bytes = UINT64_MAX,
     .left_out_bytes = 7,
     .captured_wall_ns = AT(1),
     .covers_from_wall_ns = AT(0),
     .covers_to_wall_ns = AT(1),
     .reason = "12 older records were dropped"},
    {.name = "session.json",
     .status = BP_ARTEFACT_FAILED,
     .is_missing = true,
     .duration_ns = 2000000000,
     .reason = "line 1, column 2: \xff"},
    {.name = "heap-state.json", .status = BP_ARTEFACT_DISABLED, .reason = "not asked for"},
};

/* 2026-11-21T00:36:50.000000Z */
#define TRIGGERED_WALL_NS 1795221410000000000u

const bp_trigger_entry sample_triggers[SAMPLE_TRIGGER_COUNT] = {
    {.kind = BP_REPORT_PEDANTIC,
     .key = "display:unimpl:\xff\x01",
     .count = UINT64_MAX,
     .written_count = 1,
     .first_wall_ns = TRIGGERED_WALL_NS,
     .last_wall_ns = TRIGGERED_WALL_NS + BP_NS_PER_SEC},
    {.kind = BP_REPORT_DISCONNECT,
     .count = 3,
     .first_wall_ns = TRIGGERED_WALL_NS,
     .last_wall_ns = TRIGGERED_WALL_NS,
     .reason = "within 60 s of an earlier one"},
};

const bp_manifest sample_manifest_full = {.report_id = "00112233445566778899aabbccddeeff",
                                          .is_redacted = true,
                                          .max_zip_bytes = 65536,
                                          .entries = sample_ledger,
                                          .entry_count = SAMPLE_LEDGER_COUNT,
                                          .triggers = sample_triggers,
                                          .trigger_count = SAMPLE_TRIGGER_COUNT};
const bp_manifest sample_manifest_bare = {.report_id = "00112233445566778899aabbccddeeff"};

static const bp_channel_activity channel_activities[] = {
    {.name = "main\n\xff",
     .message_count = {UINT64_MAX, 0},
     .byte_count = {UINT64_MAX, 0},
     .last_ns = {5 * BP_NS_PER_SEC, 0}},
    {.name = "display", .message_count = {1, 2}, .byte_count = {0, 3}, .last_ns = {1, UINT64_MAX}}};

static const bp_loss other_losses[] = {
    {.channel = "display", .error_text = "EOF", .at = {.wall_ns = 1795221412 * BP_NS_PER_SEC}}};

const bp_disconnect sample_disconnect_full = {
    .first = {.channel = "main\n\xff",
              .error_text = "reset\r\n\x1b[31m\xff by \"peer\"",
              .error_kind = "io\xfe",
              .keepalive_fired = true,
              .at = {.monotonic_ns = 7 * BP_NS_PER_SEC, .wall_ns = 1795221411 * BP_NS_PER_SEC}},
    .others = other_losses,
    .other_count = 1,
    .cooldown_ms = UINT64_MAX,
    .suppressed_count = UINT64_MAX,
    .channels = channel_activities,
    .channel_count = 2};

const bp_disconnect sample_disconnect_bare = {
    .first = {.channel = "m", .error_text = "", .at = {.wall_ns = 1795221411 * BP_NS_PER_SEC}}};

const bp_hang sample_hang = {
    .watchdog = "ui\n\xff",
    .thread = "main \x1b[31m",
    .tid = 4711,
    .limit_ns = 2 * BP_NS_PER_SEC,
    .last_beat_ns = 4 * BP_NS_PER_SEC,
    .silent_ns = 2 * BP_NS_PER_SEC + 1000,
    .number = 1,
    .suppressed_count = 3,
    .seen = {.monotonic_ns = 7 * BP_NS_PER_SEC, .wall_ns = 1795221411 * BP_NS_PER_SEC}};

static const bp_pedantic_gap sample_gaps[] = {
    {.key = "display:unimpl:\xff\x01",
     .channel = "display:unimpl:\xff\x01",
     .channel_bytes = 7,
     .count = UINT64_MAX / 2,
     .first_wall_ns = TRIGGERED_WALL_NS,
     .last_wall_ns = TRIGGERED_WALL_NS + BP_NS_PER_SEC,
     .is_written = true,
     .reason = ""},
    {.key = ":\"\r\n",
     .channel = ":",
     .count = 1,
     .first_wall_ns = TRIGGERED_WALL_NS,
     .last_wall_ns = TRIGGERED_WALL_NS,
     .reason = "pedantic mode was off"},
};

const bp_pedantic_summary sample_summary_full = {.session_id = "00112233445566778899aabbccddeeff",
                                                 .app_name = "viewer",
                                                 .app_version = "1.2",
                                                 .app_build_id = "abc\xff",
                                                 .pid = 4711,
                                                 .opened_wall_ns = TRIGGERED_WALL_NS,
                                                 .closed_wall_ns = TRIGGERED_WALL_NS,
                                                 .cap = 50,
                                                 .channel_cap = 20,
                                                 .gaps = sample_gaps,
                                                 .gap_count = 2};
const bp_pedantic_summary sample_summary_bare = {.session_id = "ffeeddccbbaa99887766554433221100",
                                                 .app_name = "x",
                                                 .pid = 1,
                                                 .opened_wall_ns = AT(0),
                                                 .closed_wall_ns = AT(1),
                                                 .gaps = sample_gaps + 1,
                                                 .gap_count = 1};

static bp_stack_module stack_modules[] = {
    {.path = (char[]){"/usr/lib/libc.so.6"}, .start = 0x7f0000000000, .build_id = "0123abcd"},
    {.path = (char[]){"/opt/a\n#0  b/viewer"},
     .start = 0x400000,
     .file_start = 0x400000,
     .trouble = "it was removed or replaced since it was loaded"}};
static bp_stack_inlined stack_inlined[] = {{.symbol = (char[]){"spin"}},
                                           {.symbol = (char[]){"_ZN3app4pollEv"},
                                            .demangled = (char[]){"app::poll()"},
                                            .source = (char[]){"src/poll.h"},
                                            .line = 7}};
static bp_stack_place stack_places[] = {
    {.address = 0x7f00000f8e2f, .symbol = (char[]){"poll@@GLIBC_2.2.5"}, .symbol_offset = 79},
    {.address = 0x401234,
     .is_call = true,
     .module = 1,
     .symbol = (char[]){"_ZN3app4waitEi"},
     .demangled = (char[]){"app::wait(int)"},
     .symbol_offset = 4,
     .source = (char[]){"src/wait.cc"},
     .line = 12,
     .inlined = stack_inlined,
     .inlined_count = 2},
    {.address = 0x7f1100000010, .is_call = true, .module = BP_STACK_NO_MODULE}};
static bp_stack_frame stack_frames[] = {{0, false}, {1, false}, {2, false}, {1, true}};
static bp_stack_thread stack_threads[] = {
    {.tid = 4711, .name = "ma\"in\n#1", .state = BP_STACK_BLOCKED, .frame_count = 3},
    {.tid = 4712,
     .name = "io",
     .state = BP_STACK_BLOCKED,
     .first_frame = 3,
     .frame_count = 1,
     .reason = "no unwind table reaches this address"},
    {.tid = 4713,
     .state = BP_STACK_RUNNING,
     .first_frame = 4,
     .reason = "it has no stack without stopping it",
     .python_count = 2,
     .python_reason = "there are more frames than the limit"},
    {.tid = 4715,
     .name = "spin",
     .state = BP_STACK_STOPPED,
     .stopped_ns = 85001,
     .first_frame = 2,
     .frame_count = 1,
     .reason = "this code was made at run time"},
    {.tid = 4716, .name = "bad", .state = BP_STACK_CRASHED, .first_frame = 2, .frame_count = 1},
    {.tid = 4714, .state = BP_STACK_MOVED, .first_frame = 4, .reason = "it ran meanwhile"}};
static bp_python_frame python_frames[] = {{(char[]){"Worker.take"}, (char[]){"/srv/app.py"}, 12},
                                          {(char[]){"<module>"}, NULL, 0}};

const bp_stacks sample_stacks_full = {.pid = 4711,
                                      .modules = stack_modules,
                                      .module_count = 2,
                                      .places = stack_places,
                                      .place_count = 3,
                                      .frames = stack_frames,
                                      .frame_count = 4,
                                      .threads = stack_threads,
                                      .thread_count = 6,
                                      .is_of_all = true,
                                      .passed_over_count = 2,
                                      .vanished_count = 1,
                                      .language = "Python",
                                      .python_frames = python_frames,
                                      .python_frame_count = 2,
                                      .python_version = "3.11.7",
                                      .is_mangled = true};
const bp_stacks sample_stacks_bare = {.pid = 1};
