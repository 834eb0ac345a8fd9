#include "report/dead_crash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "model/crash.h"
#include "probe/stacks.h"

static const size_t json_limit_bytes = (size_t)4 << 20;

static const uint64_t unwind_max_ns = 2 * BP_NS_PER_SEC;

/* A process that was seen alive so long after its crash did not die of it. */
static const uint64_t outlived_ns = 60 * BP_NS_PER_SEC;

static bool has_outlived(const bp_crash_page *page, const bp_session_identity *dead) {
    return dead->last_alive.monotonic_ns > page->at.monotonic_ns &&
           dead->last_alive.monotonic_ns - page->at.monotonic_ns > outlived_ns;
}

static void examine(bp_dead_crash *crash, size_t byte_count, const bp_session_identity *dead) {
    switch (bp_crash_page_validate(crash->page, byte_count, dead->session_id)) {
    case BP_CRASH_PAGE_UNUSED:
        crash->reason = "no fatal signal was caught: the process was killed, ended without closing "
                        "its session, or had too small an alternate stack for a handler";
        break;
    case BP_CRASH_PAGE_TORN:
        crash->reason = "the process ended while its crash was being written";
        crash->is_lost = true;
        break;
    case BP_CRASH_PAGE_DAMAGED:
        crash->reason = "what was written is damaged, or of another version";
        crash->is_lost = true;
        break;
    case BP_CRASH_PAGE_WHOLE:
        crash->reason = has_outlived(crash->page, dead)
                            ? "a handler of the host went on after a fatal signal; the process "
                              "ended later"
                            : NULL;
        break;
    }
    if (crash->reason != NULL) {
        bp_dead_crash_release(crash);
    }
}

bugpack_status bp_dead_crash_read(int session_dir_fd, const bp_session_identity *dead,
                                  bp_dead_crash *ret_crash, bugpack_error *error) {
    bp_dead_crash crash = {NULL, NULL, false};
    int fd =
        openat(session_dir_fd, BP_CRASH_PAGE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        *ret_crash = crash;
        return BUGPACK_OK;
    }
    crash.page = fd < 0 ? NULL : malloc(sizeof *crash.page + 1);
    if (fd >= 0 && crash.page == NULL) {
        bp_file_close(fd);
        return bp_fail_memory(error, "read a crash");
    }
    /* One byte more, to see a file that is too long. */
    int64_t count = fd < 0 ? -1 : bp_file_read_range(fd, crash.page, sizeof *crash.page + 1, 0);
    int read_errno = count < 0 ? errno : 0;
    bp_file_close(fd);
    if (count < 0 && !bp_session_errno_is_damage(read_errno)) {
        bp_dead_crash_release(&crash);
        return bp_fail_errno(error, read_errno, "cannot read \"%s\"", BP_CRASH_PAGE_NAME);
    }
    if (count < 0) {
        bp_dead_crash_release(&crash);
        crash.reason = "what was written cannot be read";
        crash.is_lost = true;
    } else {
        examine(&crash, (size_t)count, dead);
    }
    *ret_crash = crash;
    return BUGPACK_OK;
}

void bp_dead_crash_release(bp_dead_crash *crash) {
    free(crash->page);
    crash->page = NULL;
}

bugpack_status bp_dead_crash_print(const bp_crash_page *page, bool is_host, bugpack_writer *writer,
                                   bugpack_error *error) {
    bugpack_error reason = BUGPACK_ERROR_INIT;
    bp_stacks stacks = {.pid = 0};
    bp_crash_backtrace backtrace = {.stacks = &stacks};
    uint64_t now_ns = bp_clock_monotonic_ns();
    const bp_stacks_plan plan = {.deadline_ns = now_ns + unwind_max_ns,
                                 .symbols_until_ns = now_ns + 2 * unwind_max_ns};
    char loss[BP_STACKS_LOSS_BYTES];
    bugpack_status result = bp_stacks_read_crash(page, &plan, is_host, &stacks, &reason);
    if (result != BUGPACK_OK) {
        backtrace = (bp_crash_backtrace){.reason = reason.message};
    }
    if (result == BUGPACK_ERR_NO_MEMORY) {
        bp_writer_truncate(writer, true, "%s", reason.message);
    } else if (bp_stacks_describe_loss(&stacks, loss)) {
        bp_writer_truncate(writer, true, "%s", loss);
    }
    bugpack_status status = bp_crash_print(page, &backtrace, &writer->content, error);
    bp_stacks_release(&stacks);
    return status;
}

bugpack_status bp_dead_crash_add(const bp_dead_crash *crash, bp_bundle *bundle,
                                 bugpack_error *error) {
    bugpack_writer writer;
    bugpack_status status = BUGPACK_OK;
    if (crash->page == NULL && crash->reason == NULL) {
        return BUGPACK_OK;
    }
    bp_writer_init(&writer, json_limit_bytes);
    if (crash->page == NULL) {
        bp_writer_refuse(&writer, crash->is_lost ? BP_ARTEFACT_FAILED : BP_ARTEFACT_OMITTED, "%s",
                         crash->reason);
        writer.line.is_missing = crash->is_lost;
    } else {
        writer.line.captured_wall_ns = crash->page->at.wall_ns;
        status = bp_dead_crash_print(crash->page, true, &writer, error);
    }
    return bp_bundle_put(bundle, "crash.json", status, &writer, error);
}
