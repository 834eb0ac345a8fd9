#include <stdlib.h>

#include <bugpack/sample.h>

#include "base/status.h"
#include "model/metrics.h"
#include "session/session.h"

static const size_t json_limit_bytes = (size_t)256 << 20;

static bugpack_status sample(pid_t pid, uint32_t window_ms, char **ret_json, size_t *ret_bytes,
                             bugpack_error *error) {
    if (window_ms > BUGPACK_SAMPLE_WINDOW_MAX_MS) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "window_ms must be at most %u, is %u",
                       BUGPACK_SAMPLE_WINDOW_MAX_MS, (unsigned)window_ms);
    }
    bp_buffer json;
    bp_buffer_init(&json, json_limit_bytes);
    bp_sampler *sampler = NULL;
    bp_metrics metrics;
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_sampler_open(pid, false, &sampler, &detail);
    uint64_t began_ns = bp_clock_monotonic_ns();
    if (status == BUGPACK_OK) {
        status = bp_sampler_begin(sampler, &detail);
    }
    if (status == BUGPACK_OK) {
        bp_clock_sleep_until(began_ns + window_ms * BP_NS_PER_MS);
        status = bp_sampler_end(sampler, &metrics, &detail);
        if (status == BUGPACK_OK && detail.status != BUGPACK_OK) { /* it has ended */
            bp_metrics_release(&metrics);
            status = detail.status;
        }
    }
    if (status == BUGPACK_OK) {
        status = bp_metrics_print(&metrics, bp_machine_platform(), &json, &detail);
        bp_metrics_release(&metrics);
    } else if (status == BUGPACK_ERR_UNSUPPORTED) {
        /* The absence of metrics is an answer too. */
        bugpack_error reason = detail;
        status =
            bp_metrics_print_unavailable(bp_machine_platform(), reason.message, &json, &detail);
    }
    bp_sampler_close(sampler);
    if (status != BUGPACK_OK) {
        bp_buffer_release(&json);
        if (error != NULL) {
            *error = detail;
        }
        return status;
    }
    *ret_json = json.data;
    if (ret_bytes != NULL) {
        *ret_bytes = json.size;
    }
    return BUGPACK_OK;
}

bugpack_status bugpack_sample(pid_t pid, uint32_t window_ms, char **ret_json, size_t *ret_bytes,
                              bugpack_error *error) {
    bp_thread_hold hold;
    bp_thread_hold_begin(&hold);
    bugpack_status status = sample(pid, window_ms, ret_json, ret_bytes, error);
    bp_thread_hold_end(&hold);
    return status;
}
