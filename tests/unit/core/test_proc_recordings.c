/*
 * Recorded machines, replayed. What is expected was computed by tests/record-proc.
 */
#include "model/metrics.h"
#include "platform/process_facts.h"
#include "unit/proc_recording.h"
#include "unit/unit.h"

static bp_task_snapshot take(const bp_proc_root *root, pid_t pid, bool with_names) {
    bp_task *task = NULL;
    bp_task_snapshot snapshot = {0};
    cr_assert(eq(int, bp_task_open_below(root, pid, false, &task, &failure), BUGPACK_OK), "%s",
              failure.message);
    cr_expect(eq(int, bp_task_pid(task), pid));
    cr_assert(eq(int, bp_task_snapshot_take(task, with_names, &snapshot, &failure), BUGPACK_OK),
              "%s", failure.message);
    bp_task_close(task);
    return snapshot;
}

static void expect_number(const proc_recording *recording, const char *key, bool is_known,
                          uint64_t value) {
    char expected[64];
    recording_expect(recording, key, expected, sizeof expected);
    cr_expect(eq(int, is_known, strcmp(expected, "-") != 0), "%s: %s", key, expected);
    if (is_known) {
        cr_expect(eq(u64, value, strtoull(expected, NULL, 10)), "%s", key);
    }
}

static void expect_real(const proc_recording *recording, const char *key, double value) {
    char expected[64];
    recording_expect(recording, key, expected, sizeof expected);
    cr_expect(eq(dbl, value, strtod(expected, NULL)), "%s", key);
}

static void expect_thread(const proc_recording *recording, const bp_thread_metrics *thread) {
    char key[40], expected[128], name[2 * sizeof thread->name + 1] = "-";
    (void)snprintf(key, sizeof key, "thread %llu", (unsigned long long)thread->tid);
    recording_expect(recording, key, expected, sizeof expected);
    for (size_t i = 0; thread->name[i] != '\0'; i++) {
        (void)snprintf(name + 2 * i, 3, "%02x", (unsigned)(unsigned char)thread->name[i]);
    }
    char *end;
    double percent = thread->is_born ? 0 : thread->cpu_percent; /* as runtime-metrics.json says */
    cr_expect(eq(dbl, percent, strtod(expected, &end)), "%s", key);
    cr_expect(eq(str, name, end + 1), "%s", key);
}

static size_t count_lines(const char *text, const char *beginning) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, beginning)) != NULL; at++) {
        count++;
    }
    return count;
}

static void expect_metrics(const proc_recording *recording, const bp_metrics *metrics) {
    expect_number(recording, "window_ms", true, metrics->sample_window_ms);
    expect_real(recording, "cpu_percent", metrics->cpu_percent);
    expect_number(recording, "rss_kb", metrics->has_memory, metrics->rss_kb);
    expect_number(recording, "vm_size_kb", metrics->has_memory, metrics->vm_size_kb);
    expect_real(recording, "uptime_secs", metrics->uptime_secs);
    expect_number(recording, "vanished_count", true, metrics->vanished_count);
    cr_assert(eq(sz, metrics->thread_count, count_lines(recording->expected, "\nthread ")));
    for (size_t i = 0; i < metrics->thread_count; i++) {
        expect_thread(recording, &metrics->threads[i]);
        cr_expect(i == 0 || metrics->threads[i - 1].tid < metrics->threads[i].tid);
    }
}

static void expect_facts(const proc_recording *recording) {
    bp_task *task = NULL;
    CLEANUP(bp_process_facts_release) bp_process_facts facts = {0};
    cr_assert(
        eq(int, bp_task_open_below(&recording->second, recording->pid, false, &task, &failure), 0));
    cr_assert(eq(int, bp_process_facts_read(task, &facts, &failure), 0), "%s", failure.message);
    expect_number(recording, "started_wall_ns", facts.started_wall_ns.known,
                  facts.started_wall_ns.value);
    expect_number(recording, "uid", facts.uid.known, facts.uid.value);
    expect_number(recording, "peak_rss_kb", facts.peak_rss_kb.known, facts.peak_rss_kb.value);
    expect_number(recording, "voluntary_switches", facts.voluntary_switches.known,
                  facts.voluntary_switches.value);
    expect_number(recording, "fd_count", facts.fd_count.known, facts.fd_count.value);
    expect_number(recording, "thread_count", facts.thread_count.known, facts.thread_count.value);
    expect_number(recording, "object_count", facts.objects_known, facts.object_count);
    cr_expect(eq(sz, facts.limit_count, 16));
    cr_expect(facts.has_oom && facts.cgroup != NULL);
    cr_expect(eq(str, facts.denied, ""));
    for (size_t i = 1; i < facts.object_count; i++) {
        cr_expect(facts.objects[i - 1].address < facts.objects[i].address);
    }
    bp_task_close(task);
}

static void replay(const char *name) {
    static proc_recording case_of;
    CLEANUP(bp_metrics_release) bp_metrics metrics = {0};
    recording_open(name, &case_of);
    CLEANUP(bp_task_snapshot_release)
    bp_task_snapshot before = take(&case_of.first, case_of.pid, false);
    CLEANUP(bp_task_snapshot_release)
    bp_task_snapshot after = take(&case_of.second, case_of.pid, true);
    cr_assert(eq(int, bp_metrics_compute(&before, &after, &metrics, NULL), BUGPACK_OK));
    expect_metrics(&case_of, &metrics);
    expect_facts(&case_of);
    recording_close(&case_of);
}

Test(recordings, give_what_was_measured_of_each_process) {
    replay("many-threads");
    replay("hostile-names");
    replay("births-and-deaths");
    replay("zombie");
    replay("kernel-thread");
    replay("redis");
    replay("hidepid");
}

Test(recordings, a_hidden_process_is_not_there) {
    static proc_recording case_of;
    recording_open("hidepid", &case_of);
    bp_task *task = NULL;
    cr_expect(eq(int, bp_task_open_below(&case_of.first, 1, false, &task, &failure),
                 BUGPACK_ERR_NO_PROCESS));
    cr_expect(eq(str, failure.message, "no process with id 1"));
    recording_close(&case_of);
}

Test(recordings, names_are_read_only_when_asked_for) {
    static proc_recording case_of;
    recording_open("redis", &case_of);
    CLEANUP(bp_task_snapshot_release)
    bp_task_snapshot snapshot = take(&case_of.first, case_of.pid, false);
    cr_assert(snapshot.thread_count > 1);
    for (size_t i = 0; i < snapshot.thread_count; i++) {
        cr_expect(eq(str, snapshot.threads[i].name, ""));
        cr_expect(snapshot.threads[i].birth > 0);
    }
    recording_close(&case_of);
}

Test(recordings, facts_of_a_daemon_name_its_program_and_arguments) {
    static proc_recording case_of;
    bp_task *task = NULL;
    CLEANUP(bp_process_facts_release) bp_process_facts facts = {0};
    recording_open("redis", &case_of);
    cr_assert(
        eq(int, bp_task_open_below(&case_of.second, case_of.pid, false, &task, NULL), BUGPACK_OK));
    cr_assert(eq(int, bp_process_facts_read(task, &facts, NULL), BUGPACK_OK));
    cr_expect(eq(str, facts.name, "redis-server"));
    cr_assert(facts.executable != NULL && facts.working_directory != NULL);
    cr_expect(strstr(facts.executable, "redis") != NULL);
    cr_expect(eq(str, facts.working_directory, "/"));
    cr_assert(facts.command_line.size > 0);
    cr_expect(strstr(facts.command_line.data, "redis-server") != NULL);
    cr_expect(eq(chr, facts.command_line.data[facts.command_line.size - 1], '\0'));
    cr_expect(eq(str, facts.cgroup, "/"));
    cr_expect(facts.read_chars.known && facts.written_bytes.known && facts.read_calls.value > 0);
    cr_expect(facts.minor_faults.value > 0);
    cr_expect(eq(str, facts.objects[0].path, facts.executable));
    cr_expect(eq(str, facts.objects[0].build_id, ""), "no file is looked for in a recording");
    bp_task_close(task);
    recording_close(&case_of);
}
