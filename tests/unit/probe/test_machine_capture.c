/*
 * Captures of made and recorded machines.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "json/json.h"
#include "machine/machine_private.h"
#include "support/temp_dir.h"
#include "unit/unit.h"

#define STAT(tid, name)                                                                            \
#tid " (" name ") S 1 7 7 0 -1 0 1 0 0 0 5 2 0 0 20 0 2 0 900 1 1 1 1 1 "                      \
         "0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0\n"

/* A machine in a directory: "proc" and "cgroup". */
typedef struct made_machine {
    temp_dir dir;
    bp_machine_root root;
    char proc_path[300], cgroup_path[300];
    bp_machine_summary summary;
    bp_buffer json;
} made_machine;

static made_machine made;

static void write_file(const char *name, const char *text) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s", name);
    for (char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdirat(made.dir.fd, path, 0700);
        *slash = '/';
    }
    cr_assert(temp_dir_write(&made.dir, name, text, strlen(text)), "%s", name);
}

static void make_machine(void) {
    cr_assert(temp_dir_make(&made.dir));
    (void)snprintf(made.proc_path, sizeof made.proc_path, "%s/proc", made.dir.path);
    (void)snprintf(made.cgroup_path, sizeof made.cgroup_path, "%s/cgroup", made.dir.path);
    made.root = (bp_machine_root){made.proc_path, made.cgroup_path, true, 100};
    bp_buffer_init(&made.json, (size_t)64 << 20);
    write_file("proc/7/stat", STAT(7, "made"));
    write_file("proc/7/task/7/stat", STAT(7, "made"));
}

static void set_up(void) {
    make_machine();
}

static void tear_down(void) {
    bp_buffer_release(&made.json);
    temp_dir_remove(&made.dir);
}

static void capture(void) {
    const bp_machine_plan plan = {.prober = NULL};
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_buffer_clear(&made.json);
    bugpack_status status =
        bp_machine_capture(&made.root, &plan, bp_buffer_sink, &made.json, &made.summary, &error);
    cr_assert(eq(int, status, BUGPACK_OK), "%s", error.message);
    /* Valid, and laid out as everything else in a report. */
    BUFFER(again, (size_t)64 << 20);
    cr_assert(eq(int, bp_json_reformat(made.json.data, made.json.size, &again, &error), 0), "%s",
              error.message);
    cr_expect(eq(str, again.data, made.json.data));
}

static void expect_text(const char *text) {
    cr_expect(strstr(made.json.data, text) != NULL, "there is no %s in\n%s", text, made.json.data);
}

static void expect_no_text(const char *text) {
    cr_expect(strstr(made.json.data, text) == NULL, "there is %s", text);
}

TestSuite(host_capture, .init = set_up, .fini = tear_down);

Test(host_capture, defaults_only_the_fields_of_files_that_are_missing) {
    write_file("proc/7/task/7/schedstat", "11 12 13\n");
    write_file("proc/7/task/7/io", "rchar: 1\nwchar: broken\n");
    capture();
    cr_expect(eq(u64, made.summary.thread_count, 1));
    expect_text("\"stat_measured\": true");
    expect_text("\"user_cpu_ns\": 50000000,");
    expect_text("\"schedstat_measured\": true");
    expect_text("\"run_delay_ns\": 12,");
    expect_text("\"status_measured\": false");
    expect_no_text("\"voluntary_switches\"");
    expect_text("\"io_measured\": false");
    expect_no_text("\"read_chars\"");
    cr_expect(eq(u64, made.summary.unread[BP_GROUP_STATUS][BP_MACHINE_CAUSE_MISSING], 1));
    cr_expect(eq(u64, made.summary.unread[BP_GROUP_IO][BP_MACHINE_CAUSE_MALFORMED], 1));
    cr_expect(eq(u64, made.summary.unread[BP_GROUP_WAITS][BP_MACHINE_CAUSE_MISSING], 1));
    expect_text("\"cause\": \"malformed\"");
    expect_text("\"complete\": false");
}

Test(host_capture, keeps_a_thread_with_a_name_and_drops_one_without) {
    write_file("proc/7/task/8/comm", "only-a-name\n");
    write_file("proc/7/task/9/io", "rchar: 1\n");
    write_file("proc/7/task/10/stat", "10 (cut");
    write_file("proc/7/task/not-a-number/stat", STAT(11, "x"));
    capture();
    cr_expect(eq(u64, made.summary.thread_count, 2));
    cr_expect(eq(u64, made.summary.vanished_thread_count, 2));
    expect_text("\"name\": \"only-a-name\"");
    expect_text("\"scheduling_measured\": false");
    expect_no_text("\"state\": \"?\"");
    expect_no_text("\"tid\": 9,");
    expect_no_text("\"tid\": 10,");
}

Test(host_capture, counts_a_process_without_threads_as_vanished) {
    write_file("proc/8/stat", STAT(8, "gone"));
    write_file("proc/version", "not a process");
    capture();
    cr_expect(eq(u64, made.summary.process_count, 1));
    cr_expect(eq(u64, made.summary.vanished_process_count, 1));
}

/* ELOOP stands for any errno that says nothing about the end of a process or thread. */
Test(host_capture, takes_only_what_is_not_there_for_ended) {
    write_file("proc/7/task/8/stat", STAT(8, "second"));
    write_file("proc/9/stat", STAT(9, "third"));
    cr_assert(eq(int, symlinkat("8", made.dir.fd, "proc/8"), 0));
    cr_assert(eq(int, symlinkat("task", made.dir.fd, "proc/9/task"), 0));
    cr_assert(eq(int, symlinkat("10", made.dir.fd, "proc/7/task/10"), 0));
    cr_assert(eq(int, symlinkat("io", made.dir.fd, "proc/7/task/8/io"), 0));
    cr_assert(eq(int, symlinkat("cmdline", made.dir.fd, "proc/7/cmdline"), 0));
    capture();
    cr_expect(eq(u64, made.summary.process_count, 1));
    cr_expect(eq(u64, made.summary.vanished_process_count, 0));
    cr_expect(eq(u64, made.summary.thread_count, 2));
    cr_expect(eq(u64, made.summary.vanished_thread_count, 0));
    cr_assert(eq(sz, made.summary.error_count, 1));
    cr_expect(eq(int, made.summary.errors[0].system_errno, ELOOP));
    cr_expect(eq(u64, made.summary.errors[0].process_count, 2));
    cr_expect(eq(u64, made.summary.errors[0].thread_count, 1));
    cr_expect(eq(u64, made.summary.errors[0].file_count, 2));
    cr_expect(eq(u64, made.summary.unread[BP_GROUP_IO][BP_MACHINE_CAUSE_OTHER], 1));
    cr_expect(not(bp_machine_summary_is_complete(&made.summary)));
    expect_text("\"message\": \"Too many levels of symbolic links\"");
}

/* With each limit, what is lost is counted, and nothing that lives is called ended. */
Test(host_capture, counts_what_no_descriptor_was_left_for) {
    write_file("proc/7/task/8/stat", STAT(8, "second"));
    write_file("proc/9/stat", STAT(9, "third"));
    write_file("proc/9/task/9/stat", STAT(9, "third"));
    int next_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct rlimit before;
    cr_assert(eq(int, getrlimit(RLIMIT_NOFILE, &before), 0));
    unsigned complete_count = 0;
    for (int spare = 2; spare < 12; spare++) {
        const struct rlimit limit = {(rlim_t)(next_fd + spare), before.rlim_max};
        const bp_machine_plan plan = {.prober = NULL};
        bp_buffer_clear(&made.json);
        cr_assert(eq(int, setrlimit(RLIMIT_NOFILE, &limit), 0));
        bugpack_status status =
            bp_machine_capture(&made.root, &plan, bp_buffer_sink, &made.json, &made.summary, NULL);
        cr_assert(eq(int, setrlimit(RLIMIT_NOFILE, &before), 0));
        if (status != BUGPACK_OK) {
            continue; /* not even the list of processes */
        }
        bool is_whole = made.summary.process_count == 2 && made.summary.thread_count == 3;
        cr_expect(eq(u64, made.summary.vanished_process_count, 0), "%d", spare);
        cr_expect(eq(u64, made.summary.vanished_thread_count, 0), "%d", spare);
        cr_expect(is_whole || !bp_machine_summary_is_complete(&made.summary), "%d", spare);
        complete_count += bp_machine_summary_is_complete(&made.summary) ? 1 : 0;
    }
    cr_expect(gt(uint, complete_count, 0));
    cr_expect(lt(uint, complete_count, 9));
    (void)close(next_fd);
}

Test(host_capture, gives_processes_their_arguments_within_a_bound) {
    char line[6000];
    cr_assert(temp_dir_write(&made.dir, "proc/7/cmdline", "made\0-x\0\0", 9));
    write_file("proc/9/stat", STAT(9, "long"));
    write_file("proc/9/task/9/stat", STAT(9, "long"));
    memset(line, 'a', sizeof line);
    cr_assert(temp_dir_write(&made.dir, "proc/9/cmdline", line, sizeof line));
    write_file("proc/10/stat", STAT(10, "titled"));
    write_file("proc/10/task/10/stat", STAT(10, "titled"));
    cr_assert(temp_dir_write(&made.dir, "proc/10/cmdline", "titled: idle\0\0\0\0", 16));
    write_file("proc/11/stat", STAT(11, "words"));
    write_file("proc/11/task/11/stat", STAT(11, "words"));
    memcpy(line + 4080, "\0ghp_0123456789abcdefghij", 25);
    cr_assert(temp_dir_write(&made.dir, "proc/11/cmdline", line, sizeof line));
    capture();
    expect_text("\"command_line\": [\n        \"titled: idle\"\n      ]");
    expect_text("\"command_line\": [\n        \"made\",\n        \"-x\",\n        \"\"\n");
    expect_text("\"command_line_cut\": true");
    const char *long_one = strstr(made.json.data, "\"aaa");
    cr_assert(long_one != NULL);
    cr_expect(eq(sz, strspn(long_one + 1, "a"), 4096));
    cr_expect(eq(ptr, strstr(made.json.data, "ghp_"), NULL), "half a token is no token");
}

Test(host_capture, is_valid_without_any_process) {
    cr_assert(eq(int, unlinkat(made.dir.fd, "proc/7/task/7/stat", 0), 0));
    capture();
    cr_expect(eq(u64, made.summary.thread_count, 0));
    expect_text("\"threads\": []");
}

Test(host_capture, writes_hostile_names_as_valid_json) {
    write_file("proc/7/task/8/stat", STAT(8, ") R 1 1"));
    write_file("proc/7/task/9/stat", STAT(9, "new\nline"));
    write_file("proc/7/task/10/stat", STAT(10, "\xff\x01\"\\"));
    capture();
    cr_expect(eq(u64, made.summary.thread_count, 4));
    expect_text("\"name\": \") R 1 1\"");
    expect_text("\"name\": \"new\\nline\"");
    expect_text("\"name\": \"\xee\xbf\xbf\\u0001\\\"\\\\\"");
}

Test(host_capture, reads_each_cgroup_once_and_none_above_its_root) {
    write_file("cgroup/cgroup.controllers", "cpu memory pids\n");
    write_file("cgroup/a/b/cpu.stat", "usage_usec 5\nuser_usec x\nnr_periods 2\n");
    write_file("cgroup/a/b/cpu.max", "50000 100000\n");
    write_file("cgroup/a/b/memory.max", "max\n");
    write_file("cgroup/a/b/pids.current", "3\n");
    write_file("cgroup/a/b/cpu.pressure", "some avg10=1.50 avg60=0.00 avg300=0.00 total=9\n");
    write_file("secret/pids.current", "4242424242424242\n");
    write_file("proc/7/task/7/cgroup", "0::/a/b\n");
    write_file("proc/7/task/8/stat", STAT(8, "second"));
    write_file("proc/7/task/8/cgroup", "0::/a/b\n");
    write_file("proc/7/task/9/stat", STAT(9, "outside"));
    write_file("proc/7/task/9/cgroup", "0::/../secret\n");
    capture();
    expect_text("\"path\": \"/a/b\",\n      \"threads\": 2,\n      \"cpu\": {\n        "
                "\"usage_ns\": 5000,\n        \"periods\": 2,\n        \"quota_ns\": "
                "50000000,");
    expect_text("\"max_bytes\": null");
    expect_text("\"avg10_percent\": 1.5");
    expect_text("\"path\": \"/../secret\",\n      \"threads\": 1,\n      \"pressure\": {}");
    expect_no_text("4242424242424242");
}

Test(host_capture, stops_when_it_is_told_to_and_says_so) {
    atomic_bool stop = true;
    const bp_machine_plan plan = {.stop = &stop};
    cr_assert(eq(
        int, bp_machine_capture(&made.root, &plan, bp_buffer_sink, &made.json, &made.summary, NULL),
        BUGPACK_OK));
    cr_expect(made.summary.is_cut);
    cr_expect(eq(u64, made.summary.thread_count, 0));
}

Test(host_capture, refuses_a_machine_that_is_not_there) {
    made.root.proc_path = "/nowhere/proc";
    const bp_machine_plan plan = {.prober = NULL};
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_expect(
        eq(int,
           bp_machine_capture(&made.root, &plan, bp_buffer_sink, &made.json, &made.summary, &error),
           BUGPACK_ERR_UNSUPPORTED));
    cr_expect(eq(str, error.message, "there is no \"/nowhere/proc\""));
    cr_expect(eq(sz, made.json.size, 0));
}

/* The elements of `threads` in their order, each up to the next. */
static const char *next_thread(const char *json) {
    const char *found = json == NULL ? NULL : strstr(json, "\n      \"tgid\": ");
    return found == NULL ? NULL : found + 1;
}

static void expect_member(const char *thread, const char *key, const char *value) {
    char member[128];
    const char *end = strstr(thread, "\n    }");
    int length = snprintf(member, sizeof member, "\"%s\": %s", key, value);
    const char *found = strstr(thread, member);
    cr_expect(found != NULL && found < end && strchr(",\n", found[length]) != NULL,
              "it lacks %s: %.*s", member, (int)(end - thread), thread);
}

Test(host_capture, replays_a_recorded_machine) {
    FILE *expected = fopen(BUGPACK_FIXTURES "/host/expected.txt", "r");
    cr_assert(expected != NULL);
    made.root.proc_path = BUGPACK_FIXTURES "/host/proc";
    capture();
    char line[512];
    uint64_t count = 0;
    const char *thread = strstr(made.json.data, "\"threads\": [");
    while (fgets(line, sizeof line, expected) != NULL) {
        static const char *const keys[] = {"tgid",
                                           "tid",
                                           NULL,
                                           NULL,
                                           "user_cpu_ns",
                                           "system_cpu_ns",
                                           "start_ticks",
                                           "processor",
                                           NULL,
                                           "voluntary_switches",
                                           "read_chars",
                                           "run_ns",
                                           "exec_runtime_ns",
                                           "rss_kb"};
        char *rest = line;
        thread = next_thread(thread);
        cr_assert(thread != NULL, "only %" PRIu64 " threads", count);
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            char *word = strtok_r(rest, " \n", &rest);
            if (keys[i] != NULL && strcmp(word, "-") != 0) {
                expect_member(thread, keys[i], word);
            } else if (i == 8) {
                char quoted[64];
                (void)snprintf(quoted, sizeof quoted, "\"%s\"", word);
                expect_member(thread, "affinity", quoted);
            }
        }
        count++;
    }
    (void)fclose(expected);
    cr_expect(gt(u64, count, 15));
    cr_expect(eq(u64, made.summary.thread_count, count));
    expect_text("\"name\": \"kthreadd\"");
    expect_text("\"avg300_percent\": ");
}

/* From 100 s to 101 s since boot; the process has threads 7 and 8, of which 8 ends; 9 is born. */
static bp_machine_used_process used_before[] = {
    {.tgid = 7, .start_ticks = 50, .read_ns = 1000, .cpu_ns = 400, .thread_count = 2}};
static bp_machine_used_thread threads_before[] = {{7, 100}, {8, 300}};
static bp_machine_used_process used_after[] = {{.tgid = 7,
                                                .start_ticks = 50,
                                                .read_ns = 3000,
                                                .cpu_ns = 900,
                                                .children_ns = 5,
                                                .thread_count = 2}};
static bp_machine_used_thread threads_after[] = {{7, 300}, {9, 50}};
static const bp_machine_usage before = {.taken_ns = 900,
                                        .boottime_ns = 100 * BP_NS_PER_SEC,
                                        .tick_ns = 10000000,
                                        .processes = used_before,
                                        .threads = threads_before,
                                        .process_count = 1,
                                        .thread_count = 2};
static const bp_machine_usage after = {.taken_ns = 2900,
                                       .boottime_ns = 101 * BP_NS_PER_SEC,
                                       .tick_ns = 10000000,
                                       .processes = used_after,
                                       .threads = threads_after,
                                       .process_count = 1,
                                       .thread_count = 2};

static bp_machine_window window_of(uint64_t tid, uint64_t start_ticks) {
    bp_machine_thread thread = {.tgid = 7,
                                .read = {.tid = tid,
                                         .measured = 1u << BP_GROUP_STAT,
                                         .stat = {.start_ticks = start_ticks}}};
    bp_machine_usage_compare(&before, &after, &thread);
    return thread.window;
}

Test(host_usage, is_that_between_both_ends_and_of_a_process_with_threads_that_ended) {
    bp_machine_window window = window_of(7, 50);
    cr_expect(window.is_known && !window.is_born && window.has_process);
    cr_expect(eq(u64, window.elapsed_ns, 2000));
    cr_expect(eq(u64, window.cpu_ns, 200));
    cr_expect(eq(u64, window.process_ns, 500), "thread 8 too");
    cr_expect(eq(u64, window.children_ns, 5));
}

Test(host_usage, of_a_thread_that_was_born_counts_since_then) {
    bp_machine_window window = window_of(9, 10050);
    cr_expect(window.is_known && window.is_born && !window.has_process);
    cr_expect(eq(u64, window.cpu_ns, 50));
}

Test(host_usage, is_unknown_where_an_end_is_missing) {
    cr_expect(not(window_of(8, 60).is_known), "it has ended, or has its id from another one");
    cr_expect(not(window_of(10, 10200).is_known), "born later");
    cr_expect(not(window_of(9, 60).is_known), "it was there before, and could not be read");
}
