#include "cli/follow.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "run/descriptor.h"

/* A signal writes to it: the library watches a descriptor. */
static int end_pipe[2] = {-1, -1};

static void on_end(int signal_number) {
    int saved_errno = errno;
    ssize_t ignored = write(end_pipe[1], "", 1);
    (void)ignored;
    (void)signal_number;
    errno = saved_errno;
}

bugpack_status bp_cli_catch_end(int *ret_fd, bugpack_error *error) {
    static const int signals[] = {SIGINT, SIGTERM};
    struct sigaction action = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;
    bugpack_status status = bp_descriptor_pipe(end_pipe, error);
    for (size_t i = 0; status == BUGPACK_OK && i < sizeof signals / sizeof signals[0]; i++) {
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            (void)sigaction(signals[i], &action, NULL);
        }
    }
    *ret_fd = end_pipe[0];
    return status;
}

bool bp_cli_wait_until(int end_fd, uint64_t until_ns) {
    struct pollfd waited = {end_fd, POLLIN, 0};
    int ready;
    do {
        ready = poll(&waited, 1, bp_clock_poll_ms(until_ns));
    } while (ready < 0 && errno == EINTR);
    return ready == 0;
}

const char *bp_cli_format_change(uint64_t before_bytes, uint64_t after_bytes,
                                 char out[BP_CLI_CHANGE_BYTES]) {
    bool is_more = after_bytes > before_bytes;
    char size[BP_CLI_BYTES_BYTES];
    (void)bp_cli_format_bytes(is_more ? after_bytes - before_bytes : before_bytes - after_bytes,
                              size);
    (void)snprintf(out, BP_CLI_CHANGE_BYTES, "%s%s",
                   is_more                      ? "+"
                   : after_bytes < before_bytes ? "-"
                                                : "",
                   size);
    return out;
}
