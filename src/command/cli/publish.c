#include "cli/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "cli/output.h"
#include "cli/review.h"

/* Digits alone. */
static bool read_id(const char *name, uint32_t *ret_id) {
    const char *text = getenv(name);
    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return false;
    }
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *ret_id = (uint32_t)value;
    return *end == '\0' && errno == 0 && value < UINT32_MAX;
}

/* Who called sudo: what root writes for them is theirs. False where nobody did: only root can give
 * a file away, and nobody else has a reason to. */
static bool find_caller(uid_t *ret_uid, gid_t *ret_gid) {
    return getuid() == 0 && geteuid() == 0 && read_id("SUDO_UID", ret_uid) &&
           read_id("SUDO_GID", ret_gid) && *ret_uid != 0;
}

/* Bugpack_before_publish_callbacks. */
static bugpack_status give(const bugpack_unpublished *report, void *context, bugpack_error *error) {
    uid_t uid;
    gid_t gid;
    (void)context;
    (void)error;
    /* By its descriptor, before it has a name. */
    if (find_caller(&uid, &gid) && fchown(report->zip_fd, uid, gid) != 0) {
        bp_cli_say("what was written still belongs to root: %s", strerror(errno));
    }
    return BUGPACK_OK;
}

static bugpack_status review(const bugpack_unpublished *report, void *context,
                             bugpack_error *error) {
    bugpack_status status =
        bp_cli_review_ask(report->zip_fd, "Write this report", "written", error);
    return status == BUGPACK_OK ? give(report, context, error) : status;
}

bugpack_before_publish_callback *bp_cli_publish_call(bool is_reviewed) {
    uid_t uid;
    gid_t gid;
    if (is_reviewed) {
        return review;
    }
    return find_caller(&uid, &gid) ? give : NULL;
}

bugpack_status bp_cli_publish_take(const bugpack_unpublished *report, void *context,
                                   bugpack_error *error) {
    bp_cli_taken *taken = context;
    bugpack_before_publish_callback *publish = bp_cli_publish_call(taken->is_reviewed);
    bugpack_status status = publish != NULL ? publish(report, NULL, error) : BUGPACK_OK;
    if (status != BUGPACK_OK) {
        return status;
    }
    taken->fd = fcntl(report->zip_fd, F_DUPFD_CLOEXEC, 0);
    if (taken->fd < 0) {
        return bp_fail_errno(error, errno, "cannot read the report");
    }
    return taken->is_kept ? BUGPACK_OK : BUGPACK_ERR_CANCELLED;
}
