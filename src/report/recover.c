#include "report/recover.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bugpack/session.h>

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

/* What the report about one dead session needs. */
struct recovery {
    const bugpack_recover_options *request;
    const bp_found_session *found;
    bp_session_place place;
    bugpack_report_result *result;
    char report_id[BP_ID_BYTES];
    bp_machine_identity machine;
    bp_instant last; /* when it was last known to run */
    bp_dead_crash crash;
    bp_destination destination;
    bp_snapshot *snapshot;
    bp_redaction *redaction;
    bp_rule_set *rules;
    bp_tags *tags;
    bp_bundle *bundle;
};

static bugpack_status read_crash(struct recovery *it, bugpack_error *error) {
    return bp_dead_crash_read(it->found->dir_fd, &it->found->identity, &it->crash, error);
}

static bugpack_status open_destination(struct recovery *it, bugpack_error *error) {
    const bp_session_identity *dead = &it->found->identity;
    const char *report_dir = it->request->report_dir;
    char default_dir[PATH_MAX];
    bp_destination_request wanted = {.app_name = dead->app_name,
                                     .kind = BP_REPORT_CRASH,
                                     .wall_ns = it->last.wall_ns,
                                     .report_dir =
                                         report_dir != NULL ? report_dir : dead->report_dir};
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
    bugpack_status status = bp_destination_open(&wanted, &it->destination, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    return bp_limits_check_room(it->request->min_free_bytes, &it->destination,
                                bp_bundle_needed_bytes(bp_recover_used_bytes(&it->place)), error);
}

/* The session's own file is not synced either: a loss of power soon after the start empties it. */
static const char *describe_restart(const struct recovery *it) {
    const char *then = it->found->identity.boot_id, *now = it->machine.boot_id;
    if (it->found->identity_error.status != BUGPACK_OK) {
        return "; the machine may have been restarted: the newest may be missing";
    }
    bool was_restarted = then[0] != '\0' && now[0] != '\0' && strcmp(then, now) != 0;
    return was_restarted ? "; the machine was restarted: the newest may be missing" : NULL;
}

static bugpack_status recover_rings(struct recovery *it, bugpack_error *error) {
    const bp_found_session *found = it->found;
    bugpack_status status =
        bp_recover_rings(&it->place, &found->identity, it->destination.dir_fd, it->snapshot, error);
    it->snapshot->restart = describe_restart(it);
    /* Without the session's own file the clocks of its records may be of another start of the
     * machine. */
    uint64_t newest_ns = bp_snapshot_newest_ns(it->snapshot);
    if (found->identity_error.status == BUGPACK_OK && newest_ns > it->last.monotonic_ns) {
        it->last = (bp_instant){newest_ns, newest_ns + it->snapshot->wall_offset_ns};
    }
    it->destination.wall_ns =
        it->crash.page != NULL ? it->crash.page->at.wall_ns : it->last.wall_ns;
    return status;
}

static bugpack_status load_rules(struct recovery *it, bugpack_error *error) {
    bugpack_status status = bp_redaction_load(&it->place, NULL, &it->redaction, error);
    return status == BUGPACK_OK ? bp_redaction_hold(it->redaction, &it->rules, error) : status;
}

static bugpack_status open_bundle(struct recovery *it, bugpack_error *error) {
    const bp_bundle_target target = {.dir_fd = it->destination.dir_fd,
                                     .dir_name = it->destination.dir_path,
                                     .report_id = it->report_id,
                                     .wall_ns = it->destination.wall_ns,
                                     .is_strict = true,
                                     .rules = it->rules,
                                     .hook = {it->request->before_publish,
                                              it->request->before_publish_context,
                                              it->request->publish_suffix},
                                     .lacks_before_write = bp_before_write_was_set(&it->place)};
    return bp_bundle_new(&target, &it->bundle, error);
}

static bugpack_status add_rings(struct recovery *it, bugpack_error *error) {
    return bp_ring_entries_add(it->snapshot, NULL, NULL, it->bundle, error);
}

static bugpack_status add_crash(struct recovery *it, bugpack_error *error) {
    return bp_dead_crash_add(&it->crash, it->bundle, error);
}

static bugpack_status add_stored(struct recovery *it, bugpack_error *error) {
    bugpack_status status = bp_tags_new(&it->tags, error);
    return status == BUGPACK_OK ? bp_stored_entries_add(it->found->dir_fd, it->destination.wall_ns,
                                                        it->tags, it->bundle, error)
                                : status;
}

static bugpack_status add_metadata(struct recovery *it, bugpack_error *error) {
    const bp_session_identity *dead = &it->found->identity;
    const bp_crash_page *crash = it->crash.page;
    bp_tag_set *tags = bp_tags_hold(it->tags);
    bp_instant last = it->last;
    bugpack_writer writer;
    bp_writer_init(&writer, json_limit_bytes);
    const bugpack_exit end = {.signal = crash != NULL ? crash->signal : 0};
    /* The session's clock stopped with it: its uptimes end when it was last known to run. */
    bp_metadata metadata = {
        .app_name = dead->app_name,
        .app_version = dead->app_version,
        .app_build_id = dead->app_build_id,
        .platform = bp_machine_platform(),
        .arch = it->machine.arch,
        .kernel = it->machine.kernel,
        .machine = dead->machine[0] != '\0' ? dead->machine : it->machine.name,
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
    memcpy(metadata.report_id, it->report_id, sizeof metadata.report_id);
    memcpy(metadata.session_id, dead->session_id, sizeof metadata.session_id);
    memcpy(metadata.target.name, dead->target_name, sizeof metadata.target.name);
    writer.line.captured_wall_ns = metadata.written.wall_ns;
    if (it->found->identity_error.status != BUGPACK_OK) {
        bp_writer_truncate(&writer, true, "of the session %s; the times are those of its files",
                           it->found->identity_error.message);
    }
    bugpack_status status = bp_metadata_print(&metadata, &writer.content, error);
    bp_tag_set_drop(tags);
    return bp_bundle_put(it->bundle, "metadata.json", status, &writer, error);
}

/* Every report has this entry. The process has ended, so its absence is not a missing entry. */
static bugpack_status add_metrics(struct recovery *it, bugpack_error *error) {
    static const char reason[] = "the process had ended";
    bugpack_writer writer;
    bp_writer_init(&writer, json_limit_bytes);
    bugpack_status status =
        bp_metrics_print_unavailable(bp_machine_platform(), reason, &writer.content, error);
    writer.line.status = BP_ARTEFACT_OMITTED;
    writer.line.captured_wall_ns = bp_clock_wall_ns();
    (void)snprintf(writer.line.reason, sizeof writer.line.reason, "%s", reason);
    return bp_bundle_put(it->bundle, "runtime-metrics.json", status, &writer, error);
}

static bugpack_status publish(struct recovery *it, bugpack_error *error) {
    return bp_destination_publish(&it->destination, it->bundle, it->result, error);
}

static bugpack_status write_report(struct recovery *it, bugpack_error *error) {
    static bugpack_status (*const steps[])(struct recovery *, bugpack_error *) = {
        read_crash, open_destination, recover_rings, load_rules,  open_bundle, add_rings,
        add_crash,  add_stored,       add_metadata,  add_metrics, publish};
    bugpack_status status = BUGPACK_OK;
    bp_id_new(it->report_id);
    bp_machine_identify(&it->machine);
    if ((it->request->system_flags & BUGPACK_SYSTEM_HOSTNAME) == 0) {
        it->machine.name[0] = '\0';
    }
    it->snapshot = calloc(1, sizeof *it->snapshot);
    if (it->snapshot == NULL) {
        return bp_fail_memory(error, "recover a session");
    }
    for (size_t i = 0; status == BUGPACK_OK && i < sizeof steps / sizeof steps[0]; i++) {
        status = steps[i](it, error);
    }
    bp_tags_free(it->tags);
    bp_bundle_free(it->bundle);
    bp_dead_crash_release(&it->crash);
    bp_rule_set_drop(it->rules);
    bp_redaction_free(it->redaction);
    bp_destination_release(&it->destination);
    bp_snapshot_release(it->snapshot);
    free(it->snapshot);
    return status;
}

/* One directory that is searched. */
struct search {
    const bugpack_recover_options *request;
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
    const bugpack_recover_options *request = search->request;
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    uint64_t began_ns = bp_clock_monotonic_ns();
    if (found->identity_error.status != BUGPACK_OK && !found->has_rings) {
        return true; /* it was killed while it was opened or closed, and has recorded nothing */
    }
    struct recovery recovery = {.request = request,
                                .found = found,
                                .place = {.dir_fd = found->dir_fd},
                                .result = &result,
                                .last = found->identity.last_alive,
                                .destination = BP_DESTINATION_INIT};
    result.status = write_report(&recovery, &result.error);
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

static void search_directory(const bugpack_recover_options *request, const bp_ring_base *base,
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

bugpack_status bp_recover(const bugpack_recover_options *request, bugpack_error *error) {
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
