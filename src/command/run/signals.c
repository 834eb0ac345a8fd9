#include "run/signals.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/status.h"
#include "run/descriptor.h"

static const int caught[] = {SIGCHLD, SIGWINCH, SIGCONT, SIGUSR1, SIGHUP, SIGINT,
                             SIGQUIT, SIGTERM,  SIGUSR2, SIGALRM, SIGTSTP};
enum { always_count = 4, caught_count = sizeof caught / sizeof caught[0] };

/* A process has one set of signal handlers. */
static struct sigaction before[caught_count];
static bool is_caught[caught_count];
static int pipe_fds[2] = {-1, -1};

static void note(int number, siginfo_t *info, void *machine) {
    (void)machine;
    int interrupted_errno = errno;
    /* Signals from processes have a code of 0 or less, those from the kernel a larger one. */
    bp_run_signal noted = {(unsigned char)number, info != NULL && info->si_code > 0};
    /* A full pipe holds thousands of the same. */
    ssize_t ignored = write(pipe_fds[1], &noted, sizeof noted);
    (void)ignored;
    errno = interrupted_errno;
}

bugpack_status bp_run_signals_catch(bool with_stop, bugpack_error *error) {
    bugpack_status status = bp_descriptor_pipe(pipe_fds, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (!bp_descriptor_stop_blocking(pipe_fds[0]) || !bp_descriptor_stop_blocking(pipe_fds[1])) {
        status = bp_fail_errno(error, errno, "cannot wait for signals");
        bp_descriptor_close(&pipe_fds[0]);
        bp_descriptor_close(&pipe_fds[1]);
        return status;
    }
    /* Without SA_RESTART: a write to a terminal that takes nothing must not delay a signal. */
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_NOCLDSTOP};
    (void)sigfillset(&action.sa_mask);
    for (size_t i = 0; i < caught_count; i++) {
        (void)sigaction(caught[i], NULL, &before[i]);
        bool is_wanted = caught[i] != SIGTSTP || with_stop;
        is_caught[i] = is_wanted && (i < always_count || before[i].sa_handler != SIG_IGN);
        if (is_caught[i]) {
            (void)sigaction(caught[i], &action, NULL);
        }
    }
    return BUGPACK_OK;
}

void bp_run_signals_release(void) {
    for (size_t i = 0; i < caught_count; i++) {
        if (is_caught[i]) {
            (void)sigaction(caught[i], &before[i], NULL);
            is_caught[i] = false;
        }
    }
    bp_descriptor_close(&pipe_fds[0]);
    bp_descriptor_close(&pipe_fds[1]);
}

bool bp_run_signals_next(bp_run_signal *ret_signal) {
    ssize_t count;
    do {
        count = read(pipe_fds[0], ret_signal, sizeof *ret_signal);
    } while (count < 0 && errno == EINTR);
    return count == (ssize_t)sizeof *ret_signal;
}

int bp_run_signals_fd(void) {
    return pipe_fds[0];
}
