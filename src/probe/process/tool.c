#include "process/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"

static const uint64_t term_grace_ns = 100 * BP_NS_PER_MS;
static const uint64_t kill_grace_ns = BP_NS_PER_SEC; /* a filter may refuse kill */

struct answer {
    char *text;
    size_t room, length;
};

/* A bp_sink. */
static bugpack_status keep(void *context, const void *bytes, size_t byte_count) {
    struct answer *answer = context;
    if (byte_count >= answer->room - answer->length) {
        return BUGPACK_ERR_LIMIT;
    }
    memcpy(answer->text + answer->length, bytes, byte_count);
    answer->length += byte_count;
    return BUGPACK_OK;
}

int bp_tool_run(const bp_tool *tool, char *out, size_t out_bytes, size_t *ret_length) {
    int ends[2];
    struct answer answer = {out, out_bytes, 0};
    bp_child child = {.pid = 0};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    const bp_child_plan plan = {
        .path = tool->path,
        .arguments = tool->arguments,
        .environment = tool->environment,
        .fds = {BP_CHILD_NULL, ends[1], BP_CHILD_NULL,
                tool->extra_fd >= 0 ? tool->extra_fd : BP_CHILD_OURS},
    };
    int result = bp_child_start(&plan, &child);
    bp_file_close(ends[1]);
    if (result == 0) {
        const bp_child_output outputs[] = {{ends[0], keep, &answer}, {.fd = -1}};
        const bp_child_limits limits = {.deadline_ns = tool->deadline_ns};
        bugpack_status status = bp_child_read(&child, outputs, &limits);
        if (status != BUGPACK_OK && !bp_child_kill(&child, SIGTERM, term_grace_ns)) {
            (void)bp_child_kill(&child, SIGKILL, kill_grace_ns);
        }
        bool is_good = WIFEXITED(child.wait_status) && WEXITSTATUS(child.wait_status) == 0;
        result = status == BUGPACK_OK && is_good ? 0 : EPROTO;
        result = status == BUGPACK_ERR_TIMEOUT ? ETIMEDOUT : result;
    }
    bp_file_close(ends[0]);
    if (result == 0) {
        *ret_length = answer.length;
    }
    return result;
}
