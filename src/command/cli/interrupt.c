#include "cli/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "run/descriptor.h"

/* A command that prints until it is interrupted ends by a hang-up as any other does. */
static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { ending_signal_count = 3, interrupt_count = 2 };

static volatile sig_atomic_t ended_by, wake_fd;

bool bp_cli_interrupt_came(void) {
    return ended_by != 0;
}

/* Runs with the default action restored (SA_RESETHAND): a second signal ends the program. */
static void end_wait(int signal_number) {
    static const char byte = BP_CLI_SIGNAL_BYTE;
    int saved_errno = errno;
    ended_by = signal_number;
    ssize_t ignored = write(wake_fd, &byte, 1);
    (void)ignored;
    errno = saved_errno;
}

static void catch_signals(size_t count, struct sigaction *ret_before) {
    const struct sigaction action = {.sa_handler = end_wait, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < count; i++) {
        (void)sigaction(ending_signals[i], NULL, &ret_before[i]);
        /* nohup and background jobs ignore some of these. */
        if (ret_before[i].sa_handler != SIG_IGN) {
            (void)sigaction(ending_signals[i], &action, NULL);
        }
    }
}

int bp_cli_interrupt_wait(const int done_pipe[2]) {
    struct sigaction before[ending_signal_count];
    char byte = 0;
    ended_by = 0;
    wake_fd = done_pipe[1];
    catch_signals(ending_signal_count, before);
    while (read(done_pipe[0], &byte, 1) < 0 && errno == EINTR) {}
    for (size_t i = 0; i < ending_signal_count; i++) {
        (void)sigaction(ending_signals[i], &before[i], NULL);
    }
    return byte == BP_CLI_SIGNAL_BYTE ? ended_by : 0;
}

bugpack_status bp_cli_interrupt_catch(int *ret_fd, bugpack_error *error) {
    int ends[2];
    struct sigaction before[ending_signal_count];
    bugpack_status status = bp_descriptor_pipe(ends, error);
    if (status == BUGPACK_OK) {
        wake_fd = ends[1];
        catch_signals(interrupt_count, before);
        *ret_fd = ends[0];
    }
    return status;
}
