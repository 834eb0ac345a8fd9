/* Runs one of the sick programs, and what they share. */
#include "sick.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void tell(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    va_end(arguments);
    (void)putchar('\n');
    (void)fflush(stdout);
}

void say_ready(void) {
    tell("ready");
}

/* Not pause, which not every processor has. */
void wait_for_ever(void) {
    sigset_t none;
    (void)sigemptyset(&none);
    for (;;) {
        (void)sigsuspend(&none);
    }
}

void check(long result) {
    if (result != 0) {
        errno = result > 0 ? (int)result : errno;
        perror("sick");
        exit(2);
    }
}

typedef struct beginning {
    void *(*run)(void *);
    void *argument;
    pid_t tid;
    sem_t has_begun;
} beginning;

static void *begin(void *argument) {
    beginning *ours = argument;
    void *(*run)(void *) = ours->run;
    void *of_run = ours->argument;
    ours->tid = (pid_t)syscall(SYS_gettid);
    check(sem_post(&ours->has_begun));
    return run(of_run);
}

pid_t start(void *(*run)(void *), void *argument, const char *name) {
    beginning *thread = malloc(sizeof *thread); /* a thread may be in sem_post for a while */
    pthread_attr_t attributes;
    pthread_t id;
    *thread = (beginning){.run = run, .argument = argument};
    check(sem_init(&thread->has_begun, 0, 0));
    check(pthread_attr_init(&attributes));
    check(pthread_attr_setstacksize(&attributes, 64 << 10));
    check(pthread_create(&id, &attributes, begin, thread));
    check(pthread_attr_destroy(&attributes));
    check(pthread_setname_np(id, name));
    check(sem_wait(&thread->has_begun));
    return thread->tid;
}

pid_t start_child(void (*run)(void)) {
    pid_t child = fork();
    if (child == 0) {
        check(prctl(PR_SET_PDEATHSIG, SIGKILL));
        run();
        wait_for_ever();
    }
    check(child < 0 ? -1 : 0);
    return child;
}

static void end_at_once(void) {
    _exit(0);
}

void outlive_child(void) {
    check(waitpid(start_child(end_at_once), NULL, 0) > 0 ? 0 : -1);
}

void await_call(pid_t tid, long call) {
    char path[64], line[64];
    long number;
    (void)snprintf(path, sizeof path, "/proc/%d/syscall", (int)tid);
    do {
        FILE *file = fopen(path, "re");
        check(file == NULL ? -1 : 0);
        number = fgets(line, sizeof line, file) == NULL ? -1 : strtol(line, NULL, 10);
        (void)fclose(file);
        if (number == call && strncmp(line, "running", 7) != 0) {
            return;
        }
        (void)usleep(1000);
    } while (true);
}

void stop_child(pid_t child) {
    check(kill(child, SIGSTOP));
    check(waitpid(child, NULL, WUNTRACED) == child ? 0 : -1);
}

int listen_here(int backlog, struct sockaddr_in *ret_address) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof *ret_address;
    *ret_address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    check(bind(listener, (struct sockaddr *)ret_address, size));
    check(listen(listener, backlog));
    check(getsockname(listener, (struct sockaddr *)ret_address, &size));
    return listener;
}

int main(int argument_count, char **arguments) {
    const sick_program *const tables[] = {sick_cpu,       sick_locks, sick_peers,
                                          sick_resources, sick_ends,  sick_calls};
    (void)alarm(1200); /* whatever becomes of who started it */
    for (size_t i = 0; argument_count == 2 && i < sizeof tables / sizeof tables[0]; i++) {
        for (const sick_program *program = tables[i]; program->name != NULL; program++) {
            if (strcmp(arguments[1], program->name) == 0) {
                program->run();
                return 0;
            }
        }
    }
    return 2;
}
