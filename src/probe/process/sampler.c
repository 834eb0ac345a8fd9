#include "process/sampler.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

struct bp_sampler {
    bp_task *task;
    bool is_open;
    bool is_shared;         /* `first` outlives its window */
    bp_task_snapshot first; /* of the open window, or of one before */
    bool has_last;
    bp_task_snapshot last; /* for when the process has ended at the end of the window */
    bp_memory_sample memory[BP_METRICS_MEMORY_MAX];
    size_t memory_count;
    bp_child_watch *children; /* NULL: nobody looks at them */
};

bugpack_status bp_sampler_open(pid_t pid, bool with_descendants, bp_sampler **ret_sampler,
                               bugpack_error *error) {
    bp_sampler *sampler = calloc(1, sizeof *sampler);
    if (sampler == NULL) {
        return bp_fail_memory(error, "open a sampler");
    }
    bugpack_status status = bp_task_open(pid, with_descendants, &sampler->task, error);
    if (status != BUGPACK_OK) {
        free(sampler);
        return status;
    }
    *ret_sampler = sampler;
    return BUGPACK_OK;
}

static void drop_window(bp_sampler *sampler) {
    bp_task_snapshot_release(&sampler->first);
    bp_task_snapshot_release(&sampler->last);
    bp_child_watch_free(sampler->children);
    sampler->children = NULL;
    sampler->is_open = sampler->is_shared = false;
    sampler->has_last = false;
    sampler->memory_count = 0;
}

void bp_sampler_close(bp_sampler *sampler) {
    if (sampler != NULL) {
        drop_window(sampler);
        bp_task_close(sampler->task);
        free(sampler);
    }
}

bp_task *bp_sampler_task(bp_sampler *sampler) {
    return sampler->task;
}

typedef bugpack_status snapshot_taker(bp_task *, bool with_names, bp_task_snapshot *,
                                      bugpack_error *);

/* A snapshot with the switches of its threads. */
static bugpack_status take(bp_sampler *sampler, snapshot_taker *take_counters, bool with_names,
                           bp_task_snapshot *ret_snapshot, bugpack_error *error) {
    bp_task_snapshot snapshot = {0};
    bugpack_status status = take_counters(sampler->task, with_names, &snapshot, error);
    if (status == BUGPACK_OK) {
        status = bp_task_read_switches(sampler->task, &snapshot, error);
    }
    if (status == BUGPACK_OK) {
        *ret_snapshot = snapshot;
    } else {
        bp_task_snapshot_release(&snapshot);
    }
    return status;
}

/* The last place is the newest one's. */
static void note_memory(bp_sampler *sampler, const bp_task_snapshot *snapshot) {
    if (snapshot->has_memory) {
        sampler->memory_count -= sampler->memory_count == BP_METRICS_MEMORY_MAX;
        bp_memory_sample *sample = &sampler->memory[sampler->memory_count++];
        *sample = (bp_memory_sample){.taken_ns = snapshot->taken_ns,
                                     .rss_kb = snapshot->rss_bytes / 1024,
                                     .vm_size_kb = snapshot->vm_size_bytes / 1024,
                                     .thread_count = snapshot->thread_count};
        (void)bp_task_count_files(sampler->task, &sample->file_count, NULL);
        sample->has_children = bp_child_watch_count(sampler->children, &sample->child_count);
    }
}

bugpack_status bp_sampler_begin(bp_sampler *sampler, bugpack_error *error) {
    drop_window(sampler);
    /* Names are read once a window, with the threads that will be reported. */
    bugpack_status status = take(sampler, bp_task_snapshot_take, false, &sampler->first, error);
    sampler->is_open = status == BUGPACK_OK;
    if (status == BUGPACK_OK) {
        sampler->children = bp_child_watch_new(sampler->task);
        (void)bp_child_watch_look(sampler->children);
        note_memory(sampler, &sampler->first);
    }
    return status;
}

bugpack_status bp_sampler_begin_since(bp_sampler *sampler, uint64_t since_ns,
                                      bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    if (!sampler->is_shared || sampler->first.taken_ns < since_ns) {
        status = bp_sampler_begin(sampler, error);
    }
    sampler->is_open = sampler->is_shared = status == BUGPACK_OK;
    return status;
}

void bp_sampler_forget(bp_sampler *sampler) {
    if (!sampler->is_open) {
        drop_window(sampler);
    }
}

uint64_t bp_sampler_began_ns(const bp_sampler *sampler) {
    return sampler->first.taken_ns;
}

bugpack_status bp_sampler_keep(bp_sampler *sampler, bugpack_error *error) {
    bp_task_snapshot now = {0};
    bugpack_status status = take(sampler, bp_task_snapshot_take, true, &now, error);
    if (status == BUGPACK_OK) {
        bp_task_snapshot_release(&sampler->last);
        sampler->last = now;
        sampler->has_last = true;
        note_memory(sampler, &now);
    }
    return status;
}

bool bp_sampler_look(bp_sampler *sampler) {
    return bp_child_watch_look(sampler->children);
}

bugpack_status bp_sampler_end(bp_sampler *sampler, bp_metrics *ret_metrics, bugpack_error *error) {
    if (!sampler->is_open) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the sampler has no open window");
    }
    bp_task_snapshot second = {0};
    bugpack_status status = take(sampler, bp_task_snapshot_take_last, true, &second, error);
    if (status == BUGPACK_ERR_NO_PROCESS && sampler->has_last) {
        status = bp_metrics_compute(&sampler->first, &sampler->last, ret_metrics, NULL);
    } else if (status == BUGPACK_OK) {
        note_memory(sampler, &second);
        status = bp_metrics_compute(&sampler->first, &second, ret_metrics, error);
    }
    if (status == BUGPACK_OK) {
        memcpy(ret_metrics->memory, sampler->memory, sizeof sampler->memory);
        ret_metrics->memory_count = sampler->memory_count;
        ret_metrics->children = bp_child_watch_result(sampler->children);
    }
    bp_task_snapshot_release(&second);
    bp_task_snapshot_release(&sampler->last);
    sampler->is_open = sampler->has_last = false;
    sampler->memory_count = sampler->memory_count > 0; /* that of the first snapshot */
    if (!sampler->is_shared) {
        drop_window(sampler);
    }
    return status;
}
