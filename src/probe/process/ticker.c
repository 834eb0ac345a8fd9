#include "process/ticker.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"

struct bp_ticker {
    bp_task *task;
    uint32_t interval_ms, cost_percent_max;
    bp_ticker_sample *sample;
    void *context;
    uint64_t slot_ns; /* of the next tick; 0: the first one */
};

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

uint64_t bp_ticker_next_slot(const bp_tick *tick, uint64_t interval_ns, uint32_t cost_percent_max) {
    uint64_t next_ns = tick->slot_ns + interval_ns;
    uint64_t earliest_ns = larger(tick->ended_ns, tick->began_ns + interval_ns / 2);
    if (cost_percent_max != 0) {
        /* When the CPU time of the tick has spread over so much that it is within the bound. */
        earliest_ns = larger(earliest_ns, tick->began_ns + tick->cpu_ns * 100 / cost_percent_max);
    }
    if (earliest_ns > next_ns) {
        uint64_t missed_count = (earliest_ns - next_ns + interval_ns - 1) / interval_ns;
        next_ns += missed_count * interval_ns;
    }
    return next_ns;
}

/* Samples, and fills in what `tick` does not have yet. */
static bugpack_status sample(bp_ticker *ticker, bp_tick *tick) {
    bp_task_snapshot snapshot = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    uint64_t cpu_before_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    tick->began_ns = bp_clock_monotonic_ns();
    bp_task_reread_names(ticker->task);
    bugpack_status status = bp_task_snapshot_take(ticker->task, true, &snapshot, &error);
    ticker->sample(ticker->context, status == BUGPACK_OK ? &snapshot : NULL, &error);
    bp_task_snapshot_release(&snapshot);
    tick->ended_ns = bp_clock_monotonic_ns();
    tick->cpu_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_before_ns;
    return status;
}

bugpack_status bp_ticker_sample_now(void *context, bp_task_snapshot *ret_snapshot,
                                    bugpack_error *error) {
    bp_ticker *ticker = context;
    return bp_task_snapshot_take_last(ticker->task, true, ret_snapshot, error);
}

uint64_t bp_ticker_tick(void *context, uint64_t now_ns) {
    bp_ticker *ticker = context;
    if (ticker->slot_ns == 0) {
        ticker->slot_ns = now_ns;
    }
    if (now_ns >= ticker->slot_ns && ticker->slot_ns != UINT64_MAX) {
        bp_tick tick = {.slot_ns = ticker->slot_ns};
        ticker->slot_ns = sample(ticker, &tick) == BUGPACK_ERR_NO_PROCESS
                              ? UINT64_MAX
                              : bp_ticker_next_slot(&tick, ticker->interval_ms * BP_NS_PER_MS,
                                                    ticker->cost_percent_max);
    }
    return ticker->slot_ns;
}

bugpack_status bp_ticker_new(const bp_task *task, uint32_t interval_ms, uint32_t cost_percent_max,
                             bp_ticker_sample *on_sample, void *context, bp_ticker **ret_ticker,
                             bugpack_error *error) {
    bp_ticker *ticker = calloc(1, sizeof *ticker);
    if (ticker == NULL) {
        return bp_fail_memory(error, "sample a process");
    }
    bugpack_status status = bp_task_clone(task, &ticker->task, error);
    if (status != BUGPACK_OK) {
        free(ticker);
        return status;
    }
    ticker->interval_ms = interval_ms;
    ticker->cost_percent_max = cost_percent_max;
    ticker->sample = on_sample;
    ticker->context = context;
    *ret_ticker = ticker;
    return BUGPACK_OK;
}

void bp_ticker_free(bp_ticker *ticker) {
    if (ticker != NULL) {
        bp_task_close(ticker->task);
        free(ticker);
    }
}
