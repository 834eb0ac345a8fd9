/*
 * Hosts with one sickness each: diagnose_host NAME DIRECTORY. The report is in the directory, or
 * made by `bugpack recover DIRECTORY/rings` of one that has died.
 */
#include <bugpack/bugpack.h>
#include <bugpack/crash.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static bugpack_session *session;

static void report(void) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    if (bugpack_report(session, &request, &result, NULL) != BUGPACK_OK) {
        (void)fprintf(stderr, "no report: %s\n", result.error.message);
        exit(2);
    }
    bugpack_close(session);
}

__attribute__((noinline)) static void draw_nothing(int *where) {
    *(volatile int *)where = 1;
    __asm__ volatile("");
}

static void use_null(void) {
    int *volatile nowhere = NULL;
    draw_nothing(nowhere);
}

__attribute__((noinline)) static int descend(volatile int depth) {
    volatile char block[4096];
    block[0] = (char)depth;
    return depth < 0 ? 0 : descend(depth + 1) + block[0];
}

static void overflow_stack(void) {
    exit(descend(0));
}

static void free_twice(void) {
    char *volatile block = malloc(16);
    char *volatile again = block;
    free(block);
    free(again);
}

/* 25 MiB/s over three seconds, in which the history has 30 samples. */
static void grow(void) {
    for (int i = 0; i < 30; i++) {
        char *block = malloc(5 << 19);
        memset(block, 1, 5 << 19);
        __asm__ volatile("" : : "r"(block) : "memory");
        (void)usleep(100000);
    }
    report();
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *want_lock(void *unused) {
    (void)pthread_mutex_lock(&lock);
    return unused;
}

static void *want_lock_and_beat(void *watchdog) {
    bugpack_watchdog_beat(watchdog);
    return want_lock(NULL);
}

/* The thread that waits did so for all of the window, which the history has. */
static void hold_lock(void) {
    pthread_t waiter;
    (void)pthread_mutex_lock(&lock);
    (void)pthread_create(&waiter, NULL, want_lock, NULL);
    (void)sleep(4);
    report();
    exit(0);
}

static void *decode(void *unused) {
    for (volatile uint64_t i = 0;; i++) {}
    return unused;
}

static void spin(void) {
    pthread_t thread;
    (void)pthread_create(&thread, NULL, decode, NULL);
    (void)pthread_setname_np(thread, "decoder");
    (void)sleep(4);
    report();
    exit(0);
}

static atomic_bool is_written;

static void on_event(const bugpack_event *event, void *unused) {
    (void)unused;
    if (event->kind == BUGPACK_EVENT_WRITTEN) {
        atomic_store(&is_written, true);
    }
}

/* Its watchdog reports it, and not a request. */
static void hang(void) {
    bugpack_watchdog *watchdog = NULL;
    pthread_t waiter;
    (void)pthread_mutex_lock(&lock);
    if (bugpack_watchdog_open(session, "decoder", 500, &watchdog, NULL) == BUGPACK_OK) {
        (void)pthread_create(&waiter, NULL, want_lock_and_beat, watchdog);
        for (int i = 0; i < 6000 && !atomic_load(&is_written); i++) {
            (void)usleep(10000);
        }
    }
    bugpack_close(session);
    exit(0);
}

int main(int argument_count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } programs[] = {{"host-null", use_null},
                    {"host-stack-overflow", overflow_stack},
                    {"host-abort", free_twice},
                    {"host-growth", grow},
                    {"host-lock-held", hold_lock},
                    {"host-spin", spin},
                    {"host-hang", hang}};
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    char rings[4096];
    if (argument_count != 3) {
        return 2;
    }
    (void)snprintf(rings, sizeof rings, "%s/rings", arguments[2]);
    (void)mkdir(rings, 0700);
    options.app_name = arguments[1];
    options.report_dir = arguments[2];
    options.recorder.dir = rings;
    options.on_event = on_event;
    options.recorder.history_interval_ms = 100;
    if (bugpack_open(&options, &session, &error) != BUGPACK_OK ||
        bugpack_crash_handler_install(session, NULL) != BUGPACK_OK) {
        (void)fprintf(stderr, "no session: %s\n", error.message);
        return 2;
    }
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        if (strcmp(arguments[1], programs[i].name) == 0) {
            programs[i].run();
        }
    }
    return 0;
}
