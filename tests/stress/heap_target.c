#include "stress/heap_target.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/temp_dir.h"

extern char **environ;

static void nap(void) {
    const struct timespec wait = {.tv_nsec = 2000000};
    (void)nanosleep(&wait, NULL);
}

pid_t heap_target_start(const char *const *arguments) {
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

void heap_target_end(pid_t pid) {
    CHECK(kill(pid, SIGKILL) == 0);
    CHECK(waitpid(pid, NULL, 0) == pid);
}

void heap_target_probe(pid_t pid, uint32_t snapshot_count, bp_thread_heap_reading *ret_reading) {
    bp_heap_prober_options options = BP_HEAP_PROBER_OPTIONS_INIT;
    bp_heap_plan plan = BP_HEAP_PLAN_INIT;
    bp_heap_prober *prober = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    const char *command = getenv("BUGPACK");
    options.calibrator_path = command != NULL ? command : BUGPACK_COMMAND;
    options.calibration_timeout_ms = 30000; /* a sanitized helper on a busy machine */
    options.use_cache = false;
    plan.snapshot_count = snapshot_count;
    plan.interval_ms = 50;
    CHECK(bp_heap_prober_new(&options, &prober, &error) == BUGPACK_OK);
    CHECK(bp_heap_probe(prober, pid, &plan, ret_reading, &error) == BUGPACK_OK);
    bp_heap_prober_free(prober);
    if (ret_reading->failure != BP_HEAP_FAILURE_NONE) {
        (void)printf("%s: %s\n", bp_heap_failure_name(ret_reading->failure), ret_reading->reason);
    }
}

const bp_thread_heap *heap_target_find(const bp_thread_heap_snapshot *snapshot, pid_t tid) {
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        if (snapshot->threads[i].tid == (uint64_t)tid) {
            return &snapshot->threads[i];
        }
    }
    return NULL;
}
