/*
 * Everything at once: sixteen threads log, others trigger reports and register and take off
 * providers, and then the session is closed. Run under ThreadSanitizer too.
 */
#include <bugpack/bugpack.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "support/check.h"
#include "support/temp_dir.h"

enum { writer_count = 16, trigger_count = 2, report_count = 6, turn_count = 40 };

static bugpack *session;
static atomic_bool must_stop;
static atomic_uint accepted_count, done_count, written_count;

static void *write_log(void *argument) {
    unsigned long number = (unsigned long)(uintptr_t)argument;
    for (unsigned long i = 0; !atomic_load(&must_stop); i++) {
        bugpack_log(session, BUGPACK_LEVEL_INFO, "stress", "writer %lu, record %lu", number, i);
    }
    return NULL;
}

static void count_done(const bugpack_report_result *result, void *context) {
    (void)context;
    atomic_fetch_add(&done_count, 1);
    atomic_fetch_add(&written_count, result->status == BUGPACK_OK && result->missing_count == 0);
}

static void *trigger(void *argument) {
    (void)argument;
    for (unsigned i = 0; i < report_count;) {
        bugpack_status status = bugpack_report_async(session, NULL, count_done, NULL);
        CHECK(status == BUGPACK_OK || status == BUGPACK_ERR_BUSY);
        if (status == BUGPACK_OK) {
            atomic_fetch_add(&accepted_count, 1);
            i++;
        } else {
            bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
            status = bugpack_report(session, NULL, &result);
            CHECK(status == BUGPACK_OK || status == BUGPACK_ERR_BUSY);
        }
    }
    return NULL;
}

static int provide_turn(bugpack_writer *writer, void *context) {
    const atomic_int *is_registered = context;
    return atomic_load(is_registered) ? bugpack_printf(writer, "still registered") : -1;
}

/* A provider whose context ends right after it was taken off: a later call would be seen. */
static void *come_and_go(void *argument) {
    (void)argument;
    for (unsigned i = 0; i < turn_count; i++) {
        atomic_int *is_registered = malloc(sizeof *is_registered);
        CHECK(is_registered != NULL);
        atomic_init(is_registered, 1);
        CHECK(bugpack_provide_text(session, "guest.txt", provide_turn, is_registered, NULL) ==
              BUGPACK_OK);
        CHECK(bugpack_unprovide(session, "guest.txt"));
        atomic_store(is_registered, 0);
        free(is_registered);
    }
    return NULL;
}

int main(void) {
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "stress";
    options.report_dir = dir.path;
    options.sample_window_ms = 5;
    options.stacks = BUGPACK_STACKS_NONE; /* the writers run on while they are read */
    options.provider_timeout_ms = 60000;
    options.log_ring_bytes = 64 * 1024;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);

    pthread_t writers[writer_count], triggers[trigger_count], guest;
    for (uintptr_t i = 0; i < writer_count; i++) {
        CHECK(pthread_create(&writers[i], NULL, write_log, (void *)i) == 0);
    }
    for (unsigned i = 0; i < trigger_count; i++) {
        CHECK(pthread_create(&triggers[i], NULL, trigger, NULL) == 0);
    }
    CHECK(pthread_create(&guest, NULL, come_and_go, NULL) == 0);
    for (unsigned i = 0; i < trigger_count; i++) {
        CHECK(pthread_join(triggers[i], NULL) == 0);
    }
    CHECK(pthread_join(guest, NULL) == 0);
    atomic_store(&must_stop, true);
    for (unsigned i = 0; i < writer_count; i++) {
        CHECK(pthread_join(writers[i], NULL) == 0);
    }
    bugpack_close(session);
    CHECK(atomic_load(&done_count) == atomic_load(&accepted_count));
    CHECK(atomic_load(&written_count) == atomic_load(&accepted_count));
    CHECK(temp_dir_count(&dir) >= atomic_load(&accepted_count));
    printf("%u reports, all told and written\n", atomic_load(&accepted_count));
    temp_dir_remove(&dir);
    return 0;
}
