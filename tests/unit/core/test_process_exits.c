/*
 * The facts of a process that is exiting are not read: its memory is gone before it is a zombie.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "platform/process_facts.h"
#include "unit/unit.h"

/* Freeing this much takes milliseconds, in which the process has no memory any more. */
static const size_t much_bytes = (size_t)64 << 20;

static void *wait_for_end(void *argument) {
    for (;;) {
        (void)pause();
    }
    return argument;
}

static pid_t start_child(int go_fd, int ready_fd, int more_threads) {
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        char *much = malloc(much_bytes);
        if (much != NULL) {
            memset(much, 1, much_bytes);
        }
        for (int i = 0; i < more_threads; i++) {
            pthread_t thread;
            (void)pthread_create(&thread, NULL, wait_for_end, NULL);
        }
        (void)!write(ready_fd, "r", 1);
        (void)!read(go_fd, &byte, 1);
        _exit(much == NULL || much[much_bytes / 2] != 1);
    }
    return pid;
}

static void expect_whole_facts(int rounds, int more_threads) {
    for (int round = 0; round < rounds; round++) {
        int go[2], ready[2];
        char byte;
        bp_task *task = NULL;
        bp_process_facts facts;
        bugpack_status status = BUGPACK_OK;
        cr_assert(pipe(go) == 0 && pipe(ready) == 0);
        pid_t pid = start_child(go[0], ready[1], more_threads);
        cr_assert(pid > 0 && read(ready[0], &byte, 1) == 1);
        cr_assert(eq(int, bp_task_open(pid, false, &task, NULL), BUGPACK_OK));
        cr_assert(write(go[1], "g", 1) == 1);
        while ((status = bp_process_facts_read(task, &facts, NULL)) == BUGPACK_OK) {
            cr_assert(facts.command_line.size > 0 && facts.executable != NULL &&
                          facts.object_count > 0,
                      "in round %d", round);
            bp_process_facts_release(&facts);
        }
        cr_assert(eq(int, status, BUGPACK_ERR_NO_PROCESS));
        bp_task_close(task);
        cr_assert(eq(int, waitpid(pid, NULL, 0), pid));
        for (int i = 0; i < 2; i++) {
            (void)close(go[i]);
            (void)close(ready[i]);
        }
    }
}

Test(process_exits, facts_are_whole_or_not_there) {
    expect_whole_facts(10, 0);
}

/* The first thread is a zombie as soon as it has ended, and the others still end. */
Test(process_exits, facts_of_several_threads_are_whole_or_not_there) {
    expect_whole_facts(3, 3);
}
