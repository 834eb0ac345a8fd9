#include "cli/publish.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/option.h"
#include "cli/output.h"
#include "cli/review.h"

/* The user who called sudo, to whom root gives what it writes. False where nobody did: only root
 * can give a file away, and nobody else has a reason to. */
static bool find_caller(uint64_t *ret_uid, uint64_t *ret_gid) {
    const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
    return getuid() == 0 && geteuid() == 0 && uid != NULL && gid != NULL &&
           bp_cli_parse_number(uid, UINT32_MAX - 1, ret_uid) &&
           bp_cli_parse_number(gid, UINT32_MAX - 1, ret_gid) && *ret_uid != 0;
}

/* Bugpack_before_publish_callbacks. */
static bugpack_status give(const bugpack_unpublished *report, void *context, bugpack_error *error) {
    uint64_t uid, gid;
    (void)context;
    (void)error;
    /* By its descriptor, before it has a name. */
    if (find_caller(&uid, &gid) && fchown(report->zip_fd, (uid_t)uid, (gid_t)gid) != 0) {
        bp_cli_say("the report still belongs to root: %s", strerror(errno));
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
    uint64_t uid, gid;
    if (is_reviewed) {
        return review;
    }
    return find_caller(&uid, &gid) ? give : NULL;
}
