/*
 * What the sick programs share. Each program is a row of a table; `diagnose_sick NAME` runs it.
 *
 * A program reaches its state, tells facts about it (`holder=123`, a line each), says "ready" and
 * stays as it is. Those that end do so by themselves. It waits for signs, and never for a time.
 */
#ifndef SICK_H
#define SICK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct sick_program {
    const char *name;
    void (*run)(void);
} sick_program;

/* Each ends with a row without a name. */
extern const sick_program sick_calls[], sick_cpu[], sick_ends[], sick_locks[], sick_peers[],
    sick_resources[];

/* A line of standard output, at once. */
__attribute__((format(printf, 1, 2))) void tell(const char *format, ...);
void say_ready(void);
_Noreturn void wait_for_ever(void);

/* Ends the program with status 2 when `result` is negative, or an error number. */
void check(long result);

/* A thread of this name; its id. */
pid_t start(void *(*run)(void *), void *argument, const char *name);

/* A child that runs `run`, and dies with its parent. */
pid_t start_child(void (*run)(void));
/* Until a child that it starts has ended, which had what this process has. */
void outlive_child(void);

/* Until the thread is blocked in the system call, of a child or of this process. */
void await_call(pid_t tid, long call);
/* Until a child is stopped. */
void stop_child(pid_t child);

/* A TCP socket that listens on a free port of the loopback interface. */
int listen_here(int backlog, struct sockaddr_in *ret_address);

/* In a library of its own. */
void *sick_library_spin(void *unused);

#endif
