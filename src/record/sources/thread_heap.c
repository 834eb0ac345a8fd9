#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "heap/thread_heap.h"
#include "sources/source.h"

/* The part of the window between two readings: the first is not at its very beginning. */
static const uint64_t again_percent = 75;

/* The readings of the target and its descendants. */
struct readings {
    bp_thread_heap_reading *items;
    size_t count;
    size_t passed_over_count; /* there was no time for them */
};

/* When the process of a reading began, as in platform/task.h; 0: not known. */
static uint64_t birth_of(const bp_thread_heap_reading *reading) {
    const bp_thread_heap_snapshot *last =
        reading->snapshot_count > 0 ? &reading->snapshots[reading->snapshot_count - 1] : NULL;
    for (size_t i = 0; last != NULL && i < last->thread_count; i++) {
        if (last->threads[i].tid == reading->pid) {
            return last->threads[i].birth;
        }
    }
    return 0;
}

/* The target has a reading in any case. A descendant that has ended has none. */
static bugpack_status probe_all(const bp_source *source, bp_heap_prober *prober,
                                const bp_subject_process *processes, size_t count, uint64_t end_ns,
                                struct readings *readings, bugpack_error *error) {
    readings->items = calloc(count, sizeof *readings->items);
    if (readings->items == NULL) {
        return bp_fail_memory(error, "read the counters of processes");
    }
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && bp_clock_monotonic_ns() > end_ns) {
            readings->passed_over_count = count - i;
            break;
        }
        bp_heap_plan plan = BP_HEAP_PLAN_INIT;
        bp_thread_heap_reading *reading = &readings->items[readings->count];
        bugpack_status status = bp_heap_probe(prober, processes[i].pid, &plan, reading, error);
        if (status != BUGPACK_OK) {
            return status;
        }
        if (i == 0 || birth_of(reading) == processes[i].birth) {
            readings->count++;
        } else {
            bp_thread_heap_reading_release(reading);
        }
    }
    return bp_subject_check_program(source->subject, error);
}

/* Moves the snapshot of `again` behind that of the reading, if both are of one process. */
static bugpack_status add_snapshot(bp_thread_heap_reading *reading, bp_thread_heap_reading *again,
                                   bugpack_error *error) {
    if (again->failure != BP_HEAP_FAILURE_NONE || birth_of(again) != birth_of(reading)) {
        reading->is_interrupted = true;
        return BUGPACK_OK;
    }
    bp_thread_heap_snapshot *both = realloc(reading->snapshots, 2 * sizeof *both);
    if (both == NULL) {
        return bp_fail_memory(error, "read the counters of processes");
    }
    reading->snapshots = both;
    both[reading->snapshot_count++] = again->snapshots[0];
    again->snapshot_count = 0; /* its threads have moved */
    return BUGPACK_OK;
}

/*
 * Reads once more what was measured, so that the rate of each thread is known: as a rule while the
 * window of the report passes. Not where a thread had to be stopped, and not of several processes,
 * of which each has a provider: the next would be late.
 */
static bugpack_status probe_again(const bp_source *source, bp_heap_prober *prober,
                                  uint64_t again_ns, struct readings *readings,
                                  bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    bool is_alone = !source->subject->is_further && bp_subject_next(source->subject) == NULL;
    for (size_t i = 0; is_alone && status == BUGPACK_OK && i < readings->count; i++) {
        bp_thread_heap_reading *reading = &readings->items[i], again = {.pid = 0};
        bp_heap_plan plan = BP_HEAP_PLAN_INIT;
        if (reading->failure != BP_HEAP_FAILURE_NONE || reading->snapshots[0].stopped_count > 0) {
            continue;
        }
        bp_clock_sleep_until(again_ns);
        status = bp_heap_probe(prober, (pid_t)reading->pid, &plan, &again, error);
        if (status == BUGPACK_OK) {
            status = add_snapshot(reading, &again, error);
        }
        bp_thread_heap_reading_release(&again);
    }
    return status;
}

/* The failure to name: trouble of ours, else a refusal, rather than that there is no jemalloc. */
static const bp_thread_heap_reading *choose_failure(const struct readings *readings) {
    const bp_thread_heap_reading *chosen = &readings->items[0];
    for (size_t i = 0; i < readings->count; i++) {
        const bp_thread_heap_reading *reading = &readings->items[i];
        if (bp_heap_failure_is_trouble(reading->failure, reading->system_errno)) {
            return reading;
        }
        if (bp_heap_failure_is_absence(chosen->failure, chosen->system_errno) &&
            !bp_heap_failure_is_absence(reading->failure, reading->system_errno) &&
            reading->failure != BP_HEAP_FAILURE_NONE) {
            chosen = reading;
        }
    }
    return chosen;
}

/*
 * These counters are another process's memory, which the kernel may keep to itself: the manifest
 * says why they are absent, in whole or in part, and the report is complete. It is not when our own
 * want of descriptors or memory, or a failing disk, is the reason.
 */
static bugpack_status write_readings(const struct readings *readings, bugpack_writer *writer,
                                     bugpack_error *error) {
    bool is_measured = false;
    size_t unread_count = 0;
    for (size_t i = 0; i < readings->count; i++) {
        const bp_thread_heap_reading *reading = &readings->items[i];
        bool is_read = reading->failure == BP_HEAP_FAILURE_NONE;
        is_measured = is_measured || is_read;
        unread_count += is_read ? bp_thread_heap_unread_count(reading) : 0;
    }
    const bp_thread_heap_reading *failed = choose_failure(readings);
    bool is_trouble = bp_heap_failure_is_trouble(failed->failure, failed->system_errno);
    char which[48] = "", passed_over[80] = "";
    if (readings->passed_over_count > 0) {
        (void)snprintf(passed_over, sizeof passed_over,
                       "there was no time to read %zu more descendant%s",
                       readings->passed_over_count, readings->passed_over_count == 1 ? "" : "s");
    }
    if (failed != readings->items) {
        (void)snprintf(which, sizeof which, " of descendant %llu", (unsigned long long)failed->pid);
    }
    if (!is_measured) {
        bool is_failed = is_trouble || passed_over[0] != '\0';
        bp_writer_refuse(writer, is_failed ? BP_ARTEFACT_FAILED : BP_ARTEFACT_OMITTED,
                         "%s%s%s%s: %s", passed_over, passed_over[0] != '\0' ? "; " : "",
                         bp_heap_failure_name(failed->failure), which, failed->reason);
        writer->line.is_missing = is_failed;
        return BUGPACK_OK;
    }
    if (passed_over[0] != '\0') {
        bp_writer_truncate(writer, true, "%s", passed_over);
    } else if (is_trouble) {
        bp_writer_truncate(writer, true, "%s%s: %s", bp_heap_failure_name(failed->failure), which,
                           failed->reason);
    } else if (unread_count > 0) {
        bp_writer_truncate(writer, false, "the counters of %zu thread%s could not be read",
                           unread_count, unread_count == 1 ? "" : "s");
    }
    return bp_thread_heap_print(readings->items, readings->count, &writer->content, error);
}

int bp_source_thread_heap(bugpack_writer *writer, void *context) {
    const bp_source *source = context;
    bp_heap_prober_options options = BP_HEAP_PROBER_OPTIONS_INIT;
    bp_heap_prober *prober = NULL;
    bp_subject_process *processes = NULL;
    size_t count = 0;
    struct readings readings = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    options.calibrator_path = source->helper_path;
    /* A report of a host waits less long for a calibration than the command does. */
    uint64_t reading_ms = (uint64_t)source->timeout_ms * BP_SOURCE_READING_PERCENT / 100;
    if (reading_ms < options.calibration_timeout_ms) {
        options.calibration_timeout_ms = (uint32_t)reading_ms;
    }
    bugpack_status status = bp_heap_prober_new(&options, &prober, &error);
    if (status == BUGPACK_OK) {
        status = bp_subject_list(source->subject, &processes, &count, &error);
    }
    uint64_t end_ns = bp_source_deadline_ns(source, BP_SOURCE_READING_PERCENT);
    if (status == BUGPACK_OK) {
        status = probe_all(source, prober, processes, count, end_ns, &readings, &error);
    }
    uint64_t again_ns =
        bp_clock_monotonic_ns() + source->window_ms * BP_NS_PER_MS * again_percent / 100;
    if (status == BUGPACK_OK && source->window_ms > 0) {
        again_ns = again_ns < end_ns ? again_ns : end_ns;
        status = probe_again(source, prober, again_ns, &readings, &error);
    }
    if (status == BUGPACK_OK) {
        status = write_readings(&readings, writer, &error);
    }
    for (size_t i = 0; i < readings.count; i++) {
        bp_thread_heap_reading_release(&readings.items[i]);
    }
    free(readings.items);
    free(processes);
    bp_heap_prober_free(prober);
    return bp_source_end(writer, status, &error);
}
