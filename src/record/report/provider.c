#include "report/provider.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "json/json.h"
#include "platform/thread.h"

bugpack_status bp_provider_new(const bp_provider_spec *spec, bp_provider **ret_provider,
                               bugpack_error *error) {
    bp_provider *provider = calloc(1, sizeof *provider);
    char *name = strdup(spec->name);
    if (provider == NULL || name == NULL) {
        free(name);
        free(provider);
        return bp_fail_memory(error, "register a provider");
    }
    bp_condition_init(&provider->idle);
    bp_lock_init(&provider->lock, BP_LOCK_PROVIDER);
    atomic_init(&provider->reference_count, 1);
    provider->spec = *spec;
    provider->spec.name = name;
    *ret_provider = provider;
    return BUGPACK_OK;
}

bp_provider *bp_provider_retain(bp_provider *provider) {
    atomic_fetch_add_explicit(&provider->reference_count, 1, memory_order_relaxed);
    return provider;
}

void bp_provider_drop(bp_provider *provider) {
    if (provider == NULL ||
        atomic_fetch_sub_explicit(&provider->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (provider->spec.release != NULL) {
        provider->spec.release(provider->spec.context);
    }
    (void)pthread_cond_destroy(&provider->idle);
    bp_lock_destroy(&provider->lock);
    free((char *)(uintptr_t)provider->spec.name);
    free(provider);
}

bp_provider_entry bp_provider_enter(bp_provider *provider) {
    bp_provider_entry entry = BP_PROVIDER_ENTERED;
    bp_lock_acquire(&provider->lock);
    if (provider->is_retired) {
        entry = BP_PROVIDER_RETIRED;
    } else if (provider->is_running) {
        entry = BP_PROVIDER_STILL_RUNNING;
    } else {
        provider->is_running = true;
        provider->running_since_ns = bp_clock_monotonic_ns();
    }
    bp_lock_release(&provider->lock);
    return entry;
}

void bp_provider_leave(bp_provider *provider) {
    bp_lock_acquire(&provider->lock);
    provider->is_running = false;
    (void)pthread_cond_broadcast(&provider->idle);
    bp_lock_release(&provider->lock);
}

void bp_provider_give_up(bp_provider *provider) {
    bp_lock_acquire(&provider->lock);
    provider->is_given_up = true;
    bp_lock_release(&provider->lock);
}

bool bp_provider_retire(bp_provider *provider) {
    bp_lock_acquire(&provider->lock);
    provider->is_retired = true;
    uint64_t deadline_ns = provider->running_since_ns + provider->spec.timeout_ms * BP_NS_PER_MS;
    while (provider->is_running && !provider->is_given_up &&
           bp_lock_wait_until(&provider->lock, &provider->idle, deadline_ns)) {}
    bool is_idle = !provider->is_running;
    bp_lock_release(&provider->lock);
    return is_idle;
}

static void refuse_content(bugpack_writer *given, bugpack_status status, size_t limit_bytes) {
    if (status == BUGPACK_ERR_LIMIT) {
        bp_writer_refuse(given, BP_ARTEFACT_FAILED, "it is over the limit of %zu bytes",
                         limit_bytes);
    } else {
        bp_writer_refuse(given, BP_ARTEFACT_FAILED, "what the provider wrote was not kept: %s",
                         bugpack_status_name(status));
    }
}

static void accept_json(bugpack_writer *given, bp_sink *sink, void *context) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_buffer formatted;
    /* Indenting and escaping make it longer; the limit was for what the provider gave. */
    bp_buffer_init(&formatted, SIZE_MAX / 4);
    bugpack_status status =
        bp_json_reformat(bp_buffer_text(&given->content), given->content.size, &formatted, &error);
    bp_buffer_release(&given->content);
    if (status == BUGPACK_OK) {
        status = sink(context, bp_buffer_text(&formatted), formatted.size);
    }
    bp_buffer_release(&formatted);
    if (status != BUGPACK_OK) {
        bp_writer_refuse(given, BP_ARTEFACT_FAILED, "%s%s",
                         status == BUGPACK_ERR_CORRUPT ? "not valid JSON: " : "",
                         error.message[0] != '\0' ? error.message : bugpack_status_name(status));
    }
}

void bp_provider_accept(bugpack_provider_kind form, size_t limit_bytes, int result,
                        bugpack_writer *given, bp_sink *sink, void *context) {
    const bp_manifest_line line = given->line;
    bool has_status = line.status != BP_ARTEFACT_OK && line.status != BP_ARTEFACT_TRUNCATED;
    bugpack_status status = given->content.status;
    if (result == 0 && form != BUGPACK_PROVIDE_JSON) {
        status = bp_writer_flush(given, NULL);
    }
    if (result != 0 && line.reason[0] == '\0' && given->content.status != BUGPACK_OK) {
        /* Without a reason of its own it most likely passed on that a write failed. */
        refuse_content(given, given->content.status, limit_bytes);
    } else if (result != 0) {
        bp_writer_refuse(given, has_status ? line.status : BP_ARTEFACT_FAILED, "%s",
                         line.reason[0] != '\0' ? line.reason : "the provider failed");
    } else if (given->content.status != BUGPACK_OK || status != BUGPACK_OK) {
        refuse_content(given, given->content.status != BUGPACK_OK ? given->content.status : status,
                       limit_bytes);
    } else {
        if (given->line.status == BP_ARTEFACT_OK) {
            given->line.reason[0] = '\0'; /* it said why it fails, and then did not */
        }
        if (form == BUGPACK_PROVIDE_JSON && given->line.status != BP_ARTEFACT_OMITTED) {
            accept_json(given, sink, context);
        }
    }
}

bugpack_status bp_provider_check_json(const char *path, size_t limit_bytes, bugpack_error *error) {
    bp_buffer text, formatted;
    bugpack_error detail = BUGPACK_ERROR_INIT;
    int fd = -1;
    bp_buffer_init(&text, limit_bytes);
    bp_buffer_init(&formatted, SIZE_MAX / 4);
    bugpack_status status = bp_file_open_regular(AT_FDCWD, path, &fd, error);
    if (status == BUGPACK_OK) {
        status = bp_file_read_fd(fd, path, &text, error);
        (void)close(fd);
    }
    if (status == BUGPACK_OK) {
        status = bp_json_reformat(bp_buffer_text(&text), text.size, &formatted, &detail);
        if (status != BUGPACK_OK) {
            status = bp_fail(error, status,
                             status == BUGPACK_ERR_CORRUPT ? "\"%s\" is not valid JSON: %s"
                                                           : "cannot check \"%s\": %s",
                             path, detail.message);
        }
    }
    bp_buffer_release(&text);
    bp_buffer_release(&formatted);
    return status;
}
