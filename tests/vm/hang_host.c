/*
 * A host whose loop beats ten times a second: hang_host DIRECTORY. Its reports go to the directory.
 * It tells "ready", and the end of each hang. At SIGUSR1 the loop does not beat for 2.5 s; at
 * SIGTERM the session is closed.
 */
#include <bugpack/bugpack.h>
#include <bugpack/watchdog.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t is_to_hang, is_to_end;

static void take_signal(int number) {
    if (number == SIGUSR1) {
        is_to_hang = 1;
    } else {
        is_to_end = 1;
    }
}

static void tell(const bugpack_event *event, void *context) {
    (void)context;
    if (event->kind == BUGPACK_EVENT_HANG_ENDED) {
        (void)printf("ended after %u ms\n", (unsigned)event->duration_ms);
        (void)fflush(stdout);
    }
}

int main(int argument_count, char **arguments) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_watchdog *watchdog = NULL;
    bugpack_session *session = NULL;
    options.app_name = "hang_host";
    options.report_dir = argument_count > 1 ? arguments[1] : NULL;
    options.on_event = tell;
    (void)signal(SIGUSR1, take_signal);
    (void)signal(SIGTERM, take_signal);
    if (bugpack_open(&options, &session, &error) != BUGPACK_OK ||
        bugpack_watchdog_open(session, "loop", 1000, &watchdog, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "hang_host: %s\n", error.message);
        return 1;
    }
    (void)puts("ready");
    (void)fflush(stdout);
    while (!is_to_end) {
        bool is_hanging = is_to_hang != 0;
        is_to_hang = 0;
        bugpack_watchdog_beat(watchdog);
        (void)usleep(is_hanging ? 2500000 : 100000);
    }
    bugpack_close(session);
    return 0;
}
