/*
 * stacks.json and stacks.txt: the stacks of the threads, read once for both.
 */
#include "probe/stacks.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "report/name.h"
#include "sources/source.h"

/* The shares of the provider's time after which no more threads are read, and no symbols sought. */
static const uint64_t reading_share_percent = 40;
static const uint64_t symbols_share_percent = 60;

/*
 * Both providers have it, and it outlives the session when one of them hangs. The first one leaves
 * what it has read for the second.
 */
typedef struct stack_source {
    bp_subject *subject;
    uint32_t timeout_ms;
    uint64_t choice;    /* as in bugpack_options */
    char *helper_path;  /* NULL: not given */
    bool is_text_alone; /* the host leaves stacks.json out */
    atomic_uint references;
    _Atomic(bp_stacks *) left; /* NULL: nothing */
} stack_source;

static void free_stacks(bp_stacks *stacks) {
    if (stacks != NULL) {
        bp_stacks_release(stacks);
        free(stacks);
    }
}

static void drop_source(void *context) {
    stack_source *source = context;
    if (atomic_fetch_sub(&source->references, 1) == 1) {
        free_stacks(atomic_load(&source->left));
        bp_subject_drop(source->subject);
        free(source->helper_path);
        free(source);
    }
}

static bugpack_status read_stacks(const stack_source *source, bugpack_writer *writer,
                                  bp_stacks *ret_stacks, bugpack_error *error) {
    bp_subject_process *processes = NULL;
    size_t count;
    uint64_t now_ns = bp_clock_monotonic_ns();
    uint64_t limit_ns = source->timeout_ms * BP_NS_PER_MS;
    bp_stacks_plan plan = {.deadline_ns = now_ns + limit_ns * reading_share_percent / 100,
                           .symbols_until_ns = now_ns + limit_ns * symbols_share_percent / 100,
                           .stops_threads = source->choice != BUGPACK_STACKS_BLOCKED,
                           .helper_path = source->helper_path,
                           .is_helper_ptracer = source->choice == BUGPACK_STACKS_ALL_PTRACER,
                           .stop = &writer->is_abandoned};
    pid_t pid = bp_subject_target(source->subject)->pid;
    bugpack_status status = BUGPACK_OK;
    if (pid != 0) {
        status = bp_subject_list(source->subject, &processes, &count, error);
        plan.birth = status == BUGPACK_OK ? processes[0].birth : 0;
        free(processes);
    }
    return status == BUGPACK_OK ? bp_stacks_read(pid, &plan, ret_stacks, error) : status;
}

static void note(const bp_stacks *stacks, bugpack_writer *writer) {
    size_t blocked_count = bp_stacks_count(stacks, BP_STACK_BLOCKED);
    size_t running_count = bp_stacks_count(stacks, BP_STACK_RUNNING);
    size_t stopped_count = bp_stacks_count(stacks, BP_STACK_STOPPED);
    size_t rest_count = stacks->thread_count - blocked_count - running_count - stopped_count;
    char stopped[80] = "", running[64] = "";
    if (stopped_count > 0) {
        (void)snprintf(stopped, sizeof stopped, "; %zu stopped, for at most %" PRIu64 " us each",
                       stopped_count, bp_stacks_longest_stop_us(stacks));
    }
    if (running_count > 0) {
        (void)snprintf(running, sizeof running, "; %zu running, without a stack", running_count);
    }
    (void)snprintf(writer->line.note, sizeof writer->line.note, "threads: %zu blocked%s%s",
                   blocked_count, stopped, running);
    if (stacks->passed_over_count > 0) {
        bp_writer_truncate(writer, true, "%zu threads were passed over: no time, or over a limit",
                           stacks->passed_over_count);
    } else if (rest_count > 0) {
        bp_writer_truncate(writer, false, "%zu threads ran meanwhile or could not be read",
                           rest_count);
    }
}

static bugpack_status new_stacks(const stack_source *source, bugpack_writer *writer,
                                 bp_stacks **ret_stacks, bugpack_error *error) {
    bp_stacks *stacks = calloc(1, sizeof *stacks);
    bugpack_status status = stacks == NULL ? bp_fail_memory(error, "read stacks")
                                           : read_stacks(source, writer, stacks, error);
    if (status == BUGPACK_OK) {
        *ret_stacks = stacks;
    } else {
        free(stacks);
    }
    return status;
}

static int provide_json(bugpack_writer *writer, void *context) {
    stack_source *source = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_stacks *stacks = NULL;
    free_stacks(atomic_exchange(&source->left, NULL));
    bugpack_status status = new_stacks(source, writer, &stacks, &error);
    if (status != BUGPACK_OK) {
        return bp_source_end(writer, status, &error);
    }
    note(stacks, writer);
    status = bp_stacks_print_json(stacks, &writer->content, &error);
    /* Once this call was given up, the second provider may have to do with a later report. */
    if (!atomic_load(&writer->is_abandoned)) {
        stacks = atomic_exchange(&source->left, stacks);
    }
    free_stacks(stacks);
    return status == BUGPACK_OK ? 0 : bugpack_fail(writer, "%s", error.message);
}

static int provide_text(bugpack_writer *writer, void *context) {
    stack_source *source = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_stacks *stacks = atomic_exchange(&source->left, NULL);
    bugpack_status status =
        source->is_text_alone ? new_stacks(source, writer, &stacks, &error) : BUGPACK_OK;
    if (status != BUGPACK_OK) {
        return bp_source_end(writer, status, &error);
    }
    if (stacks == NULL) {
        bp_writer_refuse(writer, BP_ARTEFACT_OMITTED, "stacks.json has no stacks either");
        writer->line.is_missing = false;
        return 0;
    }
    note(stacks, writer);
    status = bp_stacks_print_text(stacks, &writer->content, &error);
    free_stacks(stacks);
    return status == BUGPACK_OK ? 0 : bugpack_fail(writer, "%s", error.message);
}

static bugpack_status add_provider(const bp_report_context *context, const char *name,
                                   bp_content_form form, bugpack_provider *provide,
                                   stack_source *source, bugpack_error *error) {
    const bp_provider_spec spec = {.name = name,
                                   .form = form,
                                   .provide = provide,
                                   .context = source,
                                   .release = drop_source,
                                   .limit_bytes = (size_t)64 << 20,
                                   .timeout_ms = context->settings->provider_timeout_ms};
    atomic_fetch_add(&source->references, 1);
    return bp_source_add(context, &spec, error); /* which drops it on a failure */
}

bugpack_status bp_source_stacks(const bp_report_context *context, bugpack_error *error) {
    if (context->settings->without_process || context->settings->stacks == 0) {
        return BUGPACK_OK;
    }
    stack_source *source = calloc(1, sizeof *source);
    if (source == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    atomic_init(&source->references, 1);
    source->timeout_ms = context->settings->provider_timeout_ms;
    source->choice = context->settings->stacks;
    source->is_text_alone = context->settings->without_entries != NULL &&
                            bp_name_is_in_list(context->settings->without_entries, "stacks.json");
    source->subject = bp_subject_retain(context->subject);
    bugpack_status status = BUGPACK_OK;
    if (context->settings->calibrator_path != NULL) {
        source->helper_path = strdup(context->settings->calibrator_path);
        status = source->helper_path == NULL ? bp_fail_memory(error, "open a session") : BUGPACK_OK;
    }
    if (status == BUGPACK_OK) {
        status =
            add_provider(context, "stacks.json", BP_CONTENT_BYTES, provide_json, source, error);
    }
    if (status == BUGPACK_OK) {
        status = add_provider(context, "stacks.txt", BP_CONTENT_TEXT, provide_text, source, error);
    }
    drop_source(source);
    return status;
}
