#include "report/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/status.h"
#include "model/crash.h"
#include "model/fields.h"
#include "model/metrics.h"
#include "platform/machine.h"
#include "recorder/session_scan.h"
#include "report/assemble.h"
#include "report/python_traceback.h"
#include "report/stacks_entries.h"
#include "report/stored_entries.h"
#include "stacks/stacks.h"

static const size_t json_limit_bytes = (size_t)4 << 20;
static const size_t stacks_limit_bytes = (size_t)64 << 20;

/*
 * What a dead session's handler of fatal signals left (platform/crash_page.h), as crash.json.
 */

typedef struct dead_crash {
    bp_crash_page *page; /* validated; NULL: the session did not die of a signal that it caught */
    int dir_fd;          /* of the session, borrowed */
    const char *reason;  /* why there is none; NULL: it had no handler */
    bool is_lost;        /* there should be one */
    bp_signature signature;
} dead_crash;

static const uint64_t unwind_max_ns = 2 * BP_NS_PER_SEC;

/* A process that was seen alive so long after its crash did not die of it. */
static const uint64_t outlived_ns = 60 * BP_NS_PER_SEC;

static void examine(dead_crash *crash, size_t byte_count, const bp_session_identity *dead) {
    uint64_t alive_ns = dead->last_alive.monotonic_ns, crashed_ns = crash->page->at.monotonic_ns;
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
        if (alive_ns > crashed_ns && alive_ns - crashed_ns > outlived_ns) {
            crash->reason = "a handler of the host went on after a fatal signal; the process "
                            "ended later";
        }
        break;
    }
    if (crash->reason != NULL) {
        free(crash->page);
        crash->page = NULL;
    }
}

/* Reads it from the session's directory. NO_MEMORY, or IO where it cannot be read just now. The
 * page is the caller's to free. */
static bugpack_status read_crash(int session_dir_fd, const bp_session_identity *dead,
                                 dead_crash *crash, bugpack_error *error) {
    crash->dir_fd = session_dir_fd;
    int fd =
        openat(session_dir_fd, BP_CRASH_PAGE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return BUGPACK_OK;
    }
    int read_errno = errno;
    /* One byte more, to see a file that is too long. */
    crash->page = malloc(sizeof *crash->page + 1);
    if (crash->page == NULL) {
        bp_file_close(fd);
        return bp_fail_memory(error, "read a crash");
    }
    int64_t count = fd < 0 ? -1 : bp_file_read_range(fd, crash->page, sizeof *crash->page + 1, 0);
    read_errno = fd < 0 ? read_errno : errno;
    bp_file_close(fd);
    if (count >= 0) {
        examine(crash, (size_t)count, dead);
        return BUGPACK_OK;
    }
    free(crash->page);
    crash->page = NULL;
    if (!bp_session_errno_is_damage(read_errno)) {
        return bp_fail_errno(error, read_errno, "cannot read \"%s\"", BP_CRASH_PAGE_NAME);
    }
    crash->reason = "what was written cannot be read";
    crash->is_lost = true;
    return BUGPACK_OK;
}

/* The status, also in `ret_reason`, says why there are none. */
static bugpack_status read_stacks(const bp_crash_page *page, bool is_host, bp_stacks *ret_stacks,
                                  bugpack_error *ret_reason) {
    uint64_t now_ns = bp_clock_monotonic_ns();
    const bp_stacks_plan plan = {.deadline_ns = now_ns + unwind_max_ns,
                                 .symbols_until_ns = now_ns + 2 * unwind_max_ns};
    *ret_stacks = (bp_stacks){.pid = 0};
    *ret_reason = (bugpack_error)BUGPACK_ERROR_INIT;
    return bp_stacks_read_crash(page, &plan, is_host, ret_stacks, ret_reason);
}

/* `reason`: why there are no stacks. */
static bugpack_status print_crash(const bp_crash_page *page, const bp_stacks *stacks,
                                  const bugpack_error *reason, bugpack_writer *writer,
                                  bugpack_error *error) {
    bp_crash_backtrace backtrace = {.stacks = stacks};
    char loss[BP_STACKS_LOSS_BYTES];
    if (reason->status != BUGPACK_OK) {
        backtrace = (bp_crash_backtrace){.reason = reason->message};
    }
    if (reason->status == BUGPACK_ERR_NO_MEMORY) {
        bp_writer_truncate(writer, true, "%s", reason->message);
    } else if (bp_stacks_describe_loss(stacks, loss)) {
        bp_writer_truncate(writer, true, "%s", loss);
    }
    return bp_crash_print(page, &backtrace, &writer->content, error);
}

/* Copies those of the thread that crashed; some where memory is missing. */
static void add_python_frames(const bp_stacks *python, const bp_crash_page *page,
                              bp_stacks *stacks) {
    size_t capacity = stacks->python_frame_count;
    for (size_t i = 0; i < stacks->thread_count; i++) {
        bp_stack_thread *thread = &stacks->threads[i];
        if (thread->tid != (uint64_t)page->tid) {
            continue;
        }
        thread->first_python = stacks->python_frame_count;
        thread->python_reason = python->python_reason[0] != '\0' ? python->python_reason : NULL;
        for (size_t k = 0; k < python->python_frame_count; k++) {
            const bp_python_frame *frame = &python->python_frames[k];
            char *function = strdup(frame->function);
            if (function == NULL ||
                !bp_array_reserve(&stacks->python_frames, stacks->python_frame_count, &capacity)) {
                free(function);
                thread->python_reason = "there was no memory for its other frames";
                return;
            }
            stacks->python_frames[stacks->python_frame_count++] = (bp_python_frame){
                function, frame->source != NULL ? strdup(frame->source) : NULL, frame->line};
            thread->python_count++;
        }
    }
}

bugpack_status bp_recover_print_crash(const bp_crash_page *page, const bp_stacks *python,
                                      bugpack_writer *writer, bugpack_error *error) {
    bugpack_error reason;
    bp_stacks stacks;
    if (read_stacks(page, false, &stacks, &reason) == BUGPACK_OK) {
        add_python_frames(python, page, &stacks);
    }
    bugpack_status status = print_crash(page, &stacks, &reason, writer, error);
    bp_stacks_release(&stacks);
    return status;
}

/* stacks.json and stacks.txt, as of the crash. */
static bugpack_status add_stacks(const bp_stacks *stacks, const bp_crash_page *page,
                                 bp_bundle *bundle, bugpack_error *error) {
    bugpack_writer json, text;
    bp_writer_init(&json, stacks_limit_bytes);
    bp_writer_init(&text, stacks_limit_bytes);
    json.line.captured_wall_ns = page->at.wall_ns;
    bugpack_status status = bp_stacks_write(stacks, &json, &text.content, error);
    text.line = json.line;
    status = bp_bundle_put(bundle, "stacks.txt", status, &text, error);
    return bp_bundle_put(bundle, "stacks.json", status, &json, error);
}

static void add_python(int dir_fd, const bp_crash_page *page, bp_stacks *stacks) {
    static const size_t text_max_bytes = (size_t)1 << 20;
    int fd =
        openat(dir_fd, BP_PYTHON_TRACEBACK_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char *text = fd >= 0 ? malloc(text_max_bytes) : NULL;
    if (text != NULL) {
        int64_t count = bp_file_read_range(fd, text, text_max_bytes, 0);
        bp_python_traceback_add(text, count > 0 ? (size_t)count : 0, page, stacks);
    }
    free(text);
    bp_file_close(fd);
}

static void sign(const bp_crash_page *page, const bp_stacks *stacks, bp_signature *ret_signature) {
    bp_signature_stack stack = {.is_over = false};
    const char *name = bp_model_signal_name(page->signal);
    for (size_t i = 0; i < stacks->thread_count; i++) {
        if (stacks->threads[i].tid == (uint64_t)page->tid) {
            bp_stacks_sign(stacks, &stacks->threads[i], &stack);
        }
    }
    bp_signature_make(ret_signature, "crash", name != NULL ? name : "", false, &stack, 1);
}

/* crash.json, and the stacks where they can be had. */
static bugpack_status add_page(dead_crash *crash, bp_bundle *bundle, bugpack_error *error) {
    const bp_crash_page *page = crash->page;
    bugpack_writer writer;
    bugpack_error reason;
    bp_stacks stacks;
    bp_writer_init(&writer, json_limit_bytes);
    writer.line.captured_wall_ns = page->at.wall_ns;
    if (read_stacks(page, true, &stacks, &reason) == BUGPACK_OK) {
        add_python(crash->dir_fd, page, &stacks);
    }
    bugpack_status status = print_crash(page, &stacks, &reason, &writer, error);
    status = bp_bundle_put(bundle, "crash.json", status, &writer, error);
    sign(page, &stacks, &crash->signature);
    if (status == BUGPACK_OK && reason.status == BUGPACK_OK) {
        status = add_stacks(&stacks, page, bundle, error);
    }
    bp_stacks_release(&stacks);
    return status;
}

/* Adds the entry, or the line that says why it is not there; nothing for a session without a
 * handler. */
static bugpack_status add_crash(dead_crash *crash, bp_bundle *bundle, bugpack_error *error) {
    bugpack_writer writer;
    if (crash->page != NULL) {
        return add_page(crash, bundle, error);
    }
    if (crash->reason == NULL) {
        return BUGPACK_OK;
    }
    bp_writer_init(&writer, json_limit_bytes);
    bp_writer_refuse(&writer, crash->is_lost ? BP_ARTEFACT_FAILED : BP_ARTEFACT_OMITTED, "%s",
                     crash->reason);
    writer.line.is_missing = crash->is_lost;
    return bp_bundle_put(bundle, "crash.json", BUGPACK_OK, &writer, error);
}

/*
 * The report about one dead session: a job whose snapshot is what its files still hold.
 */

/* The payload. */
struct recovery {
    const bugpack_recover_options *request;
    const bp_found_session *found;
    bp_identity identity; /* of the dead session, and of this machine */
    bp_instant last;      /* when it was last known to run */
    dead_crash crash;
    bp_exit exit; /* signal 0: not known */
};

static bugpack_status recover_rings(bp_job *job, bugpack_error *error) {
    struct recovery *it = job->payload;
    const bp_found_session *found = it->found;
    bugpack_status status = bp_destination_check_room(
        &job->destination, it->request->min_free_bytes,
        bp_bundle_needed_bytes(bp_recover_used_bytes(found->dir_fd)), error);
    if (status != BUGPACK_OK) {
        return status;
    }
    job->snapshot = calloc(1, sizeof *job->snapshot);
    if (job->snapshot == NULL) {
        return bp_fail_memory(error, "recover a session");
    }
    status = bp_recover_rings(found->dir_fd, &found->identity, false, job->destination.dir_fd, NULL,
                              job->snapshot, error);
    const char *then = found->identity.boot_id, *now = it->identity.machine.boot_id;
    if (found->identity_error.status != BUGPACK_OK) {
        /* It is not synced either: a loss of power soon after the start empties it. */
        job->snapshot->restart = "; the machine may have been restarted: the newest may be missing";
    } else if (then[0] != '\0' && now[0] != '\0' && strcmp(then, now) != 0) {
        job->snapshot->restart = "; the machine was restarted: the newest may be missing";
    }
    /* Without the session's own file the clocks of its records may be of another start of the
     * machine. */
    uint64_t newest_ns = bp_snapshot_newest_ns(job->snapshot);
    if (found->identity_error.status == BUGPACK_OK && newest_ns > it->last.monotonic_ns) {
        it->last = (bp_instant){newest_ns, newest_ns + job->snapshot->wall_offset_ns};
    }
    job->triggered = it->crash.page != NULL ? it->crash.page->at : it->last;
    job->destination.request.wall_ns = job->triggered.wall_ns;
    return status;
}

static bugpack_status add_entries(bp_job *job, bp_bundle *bundle, bugpack_error *error) {
    static const char reason[] = "the process had ended";
    struct recovery *it = job->payload;
    bugpack_writer writer;
    bp_tags tags;
    bugpack_status status = add_crash(&it->crash, bundle, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_tags_init(&tags);
    status = bp_stored_entries_add(it->found->dir_fd, job->triggered.wall_ns, &tags, bundle, error);
    job->tags = bp_tags_hold(&tags);
    bp_tags_release(&tags);
    if (status != BUGPACK_OK) {
        return status;
    }
    /* Every report has this entry. The process has ended, so its absence is not a missing entry. */
    bp_writer_init(&writer, json_limit_bytes);
    status = bp_metrics_print_unavailable(bp_machine_platform(), reason, &writer.content, error);
    writer.line.status = BP_ARTEFACT_OMITTED;
    writer.line.captured_wall_ns = bp_clock_wall_ns();
    (void)snprintf(writer.line.reason, sizeof writer.line.reason, "%s", reason);
    return bp_bundle_put(bundle, "runtime-metrics.json", status, &writer, error);
}

static void describe(const bp_job *job, bp_metadata *metadata, bugpack_writer *writer) {
    const struct recovery *it = job->payload;
    const bp_session_identity *dead = &it->found->identity;
    metadata->pid = (pid_t)dead->pid;
    metadata->session_end = "died";
    metadata->is_core_unknown = true;
    metadata->signature = it->crash.page != NULL ? &it->crash.signature : NULL;
    metadata->exit = it->exit.signal != 0 ? &it->exit : NULL;
    /* The session's clock stopped with it: its uptimes end when it was last known to run. */
    metadata->written.monotonic_ns = it->last.monotonic_ns;
    metadata->target.pid = (pid_t)dead->target_pid;
    memcpy(metadata->target.name, dead->target_name, sizeof metadata->target.name);
    if (dead->uptime_ns != 0) {
        metadata->target_uptime_ns =
            dead->uptime_ns + it->last.monotonic_ns - dead->opened.monotonic_ns;
        metadata->started_wall_ns = it->last.wall_ns - metadata->target_uptime_ns;
    }
    if (it->found->identity_error.status != BUGPACK_OK) {
        bp_writer_truncate(writer, true, "of the session %s; the times are those of its files",
                           it->found->identity_error.message);
    }
}

static const bp_job_type dead_session = {.kind = BP_REPORT_CRASH,
                                         .take_snapshot = recover_rings,
                                         .add_entries = add_entries,
                                         .describe = describe,
                                         .is_strict = true};

static void identify(struct recovery *it) {
    const bp_session_identity *dead = &it->found->identity;
    bp_machine_identity *machine = &it->identity.machine;
    memcpy(it->identity.id, dead->session_id, sizeof it->identity.id);
    it->identity.opened = dead->opened;
    bp_machine_identify(machine);
    if (dead->machine[0] != '\0') {
        (void)snprintf(machine->name, sizeof machine->name, "%s", dead->machine);
    } else if (!it->request->with_hostname) {
        machine->name[0] = '\0';
    }
}

static bugpack_status write_report(struct recovery *it, bugpack_report_result *result) {
    const bugpack_recover_options *request = it->request;
    const bp_session_identity *dead = &it->found->identity;
    bugpack_error *error = &result->error;
    char default_dir[PATH_MAX];
    bp_config config = {
        .app_name = dead->app_name,
        .app_version = dead->app_version,
        .app_build_id = dead->app_build_id,
        .min_free_bytes = request->min_free_bytes,
        .max_zip_bytes = request->max_zip_bytes,
        .report_dir.path = request->report_dir != NULL ? request->report_dir : dead->report_dir,
        .before_publish = {request->before_publish, request->before_publish_context}};
    bp_report_context context = {.config = &config, .identity = &it->identity};
    bp_job job = {.type = &dead_session,
                  .payload = it,
                  .triggered = it->last,
                  .dir = &config.report_dir,
                  .destination = BP_DESTINATION_INIT};
    identify(it);
    bugpack_status status = read_crash(it->found->dir_fd, dead, &it->crash, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    if (config.report_dir.path[0] == '\0') { /* its identity is lost */
        status = bp_machine_report_directory(default_dir, sizeof default_dir, error);
        if (status == BUGPACK_OK) {
            status = bp_file_make_path(default_dir, error);
        }
        if (status != BUGPACK_OK) {
            goto out;
        }
        config.report_dir = (bp_report_dir){.path = default_dir, .is_private = true};
    }
    status = bp_redaction_load(it->found->dir_fd, NULL, &context.redaction, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    if (it->crash.page != NULL && it->crash.page->was_passed_to_host == 0) {
        it->exit.signal = it->crash.page->signal;
    }
    bp_job_take_snapshot(&context, &job, 0);
    bp_assemble(&context, NULL, &job, NULL, result);
    status = result->status;
out:
    bp_job_release(&job);
    bp_redaction_free(context.redaction);
    free(it->crash.page);
    return status;
}

/* One directory that is searched. */
struct search {
    const bugpack_recover_options *request;
    const bp_recover_calls *calls;
    const char *path;
    bugpack_error *failure; /* the first thing that could not be looked at */
};

static void tell(const struct search *search, bp_recover_note_kind kind, const char *text) {
    if (search->calls->on_note != NULL) {
        const bp_recover_note note = {.path = search->path, .text = text, .kind = kind};
        search->calls->on_note(&note, search->request->context);
    }
}

static void note_failure(const struct search *search, const bugpack_error *error) {
    if (search->failure->status == BUGPACK_OK) {
        *search->failure = *error;
    }
    tell(search, BP_RECOVER_UNSEEN, error->message);
}

static bool recover_dead(const struct search *search, const bp_found_session *found) {
    const bugpack_recover_options *request = search->request;
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    uint64_t began_ns = bp_clock_monotonic_ns();
    if (found->identity_error.status != BUGPACK_OK && !found->has_rings) {
        return true; /* it was killed while it was opened or closed, and has recorded nothing */
    }
    struct recovery recovery = {
        .request = request, .found = found, .last = found->identity.last_alive};
    result.status = write_report(&recovery, &result);
    if (result.status != BUGPACK_OK) {
        /* A failure says where the session waits for the next try. */
        char *message = result.error.message;
        size_t used = strlen(message), room = sizeof result.error.message - used;
        int added =
            snprintf(message + used, room, "; it is kept in \"%s/%s\"", search->path, found->name);
        if (added < 0 || (size_t)added >= room) {
            message[used] = '\0';
        }
    }
    result.elapsed_ns = bp_clock_monotonic_ns() - began_ns;
    if (request->on_report != NULL) {
        request->on_report(&result, request->context);
    }
    return result.status == BUGPACK_OK;
}

static bool visit(const bp_found_session *found, void *context) {
    const struct search *search = context;
    if (found->state == BP_FOUND_DEAD) {
        return recover_dead(search, found);
    }
    if (found->state == BP_FOUND_UNSEEN) {
        note_failure(search, &found->error);
    } else if (search->calls->on_running != NULL) {
        const bp_running_session running = {
            .app_name = found->identity.app_name, .pid = found->pid, .name = found->name};
        search->calls->on_running(&running, search->request->context);
    }
    return false;
}

static void dropped(const char *name, uint64_t bytes, void *context) {
    char text[BUGPACK_ERROR_MESSAGE_BYTES];
    (void)snprintf(text, sizeof text,
                   "the session \"%s\" of %llu bytes was removed without a report: too many waited",
                   name, (unsigned long long)bytes);
    tell(context, BP_RECOVER_DROPPED, text);
}

static void search_directory(struct search *search, const bp_ring_base *base) {
    search->path = base->path;
    const bp_session_scan scan = {.visit = visit, .dropped = dropped, .context = search};
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_session_scan_run(&scan, base, search->request->app_name, &error);
    if (status == BUGPACK_OK) {
        tell(search, BP_RECOVER_SEARCHED, "it was searched");
    } else if (base->is_chosen && error.system_errno == ENOENT) {
        tell(search, BP_RECOVER_SEARCHED, "it does not exist");
    } else if (base->is_chosen && error.system_errno == EPERM) {
        tell(search, BP_RECOVER_SKIPPED, error.message);
    } else {
        note_failure(search, &error);
    }
}

bugpack_status bp_recover(const bugpack_recover_options *request, const bp_recover_calls *calls,
                          bugpack_error *error) {
    bugpack_error failure = BUGPACK_ERROR_INIT;
    struct search search = {.request = request, .calls = calls, .failure = &failure};
    bp_ring_dir *choice = malloc(sizeof *choice);
    unsigned cursor = 0;
    if (choice == NULL) {
        return bp_fail_memory(error, "recover sessions");
    }
    if (request->recorder_dir != NULL) {
        const bp_ring_base named = {request->recorder_dir, false, false};
        search_directory(&search, &named);
    } else {
        while (bp_ring_dirs_next(&cursor, choice)) {
            const bp_ring_base chosen = {choice->path, true, false};
            search_directory(&search, &chosen);
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
