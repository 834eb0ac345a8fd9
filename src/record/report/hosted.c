#include "report/hosted.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "platform/machine.h"
#include "recorder/monitor.h"

void bp_hosted_free(bp_hosted *hosted) {
    if (hosted != NULL) {
        bp_redaction_free(hosted->redaction);
        free(hosted);
    }
}

void bp_hosted_describe(const bp_hosted *hosted, bp_metadata *metadata) {
    const bp_session_identity *identity = &hosted->identity;
    memcpy(metadata->target.session_id, identity->session_id, sizeof identity->session_id);
    if (strcmp(metadata->app_name, metadata->target.name) == 0) {
        metadata->app_name = identity->app_name;
        metadata->app_version = identity->app_version;
        metadata->app_build_id = identity->app_build_id;
    }
}

/* The result of a search for the session of a process. */
struct search {
    bp_session_identity identity;
    int session_fd; /* -1: none yet */
};

/* Of bp_mapped_dirs: the first session of the process counts. */
static bugpack_status see_session(void *context, pid_t pid, int dir_fd, bugpack_error *error) {
    struct search *found = context;
    bp_session_identity identity;
    (void)error;
    if (bp_session_is_of(dir_fd, pid, &identity) &&
        (found->session_fd < 0 ||
         identity.opened.monotonic_ns < found->identity.opened.monotonic_ns)) {
        bp_file_close(found->session_fd);
        *found = (struct search){identity, dir_fd};
    } else {
        bp_file_close(dir_fd);
    }
    return BUGPACK_OK;
}

bugpack_status bp_hosted_take(pid_t pid, const bp_redaction *ours, int dir_fd,
                              const bp_cancel_token *token, bp_snapshot *snapshot,
                              bp_hosted **ret_hosted, bugpack_error *error) {
    struct search found = {.session_fd = -1};
    const bp_mapped_dirs dirs = {bp_session_is_name, see_session, &found};
    bp_hosted *hosted = NULL;
    bp_snapshot_init(snapshot, token, 0);
    bugpack_status status = bp_mapped_dirs_visit(&dirs, pid, error);
    if (status == BUGPACK_OK && found.session_fd >= 0) {
        hosted = calloc(1, sizeof *hosted);
        if (hosted == NULL) {
            status = bp_fail_memory(error, "copy the rings of a process");
            goto out;
        }
        bp_session_identity *identity = &hosted->identity;
        *identity = found.identity;
        identity->wall_offset_ns = identity->opened.wall_ns - identity->opened.monotonic_ns;
        /* By its own clock, which may be of another time namespace. */
        (void)bp_session_files_read_alive(found.session_fd, identity);
        status = bp_redaction_load(found.session_fd, ours, &hosted->redaction, error);
        if (status == BUGPACK_OK) { /* a ring that cannot be copied costs itself */
            (void)bp_recover_rings(found.session_fd, identity, true, dir_fd, token, snapshot, NULL);
        }
    } else if (status == BUGPACK_OK && pid != getpid() &&
               bp_process_has_thread(pid, BP_MONITOR_THREAD)) {
        bp_snapshot_part *log = &snapshot->parts[BP_RING_KIND_LOG];
        log->is_on = true;
        (void)bp_fail(&log->error, BUGPACK_ERR_UNSUPPORTED,
                      "the rings of the process are in memory, or its files may not be read");
    }
out:
    bp_file_close(found.session_fd);
    if (status != BUGPACK_OK) {
        bp_hosted_free(hosted);
        return status;
    }
    *ret_hosted = hosted;
    return BUGPACK_OK;
}
