/*
 * The command that the library runs to learn the layout of a jemalloc. It is not for people, so no
 * list and no man page has it.
 */
#include <grp.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/command.h"
#include "probe/calibration.h"

const char bp_cli_own_path[] = "/proc/self/exe";

static const char help[] = "Usage: bugpack calibrate-jemalloc DESCRIPTOR SLOT PREFIX\n"
                           "\n"
                           "Not for people: bugpack runs it to learn the layout of a jemalloc.\n";

enum { nobody = 65534 };

static void limit(int resource, rlim_t value) {
    const struct rlimit both = {value, value};
    (void)setrlimit(resource, &both);
}

/*
 * Whatever the library does from here on, it does as nobody, briefly, to no file, and without a
 * child or a thread that could outlive it. Failing to
 * leave root behind is the one thing that ends it.
 */
static bool give_up_privileges(void) {
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_CPU, 1);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    limit(RLIMIT_AS, (rlim_t)2 << 30); /* a sanitizer's shadow is terabytes of address space, */
    limit(RLIMIT_NPROC, 0);            /* and its leak checker a process of its own */
#endif
    return geteuid() != 0 ||
           (setgroups(0, NULL) == 0 && setgid(nobody) == 0 && setuid(nobody) == 0);
}

static bp_cli_exit run(int argument_count, char **arguments) {
    if (!give_up_privileges()) {
        return BP_CLI_FAILED;
    }
    return (bp_cli_exit)bp_calibration_help(argument_count, arguments);
}

const bp_cli_command bp_cli_calibrate_command = {"calibrate-jemalloc", NULL, help, run};
