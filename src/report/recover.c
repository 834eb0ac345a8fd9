#include "report/recover.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "model/metrics.h"
#include "platform/machine.h"
#include "platform/ring_dirs.h"
#include "recorder/session_scan.h"
#include "recorder/snapshot.h"
#include "report/dead_crash.h"
#include "report/destination.h"
#include "report/limits.h"
#include "report/redaction.h"
#include "report/ring_entries.h"
#include "report/stored_entries.h"

static const size_t json_limit_bytes = (size_t)1 << 20;

/* When a session was last known to run: at its newest record, or when it was last noted to be
 * alive. Without its own file the clocks of its records may be of another start of the machine. */
static bp_instant last_known(const bp_found_session *found, const bp_snapshot *snapshot) {
    bp_instant last = found->identity.last_alive;
    uint64_t newest_ns = bp_snapshot_newest_ns(snapshot);
    if (found->identity_error.status == BUGPACK_OK && newest_ns > last.monotonic_ns) {
        last = (bp_instant){newest_ns, newest_ns + snapshot->wall_offset_ns};
    }
    return last;
}

static bugpack_status add_metadata(const bp_found_session *found, bp_instant last,
                                   const bp_machine_identity *host, const char *report_id,
                                   const bp_crash_page *crash, const bp_tag_set *tags,
                                   bp_bundle *bundle, bugpack_error *error) {
    const bp_session_identity *dead = &found->identity;
    bugpack_writer writer;
    bp_writer_init(&writer, json_limit_bytes);
    const bugpack_exit end = {.signal = crash != NULL ? crash->signal : 0};
    /* The session's clock stopped with it: its uptimes end when it was last known to run. */
    bp_metadata metadata = {
        .app_name = dead->app_name,
        .app_version = dead->app_version,
        .app_build_id = dead->app_build_id,
        .platform = bp_machine_platform(),
        .arch = host->arch,
        .kernel = host->kernel,
        .machine = dead->machine[0] != '\0' ? dead->machine : host->name,
        .pid = (pid_t)dead->pid,
        .kind = BP_REPORT_CRASH,
        .session_end = "died",
        .session_opened = dead->opened,
        .triggered = crash != NULL ? crash->at : last,
        .exit = crash != NULL && crash->was_passed_to_host == 0 ? &end : NULL,
        .is_core_unknown = true,
        .tags = tags == NULL ? NULL : tags->tags,
        .tag_count = tags == NULL ? 0 : tags->count,
        .written = {.monotonic_ns = last.monotonic_ns, .wall_ns = bp_clock_wall_ns()},
        .target = {.pid = (pid_t)dead->target_pid}};
    if (dead->uptime_ns != 0) {
        metadata.target_uptime_ns = dead->uptime_ns + last.monotonic_ns - dead->opened.monotonic_ns;
        metadata.started_wall_ns = last.wall_ns - metadata.target_uptime_ns;
    }
    memcpy(metadata.report_id, report_id, sizeof metadata.report_id);
    memcpy(metadata.session_id, dead->session_id, sizeof metadata.session_id);
    memcpy(metadata.target.name, dead->target_name, sizeof metadata.target.name);
    writer.line.captured_wall_ns = metadata.written.wall_ns;
    if (found->identity_error.status != BUGPACK_OK) {
        bp_writer_truncate(&writer, true, "of the session %s; the times are those of its files",
                           found->identity_error.message);
    }
    bugpack_status status = bp_metadata_print(&metadata, &writer.content, error);
    return bp_bundle_put(bundle, "metadata.json", status, &writer, error);
}

/* Every report has this entry. The process has ended, so its absence is not a missing entry. */
static bugpack_status add_metrics(bp_bundle *bundle, bugpack_error *error) {
    static const char reason[] = "the process had ended";
    bugpack_writer writer;
    bp_writer_init(&writer, json_limit_bytes);
    bugpack_status status =
        bp_metrics_print_unavailable(bp_machine_platform(), reason, &writer.content, error);
    writer.line.status = BP_ARTEFACT_OMITTED;
    writer.line.captured_wall_ns = bp_clock_wall_ns();
    (void)snprintf(writer.line.reason, sizeof writer.line.reason, "%s", reason);
    return bp_bundle_put(bundle, "runtime-metrics.json", status, &writer, error);
}

/* Where the report of a session goes. */
static bugpack_status open_destination(const bp_recover_request *request,
                                       const bp_found_session *found, uint64_t wall_ns,
                                       bp_destination *ret_destination, bugpack_error *error) {
    const bp_session_identity *dead = &found->identity;
    char default_dir[PATH_MAX];
    bp_destination_request wanted = {.app_name = dead->app_name,
                                     .kind = BP_REPORT_CRASH,
                                     .wall_ns = wall_ns,
                                     .report_dir = request->report_dir != NULL ? request->report_dir
                                                                               : dead->report_dir};
    if (wanted.report_dir[0] == '\0') { /* its identity is lost */
        bugpack_status status = bp_machine_report_directory(default_dir, sizeof default_dir, error);
        if (status == BUGPACK_OK) {
            status = bp_file_make_path(default_dir, error);
        }
        if (status != BUGPACK_OK) {
            return status;
        }
        wanted.report_dir = default_dir;
        wanted.is_private = true;
    }
    bugpack_status status = bp_destination_open(&wanted, ret_destination, error);
    if (status == BUGPACK_OK) {
        const bp_session_place place = {.dir_fd = found->dir_fd};
        uint64_t used_bytes = bp_recover_used_bytes(&place);
        status = bp_limits_check_room(request->min_free_bytes, ret_destination,
                                      bp_bundle_needed_bytes(used_bytes), error);
    }
    return status;
}

/* The session's own file is not synced either: a loss of power soon after the start empties it. */
static const char *describe_restart(const bp_found_session *found,
                                    const bp_machine_identity *host) {
    const char *boot_id = found->identity.boot_id;
    if (found->identity_error.status != BUGPACK_OK) {
        return "; the machine may have been restarted: the newest may be missing";
    }
    bool was_restarted =
        boot_id[0] != '\0' && host->boot_id[0] != '\0' && strcmp(boot_id, host->boot_id) != 0;
    return was_restarted ? "; the machine was restarted: the newest may be missing" : NULL;
}

static bugpack_status write_report(const bp_recover_request *request, const bp_found_session *found,
                                   bp_snapshot *snapshot, bugpack_report_result *result) {
    const bp_session_identity *dead = &found->identity;
    const bp_session_place place = {.dir_fd = found->dir_fd};
    bp_destination destination = BP_DESTINATION_INIT;
    bp_machine_identity host;
    char report_id[BP_ID_BYTES];
    bp_bundle *bundle = NULL;
    bugpack_error *error = &result->error;
    bp_redaction *redaction = NULL;
    bp_rule_set *rules = NULL;
    bp_dead_crash crash = {NULL, NULL, false};
    bp_tags *tags = NULL;
    bp_id_new(report_id);
    bp_machine_identify(&host);
    if (!request->with_machine) {
        host.name[0] = '\0';
    }
    bugpack_status status = bp_dead_crash_read(found->dir_fd, dead, &crash, error);
    bp_instant last = dead->last_alive;
    if (status == BUGPACK_OK) {
        status = open_destination(request, found, last.wall_ns, &destination, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_recover_rings(&place, dead, destination.dir_fd, snapshot, error);
        snapshot->restart = describe_restart(found, &host);
        last = last_known(found, snapshot);
        destination.wall_ns = crash.page != NULL ? crash.page->at.wall_ns : last.wall_ns;
    }
    if (status == BUGPACK_OK) {
        status = bp_redaction_load(&place, NULL, &redaction, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_redaction_hold(redaction, &rules, error);
    }
    if (status == BUGPACK_OK) {
        const bp_bundle_target target = {.dir_fd = destination.dir_fd,
                                         .dir_name = destination.dir_path,
                                         .report_id = report_id,
                                         .wall_ns = destination.wall_ns,
                                         .is_strict = true,
                                         .rules = rules,
                                         .hook = request->hook,
                                         .lacks_before_write = bp_before_write_was_set(&place)};
        status = bp_bundle_new(&target, &bundle, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_ring_entries_add(snapshot, NULL, NULL, bundle, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_dead_crash_add(&crash, bundle, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_tags_new(&tags, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_stored_entries_add(found->dir_fd, destination.wall_ns, tags, bundle, error);
    }
    if (status == BUGPACK_OK) {
        bp_tag_set *set = bp_tags_hold(tags);
        status = add_metadata(found, last, &host, report_id, crash.page, set, bundle, error);
        bp_tag_set_drop(set);
    }
    if (status == BUGPACK_OK) {
        status = add_metrics(bundle, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_destination_publish(&destination, bundle, result, error);
    }
    bp_tags_free(tags);
    bp_bundle_free(bundle);
    bp_dead_crash_release(&crash);
    bp_rule_set_drop(rules);
    bp_redaction_free(redaction);
    bp_destination_release(&destination);
    return status;
}

/* One directory that is searched. */
struct search {
    const bp_recover_request *request;
    const char *path;
    bugpack_error *failure; /* the first thing that could not be looked at */
};

static void tell(const struct search *search, bugpack_recover_note_kind kind, const char *text) {
    if (search->request->on_note != NULL) {
        const bugpack_recover_note note = {
            .struct_size = sizeof note, .path = search->path, .text = text, .kind = kind};
        search->request->on_note(&note, search->request->context);
    }
}

static void tell_unseen(const struct search *search, const bugpack_error *error) {
    if (search->failure->status == BUGPACK_OK) {
        *search->failure = *error;
    }
    tell(search, BUGPACK_RECOVER_UNSEEN, error->message);
}

static void tell_running(const struct search *search, const bp_found_session *found) {
    if (search->request->on_running != NULL) {
        const bugpack_running_session running = {.struct_size = sizeof running,
                                                 .app_name = found->identity.app_name,
                                                 .pid = found->pid,
                                                 .name = found->name};
        search->request->on_running(&running, search->request->context);
    }
}

/* A failure says where the session waits for the next try. */
static void append_place(const struct search *search, const char *name, bugpack_error *error) {
    size_t used = strlen(error->message);
    int added = snprintf(error->message + used, sizeof error->message - used,
                         "; it is kept in \"%s/%s\"", search->path, name);
    if (added < 0 || (size_t)added >= sizeof error->message - used) {
        error->message[used] = '\0';
    }
}

static bool recover_dead(const struct search *search, const bp_found_session *found) {
    const bp_recover_request *request = search->request;
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    uint64_t began_ns = bp_clock_monotonic_ns();
    if (found->identity_error.status != BUGPACK_OK && !found->has_rings) {
        return true; /* it was killed while it was opened or closed, and has recorded nothing */
    }
    bp_snapshot *snapshot = calloc(1, sizeof *snapshot);
    result.status = snapshot == NULL ? bp_fail_memory(&result.error, "recover a session")
                                     : write_report(request, found, snapshot, &result);
    if (snapshot != NULL) {
        bp_snapshot_release(snapshot);
    }
    free(snapshot);
    if (result.status != BUGPACK_OK) {
        append_place(search, found->name, &result.error);
    }
    result.elapsed_ns = bp_clock_monotonic_ns() - began_ns;
    if (request->on_report != NULL) {
        request->on_report(&result, request->context);
    }
    return result.status == BUGPACK_OK;
}

static bool visit(const bp_found_session *found, void *context) {
    const struct search *search = context;
    switch (found->state) {
    case BP_FOUND_DEAD:
        return recover_dead(search, found);
    case BP_FOUND_RUNNING:
        tell_running(search, found);
        break;
    case BP_FOUND_UNSEEN:
        tell_unseen(search, &found->error);
        break;
    }
    return false;
}

static void dropped(const char *name, uint64_t bytes, void *context) {
    char text[BUGPACK_ERROR_MESSAGE_BYTES];
    (void)snprintf(text, sizeof text,
                   "the session \"%s\" of %llu bytes was removed without a report: too many waited",
                   name, (unsigned long long)bytes);
    tell(context, BUGPACK_RECOVER_DROPPED, text);
}

static void search_directory(const bp_recover_request *request, const bp_ring_base *base,
                             bugpack_error *failure) {
    struct search search = {.request = request, .path = base->path, .failure = failure};
    const bp_session_scan scan = {.visit = visit, .dropped = dropped, .context = &search};
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_session_scan_run(&scan, base, request->app_name, &error);
    if (status == BUGPACK_OK) {
        tell(&search, BUGPACK_RECOVER_SEARCHED, "it was searched");
    } else if (base->is_chosen && error.system_errno == ENOENT) {
        tell(&search, BUGPACK_RECOVER_SEARCHED, "it does not exist");
    } else if (base->is_chosen && error.system_errno == EPERM) {
        tell(&search, BUGPACK_RECOVER_SKIPPED, error.message);
    } else {
        tell_unseen(&search, &error);
    }
}

bugpack_status bp_recover(const bp_recover_request *request, bugpack_error *error) {
    bugpack_error failure = BUGPACK_ERROR_INIT;
    bp_ring_dir *choice = malloc(sizeof *choice);
    unsigned cursor = 0;
    if (choice == NULL) {
        return bp_fail_memory(error, "recover sessions");
    }
    if (request->recorder_dir != NULL) {
        const bp_ring_base named = {request->recorder_dir, false, false};
        search_directory(request, &named, &failure);
    } else {
        while (bp_ring_dirs_next(&cursor, choice)) {
            const bp_ring_base chosen = {choice->path, true, false};
            search_directory(request, &chosen, &failure);
        }
        if (cursor == 0) {
            (void)bp_fail(&failure, BUGPACK_ERR_UNSUPPORTED,
                          "no directory was given, and none is known here");
        }
    }
    free(choice);
    if (failure.status != BUGPACK_OK && error != NULL) {
        *error = failure;
    }
    return failure.status;
}
