/*
 * The sampler where /proc is hidden, or of another pid namespace. Needs the right to
 * mount.
 */
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/process_facts.h"
#include "stress/sampler_check.h"

/* Runs a check in a child with mounts of its own. */
static void run_apart(void (*check)(void)) {
    int status = 0;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK(unshare(CLONE_NEWNS) == 0);
        CHECK(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
        check();
        /* Not exit: LeakSanitizer looks for its threads under /proc. */
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void check_own(void) {
    bp_sampler *sampler = NULL;
    bp_metrics metrics;
    bp_process_facts facts = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK_STATUS(bp_sampler_open(0, false, &sampler, &error), BUGPACK_OK, error);
    CHECK(bp_task_pid(bp_sampler_task(sampler)) == getpid());
    CHECK_STATUS(bp_sampler_begin(sampler, &error), BUGPACK_OK, error);
    CHECK_STATUS(bp_sampler_end(sampler, &metrics, &error), BUGPACK_OK, error);
    check_sane(&metrics);
    bp_metrics_release(&metrics);
    CHECK_STATUS(bp_process_facts_read(bp_sampler_task(sampler), &facts, &error), BUGPACK_OK,
                 error);
    CHECK(facts.pid == getpid() && facts.object_count > 0);
    bp_process_facts_release(&facts);
    bp_sampler_close(sampler);
}

static void a_hidden_process_is_denied_and_not_absent(void) {
    bp_sampler *sampler = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    pid_t root_process = getppid();
    CHECK(mount("proc", "/proc", "proc", 0, "hidepid=2") == 0);
    CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    check_own();
    CHECK_STATUS(bp_sampler_open(root_process, false, &sampler, &error), BUGPACK_ERR_DENIED, error);
    CHECK(strstr(error.message, "exists, but /proc hides it") != NULL);
    CHECK_STATUS(bp_sampler_open(0x7ffffffe, false, &sampler, &error), BUGPACK_ERR_NO_PROCESS,
                 error);
}

/* Here process 1 is this one for system calls, and the machine's first one for /proc. */
static void another_namespaces_proc_still_shows_us_and_no_stranger(void) {
    int status = 0;
    CHECK(unshare(CLONE_NEWPID) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        bp_sampler *sampler = NULL;
        bugpack_error error = BUGPACK_ERROR_INIT;
        CHECK(getpid() == 1);
        check_own();
        /* A child of ours has an id that is somebody else's there: 2 is the kernel's kthreadd. */
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            (void)pause();
            _exit(0);
        }
        CHECK_STATUS(bp_sampler_open(child, false, &sampler, &error), BUGPACK_ERR_DENIED, error);
        CHECK(strstr(error.message, "of another pid namespace") != NULL);
        _exit(0); /* the namespace ends with its first process, and so does the child */
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(void) {
    if (geteuid() != 0) {
        (void)puts("not root: /proc cannot be mounted in other ways");
        return 77;
    }
    pid_t probe = fork();
    int status = 0;
    CHECK(probe >= 0);
    if (probe == 0) {
        _exit(unshare(CLONE_NEWNS | CLONE_NEWPID) != 0);
    }
    CHECK(waitpid(probe, &status, 0) == probe);
    if (status != 0) {
        (void)puts("namespaces are not allowed here: /proc cannot be mounted in other ways");
        return 77;
    }
    run_apart(a_hidden_process_is_denied_and_not_absent);
    run_apart(another_namespaces_proc_still_shows_us_and_no_stranger);
    return 0;
}
