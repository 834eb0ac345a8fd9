#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/message.h"
#include "cli/provide.h"
#include "cli/run_options.h"
#include "cli/run_session.h"
#include "run/child.h"
#include "run/relay.h"

/* As env(1), nice(1) and every shell say it. */
enum { exit_cannot_execute = 126, exit_not_found = 127, exit_signal_base = 128 };

/* Ends this program as the command was ended, so that our parent sees the same; without a core of
 * our own beside the command's. */
static bp_cli_exit end_by_signal(int number) {
    const struct rlimit no_core = {0, 0};
    sigset_t set;
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(number, SIG_DFL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, number);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)raise(number);
    return (bp_cli_exit)(exit_signal_base + number);
}

static bp_cli_exit say_not_started(const bp_cli_run_options *options, const bugpack_error *error) {
    if (error->system_errno == 0) {
        bp_cli_say("%s", error->message);
        return BP_CLI_FAILED;
    }
    bp_cli_say("cannot run '%s': %s", options->arguments[0], strerror(error->system_errno));
    return (bp_cli_exit)(error->system_errno == ENOENT ? exit_not_found : exit_cannot_execute);
}

/* Lets the command go, and stays with it to its end. */
static bp_cli_exit accompany(bp_cli_run_options *options, bp_run_child *child,
                             bp_cli_run_session *session, bp_run_end *ret_end) {
    const bp_run_calls calls = {.output = bp_cli_run_session_output,
                                .report = bp_cli_run_session_report,
                                .started = bp_cli_run_session_started,
                                .context = session};
    bp_run_result result = {.is_lost = false};
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_run_relay(child, &options->hotkey, &calls, &result, &error) != BUGPACK_OK) {
        return say_not_started(options, &error);
    }
    bp_cli_run_session_end(session, &result);
    if (result.is_lost) {
        bp_cli_say("the process that watched the command was killed: its exit status is not known");
    }
    *ret_end = result.end;
    return BP_CLI_COMPLETE;
}

static bp_cli_exit run_command(bp_cli_run_options *options) {
    if (bp_cli_check_session_file(options->session_path) != BUGPACK_OK) {
        return BP_CLI_FAILED;
    }
    bp_run_child child;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_run_child_start(options->arguments, bp_cli_pipe_was_ignored, &child, &error) !=
        BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return BP_CLI_FAILED;
    }
    bp_cli_run_session *session = NULL;
    bp_run_end end = {.is_signal = false};
    bp_cli_exit result = bp_cli_run_session_open(options, &child, &session);
    if (result == BP_CLI_COMPLETE) {
        result = accompany(options, &child, session, &end);
    }
    bp_run_child_reap(&child);
    bp_cli_run_session_close(session);
    if (result != BP_CLI_COMPLETE) {
        return result;
    }
    return end.is_signal ? end_by_signal(end.value) : (bp_cli_exit)end.value;
}

static bp_cli_exit run(int argument_count, char **arguments) {
    bp_cli_run_options options;
    bp_cli_exit result = BP_CLI_USAGE;
    if (!bp_cli_run_options_init(&options)) {
        bp_cli_say("cannot read the command line: out of memory");
        result = BP_CLI_FAILED;
    } else if (bp_cli_run_options_parse(&options, argument_count, arguments)) {
        result = options.help ? bp_cli_print(bp_cli_run_help) : run_command(&options);
    }
    bp_cli_run_options_release(&options);
    return result;
}

const bp_cli_command bp_cli_run_command = {"run", "run a command under a recorder", bp_cli_run_help,
                                           run};
