/*
 * The counters of processes that know nothing of us: stand-ins with known values, which the
 * arguments name. Real jemallocs are in tests/cli/heap.sh.
 */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "heap/thread_heap.h"
#include "support/check.h"
#include "support/temp_dir.h"

extern char **environ;

static void nap(void) {
    const struct timespec wait = {.tv_nsec = 2000000};
    (void)nanosleep(&wait, NULL);
}

static pid_t start(const char *const *arguments) {
    temp_dir dir;
    char ready[300];
    char words[8][300];
    char *list[9] = {NULL};
    pid_t pid;
    CHECK(temp_dir_make(&dir));
    (void)snprintf(ready, sizeof ready, "%s/ready", dir.path);
    for (size_t i = 0; arguments[i] != NULL && i < 8; i++) {
        const char *word = strcmp(arguments[i], "READY") == 0 ? ready : arguments[i];
        CHECK(snprintf(words[i], sizeof words[i], "%s", word) < (int)sizeof words[i]);
        list[i] = words[i];
    }
    CHECK(posix_spawn(&pid, arguments[0], NULL, NULL, list, environ) == 0);
    char text[8];
    while (temp_dir_read(&dir, "ready", text, sizeof text) != 6) {
        CHECK(waitpid(pid, NULL, WNOHANG) == 0);
        nap();
    }
    temp_dir_remove(&dir);
    return pid;
}

static void end(pid_t pid) {
    CHECK(kill(pid, SIGKILL) == 0);
    CHECK(waitpid(pid, NULL, 0) == pid);
}

static void probe(pid_t pid, bp_thread_heap_reading *ret_reading) {
    bp_heap_prober_options options = BP_HEAP_PROBER_OPTIONS_INIT;
    bp_heap_plan plan = BP_HEAP_PLAN_INIT;
    bp_heap_prober *prober = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    const char *command = getenv("BUGPACK");
    options.calibrator_path = command != NULL ? command : BUGPACK_COMMAND;
    options.calibration_timeout_ms = 30000; /* a sanitized helper on a busy machine */
    plan.snapshot_count = 1;
    CHECK(bp_heap_prober_new(&options, &prober, &error) == BUGPACK_OK);
    CHECK(bp_heap_probe(prober, pid, &plan, ret_reading, &error) == BUGPACK_OK);
    bp_heap_prober_free(prober);
    if (ret_reading->failure != BP_HEAP_FAILURE_NONE) {
        (void)printf("%s: %s\n", bp_heap_failure_name(ret_reading->failure), ret_reading->reason);
    }
}

static const bp_thread_heap *find_thread(const bp_thread_heap_snapshot *snapshot, pid_t tid) {
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        if (snapshot->threads[i].tid == (uint64_t)tid) {
            return &snapshot->threads[i];
        }
    }
    return NULL;
}

static void every_thread_has_exactly_its_own_counters(const char *stand_in, bool may_stop) {
    const char *const arguments[] = {stand_in, "READY", "40", NULL};
    bp_thread_heap_reading reading = {0};
    bool seen[41] = {false};
    pid_t pid = start(arguments);
    probe(pid, &reading);
    CHECK(reading.failure == BP_HEAP_FAILURE_NONE);
    CHECK(!reading.is_shared && !reading.is_calibrated);
    const bp_thread_heap_snapshot *snapshot = &reading.snapshots[0];
    CHECK(snapshot->thread_count == 41 && snapshot->measured_count == 41);
    CHECK(may_stop ? snapshot->stopped_count == 41 : snapshot->stopped_count == 0);
    for (size_t i = 0; i < 41; i++) {
        const bp_thread_heap *thread = &snapshot->threads[i];
        uint64_t number = thread->allocated_bytes - 1000;
        CHECK(number < 41 && !seen[number]);
        CHECK(thread->deallocated_bytes == 500 + number);
        seen[number] = true;
    }
    CHECK(find_thread(snapshot, pid)->allocated_bytes == 1000);
    bp_thread_heap_reading_release(&reading);
    end(pid);
}

/* A thread's state, from /proc: 'T' is stopped by a signal, 't' by a tracer. */
static char state_of(pid_t pid, uint64_t tid) {
    char path[64];
    char text[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/task/%llu/stat", (int)pid, (unsigned long long)tid);
    FILE *file = fopen(path, "re");
    CHECK(file != NULL && fread(text, 1, sizeof text - 1, file) > 0);
    (void)fclose(file);
    const char *end = strrchr(text, ')');
    CHECK(end != NULL && end[1] == ' ');
    return end[2];
}

/* The fallback must leave a process as it was: here, stopped by somebody else. */
static void a_stopped_process_is_read_and_stays_stopped(const char *stand_in) {
    const char *const arguments[] = {stand_in, "READY", "3", NULL};
    bp_thread_heap_reading reading = {0};
    siginfo_t info;
    pid_t pid = start(arguments);
    CHECK(kill(pid, SIGSTOP) == 0);
    CHECK(waitid(P_PID, (id_t)pid, &info, WSTOPPED) == 0);
    probe(pid, &reading);
    CHECK(reading.failure == BP_HEAP_FAILURE_NONE && reading.snapshots[0].measured_count == 4);
    for (size_t i = 0; i < 4; i++) {
        const struct timespec nap = {.tv_nsec = 1000000};
        uint64_t tid = reading.snapshots[0].threads[i].tid;
        while (state_of(pid, tid) == 'R') {
            (void)nanosleep(&nap, NULL); /* on its way back into the stop */
        }
        CHECK(state_of(pid, tid) == 'T');
    }
    bp_thread_heap_reading_release(&reading);
    end(pid);
}

/* It has the same id and start time, and other memory: counters are of the first program, or there
 * are none. */
static void what_was_found_in_a_program_is_not_read_from_the_next(const char *stand_in) {
    const char *const arguments[] = {stand_in, "READY", "3", NULL};
    const bp_heap_prober_options options = BP_HEAP_PROBER_OPTIONS_INIT;
    const bp_heap_plan plan = {.snapshot_count = 10000, .interval_ms = 2, .stop_fd = -1};
    bp_heap_prober *prober = NULL;
    bp_thread_heap_reading reading = {0};
    pid_t pid = start(arguments);
    pid_t other = fork();
    if (other == 0) {
        for (int i = 0; i < 100; i++) {
            nap();
        }
        _exit(kill(pid, SIGUSR1) != 0);
    }
    CHECK(bp_heap_prober_new(&options, &prober, NULL) == BUGPACK_OK);
    CHECK(bp_heap_probe(prober, pid, &plan, &reading, NULL) == BUGPACK_OK);
    CHECK(reading.is_interrupted != (reading.failure == BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND));
    for (uint32_t i = 0; reading.is_interrupted && i < reading.snapshot_count; i++) {
        const bp_thread_heap_snapshot *snapshot = &reading.snapshots[i];
        for (size_t j = 0; j < snapshot->thread_count; j++) { /* an exec first ends the others */
            const bp_thread_heap *thread = &snapshot->threads[j];
            CHECK(!thread->is_measured ||
                  (thread->allocated_bytes - 1000 < 4 &&
                   thread->deallocated_bytes == thread->allocated_bytes - 500));
        }
    }
    bp_heap_prober_free(prober);
    bp_thread_heap_reading_release(&reading);
    CHECK(waitpid(other, NULL, 0) == other);
    probe(pid, &reading);
    CHECK(reading.failure == BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND);
    bp_thread_heap_reading_release(&reading);
    end(pid);
}

/* Thousands of files can be made to take for ever; here the time is over at once. */
static void a_search_that_takes_too_long_is_ended_and_says_so(const char *stand_in) {
    const char *const arguments[] = {stand_in, "READY", "3", NULL};
    bp_heap_prober_options options = BP_HEAP_PROBER_OPTIONS_INIT;
    bp_heap_plan plan = BP_HEAP_PLAN_INIT;
    bp_heap_prober *prober = NULL;
    bp_thread_heap_reading reading = {0};
    options.search_timeout_ms = 0;
    pid_t pid = start(arguments);
    CHECK(bp_heap_prober_new(&options, &prober, NULL) == BUGPACK_OK);
    CHECK(bp_heap_probe(prober, pid, &plan, &reading, NULL) == BUGPACK_OK);
    CHECK(reading.failure == BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND);
    CHECK(strstr(reading.reason, "took too long") != NULL);
    bp_thread_heap_reading_release(&reading);
    bp_heap_prober_free(prober);
    end(pid);
}

static void our_own_process_is_not_probed(void) {
    bp_thread_heap_reading reading = {0};
    probe(getpid(), &reading);
    CHECK(reading.failure == BP_HEAP_FAILURE_SELF);
    CHECK(find_thread(&reading.snapshots[0], getpid()) != NULL);
    CHECK(reading.snapshots[0].measured_count == 0);
    bp_thread_heap_reading_release(&reading);
}

int main(int argument_count, char **arguments) {
    our_own_process_is_not_probed();
    for (int i = 1; i < argument_count; i++) {
        bool is_alone = strstr(arguments[i], "stand_in_alone") != NULL;
        every_thread_has_exactly_its_own_counters(arguments[i], is_alone);
        a_stopped_process_is_read_and_stays_stopped(arguments[i]);
        if (!is_alone) {
            what_was_found_in_a_program_is_not_read_from_the_next(arguments[i]);
            a_search_that_takes_too_long_is_ended_and_says_so(arguments[i]);
        }
    }
    return 0;
}
