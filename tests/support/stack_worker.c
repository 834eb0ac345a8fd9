/*
 * A process whose stacks are known: main, six calls of `deeper`, a read of standard input in
 * a function that is inlined; and a
 * thread called "locker" that waits in four of them for a mutex. With a path it loads that library
 * and waits inside a call from it. With "null-call" it calls a null pointer, and reads in the
 * handler of that signal.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static inline __attribute__((always_inline)) int read_byte(int fd) {
    char byte;
    return read(fd, &byte, 1) == 1;
}

static int wait_for_input(void) {
    return read_byte(STDIN_FILENO) + 1;
}

static int wait_for_lock(void) {
    return pthread_mutex_lock(&lock);
}

/* A copy of the function would have another name; clang makes none, and does not know the word. */
#ifdef __clang__
#define ONE_FUNCTION __attribute__((noinline))
#else
#define ONE_FUNCTION __attribute__((noinline, noclone))
#endif

ONE_FUNCTION int deeper(unsigned depth, int (*wait)(void)) {
    volatile unsigned char frame[64];
    frame[0] = (unsigned char)depth;
    return (depth == 0 ? wait() : deeper(depth - 1, wait)) + frame[0];
}

static void wait_in_handler(int number) {
    _exit(wait_for_input() + number);
}

ONE_FUNCTION int call_nowhere(int (*volatile function)(void)) {
    return function() + 1;
}

/* As a C++ compiler names it. */
static void *locker(void *unused) __asm__("_ZN3app6lockerEPv");

static void *locker(void *unused) {
    (void)pthread_setname_np(pthread_self(), "locker");
    (void)deeper(3, wait_for_lock);
    return unused;
}

int main(int argument_count, char **arguments) {
    pthread_t thread;
    (void)pthread_mutex_lock(&lock);
    if (pthread_create(&thread, NULL, locker, NULL) != 0) {
        return 1;
    }
    if (argument_count > 1 && strcmp(arguments[1], "null-call") == 0) {
        (void)signal(SIGSEGV, wait_in_handler);
        return call_nowhere(NULL) + 1;
    }
#ifndef STACK_WORKER_STATIC
    if (argument_count > 1) {
        void *library = dlopen(arguments[1], RTLD_NOW);
        int (*enter)(unsigned, int (*)(void)) =
            library != NULL ? (int (*)(unsigned, int (*)(void)))dlsym(library, "deeper") : NULL;
        return enter != NULL ? enter(2, wait_for_input) : 1;
    }
#endif
    (void)arguments;
    (void)argument_count;
    return deeper(5, wait_for_input);
}
