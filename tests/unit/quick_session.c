#include "unit/quick_session.h"

#include <signal.h>
#include <sys/wait.h>

temp_dir dir;
bugpack_options options;
bugpack_session *session;
bugpack_report_result taken;

void setup(void) {
    cr_assert(temp_dir_make(&dir));
    options = (bugpack_options)BUGPACK_OPTIONS_INIT;
    options.app_name = "viewer";
    options.report_dir = dir.path;
    options.sample_window_ms = 20;
    options.stacks = BUGPACK_STACKS_NONE; /* a tenth of a second for each report */
    options.recorder.history_interval_ms = BUGPACK_OFF;
}

void teardown(void) {
    bugpack_close(session);
    temp_dir_remove(&dir);
}

bugpack_status try_open(bugpack_error *error) {
    session = NULL;
    return bugpack_open(&options, &session, error);
}

void open_session(void) {
    cr_assert(zero(int, try_open(&failure)), "%s", failure.message);
}

bugpack_channel *open_channel_with(const char *name, const bugpack_channel_options *with) {
    bugpack_channel *channel = NULL;
    cr_assert(zero(int, bugpack_channel_open(session, name, with, &channel, NULL)), "%s", name);
    return channel;
}

bugpack_channel *open_channel(const char *name) {
    return open_channel_with(name, NULL);
}

void provide(const char *name, bugpack_provider_kind kind, bugpack_provider_callback *callback,
             void *context) {
    cr_assert(zero(int, bugpack_provide(session, name, kind, callback, context, NULL)), "%s", name);
}

bugpack_status try_report(const bugpack_report_request *request) {
    taken = (bugpack_report_result)BUGPACK_REPORT_RESULT_INIT;
    return bugpack_report(session, request, &taken, NULL);
}

void take(const bugpack_report_request *request) {
    cr_assert(zero(int, try_report(request)), "%s", taken.error.message);
}

void take_described(const char *description) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.description = description;
    take(&request);
}

void find_only(void) {
    cr_assert(report_find_only(&dir, taken.path, sizeof taken.path));
}

void close_and_find(void) {
    bugpack_close(session);
    find_only();
}

bool holds(const char *entry, const char *text) {
    return report_entry_contains(taken.path, entry, text);
}

bool pcap_holds(const char *path, const char *text) {
    size_t byte_count = 0;
    char *bytes = report_read(path, "traffic.pcap", &byte_count);
    bool is_there = bytes != NULL && memmem(bytes, byte_count, text, strlen(text)) != NULL;
    free(bytes);
    return is_there;
}

void leave_dead_session(void (*record)(void)) {
    int ready[2];
    char byte;
    options.recorder.dir = dir.path;
    options.recorder.is_in_memory = false;
    cr_assert(pipe(ready) == 0);
    pid_t host = fork();
    if (host == 0) {
        open_session();
        record();
        (void)!write(ready[1], "", 1);
        (void)pause();
    }
    cr_assert(read(ready[0], &byte, 1) == 1);
    (void)kill(host, SIGKILL);
    (void)waitpid(host, NULL, 0);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

void recover_and_find(void) {
    bugpack_recover_options recover = BUGPACK_RECOVER_OPTIONS_INIT;
    recover.recorder_dir = recover.report_dir = dir.path;
    cr_assert(zero(int, bugpack_recover(&recover, NULL)));
    find_only();
}
