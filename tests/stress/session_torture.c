/*
 * Every allocation of a host's session fails in turn, alone and with all that follow: opening,
 * providing, reporting and closing never crash, hang or lose a descriptor or a thread, a failure
 * has a sentence, and a report that is written is whole or says what it misses, and truly why.
 *
 *     stress_session_torture [STRIDE]     1 for every allocation
 */
#include <bugpack/bugpack.h>

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/descriptors.h"
#include "support/failing_malloc.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

enum { limit_secs = 120, each_until = 100 };

/* What one run of the host came to. */
struct run {
    bool is_open, is_provided;
    bugpack_status status;
    bugpack_report_result result;
};

static temp_dir dir;

static int provide(bugpack_writer *writer, void *context) {
    (void)context;
    for (unsigned i = 0; i < 40; i++) {
        (void)bugpack_printf(writer, "%s\"part %u\"", i == 0 ? "[" : ", ", i);
    }
    (void)bugpack_write(writer, "]", 1);
    return 0;
}

/* files.json looks at every process, which takes most of the time of a report. */
static const char *without_entries;

static void count(void *context) {
    ++*(unsigned *)context;
}

/* With a picture that is handed over, which comes back once before the call returns. */
static bugpack_status take_report(bugpack_session *session, bugpack_report_result *result) {
    static const uint32_t pixels[4];
    const bugpack_picture picture = {.pixels = pixels, .width = 2, .height = 2};
    unsigned released_count = 0;
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.screenshot = &picture;
    request.screenshot_context = &released_count;
    request.screenshot_release = count;
    bugpack_status status = bugpack_report(session, &request, result, NULL);
    CHECK(released_count == 1);
    return status;
}

static void run_host(struct run *run) {
    bugpack_session *session = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "torture";
    options.report_dir = dir.path;
    options.sample_window_ms = BUGPACK_OFF;
    options.limits.provider_timeout_ms = 60000;
    options.recorder.log_ring_bytes = 8192;
    options.without_entries = without_entries;
    options.stacks = BUGPACK_STACKS_NONE; /* libdw crashes where an allocation of its own fails */
    run->status = bugpack_open(&options, &session, &error);
    run->is_open = run->status == BUGPACK_OK;
    if (!run->is_open) {
        CHECK(session == NULL && error.status == run->status && error.message[0] != '\0');
        return;
    }
    bugpack_log(session, BUGPACK_LEVEL_INFO, "torture", "logged without memory");
    run->is_provided = bugpack_provide(session, "session.json", BUGPACK_PROVIDE_JSON, provide, NULL,
                                       NULL) == BUGPACK_OK;
    run->result = (bugpack_report_result)BUGPACK_REPORT_RESULT_INIT;
    run->status = take_report(session, &run->result);
    CHECK(run->status == run->result.status);
    bugpack_close(session);
}

/* Each is there with all that a healthy run has, or the ledger names it among the missing. */
static void check_report(const struct run *run) {
    static const struct {
        const char *entry, *text;
    } wanted[] = {
        {"metadata.json", "\"app\""},           {"runtime-metrics.json", "\"bugpack-monitor\""},
        {"process.json", "\"loaded_objects\""}, {"process.json", "\"limits\""},
        {"process.json", "\"command_line\""},   {"session.json", "\"part 39\""},
        {"logs.jsonl", "logged without memory"}};
    const char *path = run->result.path;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "%s: ", wanted[i].entry);
        bool is_whole = report_entry_contains(path, wanted[i].entry, wanted[i].text);
        bool is_told = strstr(run->result.missing, line) != NULL;
        bool is_optional = strcmp(wanted[i].entry, "session.json") == 0 && !run->is_provided;
        if (!is_whole && !is_told && !is_optional) {
            (void)fprintf(stderr, "%s has no %s\n", wanted[i].entry, wanted[i].text);
        }
        CHECK(is_whole || is_told || is_optional);
    }
    CHECK(report_entry_contains(path, "manifest.json",
                                run->result.missing_count == 0 ? "\"complete\": true"
                                                               : "\"complete\": false"));
    CHECK(strstr(run->result.missing, "limit") == NULL); /* nothing was too large */
}

static void fail_each(bool and_all_later, unsigned long stride) {
    without_entries = and_all_later ? "files.json" : NULL;
    static struct run run;
    unsigned descriptors = count_entries("/proc/self/fd");
    unsigned threads = count_entries("/proc/self/task");
    unsigned refused = 0, failed = 0, written = 0;
    unsigned long tried, nth = 0;
    do {
        nth += nth < each_until ? 1 : stride;
        (void)alarm(limit_secs); /* a deadlock ends the test by SIGALRM */
        failing_malloc_arm(nth, and_all_later);
        run_host(&run);
        tried = failing_malloc_disarm();
        if (!run.is_open) {
            refused++;
        } else if (run.status != BUGPACK_OK) {
            CHECK(run.status == BUGPACK_ERR_NO_MEMORY && run.result.error.message[0] != '\0');
            failed++;
        } else {
            check_report(&run);
            CHECK(unlink(run.result.path) == 0);
            written++;
        }
        CHECK(temp_dir_count(&dir) == 0);
        CHECK(count_entries("/proc/self/fd") == descriptors);
        expect_threads(threads);
    } while (tried >= nth);
    (void)alarm(0);
    CHECK(run.is_open && run.status == BUGPACK_OK && run.result.missing_count == 0);
    CHECK(refused > 5 && failed > 20 && written > 0);
    (void)printf("%s: %u not opened, %u failed, %u written\n",
                 and_all_later ? "one and all later" : "one allocation", refused, failed, written);
}

int main(int argument_count, char **arguments) {
    unsigned long stride = run_length(argument_count, arguments, 5);
    CHECK(temp_dir_make(&dir));
    fail_each(false, stride);
    fail_each(true, stride);
    temp_dir_remove(&dir);
    return 0;
}
