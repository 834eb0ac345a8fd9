#include "stress/sampler_child.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stress/sampler_check.h"

/* In a child: where its threads say that they bear their names. */
static int ready_fd;

static void *idle(void *name) {
    (void)prctl(PR_SET_NAME, name, 0, 0, 0);
    (void)!write(ready_fd, "", 1);
    for (;;) {
        (void)pause();
    }
    return NULL;
}

static pid_t start(bool main_ends) {
    static char names[3][16] = {"b) S 1", "c\n", "\xff"};
    int ready[2];
    CHECK(pipe2(ready, O_CLOEXEC) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        ready_fd = ready[1];
        for (size_t i = 0; i < 3; i++) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, idle, names[i]) != 0) {
                _exit(1);
            }
        }
        if (main_ends) {
            pthread_exit(NULL);
        }
        for (;;) {
            (void)pause();
        }
    }
    (void)close(ready[1]);
    for (size_t i = 0; i < 3; i++) {
        char byte;
        CHECK(read(ready[0], &byte, 1) == 1);
    }
    (void)close(ready[0]);
    return pid;
}

pid_t start_child(void) {
    return start(false);
}

pid_t start_child_without_main(void) {
    return start(true);
}

pid_t start_program(const char *path) {
    int ready[2];
    char byte;
    CHECK(pipe2(ready, O_CLOEXEC) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        (void)execl(path, path, "1000", (char *)NULL);
        _exit(127);
    }
    (void)close(ready[1]);
    /* The pipe closes when exec succeeds, or when the child is gone. */
    CHECK(read(ready[0], &byte, 1) == 0);
    (void)close(ready[0]);
    return pid;
}

void kill_child(pid_t pid, bool reap) {
    siginfo_t info;
    CHECK(kill(pid, SIGKILL) == 0);
    CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | (reap ? 0 : WNOWAIT)) == 0);
}
