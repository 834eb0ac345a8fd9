#include "report/recover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/metrics.h"
#include "platform/host.h"
#include "recorder/session_dir.h"
#include "recorder/snapshot.h"
#include "report/destination.h"
#include "report/ring_entries.h"

static const size_t json_limit_bytes = (size_t)1 << 20;

static bugpack_status add_metadata(const bp_session_identity *dead, const char *report_id,
                                   bp_bundle *bundle, bugpack_error *error) {
    bp_host_identity host;
    bugpack_writer writer;
    bp_host_identify(&host);
    bp_writer_init(&writer, json_limit_bytes);
    /* The session's clock stopped with it: its uptimes end when it was last seen alive. */
    bp_metadata metadata = {
        .app_name = dead->app_name,
        .app_version = dead->app_version,
        .app_build_id = dead->app_build_id,
        .platform = bp_host_platform(),
        .arch = host.arch,
        .kernel = host.kernel,
        .pid = (pid_t)dead->pid,
        .kind = BP_REPORT_CRASH,
        .session_end = "died",
        .session_opened = dead->opened,
        .triggered = dead->last_alive,
        .written = {.monotonic_ns = dead->last_alive.monotonic_ns, .wall_ns = bp_clock_wall_ns()},
        .target = {.pid = (pid_t)dead->target_pid}};
    if (dead->uptime_ns != 0) {
        metadata.target_uptime_ns =
            dead->uptime_ns + dead->last_alive.monotonic_ns - dead->opened.monotonic_ns;
        metadata.started_wall_ns = dead->last_alive.wall_ns - metadata.target_uptime_ns;
    }
    memcpy(metadata.report_id, report_id, sizeof metadata.report_id);
    memcpy(metadata.session_id, dead->session_id, sizeof metadata.session_id);
    memcpy(metadata.target.name, dead->target_name, sizeof metadata.target.name);
    writer.line.captured_wall_ns = metadata.written.wall_ns;
    bugpack_status status = bp_metadata_print(&metadata, &writer.content, error);
    return bp_bundle_put(bundle, "metadata.json", status, &writer, error);
}

/* Every report has this entry. The process has ended, so its absence is not a missing entry. */
static bugpack_status add_metrics(bp_bundle *bundle, bugpack_error *error) {
    static const char reason[] = "the process had ended";
    bugpack_writer writer;
    bp_writer_init(&writer, json_limit_bytes);
    bugpack_status status =
        bp_metrics_print_unavailable(bp_host_platform(), reason, &writer.content, error);
    writer.line.status = BP_ARTEFACT_OMITTED;
    writer.line.captured_wall_ns = bp_clock_wall_ns();
    (void)snprintf(writer.line.reason, sizeof writer.line.reason, "%s", reason);
    return bp_bundle_put(bundle, "runtime-metrics.json", status, &writer, error);
}

static bugpack_status write_report(const bp_found_session *found, const char *report_dir,
                                   bp_snapshot *snapshot, bugpack_report_result *result) {
    const bp_session_identity *dead = &found->identity;
    bp_destination destination = BP_DESTINATION_INIT;
    char report_id[BP_ID_BYTES];
    bp_bundle *bundle = NULL;
    bp_id_new(report_id);
    const bp_destination_request request = {.app_name = dead->app_name,
                                            .kind = BP_REPORT_CRASH,
                                            .wall_ns = dead->last_alive.wall_ns,
                                            .report_dir =
                                                report_dir != NULL ? report_dir : dead->report_dir};
    bugpack_status status = bp_destination_open(&request, &destination, &result->error);
    if (status == BUGPACK_OK) {
        const bp_bundle_target target = {.dir_fd = destination.dir_fd,
                                         .dir_name = destination.dir_path,
                                         .report_id = report_id,
                                         .wall_ns = dead->last_alive.wall_ns};
        status = bp_bundle_new(&target, &bundle, &result->error);
    }
    if (status == BUGPACK_OK) {
        bp_recover_rings(found->dir_fd, dead, destination.dir_fd, snapshot);
        status = bp_ring_entries_add(snapshot, NULL, bundle, &result->error);
    }
    if (status == BUGPACK_OK) {
        status = add_metadata(dead, report_id, bundle, &result->error);
    }
    if (status == BUGPACK_OK) {
        status = add_metrics(bundle, &result->error);
    }
    if (status == BUGPACK_OK) {
        status = bp_destination_publish(&destination, bundle, result, &result->error);
    }
    bp_bundle_free(bundle);
    bp_destination_release(&destination);
    return status;
}

/*
 * The lock of a dead session is also held by another recoverer: then it is not the process that
 * made the session. A session that ends between two looks at it is left to the next try.
 */
static bool is_other_running(const bp_found_session *found) {
    int64_t maker = found->identity.pid;
    return found->state == BP_SESSION_DIR_RUNNING && found->pid >= 0 &&
           (found->pid == 0 || maker == 0 || maker == found->pid);
}

static bool recover_session_dir(const bp_found_session *found, void *context) {
    const bp_recover_request *request = context;
    if (is_other_running(found) && request->on_running != NULL) {
        const bugpack_running_session running = {.struct_size = sizeof running,
                                                 .app_name = found->identity.app_name,
                                                 .pid = found->pid,
                                                 .name = found->name};
        request->on_running(&running, request->context);
    }
    if (found->state != BP_SESSION_DIR_DEAD) {
        return false;
    }
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    uint64_t began_ns = bp_clock_monotonic_ns();
    bp_snapshot *snapshot = calloc(1, sizeof *snapshot);
    result.status = snapshot == NULL ? bp_fail_memory(&result.error, "recover a session")
                                     : write_report(found, request->report_dir, snapshot, &result);
    if (snapshot != NULL) {
        bp_snapshot_release(snapshot);
    }
    free(snapshot);
    result.elapsed_ns = bp_clock_monotonic_ns() - began_ns;
    if (request->on_report != NULL) {
        request->on_report(&result, request->context);
    }
    return result.status == BUGPACK_OK;
}

bugpack_status bp_recover(const bp_recover_request *request, bugpack_error *error) {
    bp_recover_request copy = *request;
    return bp_session_dir_scan(request->recorder_dir, request->app_name, recover_session_dir, &copy,
                               error);
}
