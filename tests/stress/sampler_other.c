/*
 * The sampler on other processes: alive, killed, and replaced by exec.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/linux/process_private.h"
#include "platform/process_facts.h"
#include "stress/sampler_check.h"
#include "stress/sampler_child.h"

static const bp_thread_metrics *find_thread(const bp_metrics *metrics, const char *name) {
    for (size_t i = 0; i < metrics->thread_count; i++) {
        if (strcmp(metrics->threads[i].name, name) == 0) {
            return &metrics->threads[i];
        }
    }
    CHECK(false && "a thread is missing");
    return NULL;
}

static void a_child_is_sampled_with_all_its_threads(void) {
    pid_t pid = start_child();
    bp_sampler *sampler = NULL;
    bp_metrics metrics;
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK_STATUS(bp_sampler_open(pid, false, &sampler, &error), BUGPACK_OK, error);
    CHECK(bp_task_pid(bp_sampler_task(sampler)) == pid);
    CHECK_STATUS(bp_sampler_begin(sampler, &error), BUGPACK_OK, error);
    CHECK_STATUS(bp_sampler_end(sampler, &metrics, &error), BUGPACK_OK, error);
    check_sane(&metrics);
    /* ThreadSanitizer adds a thread of its own. */
    CHECK(metrics.thread_count >= 4);
    (void)find_thread(&metrics, "b) S 1");
    (void)find_thread(&metrics, "c\n");
    pid_t thread = (pid_t)find_thread(&metrics, "\xff")->tid;
    bp_metrics_release(&metrics);
    bp_sampler_close(sampler);
    CHECK(bp_sampler_open(thread, false, &sampler, &error) == BUGPACK_ERR_NO_PROCESS);
    CHECK(strstr(error.message, "is not a process but a thread of process") != NULL);
    kill_child(pid, true);
    CHECK(bp_sampler_open(pid, false, &sampler, &error) == BUGPACK_ERR_NO_PROCESS);
    CHECK(strstr(error.message, "no process with id") != NULL);
}

/* Without a sample in between, only what is left of an unreaped process is known. */
static void a_child_killed_inside_the_window_leaves_the_part_that_passed(bool is_kept, bool reap) {
    pid_t pid = start_child();
    bp_sampler *sampler = NULL;
    bp_metrics metrics = {.sample_window_ms = 42};
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK(bp_sampler_open(pid, false, &sampler, NULL) == BUGPACK_OK);
    CHECK(bp_sampler_begin(sampler, NULL) == BUGPACK_OK);
    CHECK(!is_kept || bp_sampler_keep(sampler, NULL) == BUGPACK_OK);
    kill_child(pid, reap);
    CHECK(bp_sampler_keep(sampler, NULL) == BUGPACK_ERR_NO_PROCESS);
    bugpack_status status = bp_sampler_end(sampler, &metrics, &error);
    CHECK(error.status == BUGPACK_ERR_NO_PROCESS && strstr(error.message, "has ended") != NULL);
    if (is_kept || !reap) {
        CHECK(status == BUGPACK_OK && metrics.thread_count >= 1);
        CHECK(metrics.has_memory == reap); /* a zombie has none */
        bp_metrics_release(&metrics);
    } else {
        CHECK(status == BUGPACK_ERR_NO_PROCESS && metrics.sample_window_ms == 42);
    }
    bp_sampler_close(sampler);
    CHECK(reap || waitpid(pid, NULL, 0) == pid);
}

/* main may end with pthread_exit, and the process goes on in its other threads. */
static void a_process_without_its_first_thread_still_has_memory_and_files(void) {
    pid_t pid = start_child_without_main();
    bp_task *task = NULL;
    bp_task_snapshot snapshot;
    bp_process_facts facts = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_proc_stat stat = {0};
    CHECK_STATUS(bp_task_open(pid, false, &task, &error), BUGPACK_OK, error);
    while (stat.state != 'Z') {
        CHECK_STATUS(bp_process_read_stat(task, &stat, &error), BUGPACK_OK, error);
    }
    CHECK_STATUS(bp_task_snapshot_take(task, true, &snapshot, &error), BUGPACK_OK, error);
    CHECK(snapshot.has_memory && snapshot.rss_bytes > 0);
    CHECK(snapshot.vm_size_bytes >= snapshot.rss_bytes);
    bp_task_snapshot_release(&snapshot);
    CHECK_STATUS(bp_process_facts_read(task, &facts, &error), BUGPACK_OK, error);
    CHECK(facts.state == 'Z' && facts.denied[0] == '\0');
    CHECK(facts.executable != NULL && facts.working_directory != NULL);
    CHECK(facts.command_line.size > 0 && facts.fd_count.known && facts.peak_rss_kb.known);
    CHECK(facts.objects_known && facts.object_count > 0);
    bp_process_facts_release(&facts);
    bp_task_close(task);
    kill_child(pid, true);
}

/* The same process goes on under another program: its id and its start stay. */
static void exec_inside_the_window_is_no_end(void) {
    int go[2];
    char byte = 0;
    bp_sampler *sampler = NULL;
    bp_metrics metrics;
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK(pipe2(go, O_CLOEXEC) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        (void)!read(go[0], &byte, 1);
        (void)execl("/bin/sleep", "sleep", "1000", (char *)NULL);
        _exit(127);
    }
    CHECK(bp_sampler_open(pid, false, &sampler, NULL) == BUGPACK_OK);
    CHECK(bp_sampler_begin(sampler, NULL) == BUGPACK_OK);
    CHECK(write(go[1], &byte, 1) == 1);
    do {
        CHECK(bp_sampler_begin(sampler, NULL) == BUGPACK_OK);
        CHECK_STATUS(bp_sampler_end(sampler, &metrics, &error), BUGPACK_OK, error);
        CHECK(metrics.thread_count >= 1);
        byte = strcmp(metrics.threads[0].name, "sleep") == 0;
        bp_metrics_release(&metrics);
    } while (byte == 0);
    bp_sampler_close(sampler);
    kill_child(pid, true);
}

int main(void) {
    a_child_is_sampled_with_all_its_threads();
    a_child_killed_inside_the_window_leaves_the_part_that_passed(true, true);
    a_child_killed_inside_the_window_leaves_the_part_that_passed(true, false);
    a_child_killed_inside_the_window_leaves_the_part_that_passed(false, true);
    a_child_killed_inside_the_window_leaves_the_part_that_passed(false, false);
    a_process_without_its_first_thread_still_has_memory_and_files();
    exec_inside_the_window_is_no_end();
    return 0;
}
