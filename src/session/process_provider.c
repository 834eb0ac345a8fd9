#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/process.h"
#include "platform/process_facts.h"
#include "session/session.h"

static const char artefact_name[] = "process.json";

static const size_t limit_bytes = (size_t)16 << 20;

/* Facts of a target are read anew by themselves after this time, then after twice as long, …: a
 * program loads what it needs at its beginning. */
static const uint64_t first_refresh_ns = BP_NS_PER_SEC;
static const uint64_t longest_refresh_ns = 60 * BP_NS_PER_SEC;

/* The process, and for a target what was last known of it. The session and the provider hold one
 * reference each, because a call of the provider may outlive the session. */
struct bp_watched {
    atomic_uint reference_count;
    bp_task *task;
    bool keeps;            /* a target may end before its report; we do not */
    pthread_mutex_t mutex; /* of what follows, and one reading at a time */
    bp_buffer last;        /* process.json; empty: nothing is known yet */
    uint64_t last_wall_ns;
    char last_denied[256];
    uint64_t due_ns, wait_ns; /* the pulse's: when to read again, and how long that waits */
};

static struct bp_watched *new_watched(bp_task *task, bool keeps) {
    struct bp_watched *watched = calloc(1, sizeof *watched);
    if (watched == NULL || pthread_mutex_init(&watched->mutex, NULL) != 0) {
        free(watched);
        return NULL;
    }
    atomic_init(&watched->reference_count, 1);
    watched->task = bp_task_retain(task);
    watched->keeps = keeps;
    watched->wait_ns = first_refresh_ns;
    watched->due_ns = bp_clock_monotonic_ns() + first_refresh_ns;
    bp_buffer_init(&watched->last, limit_bytes);
    return watched;
}

void bp_watched_drop(struct bp_watched *watched) {
    if (watched == NULL ||
        atomic_fetch_sub_explicit(&watched->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    bp_task_close(watched->task);
    bp_buffer_release(&watched->last);
    (void)pthread_mutex_destroy(&watched->mutex);
    free(watched);
}

static void drop_watched(void *context) {
    bp_watched_drop(context);
}

/* Reads it anew into `last`, which stays as it was on a failure; under the mutex. */
static bugpack_status refresh(struct bp_watched *watched, bugpack_error *error) {
    bp_process_facts facts;
    bp_buffer fresh;
    bp_buffer_init(&fresh, limit_bytes);
    uint64_t wall_ns = bp_clock_wall_ns();
    bugpack_status status = bp_process_facts_read(watched->task, &facts, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_process_print(&facts, &fresh, error);
    if (status == BUGPACK_OK) {
        bp_buffer_release(&watched->last);
        bp_buffer_move(&watched->last, &fresh);
        watched->last_wall_ns = wall_ns;
        memcpy(watched->last_denied, facts.denied, sizeof facts.denied);
    }
    bp_buffer_release(&fresh);
    bp_process_facts_release(&facts);
    return status;
}

/* Our own process is read for one report, and not kept in between. */
static void forget(struct bp_watched *watched) {
    bp_buffer_release(&watched->last);
    bp_buffer_init(&watched->last, limit_bytes);
}

/* `ended` is NULL where it was read just now. */
static bugpack_status write_last(const struct bp_watched *watched, const bugpack_error *ended,
                                 bugpack_writer *writer) {
    const char *denied = watched->last_denied;
    char time[BP_CLOCK_ISO_BYTES];
    bp_clock_format_iso(watched->last_wall_ns, time);
    if (ended != NULL) {
        bp_writer_truncate(writer, true, "%s; this is how it was at %s%s%s", ended->message, time,
                           denied[0] != '\0' ? ", without " : "", denied);
    } else if (denied[0] != '\0') {
        bp_writer_truncate(writer, true, "%s", denied);
    }
    return bp_buffer_append(&writer->content, watched->last.data, watched->last.size);
}

/*
 * Under a time limit like a host's provider: the kernel can keep a reader of /proc/<pid>/cmdline or
 * maps waiting for as long as the process holds its own memory map locked.
 */
static int provide_process(bugpack_writer *writer, void *context) {
    struct bp_watched *watched = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    (void)pthread_mutex_lock(&watched->mutex);
    bugpack_status status = refresh(watched, &error);
    if (status == BUGPACK_OK) {
        status = write_last(watched, NULL, writer);
    } else if (status == BUGPACK_ERR_NO_PROCESS && watched->last.size > 0) {
        status = write_last(watched, &error, writer);
    }
    if (!watched->keeps) {
        forget(watched);
    }
    (void)pthread_mutex_unlock(&watched->mutex);
    if (status != BUGPACK_OK) {
        bugpack_fail(writer, "%s", error.message);
        return -1;
    }
    return 0;
}

void bp_session_refresh_when_due(bugpack *session) {
    struct bp_watched *watched = session->watched;
    uint64_t now_ns = bp_clock_monotonic_ns();
    if (watched == NULL || !watched->keeps || now_ns < watched->due_ns ||
        pthread_mutex_trylock(&watched->mutex) != 0) {
        return;
    }
    bugpack_error error = BUGPACK_ERROR_INIT;
    (void)refresh(watched, &error); /* what is known stays, whatever it says */
    watched->wait_ns =
        watched->wait_ns * 2 < longest_refresh_ns ? watched->wait_ns * 2 : longest_refresh_ns;
    watched->due_ns = now_ns + watched->wait_ns;
    (void)pthread_mutex_unlock(&watched->mutex);
}

bugpack_status bugpack_refresh_target(bugpack *session, bugpack_error *error) {
    bp_guard_entry entry;
    bugpack_status status = bp_session_enter(session, &entry);
    if (status != BUGPACK_OK) {
        return bp_fail(error, status, "cannot look at the process: %s",
                       bugpack_status_name(status));
    }
    struct bp_watched *watched = session->watched;
    if (watched != NULL && watched->keeps) {
        (void)pthread_mutex_lock(&watched->mutex);
        status = refresh(watched, error);
        (void)pthread_mutex_unlock(&watched->mutex);
    } else {
        status = bp_fail(error, BUGPACK_ERR_INVALID, "the session is about no other process");
    }
    bp_session_leave(&entry);
    return status;
}

bugpack_status bp_session_provide_process(bugpack *session, bugpack_error *error) {
    session->watched =
        new_watched(bp_sampler_task(session->sampler), session->options.target_pid != 0);
    if (session->watched == NULL) {
        return bp_fail_memory(error, "watch a process");
    }
    bp_provider_spec spec = {.name = artefact_name,
                             .form = BP_CONTENT_BYTES,
                             .provide = provide_process,
                             .context = session->watched,
                             .release = drop_watched,
                             .limit_bytes = limit_bytes,
                             .timeout_ms = session->options.provider_timeout_ms};
    atomic_fetch_add_explicit(&session->watched->reference_count, 1, memory_order_relaxed);
    return bp_session_register(session, &spec, error);
}
