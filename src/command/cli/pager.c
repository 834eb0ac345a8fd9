#include "cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "cli/words.h"
#include "run/descriptor.h"

static struct {
    bp_child child; /* none: `pid` is 0 */
    int terminal_fd;
    struct sigaction interrupt;
} pager;

void bp_cli_pager_begin(void) {
    const char *wanted = getenv("PAGER"), *reason;
    int ends[2];
    if (isatty(STDOUT_FILENO) != 1) {
        return;
    }
    char **words = bp_cli_words(wanted != NULL ? wanted : "less", &reason);
    if (words == NULL || strcmp(words[0], "cat") == 0 || fflush(stdout) != 0 ||
        bp_descriptor_pipe(ends, NULL) != BUGPACK_OK) {
        free(words);
        return;
    }
    (void)setenv("LESS", "FRX", 0);
    (void)setenv("LV", "-c", 0);
    const bp_child_plan plan = {.arguments = (const char *const *)words,
                                .environment = environ,
                                .fds = {ends[0], BP_CHILD_OURS, BP_CHILD_OURS, BP_CHILD_OURS}};
    pager.terminal_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (pager.terminal_fd >= 0 && bp_child_start(&plan, &pager.child) == 0) {
        /* Ctrl-C is for the pager. */
        const struct sigaction ignore = {.sa_handler = SIG_IGN};
        (void)sigaction(SIGINT, &ignore, &pager.interrupt);
        (void)dup2(ends[1], STDOUT_FILENO);
    } else {
        bp_file_close(pager.terminal_fd);
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
    free(words);
}

void bp_cli_pager_end(void) {
    if (pager.child.pid == 0) {
        return;
    }
    if (fflush(stdout) != 0 && errno == EPIPE) {
        clearerr(stdout);
    }
    (void)dup2(pager.terminal_fd, STDOUT_FILENO); /* closes the pipe */
    (void)close(pager.terminal_fd);
    /* As long as the user reads. */
    while (waitpid(pager.child.pid, NULL, 0) < 0 && errno == EINTR) {}
    (void)sigaction(SIGINT, &pager.interrupt, NULL);
}
