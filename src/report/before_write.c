#include "report/before_write.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/lock.h"
#include "base/status.h"
#include "recorder/recorder.h"

/* The file in a session's directory. */
#define THERE_FILE "before-write"

enum { piece_bytes = 64 * 1024, entry_time_limits = 10 };

/* One callback, for all reports. A call that hangs has a reference to its provider, and with it
 * this. The thread that makes the reports fills it, while no call runs. */
struct host_call {
    bugpack_before_write_callback *callback;
    void *context;
    bugpack_entry_piece piece;
    bugpack_write_choice choice;
    char reason[BP_REASON_BYTES]; /* of a drop; "" for none */
    char entry[1024];
    size_t byte_count;
    unsigned char bytes[piece_bytes];
};

struct bp_before_write {
    bp_recorder *recorder;
    size_t limit_bytes;
    uint32_t timeout_ms;
    bp_runner *runner;
    bp_lock lock;
    bp_provider *provider; /* whose context is a host_call; NULL: no callback is set */
};

struct bp_last_look {
    bp_before_write *before;
    const bp_cancel_token *token;
    bp_provider *provider; /* with a reference of ours; NULL: no callback is set */
    struct host_call *call;
    bool is_out; /* it hangs: no further entry is let through */
    bool was_used;
    /* Of the entry. */
    uint64_t offset, spent_ns;
    bool is_refused, is_changed;
    bp_manifest_line line; /* of a refused one: status, reason, is_missing */
};

/* A bugpack_provider_callback: calls the host. */
static int call_host(bugpack_writer *writer, void *context) {
    struct host_call *call = context;
    call->choice = call->callback(&call->piece, writer, call->context);
    (void)snprintf(call->reason, sizeof call->reason, "%s", writer->line.reason);
    return (unsigned)call->choice <= BUGPACK_WRITE_DROP ? 0 : -1;
}

bugpack_status bp_before_write_new(const bugpack_options *settings, bp_recorder *recorder,
                                   bp_before_write **ret_before, bugpack_error *error) {
    bp_before_write *before = calloc(1, sizeof *before);
    if (before == NULL || !bp_lock_init(&before->lock, BP_LOCK_BEFORE_WRITE)) {
        free(before);
        return bp_fail_memory(error, "open a session");
    }
    bugpack_status status = bp_runner_new(&before->runner, error);
    if (status != BUGPACK_OK) {
        bp_lock_destroy(&before->lock);
        free(before);
        return status;
    }
    before->recorder = recorder;
    before->limit_bytes = settings->artefact_limit_bytes;
    before->timeout_ms = settings->provider_timeout_ms;
    *ret_before = before;
    return BUGPACK_OK;
}

void bp_before_write_free(bp_before_write *before) {
    if (before != NULL) {
        if (before->provider != NULL) {
            (void)bp_provider_retire(before->provider);
            bp_provider_drop(before->provider);
        }
        bp_runner_free(before->runner);
        bp_lock_destroy(&before->lock);
        free(before);
    }
}

static bp_provider *new_provider(const bp_before_write *before,
                                 bugpack_before_write_callback *callback, void *context) {
    struct host_call *call = calloc(1, sizeof *call);
    bp_provider *provider = NULL;
    if (call == NULL) {
        return NULL;
    }
    *call = (struct host_call){.callback = callback, .context = context};
    const bp_provider_spec spec = {.name = "bugpack_before_write",
                                   .form = BP_CONTENT_BYTES,
                                   .provide = call_host,
                                   .context = call,
                                   .release = free,
                                   .limit_bytes = before->limit_bytes,
                                   .timeout_ms = before->timeout_ms};
    if (bp_provider_new(&spec, &provider, NULL) != BUGPACK_OK) {
        free(call);
    }
    return provider;
}

bugpack_status bp_before_write_set(bp_before_write *before, bugpack_before_write_callback *callback,
                                   void *context) {
    bp_provider *provider = callback == NULL ? NULL : new_provider(before, callback, context);
    if (callback != NULL && provider == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    (void)bp_rings_write_file(before->recorder->rings, THERE_FILE, NULL, 0);
    if (callback != NULL && !bp_rings_write_file(before->recorder->rings, THERE_FILE, "", 0)) {
        bp_note_diagnose(before->recorder, BUGPACK_LEVEL_WARN,
                         "a recovery of this session will not say that it could not call "
                         "bugpack_before_write's callback");
    }
    bp_lock_acquire(&before->lock);
    bp_provider *old = before->provider;
    before->provider = provider;
    bp_lock_release(&before->lock);
    bool is_idle = old == NULL || bp_provider_retire(old);
    bp_provider_drop(old);
    return is_idle ? BUGPACK_OK : BUGPACK_ERR_TIMEOUT;
}

void bp_before_write_wake(bp_before_write *before) {
    bp_runner_wake(before->runner);
}

void bp_before_write_on_wake(bp_before_write *before, void (*on_wake)(void *context),
                             void *context) {
    bp_runner_on_wake(before->runner, on_wake, context);
}

bool bp_before_write_was_set(int dir_fd) {
    int fd = bp_session_file_open(dir_fd, THERE_FILE);
    bp_file_close(fd);
    return fd >= 0;
}

bp_last_look *bp_last_look_new(bp_before_write *before, const bp_cancel_token *token) {
    bp_last_look *look = calloc(1, sizeof *look);
    if (look != NULL) {
        look->before = before;
        look->token = token;
    }
    return look;
}

void bp_last_look_free(bp_last_look *look) {
    if (look != NULL) {
        bp_provider_drop(look->provider);
        free(look);
    }
}

static void refuse(bp_last_look *look, bp_artefact_status status, const char *reason) {
    look->is_refused = true;
    look->line = (bp_manifest_line){.status = status, .is_missing = status != BP_ARTEFACT_DISABLED};
    (void)snprintf(look->line.reason, sizeof look->line.reason, "bugpack_before_write%s%.450s",
                   reason[0] != '\0' ? ": " : " left it out", reason);
}

/* The callback as it is now. One that hangs stays, and with it what it keeps back. */
static void choose_callback(bp_last_look *look) {
    bp_before_write *before = look->before;
    bp_provider *old = look->provider;
    bp_lock_acquire(&before->lock);
    bool is_new = before->provider != old;
    if (is_new) {
        look->provider = before->provider != NULL ? bp_provider_retain(before->provider) : NULL;
    }
    bp_lock_release(&before->lock);
    if (is_new) {
        bp_provider_drop(old);
        look->is_out = look->provider != NULL && bp_provider_is_running(look->provider);
    }
}

void bp_last_look_begin(bp_last_look *look) {
    look->offset = look->spent_ns = 0;
    look->is_refused = look->is_changed = false;
    choose_callback(look);
    if (look->is_out) {
        refuse(look, BP_ARTEFACT_TIMED_OUT, "it still hangs, and was not called again");
    } else if (look->provider != NULL) {
        look->call = bp_provider_spec_of(look->provider)->context;
        look->call->byte_count = 0;
    }
    look->was_used = look->was_used || look->provider != NULL;
}

bool bp_last_look_was_used(const bp_last_look *look) {
    return look->was_used;
}

/* What the callback has chosen for a piece. */
static bugpack_status obey(bp_last_look *look, const bugpack_writer *given, bp_sink *pass_on,
                           void *context) {
    const struct host_call *call = look->call;
    const void *bytes = call->bytes;
    size_t byte_count = call->byte_count;
    if (call->choice == BUGPACK_WRITE_DROP) {
        refuse(look, BP_ARTEFACT_DISABLED, call->reason);
        return BUGPACK_OK;
    }
    if (call->choice == BUGPACK_WRITE_INSTEAD) {
        look->is_changed = true;
        bytes = given->content.data;
        byte_count = given->content.size;
    }
    return byte_count > 0 ? pass_on(context, bytes, byte_count) : BUGPACK_OK;
}

/* Calls the host with what was collected; with nothing the entry ends. */
static bugpack_status call(bp_last_look *look, const char *entry, bp_sink *pass_on, void *context) {
    struct host_call *call = look->call;
    bugpack_status status = BUGPACK_OK;
    bugpack_writer writer;
    uint64_t began_ns = bp_clock_monotonic_ns();
    (void)snprintf(call->entry, sizeof call->entry, "%s", entry);
    call->piece = (bugpack_entry_piece){.struct_size = sizeof call->piece,
                                        .entry = call->entry,
                                        .offset = look->offset,
                                        .bytes = call->byte_count > 0 ? call->bytes : NULL,
                                        .byte_count = call->byte_count};
    bp_writer_init(&writer, look->before->limit_bytes);
    bool was_called = bp_runner_call(look->before->runner, look->provider, look->token, &writer);
    look->spent_ns += bp_clock_monotonic_ns() - began_ns;
    if (!was_called) {
        refuse(look, BP_ARTEFACT_FAILED, "it was removed while the entry was written");
    } else if (writer.line.status != BP_ARTEFACT_OK) {
        look->is_out = bp_provider_is_running(look->provider);
        refuse(look, writer.line.status, writer.line.reason);
    } else if (look->spent_ns > entry_time_limits * look->before->timeout_ms * BP_NS_PER_MS) {
        refuse(look, BP_ARTEFACT_TIMED_OUT, "it took too long for this entry");
    } else {
        look->offset += call->byte_count;
        status = obey(look, &writer, pass_on, context);
    }
    bp_writer_release(&writer);
    if (!look->is_out) {
        call->byte_count = 0;
    }
    return status;
}

bugpack_status bp_last_look_write(bp_last_look *look, const char *entry, const void *bytes,
                                  size_t byte_count, bp_sink *pass_on, void *context) {
    const unsigned char *next = bytes;
    bugpack_status status = BUGPACK_OK;
    if (look->provider == NULL) {
        return bytes != NULL ? pass_on(context, bytes, byte_count) : BUGPACK_OK;
    }
    while (status == BUGPACK_OK && !look->is_refused && byte_count > 0) {
        struct host_call *to = look->call;
        size_t left = piece_bytes - to->byte_count;
        size_t count = byte_count < left ? byte_count : left;
        memcpy(to->bytes + to->byte_count, next, count);
        to->byte_count += count;
        next += count;
        byte_count -= count;
        if (to->byte_count == piece_bytes) {
            status = call(look, entry, pass_on, context);
        }
    }
    if (bytes == NULL && !look->is_refused && look->call->byte_count > 0) {
        status = call(look, entry, pass_on, context);
    }
    if (bytes == NULL && status == BUGPACK_OK && !look->is_refused) {
        status = call(look, entry, pass_on, context); /* its end */
    }
    return bytes == NULL && look->is_refused ? BUGPACK_ERR_CANCELLED : status;
}

bool bp_last_look_tell(const bp_last_look *look, bugpack_writer *writer) {
    bp_manifest_line *line = &writer->line;
    if (look->is_refused) {
        const bp_manifest_line was = *line;
        bp_writer_refuse(writer, look->line.status, "%s", look->line.reason);
        *line = look->line;
        line->captured_wall_ns = was.captured_wall_ns;
        line->duration_ns = was.duration_ns;
    } else if (look->is_changed) {
        size_t used = strlen(line->note);
        (void)snprintf(line->note + used, sizeof line->note - used, "%schanged by the host",
                       used > 0 ? "; " : "");
    }
    return look->is_refused;
}
