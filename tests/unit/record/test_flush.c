/*
 * bugpack_flush, and what a host is told by on_diagnostic.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "unit/quick_session.h"

static atomic_uint done_count;

static void count_done(const bugpack_report_result *result, void *context) {
    (void)usleep(20000); /* a flush waits for callbacks too */
    atomic_fetch_add(&done_count, 1);
}

SESSION_SUITE(flush);

Test(flush, waits_for_all_that_was_accepted_and_its_callbacks) {
    options.pedantic.is_enabled = true;
    open_session();
    cr_expect(zero(int, bugpack_flush(session, BUGPACK_OFF, NULL)), "the recovery at the opening");
    cr_expect(zero(int, bugpack_flush(session, 0, NULL)), "nothing is under way");
    for (unsigned i = 0; i < 3; i++) {
        cr_assert(zero(int, bugpack_report_async(session, NULL, count_done, NULL, NULL)));
    }
    bugpack_gap(session, "a:b:c");
    cr_expect(eq(int, bugpack_flush(session, 1, NULL), BUGPACK_ERR_TIMEOUT));
    cr_expect(zero(int, bugpack_flush(session, BUGPACK_OFF, NULL)));
    cr_expect(eq(uint, atomic_load(&done_count), 3u));
    cr_expect(eq(sz, temp_dir_count(&dir), 5), "with the count of the reports of the gap");
    cr_expect(zero(int, bugpack_flush(session, 0, NULL)));
    bugpack_close(session);
    cr_expect(eq(int, bugpack_flush(session, 0, NULL), BUGPACK_ERR_CLOSED));
    cr_expect(eq(int, bugpack_flush(NULL, 0, NULL), BUGPACK_ERR_INVALID));
}

static sem_t is_inside, may_return;

static void wait_inside(const bugpack_report_result *result, void *context) {
    (void)sem_post(&is_inside);
    (void)sem_wait(&may_return);
}

Test(flush, waits_for_the_callback_of_the_last_report) {
    cr_assert(zero(int, sem_init(&is_inside, 0, 0) + sem_init(&may_return, 0, 0)));
    open_session();
    cr_assert(zero(int, bugpack_report_async(session, NULL, wait_inside, NULL, NULL)));
    (void)sem_wait(&is_inside);
    cr_expect(eq(int, bugpack_flush(session, 1, NULL), BUGPACK_ERR_TIMEOUT));
    (void)sem_post(&may_return);
    cr_expect(zero(int, bugpack_flush(session, BUGPACK_OFF, NULL)));
}

#ifdef __linux__
/* Each report waits to be let go; the callback of the first asks for the second. */
static int wait_at_gate(bugpack_writer *writer, void *context) {
    while (sem_wait(&may_return) != 0) {}
    return bugpack_printf(writer, "passed");
}

static void ask_for_another(const bugpack_report_result *result, void *context) {
    if (atomic_fetch_add(&done_count, 1) == 0) {
        (void)bugpack_report_async(session, NULL, ask_for_another, NULL, NULL);
    }
}

/* Lets the first report go when the thread of this id, which does nothing else, waits in its flush.
 */
static void *let_go_when_asleep(void *thread_id) {
    char path[64], state = 'R';
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", *(const int *)thread_id);
    for (int seen = 0; seen < 10; seen += state == 'S') {
        FILE *stat = fopen(path, "r");
        if (stat == NULL || fscanf(stat, "%*d (%*[^)]) %c", &state) != 1) {
            abort();
        }
        (void)fclose(stat);
        (void)usleep(1000);
    }
    (void)sem_post(&may_return);
    return NULL;
}

Test(flush, waits_for_nothing_that_was_accepted_after_it_began) {
    pthread_t helper;
    int own_id = (int)gettid();
    cr_assert(zero(int, sem_init(&may_return, 0, 0)));
    options.limits.provider_timeout_ms = 600000;
    open_session();
    provide("gate.txt", BUGPACK_PROVIDE_TEXT, wait_at_gate, NULL);
    cr_assert(zero(int, bugpack_report_async(session, NULL, ask_for_another, NULL, NULL)));
    cr_assert(zero(int, pthread_create(&helper, NULL, let_go_when_asleep, &own_id)));
    cr_expect(zero(int, bugpack_flush(session, 10000, NULL)));
    cr_expect(eq(uint, atomic_load(&done_count), 1u));
    (void)sem_post(&may_return);
    (void)pthread_join(helper, NULL);
    cr_expect(zero(int, bugpack_flush(session, BUGPACK_OFF, NULL)));
}

#endif

static void flush_inside(const bugpack_report_result *result, void *context) {
    atomic_store(&done_count, (unsigned)-(int)bugpack_flush(context, BUGPACK_OFF, NULL));
}

Test(flush, is_refused_where_it_would_wait_for_itself) {
    open_session();
    cr_assert(zero(int, bugpack_report_async(session, NULL, flush_inside, session, NULL)));
    cr_expect(zero(int, bugpack_flush(session, BUGPACK_OFF, NULL)));
    cr_expect(eq(uint, atomic_load(&done_count), (unsigned)-(int)BUGPACK_ERR_INVALID));
}

/* What on_diagnostic was called with; the session is for what it does there. */
struct heard {
    pthread_mutex_t mutex;
    char text[4096];
    bugpack_level worst;
    bugpack_session *session;
    unsigned count;
};

static void hear(bugpack_level level, const char *text, void *context) {
    struct heard *heard = context;
    (void)pthread_mutex_lock(&heard->mutex);
    heard->count++;
    heard->worst = level > heard->worst ? level : heard->worst;
    strncat(heard->text, text, sizeof heard->text - strlen(heard->text) - 2);
    strncat(heard->text, "\n", 2);
    (void)pthread_mutex_unlock(&heard->mutex);
    if (heard->session != NULL) {
        bugpack_gap(heard->session, "from:a:diagnostic"); /* which has a note of its own */
    }
}

static int fail_with_a_reason(bugpack_writer *writer, void *context) {
    return bugpack_fail(writer, "the decoder\nlock was held");
}

SESSION_SUITE(diagnostics);

Test(diagnostics, name_a_report_that_lacks_something_and_one_that_failed) {
    struct heard heard = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    options.on_diagnostic = hear;
    options.on_diagnostic_context = &heard;
    open_session();
    heard.count = 0;
    heard.text[0] = '\0';
    bugpack_provide(session, "state.txt", BUGPACK_PROVIDE_TEXT, fail_with_a_reason, NULL, NULL);
    cr_assert(zero(int, bugpack_report(session, NULL, NULL, NULL)));
    cr_expect(eq(uint, heard.count, 1u), "%s", heard.text);
    cr_expect(eq(int, heard.worst, BUGPACK_LEVEL_WARN));
    cr_expect(
        ne(ptr, strstr(heard.text, "bugreport lacks 1 entries: state.txt: the decoder"), NULL),
        "%s", heard.text);
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.output_path = "/nonexistent/x.zip";
    cr_assert(ne(int, bugpack_report(session, &request, NULL, NULL), BUGPACK_OK));
    cr_expect(eq(int, heard.worst, BUGPACK_LEVEL_ERROR));
    cr_expect(ne(ptr, strstr(heard.text, "failed: "), NULL), "%s", heard.text);
    cr_expect(ne(ptr, strstr(heard.text, "/nonexistent"), NULL), "%s", heard.text);
    bugpack_close(session);
}

Test(diagnostics, are_not_told_what_the_host_causes_inside_one) {
    struct heard heard = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    options.pedantic.is_enabled = true;
    options.on_diagnostic = hear;
    options.on_diagnostic_context = &heard;
    open_session();
    heard.session = session;
    heard.count = 0;
    bugpack_gap(session, "a:b:c");
    cr_assert(zero(int, bugpack_flush(session, BUGPACK_OFF, NULL)));
    cr_expect(eq(uint, heard.count, 1u), "%s", heard.text);
    cr_expect(eq(sz, temp_dir_count(&dir), 3),
              "the gap inside has its report all the same, which is counted");
    bugpack_close(session);
}

Test(diagnostics, say_that_the_rings_will_not_survive_a_crash) {
    struct heard heard = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    options.on_diagnostic = hear;
    options.on_diagnostic_context = &heard;
    options.recorder.is_in_memory = false;
    options.recorder.dir = "/nonexistent/below";
    open_session();
    bugpack_close(session);
    cr_expect(ne(ptr, strstr(heard.text, "do not survive a crash: "), NULL), "%s", heard.text);
    heard.text[0] = '\0';
    options.recorder.is_in_memory = true;
    open_session();
    bugpack_close(session);
    cr_expect(eq(str, heard.text, ""), "it was asked for");
}
