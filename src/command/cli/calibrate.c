/*
 * The commands that the library runs: one learns the layout of a jemalloc, the other stops threads
 * of the process that runs it. They are not for people, so they are in no list and have no man
 * page.
 */
#include <grp.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "cli/command.h"
#include "heap/calibration.h"
#include "stacks/thread_stop.h"

enum { nobody = 65534 };

static void limit(int resource, rlim_t value) {
    const struct rlimit both = {value, value};
    (void)setrlimit(resource, &both);
}

/*
 * Limits what the loaded library can do from here on: it runs as nobody, briefly, writes no file
 * and starts no process. Only a failure to leave root is an error.
 */
static bool give_up_privileges(void) {
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_CPU, 1);
#if !BP_SANITIZED
    limit(RLIMIT_AS, (rlim_t)2 << 30); /* a sanitizer maps terabytes, and */
    limit(RLIMIT_NPROC, 0);            /* its leak checker is a process */
#endif
    return geteuid() != 0 ||
           (setgroups(0, NULL) == 0 && setgid(nobody) == 0 && setuid(nobody) == 0);
}

static int count(char **words) {
    int word_count = 0;
    while (words[word_count] != NULL) {
        word_count++;
    }
    return word_count;
}

static bp_cli_exit run(void *none, char **words) {
    (void)none;
    if (!give_up_privileges()) {
        return BP_CLI_FAILED;
    }
    return (bp_cli_exit)bp_calibration_help(count(words), words);
}

const bp_cli_command bp_cli_calibrate_command = {
    "calibrate-jemalloc",
    NULL,
    "Usage: bugpack calibrate-jemalloc DESCRIPTOR SLOT PREFIX\n"
    "\n"
    "Not for people: bugpack runs it to learn the layout of a jemalloc.\n",
    NULL,
    NULL,
    0,
    .run = run};

static bp_cli_exit run_copy(void *none, char **words) {
    (void)none;
    return (bp_cli_exit)bp_stop_help(count(words), words);
}

const bp_cli_command bp_cli_copy_threads_command = {
    "copy-threads",
    NULL,
    "Usage: bugpack copy-threads PID\n"
    "\n"
    "Not for people: a host runs it to get the stacks of its running threads.\n",
    NULL,
    NULL,
    0,
    .run = run_copy};
