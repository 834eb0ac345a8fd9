#include "trigger/trigger.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/status.h"
#include "base/utf8.h"
#include "platform/crash_handler.h"
#include "report/stored_entries.h"

/* A job asks for the entries that are kept for a crash, because the worker alone calls providers.
 */
struct bp_crash_trigger {
    const bp_report_context *context;
    atomic_bool is_installing, is_installed;
    bp_crash_page *page;
    atomic_bool is_job_waiting, has_changed;
    _Atomic(uint64_t) cost_ns; /* of the last job */
    /* The monitor's. */
    uint64_t next_ns, last_ns; /* 0 at first */
    bool was_installed, has_kept;
};

static const uint64_t check_interval_ns = BP_NS_PER_SEC;
/* At most a hundredth of the time goes into what is kept. */
enum { rest_factor = 100 };

static bp_stored_scope scope_of(const bp_crash_trigger *trigger) {
    bp_stored_scope scope = trigger->context->config->crash.scope;
    scope.has_process = atomic_load(&trigger->is_installed);
    return scope;
}

static void run(bp_job *job, bp_runner *runner) {
    bp_crash_trigger *trigger = job->payload;
    uint64_t began_ns = bp_clock_monotonic_ns();
    bp_stored_entries_write(trigger->context, runner, scope_of(trigger));
    atomic_store(&trigger->cost_ns, bp_clock_monotonic_ns() - began_ns);
}

static void free_payload(bp_job *job) {
    bp_crash_trigger *trigger = job->payload;
    atomic_store(&trigger->is_job_waiting, false);
}

/* It yields: no bound of the queue refuses it, and reports come first. */
static const bp_job_type job_type = {.yields = true, .run = run, .free = free_payload};

static void keep(bp_crash_trigger *trigger) {
    if (!atomic_exchange(&trigger->is_job_waiting, true)) {
        bp_job *job = bp_job_new(trigger->context, &job_type, 0);
        if (job != NULL) {
            job->payload = trigger;
            (void)bp_job_queue_submit(trigger->context->jobs, job, NULL, NULL);
        } else {
            atomic_store(&trigger->is_job_waiting, false);
        }
    }
}

static bugpack_status open_trigger(const bp_report_context *context, void **ret_self,
                                   bugpack_error *error) {
    bp_crash_trigger *trigger = calloc(1, sizeof *trigger);
    if (trigger == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    trigger->context = context;
    *ret_self = trigger;
    return BUGPACK_OK;
}

/* Until what is kept is asked for again: at most, or where it has changed. */
static uint64_t interval_ns(bp_crash_trigger *trigger, bool has_changed) {
    uint64_t wanted_ns = trigger->context->config->crash.interval_ns;
    if (wanted_ns == UINT64_MAX) {
        return wanted_ns;
    }
    if (has_changed) {
        wanted_ns = BP_NS_PER_SEC;
    }
    uint64_t least_ns = atomic_load(&trigger->cost_ns) * rest_factor;
    return wanted_ns > least_ns ? wanted_ns : least_ns;
}

static uint64_t tick(void *self, uint64_t now_ns) {
    bp_crash_trigger *trigger = self;
    const bp_report_context *report = trigger->context;
    bool is_installed = atomic_load(&trigger->is_installed);
    uint64_t wait_ns = interval_ns(trigger, false);
    if (report->recorder->rings->dir == NULL || (!is_installed && wait_ns == UINT64_MAX)) {
        return UINT64_MAX;
    }
    if (is_installed && !trigger->was_installed) {
        trigger->was_installed = true;
        trigger->next_ns = now_ns;
    } else if (trigger->next_ns == 0) {
        trigger->next_ns = now_ns + wait_ns;
    }
    if (wait_ns != UINT64_MAX && atomic_load(&trigger->has_changed)) {
        uint64_t soon_ns =
            trigger->last_ns == 0 ? now_ns : trigger->last_ns + interval_ns(trigger, true);
        trigger->next_ns = soon_ns < trigger->next_ns ? soon_ns : trigger->next_ns;
    }
    if (now_ns >= trigger->next_ns) {
        trigger->last_ns = now_ns;
        trigger->next_ns = wait_ns == UINT64_MAX ? UINT64_MAX : now_ns + wait_ns;
        atomic_store(&trigger->has_changed, false); /* before it is read */
        if (trigger->has_kept || bp_stored_entries_are_there(report, scope_of(trigger))) {
            trigger->has_kept = true; /* what is gone goes from the file too */
            keep(trigger);
        }
    }
    if (!is_installed) {
        return trigger->next_ns;
    }
    bp_crash_handler_check(trigger->page);
    uint64_t check_ns = now_ns + check_interval_ns;
    return trigger->next_ns < check_ns ? trigger->next_ns : check_ns;
}

static bugpack_status make_page(bp_crash_trigger *trigger, bugpack_error *error) {
    const bp_report_context *report = trigger->context;
    void *map = NULL;
    if (report->subject->target.pid != 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the session is about another process");
    }
    bugpack_status status = bp_rings_map_file(report->recorder->rings, BP_CRASH_PAGE_NAME,
                                              sizeof(bp_crash_page), &map, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    trigger->page = map;
    bp_crash_page_init(trigger->page, report->identity->id);
    status = bp_crash_handler_install(trigger->page, error);
    if (status != BUGPACK_OK) {
        (void)munmap(map, sizeof(bp_crash_page));
        (void)bp_rings_write_file(report->recorder->rings, BP_CRASH_PAGE_NAME, NULL, 0);
        trigger->page = NULL;
    }
    return status;
}

bugpack_status bp_crash_trigger_install(bp_crash_trigger *trigger, bugpack_error *error) {
    if (atomic_load(&trigger->is_installed)) {
        return BUGPACK_OK;
    }
    if (atomic_exchange(&trigger->is_installing, true)) {
        return bp_fail(error, BUGPACK_ERR_BUSY, "another thread installs the crash handler");
    }
    bugpack_status status = make_page(trigger, error);
    if (status == BUGPACK_OK) {
        atomic_store(&trigger->is_installed, true);
        bp_monitor_wake(trigger->context->monitor);
    } else {
        atomic_store(&trigger->is_installing, false);
    }
    return status;
}

void bp_crash_trigger_explain(bp_crash_trigger *trigger, const char *type, const char *message) {
    if (atomic_load(&trigger->is_installed)) {
        bp_crash_page *page = trigger->page;
        bp_utf8_copy(page->exception_type, sizeof page->exception_type, type);
        bp_utf8_copy(page->exception_message, sizeof page->exception_message, message);
        page->is_exception_told = type[0] != '\0';
    }
}

void bp_crash_trigger_note_change(bp_crash_trigger *trigger) {
    if (!atomic_exchange(&trigger->has_changed, true)) {
        bp_monitor_wake(trigger->context->monitor);
    }
}

/* A thread that crashes at this moment still writes the page: then it stays, with its directory. */
static void close_trigger(void *self) {
    bp_crash_trigger *trigger = self;
    if (trigger->page != NULL) {
        if (bp_crash_handler_remove(trigger->page)) {
            (void)munmap(trigger->page, sizeof *trigger->page);
        } else {
            atomic_store(&trigger->context->recorder->rings->is_kept, true);
        }
    }
    free(trigger);
}

const bp_trigger bp_trigger_crash = {.open = open_trigger, .tick = tick, .close = close_trigger};
