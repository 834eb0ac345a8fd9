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

enum { word_max = 16, command_bytes = 1024 };

static struct {
    bp_child child; /* none: `pid` is 0 */
    int terminal_fd;
    struct sigaction interrupt;
} pager;

/* The words of a command, to a NULL; none where it has too many. */
static void split(char *command, const char *ret_words[word_max + 1]) {
    size_t count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(command, " \t", &rest); word != NULL && count <= word_max;
         word = strtok_r(NULL, " \t", &rest)) {
        ret_words[count++] = word;
    }
    ret_words[count <= word_max ? count : 0] = NULL;
}

void bp_cli_pager_begin(void) {
    const char *wanted = getenv("PAGER"), *words[word_max + 1];
    char command[command_bytes];
    int ends[2];
    wanted = wanted != NULL ? wanted : "less";
    if (strlen(wanted) >= sizeof command || isatty(STDOUT_FILENO) != 1) {
        return;
    }
    memcpy(command, wanted, strlen(wanted) + 1);
    split(command, words);
    if (words[0] == NULL || strcmp(words[0], "cat") == 0 || fflush(stdout) != 0 ||
        pipe(ends) != 0) {
        return;
    }
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    (void)setenv("LESS", "FRX", 0);
    (void)setenv("LV", "-c", 0);
    const bp_child_plan plan = {.arguments = words,
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
