/*
 * The counters of processes that know nothing of us: real jemallocs and stand-ins with known
 * values. The arguments are the programs that this build has; what each is shows in its name.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "heap/jemalloc_find.h"
#include "stress/heap_target.h"
#include "support/check.h"

static const uint64_t planted_bytes = (uint64_t)16 << 20;
static const uint64_t slop_bytes = (uint64_t)4 << 20;

static void planted_bytes_are_read_within_slop_and_never_decrease(const char *worker) {
    const char *const arguments[] = {worker, "--bytes", "16777216", "--ready", "READY", NULL};
    bp_thread_heap_reading reading = {0};
    pid_t pid = heap_target_start(arguments);
    heap_target_probe(pid, 3, &reading);
    CHECK(reading.failure == BP_HEAP_FAILURE_NONE && !reading.is_interrupted);
    CHECK(reading.snapshot_count == 3);
    for (size_t i = 0; i < 3; i++) {
        const bp_thread_heap_snapshot *snapshot = &reading.snapshots[i];
        const bp_thread_heap *leader = heap_target_find(snapshot, pid);
        CHECK(snapshot->thread_count == 1 && leader != NULL && leader->is_measured);
        CHECK(snapshot->stopped_count == 0);
        CHECK(leader->allocated_bytes >= planted_bytes);
        CHECK(leader->allocated_bytes <= planted_bytes + slop_bytes);
        CHECK(leader->deallocated_bytes < planted_bytes);
        if (i > 0) {
            CHECK(leader->allocated_bytes >= snapshot[-1].threads[0].allocated_bytes);
            CHECK(leader->deallocated_bytes >= snapshot[-1].threads[0].deallocated_bytes);
        }
    }
    bp_thread_heap_reading_release(&reading);
    heap_target_end(pid);
}

static void the_leader_is_there_while_others_come_and_go(const char *worker) {
    const char *const arguments[] = {worker,  "--bytes", "1048576", "--ready",
                                     "READY", "--churn", NULL};
    pid_t pid = heap_target_start(arguments);
    for (int i = 0; i < 20; i++) {
        bp_thread_heap_reading reading = {0};
        heap_target_probe(pid, 1, &reading);
        CHECK(reading.failure == BP_HEAP_FAILURE_NONE);
        const bp_thread_heap *leader = heap_target_find(&reading.snapshots[0], pid);
        CHECK(leader != NULL && leader->is_measured);
        CHECK(leader->allocated_bytes >= 1048576);
        bp_thread_heap_reading_release(&reading);
    }
    heap_target_end(pid);
}

static void every_thread_has_exactly_its_own_counters(const char *stand_in, bool may_stop) {
    const char *const arguments[] = {stand_in, "READY", "40", NULL};
    bp_thread_heap_reading reading = {0};
    bool seen[41] = {false};
    pid_t pid = heap_target_start(arguments);
    heap_target_probe(pid, 1, &reading);
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
    CHECK(heap_target_find(snapshot, pid)->allocated_bytes == 1000);
    bp_thread_heap_reading_release(&reading);
    heap_target_end(pid);
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
    pid_t pid = heap_target_start(arguments);
    CHECK(kill(pid, SIGSTOP) == 0);
    CHECK(waitid(P_PID, (id_t)pid, &info, WSTOPPED) == 0);
    heap_target_probe(pid, 1, &reading);
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
    heap_target_end(pid);
}

static void a_process_without_jemalloc_has_zeros_and_no_failure(const char *plain) {
    const char *const arguments[] = {plain, "--bytes", "1048576", "--ready", "READY", NULL};
    bp_thread_heap_reading reading = {0};
    pid_t pid = heap_target_start(arguments);
    heap_target_probe(pid, 3, &reading);
    CHECK(reading.failure == BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND);
    CHECK(bp_heap_failure_is_absence(reading.failure, reading.system_errno));
    CHECK(reading.snapshot_count == 1 && reading.snapshots[0].thread_count == 1);
    const bp_thread_heap *leader = heap_target_find(&reading.snapshots[0], pid);
    CHECK(leader != NULL && !leader->is_measured);
    CHECK(leader->allocated_bytes == 0 && leader->deallocated_bytes == 0);
    bp_thread_heap_reading_release(&reading);
    heap_target_end(pid);
    heap_target_probe(pid, 1, &reading);
    CHECK(reading.failure == BP_HEAP_FAILURE_PID_MISSING && reading.snapshot_count == 0);
    bp_thread_heap_reading_release(&reading);
}

static void exe_of(pid_t pid, char out[4096]) {
    char path[40];
    (void)snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t length = readlink(path, out, 4095);
    CHECK(length > 0);
    out[length] = '\0';
}

/* It has the same id and start time, and other memory. */
static void what_was_found_in_a_program_is_not_read_from_the_next(const char *stand_in) {
    const char *const arguments[] = {stand_in, "READY", "3", NULL};
    bp_heap_prober_options options = BP_HEAP_PROBER_OPTIONS_INIT;
    bp_heap_prober *prober = NULL;
    bp_thread_heap_snapshot snapshot = {0};
    char before[4096], now[4096];
    bp_heap_target target = {.pid = heap_target_start(arguments), .options = options};
    CHECK(bp_heap_prober_new(&options, &prober, NULL) == BUGPACK_OK);
    CHECK(bp_task_open(target.pid, &target.task, NULL) == BUGPACK_OK);
    CHECK(bp_heap_target_find(prober, &target, NULL) == BUGPACK_OK);
    CHECK(target.found.failure == BP_HEAP_FAILURE_NONE && bp_heap_target_is_same(&target));
    CHECK(bp_heap_snapshot_take(&target, &snapshot, NULL) == BUGPACK_OK);
    CHECK(snapshot.measured_count == 4);
    free(snapshot.threads);
    exe_of(target.pid, before);
    CHECK(kill(target.pid, SIGUSR1) == 0);
    do {
        exe_of(target.pid, now);
    } while (strcmp(now, before) == 0);
    CHECK(!bp_heap_target_is_same(&target));
    CHECK(bp_heap_snapshot_take(&target, &snapshot, NULL) == BUGPACK_ERR_NO_PROCESS);
    bp_heap_target_release(&target);
    bp_task_close(target.task);
    bp_heap_prober_free(prober);
    bp_thread_heap_reading reading = {0};
    heap_target_probe(target.pid, 1, &reading);
    CHECK(reading.failure == BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND);
    bp_thread_heap_reading_release(&reading);
    heap_target_end(target.pid);
}

/* Thousands of files can be made to take for ever; here the time is over at once. */
static void a_search_that_takes_too_long_is_ended_and_says_so(const char *plain) {
    const char *const arguments[] = {plain, "--bytes", "1", "--ready", "READY", NULL};
    bp_heap_prober_options options = BP_HEAP_PROBER_OPTIONS_INIT;
    bp_heap_plan plan = BP_HEAP_PLAN_INIT;
    bp_heap_prober *prober = NULL;
    bp_thread_heap_reading reading = {0};
    options.search_timeout_ms = 0;
    pid_t pid = heap_target_start(arguments);
    CHECK(bp_heap_prober_new(&options, &prober, NULL) == BUGPACK_OK);
    CHECK(bp_heap_probe(prober, pid, &plan, &reading, NULL) == BUGPACK_OK);
    CHECK(reading.failure == BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND);
    CHECK(strstr(reading.reason, "took too long") != NULL);
    bp_thread_heap_reading_release(&reading);
    bp_heap_prober_free(prober);
    heap_target_end(pid);
}

static void our_own_process_is_not_probed(void) {
    bp_thread_heap_reading reading = {0};
    heap_target_probe(getpid(), 1, &reading);
    CHECK(reading.failure == BP_HEAP_FAILURE_SELF);
    CHECK(heap_target_find(&reading.snapshots[0], getpid()) != NULL);
    CHECK(reading.snapshots[0].measured_count == 0);
    bp_thread_heap_reading_release(&reading);
}

int main(int argument_count, char **arguments) {
    our_own_process_is_not_probed();
    for (int i = 1; i < argument_count; i++) {
        const char *path = arguments[i];
        if (strstr(path, "stand_in_alone") != NULL) {
            every_thread_has_exactly_its_own_counters(path, true);
            a_stopped_process_is_read_and_stays_stopped(path);
        } else if (strstr(path, "stand_in") != NULL) {
            every_thread_has_exactly_its_own_counters(path, false);
            what_was_found_in_a_program_is_not_read_from_the_next(path);
            a_stopped_process_is_read_and_stays_stopped(path);
        } else if (strstr(path, "plain") != NULL) {
            a_process_without_jemalloc_has_zeros_and_no_failure(path);
            a_search_that_takes_too_long_is_ended_and_says_so(path);
        } else {
            planted_bytes_are_read_within_slop_and_never_decrease(path);
            the_leader_is_there_while_others_come_and_go(path);
        }
    }
    return 0;
}
