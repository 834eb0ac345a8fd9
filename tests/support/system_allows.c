/*
 * Asks the system itself what a test needs of it, so that the program under test does not decide
 * which of its tests are skipped:
 *
 *     system_allows stacks|profile PID
 *
 * Exits 0 where it may be done to the process, and else 1, with the reason on standard output.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

static int refuse(const char *call) {
    (void)printf("%s: %s\n", call, strerror(errno));
    return 1;
}

int main(int argument_count, char **arguments) {
    if (argument_count != 3) {
        return 2;
    }
    pid_t pid = (pid_t)strtol(arguments[2], NULL, 10);
    if (strcmp(arguments[1], "stacks") == 0) {
        if (dlopen("libdw.so.1", RTLD_NOW) == NULL) {
            (void)printf("%s\n", dlerror());
            return 1;
        }
        return ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0 ? 0 : refuse("ptrace");
    }
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE,
                                    .size = sizeof event,
                                    .config = PERF_COUNT_SW_CPU_CLOCK,
                                    .exclude_kernel = 1,
                                    .exclude_hv = 1};
    return syscall(SYS_perf_event_open, &event, pid, -1, -1, 0) >= 0 ? 0
                                                                     : refuse("perf_event_open");
}
