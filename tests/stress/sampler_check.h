/*
 * What the sampler's live tests share.
 */
#ifndef TESTS_STRESS_SAMPLER_CHECK_H
#define TESTS_STRESS_SAMPLER_CHECK_H

#include <math.h>

#include "process/sampler.h"
#include "support/check.h"

/* Checks a status and shows the sentence when it is another. */
#define CHECK_STATUS(call, expected, error)                                                        \
    do {                                                                                           \
        bugpack_status status_ = (call);                                                           \
        if (status_ != (expected)) {                                                               \
            (void)fprintf(stderr, "%s:%d: %s gives %d: %s\n", __FILE__, __LINE__, #call, status_,  \
                          (error).message);                                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* What holds for the metrics of any process that has memory. */
static inline void check_sane(const bp_metrics *metrics) {
    CHECK(isfinite(metrics->cpu_percent) && metrics->cpu_percent >= 0);
    CHECK(metrics->has_uptime && isfinite(metrics->uptime_secs) && metrics->uptime_secs >= 0);
    CHECK(metrics->has_memory && metrics->rss_kb > 0 && metrics->vm_size_kb >= metrics->rss_kb);
    CHECK(metrics->thread_count > 0);
    for (size_t i = 0; i < metrics->thread_count; i++) {
        CHECK(isfinite(metrics->threads[i].cpu_percent) && metrics->threads[i].cpu_percent >= 0);
        CHECK(i == 0 || metrics->threads[i - 1].tid < metrics->threads[i].tid);
    }
}

#endif
