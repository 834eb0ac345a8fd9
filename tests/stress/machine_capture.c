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

#include "base/buffer.h"
#include "machine/machine_capture.h"
#include "support/check.h"

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

static void capture_once(void) {
    const bp_machine_root root = BP_MACHINE_ROOT_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    const bp_machine_plan plan = {.window_ms = 0};
    bp_machine_summary *summary = calloc(1, sizeof *summary);
    bp_buffer json;
    char self[64];
    CHECK(summary != NULL);
    bp_buffer_init(&json, (size_t)1 << 30);
    CHECK(bp_machine_capture(&root, &plan, bp_buffer_sink, &json, summary, &error) == BUGPACK_OK);
    CHECK(!summary->is_cut);
    CHECK(summary->thread_count > churner_count);
    CHECK(summary->self_tgid == (uint64_t)getpid());
    const char *text = bp_buffer_text(&json);
    (void)snprintf(self, sizeof self, "\"tgid\": %d,\n      \"tid\": %d,", (int)getpid(),
                   (int)getpid());
    CHECK(strstr(text, self) != NULL);
    CHECK(strcmp(text + strlen(text) - strlen(bp_machine_tail), bp_machine_tail) == 0);
    free(summary);
    bp_buffer_release(&json);
}

int main(void) {
    pthread_t churners[churner_count];
    if (access("/proc/self/task", R_OK) != 0) {
        (void)printf("skipped: there is no /proc\n");
        return 77;
    }
    for (size_t i = 0; i < churner_count; i++) {
        CHECK(pthread_create(&churners[i], NULL, churn, NULL) == 0);
    }
    for (unsigned i = 0; i < capture_count; i++) {
        capture_once();
    }
    atomic_store(&must_end, true);
    for (size_t i = 0; i < churner_count; i++) {
        (void)pthread_join(churners[i], NULL);
    }
    return 0;
}
