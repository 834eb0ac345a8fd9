/*
 * A host that cancels its threads while they are inside a call: the call goes on to its end, so no
 * lock stays held, no descriptor is lost, and nobody writes to a stack that is gone.
 */
#include <bugpack/bugpack.h>
#include <bugpack/sample.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "support/check.h"
#include "support/descriptors.h"
#include "support/temp_dir.h"

static temp_dir dir;
static sem_t is_inside, may_return;

static int hold_up(bugpack_writer *writer, void *context) {
    (void)context;
    (void)sem_post(&is_inside);
    while (sem_wait(&may_return) != 0) {}
    return bugpack_printf(writer, "held up");
}

static bugpack_session *open_session(void) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "cancelled";
    options.report_dir = dir.path;
    options.sample_window_ms = BUGPACK_OFF;
    options.limits.provider_timeout_ms = 60000;
    bugpack_session *session = NULL;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    return session;
}

/*
 * Not part of the function that is cancelled: gcc 12's AddressSanitizer takes the marks around a
 * local variable, which a cancelled thread leaves behind, for an overflow of its own.
 */
__attribute__((noinline)) static void take_report(bugpack_session *session) {
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    CHECK(bugpack_report(session, NULL, &result, NULL) == BUGPACK_OK);
}

static void *report(void *session) {
    take_report(session);
    pthread_testcancel();
    CHECK(false); /* not reached */
    return NULL;
}

static void *unprovide(void *session) {
    CHECK(bugpack_unprovide(session, "held.txt"));
    pthread_testcancel();
    CHECK(false); /* not reached */
    return NULL;
}

static void expect_cancelled(pthread_t thread) {
    void *result;
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

static void a_thread_that_waits(bugpack_session *session) {
    pthread_t reporter, remover;
    CHECK(bugpack_provide(session, "held.txt", BUGPACK_PROVIDE_TEXT, hold_up, NULL, NULL) ==
          BUGPACK_OK);
    CHECK(pthread_create(&reporter, NULL, report, session) == 0);
    while (sem_wait(&is_inside) != 0) {}
    CHECK(pthread_create(&remover, NULL, unprovide, session) == 0);
    CHECK(pthread_cancel(reporter) == 0 && pthread_cancel(remover) == 0);
    CHECK(sem_post(&may_return) == 0);
    expect_cancelled(reporter);
    expect_cancelled(remover);
}

/* Each of these calls opens, reads or waits. */
__attribute__((noinline)) static void use_everything(void) {
    bugpack_session *session = open_session();
    CHECK(bugpack_report(session, NULL, NULL, NULL) == BUGPACK_OK);
    bugpack_close(session);
    char *json = NULL;
    CHECK(bugpack_sample(0, 1, &json, NULL, NULL) == BUGPACK_OK);
    bugpack_free(json);
}

static void *use_everything_cancelled(void *unused) {
    (void)unused;
    CHECK(pthread_cancel(pthread_self()) == 0);
    use_everything();
    pthread_testcancel();
    CHECK(false); /* not reached */
    return NULL;
}

int main(void) {
    CHECK(temp_dir_make(&dir));
    CHECK(sem_init(&is_inside, 0, 0) == 0 && sem_init(&may_return, 0, 0) == 0);
    bugpack_session *session = open_session();
    a_thread_that_waits(session);
    CHECK(bugpack_report(session, NULL, NULL, NULL) == BUGPACK_OK);
    bugpack_close(session);

    pthread_t thread;
    unsigned before = count_descriptors();
    CHECK(pthread_create(&thread, NULL, use_everything_cancelled, NULL) == 0);
    expect_cancelled(thread);
    CHECK(count_descriptors() == before);
    CHECK(temp_dir_count(&dir) == 3);
    temp_dir_remove(&dir);
    return 0;
}
