/*
 * Reports that another process asks for: `bugpack trigger`.
 *
 * Who connects asks, and may ask for a zip of a size (platform/ask_socket.h). The monitor looks for
 * it, and the worker answers: a line with the status, the number of missing artefacts, and the path
 * of the zip or a message; and a line with the limit of the size, which 0 says is none.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd_mark.h"
#include "base/status.h"
#include "model/fit.h"
#include "platform/ask_socket.h"
#include "recorder/recorder.h"
#include "trigger/trigger.h"

/* The interval of the monitor's looks. */
static const uint64_t look_interval_ns = 200 * BP_NS_PER_MS;

struct ask {
    const bp_report_context *context;
    int listening_fd;
    bp_fd_mark listening_mark;
    atomic_uint asker_count;
};

/* A connection that waits for a report. */
struct asker {
    struct ask *ask;
    uint64_t max_zip_bytes; /* of its report; 0: no limit */
    int fd;
    bp_fd_mark mark;
};

static const unsigned asker_max = 64;

static bugpack_status open_trigger(const bp_report_context *context, void **ret_self,
                                   bugpack_error *error) {
    bp_recorder *recorder = context->recorder;
    uint64_t survives;
    if (!context->config->answers_trigger) {
        return BUGPACK_OK;
    }
    struct ask *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    self->context = context;
    self->listening_fd = -1;
    const char *dir = bp_rings_locate(recorder->rings, &survives);
    bugpack_error failure = BUGPACK_ERROR_INIT;
    bugpack_status status =
        dir == NULL ? bp_fail(&failure, BUGPACK_ERR_UNSUPPORTED, "the session has no directory")
                    : bp_ask_socket_open(dir, &self->listening_fd, &failure);
    if (status != BUGPACK_OK) {
        bp_note_diagnose(recorder, BUGPACK_LEVEL_WARN, "`bugpack trigger` cannot ask: %s",
                         failure.message);
        free(self);
        return BUGPACK_OK;
    }
    self->listening_mark = bp_fd_mark_of(self->listening_fd);
    *ret_self = self;
    return BUGPACK_OK;
}

/* Never waits: an answer fits into an empty socket, and whoever has gone gets none. */
static void answer(int fd, bugpack_status status, unsigned missing_count, const char *text,
                   uint64_t max_zip_bytes) {
    char line[BUGPACK_REPORT_PATH_BYTES + 96];
    int length = snprintf(line, sizeof line, "%d %u %s" BP_ASK_LIMIT "%" PRIu64 "\n", (int)status,
                          missing_count, text, max_zip_bytes);
    bp_ask_socket_answer(fd, line, (size_t)length);
}

static void on_done(const bugpack_report_result *result, void *context) {
    struct asker *asker = context;
    if (bp_fd_is_ours(asker->fd, asker->mark)) {
        answer(asker->fd, result->status, result->missing_count,
               result->status == BUGPACK_OK ? result->path : result->error.message,
               asker->max_zip_bytes);
    }
    bp_fd_close_ours(asker->fd, asker->mark);
    atomic_fetch_sub(&asker->ask->asker_count, 1);
    free(asker);
}

static const bp_job_type job_type = {
    .kind = BP_REPORT_BUGREPORT, .is_manual = true, .is_single = true}; /* no payload */

/* False: it asks for something that is not known, or for a size that no report can have. */
static bool read_limit(const char *request, uint64_t *ret_max_bytes) {
    size_t name_bytes = strlen(BP_ASK_MAX_SIZE);
    char *end = NULL;
    if (request[0] == '\0') {
        *ret_max_bytes = 0;
        return true;
    }
    if (strncmp(request, BP_ASK_MAX_SIZE, name_bytes) != 0 || request[name_bytes] < '1' ||
        request[name_bytes] > '9') {
        return false;
    }
    *ret_max_bytes = strtoull(request + name_bytes, &end, 10); /* UINT64_MAX, where it is more */
    return *end == '\0' && bp_fit_is_limit(*ret_max_bytes);
}

static void serve(struct ask *self, int fd, const char *request) {
    uint64_t session_max_bytes = self->context->config->max_zip_bytes, max_bytes;
    bugpack_status status = BUGPACK_ERR_BUSY;
    if (!read_limit(request, &max_bytes)) {
        answer(fd, BUGPACK_ERR_UNSUPPORTED, 0, "it does not know how to do what was asked for", 0);
        (void)close(fd);
        return;
    }
    if (session_max_bytes > 0 && max_bytes >= session_max_bytes) {
        max_bytes = 0; /* the session's limit holds */
    }
    if (atomic_fetch_add(&self->asker_count, 1) < asker_max) {
        struct asker *asker = malloc(sizeof *asker);
        bp_job *job = bp_job_new(self->context, &job_type, 0);
        status = BUGPACK_ERR_NO_MEMORY;
        if (asker != NULL && job != NULL) {
            *asker = (struct asker){self, max_bytes > 0 ? max_bytes : session_max_bytes, fd,
                                    bp_fd_mark_of(fd)};
            job->max_zip_bytes = max_bytes;
            job->on_done = on_done;
            job->on_done_context = asker;
            status = bp_job_queue_submit(self->context->jobs, job, NULL, NULL);
        } else {
            bp_job_free(job);
        }
        if (status == BUGPACK_OK) {
            return;
        }
        free(asker);
    }
    answer(fd, status, 0, bugpack_status_name(status), 0);
    (void)close(fd);
    atomic_fetch_sub(&self->asker_count, 1);
}

static uint64_t tick(void *context, uint64_t now_ns) {
    struct ask *self = context;
    char request[BP_ASK_REQUEST_BYTES];
    int fd;
    if (!bp_fd_is_ours(self->listening_fd, self->listening_mark)) {
        return UINT64_MAX;
    }
    while ((fd = bp_ask_socket_accept(self->listening_fd, request)) >= 0) {
        serve(self, fd, request);
    }
    return now_ns + look_interval_ns;
}

static void close_trigger(void *context) {
    struct ask *self = context;
    bp_fd_close_ours(self->listening_fd, self->listening_mark);
    free(self);
}

const bp_trigger bp_trigger_ask = {.open = open_trigger, .tick = tick, .close = close_trigger};
