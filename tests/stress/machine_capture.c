/*
 * A capture of the machine that we run on, while threads of this very process come and go: whoever
 * lives all the time is in each capture, and nothing else can make one fail.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/temp_file.h"
#include "machine/machine_capture.h"
#include "support/check.h"
#include "support/temp_dir.h"

enum { churner_count = 4, capture_count = 10 };

static atomic_bool must_end;

static void *nothing(void *unused) {
    return unused;
}

static void *churn(void *unused) {
    while (!atomic_load(&must_end)) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL) == 0) {
            (void)pthread_join(thread, NULL);
        }
    }
    return unused;
}

static char *read_all(const bp_temp_file *temp_file) {
    char *text = calloc(1, (size_t)temp_file->size + 1);
    CHECK(text != NULL);
    for (uint64_t at = 0; at < temp_file->size;) {
        int64_t count = bp_temp_file_read(temp_file, at, text + at, (size_t)(temp_file->size - at));
        CHECK(count > 0);
        at += (uint64_t)count;
    }
    return text;
}

static void capture_once(const temp_dir *dir) {
    const bp_machine_root root = BP_MACHINE_ROOT_INIT;
    bp_temp_file temp_file = BP_TEMP_FILE_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    const bp_machine_plan plan = {.window_ms = 0};
    bp_machine_summary *summary = calloc(1, sizeof *summary);
    char self[64];
    CHECK(summary != NULL);
    CHECK(bp_temp_file_open(&temp_file, dir->fd, UINT64_MAX, NULL) == BUGPACK_OK);
    CHECK(bp_machine_capture(&root, &plan, dir->fd, bp_temp_file_sink, &temp_file, summary,
                             &error) == BUGPACK_OK);
    CHECK(bp_temp_file_flush(&temp_file, NULL) == BUGPACK_OK);
    CHECK(!summary->is_cut);
    CHECK(summary->thread_count > churner_count);
    CHECK(summary->self_tgid == (uint64_t)getpid());
    char *text = read_all(&temp_file);
    (void)snprintf(self, sizeof self, "\"tgid\": %d,\n      \"tid\": %d,", (int)getpid(),
                   (int)getpid());
    CHECK(strstr(text, self) != NULL);
    CHECK(strcmp(text + strlen(text) - strlen(bp_machine_tail), bp_machine_tail) == 0);
    free(text);
    free(summary);
    bp_temp_file_release(&temp_file);
}

int main(void) {
    temp_dir dir;
    pthread_t churners[churner_count];
    if (access("/proc/self/task", R_OK) != 0) {
        (void)printf("skipped: there is no /proc\n");
        return 77;
    }
    CHECK(temp_dir_make(&dir));
    for (size_t i = 0; i < churner_count; i++) {
        CHECK(pthread_create(&churners[i], NULL, churn, NULL) == 0);
    }
    for (unsigned i = 0; i < capture_count; i++) {
        capture_once(&dir);
    }
    atomic_store(&must_end, true);
    for (size_t i = 0; i < churner_count; i++) {
        (void)pthread_join(churners[i], NULL);
    }
    CHECK(temp_dir_count(&dir) == 0);
    temp_dir_remove(&dir);
    return 0;
}
