/*
 * A process and its descendants, in a /proc that is made up.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "platform/child_watch.h"
#include "unit/proc_recording.h"
#include "unit/unit.h"

static made_proc made;
static bp_task *task;

/* A process of one thread: its own ticks, and those of children that it waited for. */
static void put_in(char state, int pid, int parent, int ticks, int waited, int start) {
    char name[64];
    char path[160];
    char text[256];
    (void)snprintf(path, sizeof path, "%s/%d", made.path, pid);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/%d/task", made.path, pid);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/%d/task/%d", made.path, pid, pid);
    (void)mkdir(path, 0700);
    (void)snprintf(text, sizeof text,
                   "%d (p%d) %c %d 7 7 0 -1 0 0 0 0 0 %d 0 %d 0 20 0 1 0 %d 4096 1 \n", pid, pid,
                   state, parent, ticks, waited, start);
    (void)snprintf(name, sizeof name, "%d/stat", pid);
    made_proc_write(&made, name, text);
    (void)snprintf(name, sizeof name, "%d/task/%d/stat", pid, pid);
    made_proc_write(&made, name, text);
    (void)snprintf(name, sizeof name, "%d/status", pid);
    (void)snprintf(text, sizeof text, "Name:\tp\nTgid:\t%d\nPid:\t%d\n", pid, pid);
    made_proc_write(&made, name, text);
    (void)snprintf(name, sizeof name, "%d/statm", pid);
    made_proc_write(&made, name, "100 25 1 1 0 1 0\n");
}

static void put(int pid, int parent, int ticks, int waited, int start) {
    put_in('S', pid, parent, ticks, waited, start);
}

static void put_children(int pid, const char *children) {
    char name[64];
    (void)snprintf(name, sizeof name, "%d/task/%d/children", pid, pid);
    made_proc_write(&made, name, children);
}

static void end(int pid) {
    static const char *const files[] = {"stat", "statm", "status"};
    char name[64];
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "%d/%s", pid, files[i]);
        made_proc_remove(&made, name);
    }
}

static void set_up(void) {
    made_proc_init(&made);
    put(7, 1, 50, 0, 1000);
    put(8, 7, 20, 0, 1001);
    put(9, 8, 10, 0, 1002);
    put_children(7, "8 ");
    put_children(8, "9 ");
    put_children(9, "");
    cr_assert(eq(int, bp_task_open_below(&made.root, 7, true, &task, NULL), BUGPACK_OK));
}

static void tear_down(void) {
    bp_task_close(task);
    made_proc_release(&made);
}

TestSuite(task_tree, .init = set_up, .fini = tear_down);

static bp_task_snapshot take(bp_task *of) {
    bp_task_snapshot snapshot = {0};
    cr_assert(eq(int, bp_task_snapshot_take(of, true, &snapshot, &failure), BUGPACK_OK), "%s",
              failure.message);
    return snapshot;
}

static uint64_t cpu_now(void) {
    bp_task_snapshot snapshot = take(task);
    uint64_t cpu = snapshot.process_cpu;
    bp_task_snapshot_release(&snapshot);
    return cpu;
}

Test(task_tree, adds_up_time_memory_and_threads_of_all_generations) {
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot snapshot = take(task);
    cr_expect(eq(u64, snapshot.process_cpu, 80));
    cr_expect(eq(u64, snapshot.rss_bytes, 3 * 102400));
    cr_assert(eq(sz, snapshot.thread_count, 3));
    cr_expect(eq(u64, snapshot.threads[2].tid, 9));
    cr_expect(eq(str, snapshot.threads[2].name, "p9"));
}

Test(task_tree, time_of_a_child_that_was_waited_for_stays) {
    cr_assert(eq(u64, cpu_now(), 80));
    end(9);
    put(8, 7, 20, 12, 1001);
    put_children(8, "");
    cr_expect(eq(u64, cpu_now(), 82));
}

Test(task_tree, a_child_that_was_waited_for_late_counts_once) {
    cr_assert(eq(u64, cpu_now(), 80));
    put_in('Z', 9, 8, 12, 0, 1002);
    cr_expect(eq(u64, cpu_now(), 82));
    bp_task_snapshot snapshot = take(task);
    cr_expect(eq(sz, snapshot.thread_count, 2)); /* a zombie has no threads */
    bp_task_snapshot_release(&snapshot);
    end(9);
    put(8, 7, 20, 12, 1001);
    put_children(8, "");
    cr_expect(eq(u64, cpu_now(), 82));
}

Test(task_tree, a_child_that_cannot_be_read_for_a_while_counts_once) {
    cr_assert(eq(u64, cpu_now(), 80));
    made_proc_write(&made, "9/stat", "garbage");
    cr_expect(eq(u64, cpu_now(), 80));
    put(9, 8, 10, 0, 1002);
    cr_expect(eq(u64, cpu_now(), 80));
}

Test(task_tree, a_child_that_is_reaped_after_its_parent_was_read_counts_once) {
    cr_assert(eq(u64, cpu_now(), 80));
    end(9); /* and its parent's file is as it was read just before */
    cr_expect(eq(u64, cpu_now(), 80));
    put(8, 7, 20, 10, 1001);
    put_children(8, "");
    cr_expect(eq(u64, cpu_now(), 80));
    cr_expect(eq(u64, cpu_now(), 80));
}

Test(task_tree, time_of_a_child_that_nobody_waited_for_stays) {
    cr_assert(eq(u64, cpu_now(), 80));
    end(9);
    put(8, 7, 25, 0, 1001);
    put_children(8, "");
    cr_expect(eq(u64, cpu_now(), 85));
    cr_expect(eq(u64, cpu_now(), 85));
}

Test(task_tree, a_child_whose_parent_ended_still_belongs_to_it) {
    cr_assert(eq(u64, cpu_now(), 80));
    end(8);
    put(7, 1, 50, 20, 1000);
    put_children(7, "");
    put(9, 1, 15, 0, 1002);
    cr_expect(eq(u64, cpu_now(), 85));
}

Test(task_tree, a_reused_id_is_a_stranger) {
    cr_assert(eq(u64, cpu_now(), 80));
    put_children(8, "");
    put(9, 1, 5000, 0, 2000);
    cr_expect(eq(u64, cpu_now(), 80));
}

Test(task_tree, without_children_files_parents_are_looked_for) {
    for (int pid = 7; pid <= 9; pid++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%d/task/%d/children", pid, pid);
        made_proc_remove(&made, name);
    }
    cr_expect(eq(u64, cpu_now(), 80));
}

Test(task_tree, a_children_file_that_is_garbage_adds_nobody) {
    put_children(7, "8 x 99999999999999999999 0 7 -3");
    cr_expect(eq(u64, cpu_now(), 80));
}

Test(task_tree, a_clone_remembers_what_was_lost) {
    cr_assert(eq(u64, cpu_now(), 80));
    bp_task *clone = NULL;
    cr_assert(eq(int, bp_task_clone(task, &clone, NULL), BUGPACK_OK));
    end(9);
    put_children(8, "");
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot snapshot = take(clone);
    cr_expect(eq(u64, snapshot.process_cpu, 80));
    bp_task_close(clone);
}

Test(task_tree, the_first_process_is_the_tree) {
    end(7);
    bp_task_snapshot snapshot = {0};
    cr_expect(eq(int, bp_task_snapshot_take(task, true, &snapshot, NULL), BUGPACK_ERR_NO_PROCESS));
}

Test(task_tree, counts_a_descendant_that_runs_and_cannot_be_read) {
    bp_task_snapshot snapshot = take(task);
    cr_expect(eq(sz, snapshot.unread_count, 0));
    bp_task_snapshot_release(&snapshot);
    made_proc_write(&made, "9/statm", "no numbers\n");
    snapshot = take(task);
    cr_expect(eq(sz, snapshot.unread_count, 1));
    cr_expect(eq(u64, snapshot.process_cpu, 80), "the time that it had is kept");
    bp_task_snapshot_release(&snapshot);
    made_proc_write(&made, "8/stat", "8 (no numbers\n");
    snapshot = take(task);
    cr_expect(eq(sz, snapshot.unread_count, 2));
    bp_task_snapshot_release(&snapshot);
    end(8);
    end(9);
    snapshot = take(task);
    cr_expect(eq(sz, snapshot.unread_count, 0), "those that ended are not counted");
    bp_task_snapshot_release(&snapshot);
}

/* A child of 7 that began so many ticks after the watch, and what it executes. */
static void put_child(int pid, const char *line, int ticks) {
    char name[64];
    put(pid, 7, 0, 0, (int)(made.root.boottime_ns / 10000000) + ticks);
    (void)snprintf(name, sizeof name, "%d/cmdline", pid);
    made_proc_write(&made, name, line);
    (void)snprintf(name, sizeof name, "%d/cwd", pid);
    (void)symlinkat("/", made.root.fd, name); /* it may be there */
}

Test(task_tree, children_that_end_are_grouped_by_what_they_executed) {
    bp_task *single;
    put_child(7, "supervisor", -1000);
    cr_assert(eq(int, bp_task_open_below(&made.root, 7, false, &single, NULL), BUGPACK_OK));
    bp_child_watch *watch = bp_child_watch_new(single);
    put_child(8, "old", -1);
    put_child(9, "supervisor", 1);
    put_children(7, "8 9 ");
    cr_expect(not(bp_child_watch_look(NULL)));
    (void)bp_child_watch_look(watch);
    put_child(9, "server", 1); /* it has executed */
    put_child(10, "supervisor", 1);
    put_children(7, "8 9 10 ");
    (void)bp_child_watch_look(watch);
    made_proc_write(&made, "7/stat",
                    "7 (p7) S 1 7 7 0 -1 0 0 300 0 0 0 0 0 0 20 0 1 0 5000 4096 1 \n");
    put_child(11, "server", 2);
    put_children(7, "8 10 11 ");
    end(9);
    made_proc_write(
        &made, "10/stat",
        "10 (p10) Z 7 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 6001 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
        "0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 768 \n");
    (void)bp_child_watch_look(watch);
    bp_children seen = bp_child_watch_result(watch);
    cr_expect(eq(u64, seen.look_count, 3));
    cr_expect(eq(u64, seen.first_count, 2));
    cr_expect(eq(u64, seen.last_count, 3));
    cr_expect(eq(u64, seen.ended_count, 1));
    cr_expect(eq(sz, seen.command_count, 1)); /* 10 may have been one of them */
    cr_expect(eq(str, seen.commands[0].name, "p9"));
    cr_expect(eq(u64, seen.commands[0].count, 2));
    cr_expect(eq(u64, seen.commands[0].failed_count, 0));
    bp_child_watch_free(watch);
    bp_task_close(single);
}

Test(task_tree, children_that_executed_nothing_are_counted_and_those_that_did_unseen_are_not) {
    static const char *const names[] = {"p9", "false"};
    bp_task *single;
    put_child(7, "supervisor", -1000);
    cr_assert(eq(int, bp_task_open_below(&made.root, 7, false, &single, NULL), BUGPACK_OK));
    bp_child_watch *watch = bp_child_watch_new(single);
    put_child(9, "supervisor", 1);
    put_child(10, "supervisor", 1);
    put_children(7, "9 10 ");
    (void)bp_child_watch_look(watch);
    for (int i = 0; i < 2; i++) {
        char name[16], text[160];
        (void)snprintf(name, sizeof name, "%d/stat", 9 + i);
        (void)snprintf(text, sizeof text,
                       "%d (%s) Z 7 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0 0 0 0 0 0 0 0 0 0 0 "
                       "0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 768 \n",
                       9 + i, names[i], (int)(made.root.boottime_ns / 10000000) + 1);
        made_proc_write(&made, name, text);
    }
    (void)bp_child_watch_look(watch);
    bp_children seen = bp_child_watch_result(watch);
    cr_expect(eq(sz, seen.command_count, 1));
    cr_expect(seen.commands[0].is_own);
    cr_expect(eq(u64, seen.commands[0].count, 1));
    cr_expect(eq(u64, seen.commands[0].failed_count, 1));
    cr_expect(eq(int, seen.commands[0].status, 768));
    end(9);
    end(10);
    put_child(11, "supervisor", 1);
    put_child(12, "server", 1);
    put_children(7, "11 12 ");
    (void)bp_child_watch_look(watch);
    seen = bp_child_watch_result(watch);
    cr_expect(eq(sz, seen.command_count, 1));
    cr_expect(eq(str, seen.commands[0].name, "p12"));
    bp_child_watch_free(watch);
    bp_task_close(single);
}
