#include <stdlib.h>

#include "base/buffer.h"
#include "base/status.h"
#include "ring/recovery_scan.h"

/* Runs beyond this many are damage: a ring that was not attacked has two, and a few per tear. */
#define RUN_MAX 4096

/* Frames that follow each other without a gap, in place and in sequence. */
typedef struct run {
    uint64_t offset, end;
    uint64_t first_sequence, last_sequence;
    bool is_free; /* where the header says that nothing is */
    bool is_wanted;
} run;

typedef struct salvage {
    bp_recovery_scan scan;
    run *runs;
    size_t run_count;
    bp_sink *sink;
    void *context;
    bp_ring_view view;
} salvage;

/* Adds a frame to the newest run, or begins one. False when there are too many. */
static bool note_frame(salvage *it, uint64_t offset, uint64_t end, uint64_t sequence) {
    run *last = it->run_count > 0 ? &it->runs[it->run_count - 1] : NULL;
    bool is_free = bp_recovery_skip_free(&it->scan, offset) != offset;
    if (last != NULL && last->end == offset && last->last_sequence + 1 == sequence &&
        last->is_free == is_free) {
        last->end = end;
        last->last_sequence = sequence;
        return true;
    }
    if (it->run_count == RUN_MAX) {
        return false;
    }
    it->runs[it->run_count++] = (run){offset, end, sequence, sequence, is_free, false};
    return true;
}

/*
 * Finds the runs: from offset 0, where a frame begins in every turn, to the end. Where no frame
 * begins it looks at each following word, but goes over what the header says is free.
 */
static void find_runs(salvage *it) {
    bp_recovery_scan *scan = &it->scan;
    uint64_t offset = 0;
    while (offset < scan->capacity) {
        bp_ring_record record;
        uint64_t frame_bytes = bp_recovery_frame(scan, offset, &record);
        if (frame_bytes > 0 && note_frame(it, offset, offset + frame_bytes, record.sequence)) {
            offset += frame_bytes;
            continue;
        }
        uint64_t next = bp_recovery_skip_free(scan, offset);
        if (next == offset && bp_recovery_is_pad(scan, offset)) {
            next = scan->capacity;
        } else if (next == offset) {
            it->view.damaged_bytes += bp_recovery_is_damage(scan, offset) ? 8 : 0;
            next += 8;
        }
        offset = next;
    }
}

/* By insertion: they are few, and nearly in order. */
static void sort_runs(run *runs, size_t run_count) {
    for (size_t i = 1; i < run_count; i++) {
        run moving = runs[i];
        size_t to = i;
        while (to > 0 && runs[to - 1].first_sequence > moving.first_sequence) {
            runs[to] = runs[to - 1];
            to--;
        }
        runs[to] = moving;
    }
}

/*
 * What lies in free space has made room, and is wanted only where nothing is missing between it and
 * the rest: before it (its bytes were not needed yet), or after it (the header is older than the
 * data, as when the power went). Frames of an earlier turn that survive behind a pad are not. When
 * nothing is in use, the header is believed least of all.
 */
static void choose_runs(run *runs, size_t run_count) {
    bool has_used = false;
    for (size_t i = 0; i < run_count; i++) {
        has_used = has_used || !runs[i].is_free;
    }
    for (size_t i = run_count; i-- > 0;) {
        bool leads_on = i + 1 < run_count && runs[i + 1].is_wanted &&
                        runs[i].last_sequence + 1 == runs[i + 1].first_sequence;
        runs[i].is_wanted = !runs[i].is_free || !has_used || leads_on;
    }
    for (size_t i = 1; i < run_count; i++) {
        bool follows =
            runs[i - 1].is_wanted && runs[i - 1].last_sequence + 1 == runs[i].first_sequence;
        runs[i].is_wanted = runs[i].is_wanted || follows;
    }
}

static void note_record(bp_ring_view *view, const bp_ring_record *record) {
    if (view->record_count++ == 0) {
        view->first_sequence = record->sequence;
        view->first_ns = view->last_ns = record->monotonic_ns;
    }
    view->last_sequence = record->sequence;
    view->first_ns = record->monotonic_ns < view->first_ns ? record->monotonic_ns : view->first_ns;
    view->last_ns = record->monotonic_ns > view->last_ns ? record->monotonic_ns : view->last_ns;
}

/* Gives the records of a run to the sink: those that come after all that it has had. */
static bugpack_status give_run(salvage *it, const run *from) {
    uint64_t offset = from->offset;
    while (offset < from->end) {
        /* Looked at again: nobody promises that the file is still what it was a moment ago. */
        bp_ring_record record;
        uint64_t frame_bytes = bp_recovery_frame(&it->scan, offset, &record);
        if (frame_bytes == 0) {
            it->view.damaged_bytes += from->end - offset;
            return BUGPACK_OK;
        }
        if (record.sequence > it->view.last_sequence) {
            bugpack_status status =
                bp_recovery_give(&it->scan, offset, &record, it->sink, it->context);
            if (status != BUGPACK_OK) {
                return status;
            }
            note_record(&it->view, &record);
        }
        offset += frame_bytes;
    }
    return BUGPACK_OK;
}

bugpack_status bp_ring_recover(int fd, bp_sink *sink, void *context, bp_ring_view *ret_view,
                               bugpack_error *error) {
    salvage it = {.sink = sink, .context = context};
    bugpack_status status = bp_recovery_open(&it.scan, fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    it.runs = malloc(RUN_MAX * sizeof it.runs[0]);
    if (it.runs == NULL) {
        status = bp_fail_memory(error, "salvage a ring");
        goto out;
    }
    find_runs(&it);
    sort_runs(it.runs, it.run_count);
    choose_runs(it.runs, it.run_count);
    bp_recovery_restart(&it.scan);
    for (size_t i = 0; status == BUGPACK_OK && i < it.run_count; i++) {
        status = it.runs[i].is_wanted ? give_run(&it, &it.runs[i]) : BUGPACK_OK;
    }
    if (status != BUGPACK_OK) {
        (void)bp_fail(error, status, "what a ring held could not be passed on");
        goto out;
    }
    uint64_t newest = it.view.last_sequence;
    it.view.evicted_count = newest > it.view.record_count ? newest - it.view.record_count : 0;
    it.view.refused_count = it.scan.refused_count;
    *ret_view = it.view;

out:
    free(it.runs);
    bp_recovery_close(&it.scan);
    return status;
}
