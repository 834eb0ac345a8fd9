/*
 * The commands that look at other processes, on macOS.
 */
#include "cli/command.h"
#include "cli/output.h"

static bp_cli_exit refuse(void *none, char **words) {
    (void)none;
    (void)words;
    bp_cli_say("this command looks at other processes, which needs Linux");
    return BP_CLI_FAILED;
}

#define NEEDS_LINUX(id)                                                                            \
    const bp_cli_command bp_cli_##id##_command = {                                                 \
        .name = #id, .usage = "bugpack " #id " needs Linux.\n", .run = refuse};
NEEDS_LINUX(capture)
NEEDS_LINUX(heap)
NEEDS_LINUX(run)
NEEDS_LINUX(sample)
NEEDS_LINUX(symbolize)
NEEDS_LINUX(trigger)
NEEDS_LINUX(watch)
NEEDS_LINUX(why)
NEEDS_LINUX(calibrate)
NEEDS_LINUX(copy_threads)
