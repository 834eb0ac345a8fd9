/*
 * What /proc does not say often, made up: broken files, ends, reused ids.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "platform/linux/proc_list.h"
#include "platform/process_facts.h"
#include "unit/proc_recording.h"
#include "unit/unit.h"

#define ENDED "process 7 has ended"

static made_proc made;
static bp_task *task;

static void set_up(void) {
    made_proc_init(&made);
    cr_assert(eq(int, bp_task_open_below(&made.root, 7, false, &task, NULL), BUGPACK_OK));
}

static void tear_down(void) {
    bp_task_close(task);
    made_proc_release(&made);
}

TestSuite(task_made, .init = set_up, .fini = tear_down);

/* Takes a snapshot that fails, and makes sure that nothing was written but the error. */
static bugpack_error expect_failure(bugpack_status expected) {
    bp_task_snapshot untouched, snapshot;
    memset(&untouched, 0x5a, sizeof untouched);
    snapshot = untouched;
    failure = (bugpack_error)BUGPACK_ERROR_INIT;
    cr_expect(eq(int, bp_task_snapshot_take(task, true, &snapshot, &failure), expected), "%s",
              failure.message);
    cr_expect(memcmp(&snapshot, &untouched, sizeof snapshot) == 0);
    return failure;
}

static bp_task_snapshot expect_snapshot(void) {
    bp_task_snapshot snapshot = {0};
    cr_assert(eq(int, bp_task_snapshot_take(task, true, &snapshot, &failure), BUGPACK_OK), "%s",
              failure.message);
    return snapshot;
}

static bp_process_facts read_facts(void) {
    bp_process_facts facts = {0};
    cr_assert(eq(int, bp_process_facts_read(task, &facts, NULL), BUGPACK_OK));
    return facts;
}

Test(task_made, counters_keep_the_unit_of_the_system) {
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot snapshot = expect_snapshot();
    cr_expect(eq(u64, snapshot.taken_ns, 5000000000));
    cr_expect(eq(u64, snapshot.cpu_unit_ns, 10000000));
    cr_expect(eq(u64, snapshot.process_cpu, 50));
    cr_expect(eq(u64, snapshot.uptime_ns, 50000000000));
    cr_expect(eq(u64, snapshot.vm_size_bytes, 409600));
    cr_expect(eq(u64, snapshot.rss_bytes, 102400));
    cr_assert(eq(sz, snapshot.thread_count, 1));
    cr_expect(eq(u64, snapshot.threads[0].birth, 1000));
    cr_expect(eq(str, snapshot.threads[0].name, "made"));
}

Test(task_made, the_first_counter_has_the_time_of_children_that_were_waited_for) {
    made_proc_write(&made, "7/stat",
                    "7 (made) S 1 7 7 0 -1 0 0 0 0 0 50 3 7 2 20 0 1 0 1000 4096 1\n");
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot snapshot = expect_snapshot();
    cr_expect(eq(u64, snapshot.process_cpu, 53));
    cr_expect(eq(u64, snapshot.waited_cpu, 9));
    cr_expect(eq(u64, snapshot.first_cpu, 62));
}

Test(task_made, rejects_broken_files_and_ends_and_leaves_output_alone) {
    static const struct {
        const char *what, *file, *text; /* NULL: removed */
        bugpack_status status;
        const char *message;
    } rows[] = {
        {"a reused id", "7/stat", MADE_STAT("S", "50", "1001"), BUGPACK_ERR_NO_PROCESS, ENDED},
        {"a zombie", "7/stat", MADE_STAT("Z", "50", "1000"), BUGPACK_ERR_NO_PROCESS, ENDED},
        {"an end", "7/stat", NULL, BUGPACK_ERR_NO_PROCESS, ENDED},
        {"a cut stat", "7/stat", "7 (made) S 1 7 7 0 -1 0 0", BUGPACK_ERR_IO,
         "cannot make sense of stat of process 7"},
        {"an empty stat of a thread", "7/task/7/stat", "", BUGPACK_ERR_IO,
         "cannot read thread 7 of process 7: Bad message"},
        {"garbage in statm", "7/statm", "garbage\n", BUGPACK_ERR_IO,
         "cannot make sense of statm of process 7"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tear_down();
        set_up();
        if (rows[i].text == NULL) {
            made_proc_remove(&made, rows[i].file);
        } else {
            made_proc_write(&made, rows[i].file, rows[i].text);
        }
        bugpack_error error = expect_failure(rows[i].status);
        cr_expect(eq(ptr, strstr(error.message, rows[i].message), error.message), "%s: %s",
                  rows[i].what, error.message);
    }
}

Test(task_made, a_reused_process_id_has_no_facts) {
    bp_process_facts facts = {.pid = 42};
    made_proc_write(&made, "7/stat", MADE_STAT("S", "50", "1001"));
    cr_expect(eq(int, bp_process_facts_read(task, &facts, NULL), BUGPACK_ERR_NO_PROCESS));
    cr_expect(eq(int, facts.pid, 42));
}

Test(task_made, huge_memory_saturates) {
    made_proc_write(&made, "7/statm", "18446744073709551615 9223372036854775808 5\n");
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot snapshot = expect_snapshot();
    cr_expect(eq(u64, snapshot.vm_size_bytes, UINT64_MAX));
    cr_expect(eq(u64, snapshot.rss_bytes, UINT64_MAX));
}

Test(task_made, memory_of_no_pages_is_no_memory) {
    made_proc_write(&made, "7/statm", "0 0 0 0 0 0 0\n");
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot snapshot = expect_snapshot();
    cr_expect(not(snapshot.has_memory));
}

Test(task_made, a_thread_that_is_listed_and_gone_is_counted) {
    cr_assert(mkdirat(made.root.fd, "7/task/8", 0700) == 0);
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot snapshot = expect_snapshot();
    cr_assert(eq(sz, snapshot.thread_count, 1));
    cr_expect(eq(u64, snapshot.threads[0].tid, 7));
    cr_expect(eq(sz, snapshot.vanished_count, 1));
}

Test(task_made, entries_that_are_no_threads_are_passed_over) {
    cr_assert(mkdirat(made.root.fd, "7/task/8x", 0700) == 0);
    cr_assert(mkdirat(made.root.fd, "7/task/99999999999999999999", 0700) == 0);
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot snapshot = expect_snapshot();
    cr_expect(eq(sz, snapshot.thread_count, 1));
    cr_expect(eq(sz, snapshot.vanished_count, 0));
}

Test(task_made, a_clone_outlives_what_it_was_made_of_and_lists_for_itself) {
    bp_task *clone = NULL;
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot first = {0}, second = {0};
    cr_assert(eq(int, bp_task_clone(task, &clone, NULL), BUGPACK_OK));
    bp_task_close(task);
    task = clone;
    cr_expect(eq(int, bp_task_pid(clone), 7));
    char name[64];
    bp_task_name(clone, name, sizeof name);
    cr_expect(eq(str, name, "made"));
    first = expect_snapshot();
    second = expect_snapshot();
    cr_expect(eq(sz, first.thread_count, 1));
    cr_expect(eq(sz, second.thread_count, 1));
}

Test(task_made, a_clone_of_what_has_ended_is_refused_and_leaves_output_alone) {
    bp_task *untouched = task;
    bp_task *clone = untouched;
    cr_assert(renameat(made.root.fd, "7/task", made.root.fd, "7/gone") == 0);
    cr_expect(eq(int, bp_task_clone(task, &clone, &failure), BUGPACK_ERR_NO_PROCESS));
    cr_expect(eq(str, failure.message, "process 7 has ended"));
    cr_expect(eq(ptr, clone, untouched));
    cr_assert(renameat(made.root.fd, "7/gone", made.root.fd, "7/task") == 0);
}

static void expect_no_open(pid_t pid, bugpack_status expected, const char *message) {
    failure = (bugpack_error)BUGPACK_ERROR_INIT;
    bp_task *untouched = task;
    bp_task *other = untouched;
    cr_expect(eq(int, bp_task_open_below(&made.root, pid, false, &other, &failure), expected));
    cr_expect(eq(ptr, other, untouched));
    cr_expect(eq(str, failure.message, message));
}

Test(task_made, opening_says_which_process_is_not_there) {
    expect_no_open(8, BUGPACK_ERR_NO_PROCESS, "no process with id 8");
    char own[64]; /* 0 is our own, which this /proc does not have */
    (void)snprintf(own, sizeof own, "no process with id %d", (int)getpid());
    expect_no_open(0, BUGPACK_ERR_NO_PROCESS, own);
    expect_no_open(-1, BUGPACK_ERR_NO_PROCESS, "no process with id -1");
}

Test(task_made, opening_a_thread_names_its_process) {
    made_proc_write(&made, "7/status", "Name:\tmade\nTgid:\t5\nPid:\t7\n");
    expect_no_open(7, BUGPACK_ERR_NO_PROCESS, "7 is not a process but a thread of process 5");
}

Test(task_made, opening_rejects_garbage_and_missing_files) {
    made_proc_write(&made, "7/stat", "garbage");
    expect_no_open(7, BUGPACK_ERR_IO, "cannot make sense of stat of process 7");
    made_proc_write(&made, "7/stat", MADE_STAT("S", "50", "1000"));
    made_proc_remove(&made, "7/status");
    expect_no_open(7, BUGPACK_ERR_NO_PROCESS, "process 7 has ended");
}

Test(task_made, facts_without_files_are_absent_and_not_zero) {
    CLEANUP(bp_process_facts_release) bp_process_facts facts = read_facts();
    cr_expect(eq(str, facts.name, "made"));
    cr_expect(eq(u64, facts.started_wall_ns.value, 1700000000000000000 - 50000000000));
    cr_expect(not(facts.uid.known || facts.fd_count.known || facts.read_bytes.known));
    cr_expect(not(facts.voluntary_switches.known || facts.has_oom || facts.objects_known));
    cr_expect(facts.executable == NULL && facts.cgroup == NULL);
    cr_expect(eq(sz, facts.limit_count, 0));
    cr_expect(eq(str, facts.denied, ""), "a file that is not there is not denied");
}

Test(task_made, owners_are_those_that_count_for_access) {
    made_proc_write(&made, "7/status", "Tgid:\t7\nPid:\t7\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n");
    CLEANUP(bp_process_facts_release) bp_process_facts facts = read_facts();
    cr_expect(eq(u64, facts.uid.value, 2));
    cr_expect(eq(u64, facts.gid.value, 6));
}

Test(task_made, a_command_line_over_its_bound_is_cut_and_named) {
    const size_t bound = (size_t)1024 * 1024;
    char *text = malloc(bound + 2);
    cr_assert(text != NULL);
    memset(text, 'a', bound + 1);
    text[bound + 1] = '\0';
    made_proc_write(&made, "7/cmdline", text);
    free(text);
    CLEANUP(bp_process_facts_release) bp_process_facts facts = read_facts();
    cr_assert(eq(sz, facts.command_line.size, bound));
    cr_expect(eq(chr, facts.command_line.data[bound - 1], '\0'));
    cr_expect(eq(str, facts.denied, "the rest of the command line: over the limit of 1 MiB"));
}

Test(task_made, objects_are_files_with_code_at_the_lowest_address_of_each_mapping) {
    made_proc_write(&made, "7/maps",
                    "1000-2000 r--p 00000000 fe:00 20 /bin/program\n"
                    "2000-3000 r-xp 00001000 fe:00 20 /bin/program\n"
                    "3000-4000 r--p 00000000 fe:00 30 /lib/a\\012b.so (deleted)\n"
                    "4000-5000 r-xp 00001000 fe:00 30 /lib/a\\012b.so (deleted)\n"
                    "5000-6000 r--p 00000000 fe:00 40 /usr/share/data\n"
                    "6000-7000 r-xp 00000000 00:00 0 [vdso]\n"
                    "7000-8000 rwxp 00000000 00:00 0\n"
                    "broken line\n"
                    "8000-9000 r-xp 00000000 fe:00 50 /lib/last\n"
                    "10000000-10001000 r--p 00000000 fe:00 20 /bin/program\n"
                    "20000000-20001000 r-xp 00001000 fe:00 20 /bin/program");
    CLEANUP(bp_process_facts_release) bp_process_facts facts = read_facts();
    cr_assert(eq(sz, facts.object_count, 4));
    cr_expect(eq(str, facts.objects[0].path, "/bin/program"));
    cr_expect(eq(u64, facts.objects[0].address, 0x1000));
    cr_expect(eq(str, facts.objects[3].path, "/bin/program"));
    cr_expect(eq(u64, facts.objects[3].address, 0x20000000));
    cr_expect(not(facts.objects[0].deleted));
    cr_expect(eq(str, facts.objects[1].path, "/lib/a\nb.so"));
    cr_expect(eq(u64, facts.objects[1].address, 0x3000));
    cr_expect(facts.objects[1].deleted);
}

Test(task_made, a_command_line_without_its_last_nul_gets_one) {
    made_proc_write(&made, "7/cmdline", "title: idle");
    CLEANUP(bp_process_facts_release) bp_process_facts facts = read_facts();
    cr_assert(eq(sz, facts.command_line.size, 12));
    cr_expect(memcmp(facts.command_line.data, "title: idle", 12) == 0);
}

/* The first thread has ended, and another one goes on. */
static const char first_ended[] =
    "7 (made) Z 1 7 7 0 -1 0 0 0 0 0 50 0 0 0 20 0 2 0 1000 4096 1 \n";

static void end_first_thread(void) {
    made_proc_write(&made, "7/stat", first_ended);
    made_proc_write(&made, "7/task/7/stat", first_ended);
    made_proc_write(&made, "7/statm", "0 0 0 0 0 0 0\n");
    cr_assert(mkdirat(made.root.fd, "7/task/8", 0700) == 0);
}

Test(task_made, when_the_first_thread_has_ended_another_shows_the_memory) {
    end_first_thread();
    made_proc_write(&made, "7/task/8/stat",
                    "8 (other) S 1 7 7 0 -1 0 0 0 0 0 5 0 0 0 20 0 2 0 1001 4096 1 \n");
    made_proc_write(&made, "7/task/8/statm", "100 25 5 1 0 7 0\n");
    bp_task_snapshot snapshot = expect_snapshot();
    cr_expect(eq(sz, snapshot.thread_count, 2));
    cr_expect(eq(u64, snapshot.rss_bytes, 102400));
    bp_task_snapshot_release(&snapshot);
    made_proc_remove(&made, "7/task/8/statm");
    cr_assert(mkdirat(made.root.fd, "7/task/8/statm", 0700) == 0);
    bugpack_error error = expect_failure(BUGPACK_ERR_IO);
    cr_expect(eq(str, error.message, "cannot read statm of process 7: Is a directory"));
}

Test(task_made, facts_say_why_no_living_thread_could_be_opened) {
    end_first_thread();
    cr_assert(mkdirat(made.root.fd, "7/task/8/stat", 0700) == 0);
    CLEANUP(bp_process_facts_release) bp_process_facts facts = read_facts();
    cr_expect(eq(str, facts.denied,
                 "executable, working directory, open files, loaded objects: Is a directory"));
}

static void expect_living(int threads_fd, int expected_errno) {
    pid_t tid = 42;
    errno = 0;
    cr_expect(eq(int, bp_proc_open_living_thread(threads_fd, &tid), -1));
    cr_expect(eq(int, errno, expected_errno));
    cr_expect(eq(int, tid, 42));
}

Test(task_made, that_no_thread_lives_is_not_that_none_could_be_read) {
    pid_t tid = 0;
    CLEANUP(close_fd)
    int threads_fd = openat(made.root.fd, "7/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(close_fd)
    int unlisted_fd = openat(made.root.fd, "7/task", O_PATH | O_DIRECTORY | O_CLOEXEC);
    expect_living(unlisted_fd, EBADF);
    made_proc_write(&made, "7/task/7/stat", first_ended);
    expect_living(threads_fd, ESRCH);
    cr_assert(mkdirat(made.root.fd, "7/task/8", 0700) == 0);
    expect_living(threads_fd, ESRCH); /* it is gone before it is read */
    made_proc_write(&made, "7/task/8/stat", "garbage");
    expect_living(threads_fd, EBADMSG);
    made_proc_write(&made, "7/task/8/stat", MADE_STAT("S", "50", "1000"));
    CLEANUP(close_fd) int fd = bp_proc_open_living_thread(threads_fd, &tid);
    cr_expect(fd >= 0);
    cr_expect(eq(int, tid, 8));
}

Test(task_made, a_list_is_sorted) {
    CLEANUP(bp_proc_list_release) bp_proc_list list;
    static const char *const names[] = {"7/task/30", "7/task/9", "7/task/200", "7/task/x"};
    cr_expect(eq(int, bp_proc_list_read(made.root.fd, "8/task", &list), ENOENT));
    bp_proc_list_sort(&list);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        cr_assert(mkdirat(made.root.fd, names[i], 0700) == 0);
    }
    cr_assert(eq(int, bp_proc_list_read(made.root.fd, "7/task", &list), 0));
    bp_proc_list_sort(&list);
    cr_assert(eq(sz, list.count, 4));
    cr_expect(eq(u64, list.items[0].id, 7));
    cr_expect(eq(u64, list.items[3].id, 200));
}
