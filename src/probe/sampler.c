#include "probe/sampler.h"

#include <stdlib.h>

#include "base/status.h"

struct bp_sampler {
    bp_task *task;
    bool has_first;
    bp_task_snapshot first;
};

static bugpack_status open_sampler(pid_t pid, bool with_descendants, bp_sampler **ret_sampler,
                                   bugpack_error *error) {
    bp_sampler *sampler = calloc(1, sizeof *sampler);
    if (sampler == NULL) {
        return bp_fail_memory(error, "open a sampler");
    }
    bugpack_status status = with_descendants ? bp_task_open_tree(pid, &sampler->task, error)
                                             : bp_task_open(pid, &sampler->task, error);
    if (status != BUGPACK_OK) {
        free(sampler);
        return status;
    }
    *ret_sampler = sampler;
    return BUGPACK_OK;
}

bugpack_status bp_sampler_open(pid_t pid, bp_sampler **ret_sampler, bugpack_error *error) {
    return open_sampler(pid, false, ret_sampler, error);
}

bugpack_status bp_sampler_open_tree(pid_t pid, bp_sampler **ret_sampler, bugpack_error *error) {
    return open_sampler(pid, true, ret_sampler, error);
}

static void drop_first(bp_sampler *sampler) {
    bp_task_snapshot_release(&sampler->first);
    sampler->has_first = false;
}

void bp_sampler_close(bp_sampler *sampler) {
    if (sampler != NULL) {
        drop_first(sampler);
        bp_task_close(sampler->task);
        free(sampler);
    }
}

bp_task *bp_sampler_task(bp_sampler *sampler) {
    return sampler->task;
}

bugpack_status bp_sampler_begin(bp_sampler *sampler, bugpack_error *error) {
    drop_first(sampler);
    /* Names are read once a window, with the threads that will be reported. */
    bugpack_status status = bp_task_snapshot_take(sampler->task, false, &sampler->first, error);
    sampler->has_first = status == BUGPACK_OK;
    return status;
}

bugpack_status bp_sampler_end(bp_sampler *sampler, bp_metrics *ret_metrics, bugpack_error *error) {
    if (!sampler->has_first) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the sampler has no open window");
    }
    bp_task_snapshot second = {0};
    bugpack_status status = bp_task_snapshot_take(sampler->task, true, &second, error);
    if (status == BUGPACK_OK) {
        status = bp_metrics_compute(&sampler->first, &second, ret_metrics, error);
    }
    bp_task_snapshot_release(&second);
    drop_first(sampler);
    return status;
}
