#include "cli/core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bugpack/provide.h>

#include "base/child.h"
#include "base/file.h"
#include "base/private_file.h"
#include "cli/output.h"
#include "platform/machine.h"

/* coredumpctl decompresses large cores. */
static const uint64_t extract_max_ns = 600 * BP_NS_PER_SEC;

/* Runs coredumpctl into a file without a name. -1 after a message. */
static int extract(const char *match) {
    const char *const arguments[] = {"coredumpctl", "--quiet", "dump", "--", match, NULL};
    const char *above = bp_machine_environment("TMPDIR");
    above = above != NULL && above[0] == '/' ? above : "/var/tmp";
    int dir_fd = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = dir_fd >= 0 ? bp_private_file_open_unnamed(dir_fd, false) : -1;
    int result = fd < 0 ? errno : 0;
    bp_file_close(dir_fd);
    const bp_child_plan plan = {.arguments = arguments,
                                .environment = environ,
                                .fds = {BP_CHILD_NULL, fd, BP_CHILD_OURS, BP_CHILD_NULL}};
    bp_child child = {.pid = 0};
    if (result != 0) {
        bp_cli_say("cannot make a file in \"%s\": %s", above, strerror(result));
        return -1;
    }
    result = bp_child_start(&plan, &child);
    if (result == ENOENT) {
        bp_cli_say("there is no coredumpctl here: give the core itself to --core");
    } else if (result != 0) {
        bp_cli_say("cannot run coredumpctl: %s", strerror(result));
    } else if (!bp_child_await(&child, extract_max_ns)) {
        (void)bp_child_kill(&child, SIGKILL, BP_NS_PER_SEC);
        bp_cli_say("coredumpctl did not end within ten minutes");
    } else if (!WIFEXITED(child.wait_status) || WEXITSTATUS(child.wait_status) != 0) {
        bp_cli_say("coredumpctl has no core for \"%s\"", match); /* and has said why */
    } else {
        return fd;
    }
    bp_file_close(fd);
    return -1;
}

bugpack_status bp_cli_core_read(bp_cli_core *core) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    char path[32];
    int fd = core->match != NULL ? extract(core->match) : -1;
    if (core->match != NULL && fd < 0) {
        return BUGPACK_ERR_IO;
    }
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bugpack_status status =
        bp_core_file_read(fd >= 0 ? path : core->path, core->exe, &core->file, &error);
    bp_file_close(fd);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return status;
    }
    if (fd >= 0) {
        core->file.page->at.wall_ns = 0; /* it is of the copy */
    }
    return BUGPACK_OK;
}

/* A bugpack_provider_callback of crash.json; its context is the core. */
static int print_crash(bugpack_writer *writer, void *context) {
    const bp_cli_core *core = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status =
        bp_recover_print_crash(core->file.page, &core->file.python, writer, &error);
    if (core->file.missing_bytes > 0) {
        bp_writer_truncate(writer, true, "the core is cut short by %llu KiB: stacks may end early",
                           (unsigned long long)((core->file.missing_bytes >> 10) + 1));
    }
    return status == BUGPACK_OK ? 0 : bugpack_fail(writer, "%s", error.message);
}

bugpack_status bp_cli_core_provide(const bp_cli_core *core, bugpack_session *session) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_crash_page *page = core->file.page;
    bugpack_status status = bp_session_add_crash(session, page, &error);
    if (status == BUGPACK_OK && page->signal != 0) {
        status = bugpack_provide(session, "crash.json", BUGPACK_PROVIDE_JSON, print_crash,
                                 (void *)(uintptr_t)core, &error);
    }
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
    }
    return status;
}

bp_target_end bp_cli_core_end(const bp_cli_core *core) {
    const bp_crash_page *page = core->file.page;
    bp_target_end end = {.exit = {.signal = page->signal, .has_core = page->signal != 0},
                         .crash = page,
                         .dead = {.pid = (pid_t)page->pid}};
    (void)snprintf(end.dead.name, sizeof end.dead.name, "%s", core->file.name);
    return end;
}
